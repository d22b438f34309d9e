"""Protocols of any number of CTAs that are alike, right and broken: proofs, bounds, smallest numbers, engines."""

from __future__ import annotations

import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mcheck.answers.result import Answer, AnyCtas
from mcheck.base.reasons import format_reasons
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from mcheck.ir.cta_family import NotAlike
from tests.fuzz.any_ctas import compare, generate

FOLDER = Path(__file__).parent / "any_ctas"
TWINS: dict[str, list[dict[str, Any]]] = tomllib.loads((FOLDER / "twins.toml").read_text())
PROVED = (
    "bulk_stores", "exchange", "grid_barrier", "last_block", "last_block_of_threads", "last_block_set_back",
    "leader_barrier", "one_flag", "own_groups", "own_ring", "ring_to_last", "scan", "split_k_reduced", "sum_of_all",
    "tickets", "tiles_to_last", "turn", "turn_of_threads",
)  # fmt: skip
BOUNDED = ("gather",)
LONG = ("last_block_of_threads", "own_groups", "own_ring", "turn_of_threads")
"""Protocols of which the explicit engine, or Z3, takes minutes with three CTAs, six threads."""
OF_WARPS = ("ring_to_last",)
"""A protocol of whole warps, which the explicit engine does not follow to the end."""
SEEDS = 40
FEW = 6
BROKEN = [(name, k) for name, twins in TWINS.items() for k in range(len(twins))]


def text_of(name: str, twin: int | None = None) -> str:
    text = (FOLDER / f"{name}.litmus").read_text()
    if twin is None:
        return text
    edit = TWINS[name][twin]
    assert edit["old"] in text
    return text.replace(edit["old"], edit["new"])


def about(text: str, *, brief: bool = True) -> Answer:
    program = parse(text, "any.litmus", every=True)
    return ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, brief=brief))


def errors(given: Answer) -> set[str]:
    return {f.code for f in given.findings if f.severity == "error"}


def test_every_protocol_is_listed() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.litmus")) == sorted((*PROVED, *BOUNDED))
    assert TWINS.keys() == {*PROVED, *BOUNDED}


@pytest.mark.parametrize("name", PROVED)
@pytest.mark.daily
def test_right_protocols_are_proved_for_every_number(name: str) -> None:
    found = about(text_of(name))
    assert (found.verdict, found.findings, found.covered) == ("proved", (), True)
    assert found.ctas is not None
    assert found.ctas.every
    assert (format_reasons(found.reasons) or "").startswith("for every number of CTAs: ")
    assert any(a.startswith("sizes as written: any number of CTAs") for a in found.assumptions)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.daily(days=4)
def test_other_right_protocols_are_bounded(name: str) -> None:
    found = about(text_of(name))
    assert (found.verdict, found.findings, found.covered) == ("bounded", (), False)
    assert found.ctas is not None
    assert not found.ctas.every
    assert found.ctas.together >= 4
    assert "that more threads do what these do is not proved (" in (format_reasons(found.reasons) or "")


@pytest.mark.parametrize(("name", "twin"), BROKEN)
@pytest.mark.daily
def test_the_smallest_number_with_an_error_is_found(name: str, twin: int) -> None:
    expected = TWINS[name][twin]
    found = about(text_of(name, twin))
    assert (found.verdict, found.covered) == ("finding", False)
    assert expected["code"] in errors(found)
    constant = "G" if "const G" in text_of(name) else "any"
    assert f"found with {constant} = {expected['number']}, the smallest such value" in (
        format_reasons(found.reasons) or ""
    )


SMALL = [
    (name, twin, number)
    for name, twin in [*((name, None) for name in (*PROVED, *BOUNDED)), *BROKEN]
    if name not in OF_WARPS
    for number in ((2,) if name in LONG else (2, 3))
]


@pytest.mark.parametrize(("name", "twin", "number"), SMALL)
@pytest.mark.daily
def test_engines_agree_on_two_and_three(name: str, twin: int | None, number: int) -> None:
    program = parse(text_of(name, twin), "any.litmus", every=True)
    assert program.instance is not None
    question, model = Question(about=Completeness.FINDINGS, timeout=120), load_model("ptx-9.0")
    explicit, z3 = (ask(program.instance(number), model, question, engine) for engine in ("explicit", "z3"))
    assert explicit.verdict == z3.verdict
    assert errors(explicit) == errors(z3)
    broken = twin is not None and number >= TWINS[name][twin]["number"]
    assert explicit.verdict == ("finding" if broken else "proved")


BAD = {
    "if (%ctaid.x == 0) { st.global.u32 [y], 1; }": "a branch depends on what differs between CTAs",
    "ld.global.u32 r9, [x]; setp.eq.u32 %p9, r9, 1; @%p9 ld.global.u32 r8, [x];": "a predicate depends on what differs",
    "st.global.u32 [x + 4*%ctaid.x*%ctaid.x], 1;": "an address depends on what differs between CTAs",
    "ld.global.u32 r1, [x + 4*%ctaid.x + 4];": "an access of x may leave it with G = 1",
    "st.global.u32 [y], 1;": "CTAs 0 and 1 of 3 alone are not proved",
    "red.relaxed.gpu.global.add.u32 [count], 1;": "a CTA does not count itself exactly once",
    "atom.relaxed.gpu.global.add.u32 r9, [y], 2;": "CTAs also share words by strong accesses or atomics",
    "ld.relaxed.gpu.global.u32 r9, [count];": "the counter is accessed otherwise than by one atomic of each CTA",
    "st.shared.u32 [s], r0; ld.shared.u32 r9, [s]; if (r9 == 1) { }": "a branch depends on what differs between CTAs",
    "if (r0 == 3) { ld.global.u32 r9, [x]; }": "a branch depends on what differs between CTAs",
    "if (r0 >= G - 2) { ld.global.u32 r9, [x]; }": "a branch depends on what differs between CTAs",
    "for k in 0..G { fence.acq_rel.gpu; }": "is not followed here",
    "for k in 0..G { ld.relaxed.gpu.global.u32 r9, [y]; }": "strong accesses of words that differ between CTAs",
    "loop: ld.global.u32 r9, [x];": "a label: only `await` and `if` are followed",
    "for k in 5..G { st.global.u32 [y], 1; }": "conflict in larger grids",
    "setp.eq.u32 %p1, r0, G + 4294967292; if (%p1) { ld.global.u32 r9, [x]; }": "a branch depends on what differs",
    "red.relaxed.gpu.global.inc.u32 [count], 4294967295;": "the counter is accessed otherwise than by one atomic",
    "st.global.u32 [wide + 4*%ctaid.x], 1; ld.global.u32 r9, [wide + 4*%ctaid.x + 28];": "conflict in larger grids",
}
COUNTED = """PTX counted
const G = any;
{{
  .global .u32 x[G], wide[G + 7], y, count = 0; .global .align 16 .b8 tile[16];
  .shared .u32 s; .shared .align 16 .b8 buf[16]; .shared .b64 full;
}}
block@cta 0..G {{
  st.global.u32 [x + 4*%ctaid.x], 1;
  atom.acq_rel.gpu.global.add.u32 r0, [count], 1;
  {}
}}
"""


@pytest.mark.parametrize("statement", BAD)
@pytest.mark.daily
def test_a_condition_that_does_not_hold_is_named(statement: str) -> None:
    program = parse(COUNTED.format(statement), "any.litmus", every=True)
    found = ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, brief=True, timeout=5))
    assert found.verdict != "proved"
    assert found.ctas is None or not found.ctas.every
    why = {r.what for reason in found.reasons for r in reason.because}
    if found.verdict == "bounded":
        assert any(BAD[statement] in what for what in why), why


LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
REDUCE = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
REDUCE_WIDE = REDUCE.replace("u32", "u64")
UNCOVERED = {
    f"{LOAD}.multicast::cluster [buf], [tile], 16, [full], 1;": "is not followed",
    "cp.async.bulk.prefetch.L2.global [tile], 16;": "is not followed",
    "for k in 0..G { fence.proxy.async; }": "is not followed in a loop over the CTAs",
    "cp.async.ca.shared.global [buf], [tile], 16, 8;": "is not followed",
    f"{LOAD} [buf], [tile], 16*G, [full];": "an operand depends on what differs",
    f"{REDUCE} [count], [buf], 16;": "is not followed",
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], %ctaid.x;": "an operand depends on what differs",
    "await mbarrier.try_wait.parity.shared::cta.b64 [full], %ctaid.x % 2;": "an operand depends on what differs",
    f"{LOAD} [buf], [tile], 16, [full]; await ld.shared.u32 r9, [buf] == 1;": "a wait depends on what differs",
    f"{LOAD} [buf], [tile], 16, [full]; ld.shared.u32 r9, [buf + 4]; if (r9 == 1) {{ }}": "a branch depends on what",
    f"{LOAD} [buf + 4], [tile], 16, [full]; ld.shared.u32 r9, [s]; if (r9 == 1) {{ }}": "a branch depends on what",
    f"{LOAD} [buf], [tile + 4*%ctaid.x], 16, [full];": "an access may not be aligned",
    "red.relaxed.cta.global.add.u32 [y], 3;": "y is reduced into at a narrow scope",
    f"red.relaxed.gpu.global.add.u32 [tile], 3; {REDUCE} [tile], [buf], 16;": "by instructions of several kinds",
    "red.relaxed.gpu.global.add.u32 [x + 4*%ctaid.x], 3;": "reduced into at places that differ between CTAs",
    "ld.relaxed.gpu.global.u32 r9, [y]; red.relaxed.gpu.global.add.u32 [y], 3;": "share words by strong accesses",
    f"ld.relaxed.gpu.global.u32 r9, [tile]; {REDUCE} [tile], [buf], 16;": "a word is reduced into by copies",
    "if (r0 == G - 1) { st.global.u32 [y], 3; } red.relaxed.gpu.global.add.u32 [y], 3;": "y is written weakly",
    f"{REDUCE} [tile], [buf], 16; {REDUCE_WIDE} [tile], [buf], 16;": "by instructions of several kinds",
}
"""Copies and reductions that the argument does not cover."""


def why_not(text: str) -> str:
    """Why the CTAs of a sketch are not alike."""
    program = parse(text, "any.litmus", every=True)
    assert program.family is not None
    with pytest.raises(NotAlike) as found:
        program.family()
    return found.value.why


@pytest.mark.parametrize("statement", UNCOVERED)
def test_copies_that_are_not_covered_are_named(statement: str) -> None:
    assert UNCOVERED[statement] in why_not(COUNTED.format(statement))


LOOKED_AT = """PTX looked-at
const G = any;
{{ .global .u32 w[8], x; }}
leader@cta 0 {{ {} }}
block@cta 1..G + 1 {{ ld.global.u32 r1, [x]; {} }}
"""
IN_ONES_OWN = "red.relaxed.gpu.global.add.u32 [w + 4*%ctaid.x - 4], 1;"
REDUCED_AND_LOOKED_AT = {
    "ld.relaxed.gpu.global.u32 r0, [w];": IN_ONES_OWN,
    "ld.relaxed.gpu.global.u32 r0, [w + 4]; if (r0 == 4) { st.global.u32 [x], 1; }": (
        "red.relaxed.gpu.global.add.u32 [w + 4*(%ctaid.x % 2)], 1;"
    ),
    "ld.relaxed.gpu.global.u32 r0, [w + 24];": "red.relaxed.cta.global.add.u32 [w + 4*(%ctaid.x % 7)], 1;",
    "st.relaxed.gpu.global.u32 [w + 28], 1;": IN_ONES_OWN,
}
"""What one CTA does with words into which the others reduce at places that differ: an access out of bounds, a race or
another value, but not with few of them.
"""


@pytest.mark.parametrize("look", REDUCED_AND_LOOKED_AT)
def test_words_reduced_into_at_other_places_are_accessed_in_no_other_way(look: str) -> None:
    why = why_not(LOOKED_AT.format(look, REDUCED_AND_LOOKED_AT[look]))
    assert "w is accessed strongly, and reduced into at places that differ" in why


TURNS = """PTX turns
const G = any;
{{ .global .u32 out, x[G + 1], turn = 0, next = 0, flag[G + 2] = {{1}}; }}
block@cta 0..G {{ {} }}
"""
WAIT, WORK, PASS = (
    "await ld.acquire.gpu.u32 r0, [turn] == %ctaid.x;", "st.global.u32 [out], 1;",
    "st.release.gpu.global.u32 [turn], %ctaid.x + 1;",
)  # fmt: skip
LOOK, FLAG = "await ld.acquire.gpu.u32 r0, [flag + 4*%ctaid.x]", "st.release.gpu.global.u32 [flag + 4*%ctaid.x"
DRAW = "atom.relaxed.gpu.global.add.u32 r2, [next], 1; await ld.acquire.gpu.u32 r0, [turn] == r2;"
DRAWN = "add.u32 r3, r2, 1; st.release.gpu.global.u32 [turn], r3;"
LATE_FENCE = WAIT.replace("acquire", "relaxed") + WORK + PASS + "fence.acq_rel.gpu;"
NO_TURNS = {
    WORK + PASS: "a CTA does not wait once for the one before",
    f"{WAIT} {WORK} {PASS} {PASS}": "a CTA does not wait once for the one before",
    f"{PASS} {WAIT} {WORK}": "a CTA does not signal by the thread that has waited, afterwards",
    LATE_FENCE: "a signal does not release what the wait before it acquires",
    WAIT + WORK + PASS.replace("release", "relaxed"): "a signal does not release what the wait before it acquires",
    WAIT + WORK + PASS.replace("gpu", "cta"): "at a narrow scope",
    WAIT.replace("==", ">=") + WORK + PASS: "is not for one value",
    WAIT + WORK + PASS.replace("+ 1", "+ 2"): "a signal is not what the next CTA waits for",
    WAIT.replace("%ctaid.x", "%ctaid.x + 1") + WORK + PASS.replace("+ 1", "+ 2"): "does not let the first CTA through",
    WAIT.replace("%ctaid.x", "G - %ctaid.x") + WORK + PASS: "signals depend on something else",
    f"{WAIT} {WORK} ld.global.u32 r9, [turn]; {PASS}": "a word by which CTAs signal is accessed otherwise",
    f"{WAIT} {WORK} if (r0 == 3) {{ st.global.u32 [x], 1; }} {PASS}": "a branch depends on what differs between CTAs",
    f"{WAIT} {WORK} atom.relaxed.gpu.global.add.u32 r2, [next], 1; {PASS}": "both take turns and count themselves",
    f"{DRAW} st.global.u32 [x + 4*%ctaid.x], 1; {DRAWN}": "CTAs draw tickets, and access places by their numbers",
    f"{DRAW} setp.eq.u32 %p1, r2, G - 1; @%p1 {WORK} {DRAWN}": "both take turns and count themselves",
    f"{DRAW} {WORK} {PASS}": "CTAs draw tickets, and signal by their numbers",
    f"{LOOK} == 1; {FLAG} + 8], 1;": "a signal is not what the next CTA waits for",
    f"{LOOK} == 0; {FLAG} + 4], 0;": "does not let the first CTA through alone",
    f"{LOOK} == 0; {FLAG} + 4], 0;".replace("flag", "x"): "does not let the first CTA through alone",
    f"{LOOK} == 1; {FLAG} + 4], 1; red.relaxed.gpu.global.add.u32 [flag], 1;": "strong accesses of words that differ",
}
"""What is no turn, or not for sure."""


@pytest.mark.parametrize("statements", NO_TURNS)
def test_what_is_no_turn_is_named(statements: str) -> None:
    assert NO_TURNS[statements] in why_not(TURNS.format(statements))


LATE = {
    "for k in 3..G { st.global.u32 [y], 1; }": 4,
    "for k in 0..G - 3 { st.global.u32 [y], 1; }": 4,
    "for k in 3..%ctaid.x { st.global.u32 [y], 1; }": 6,
    "setp.eq.u32 %p1, r0, G + 4294967292; if (%p1) { for k in 0..G { ld.global.u32 r9, [x + 4*k]; } }": 4,
}
"""Statements with a race that no smaller number of CTAs shows."""


@pytest.mark.parametrize("statement", LATE)
@pytest.mark.daily
def test_a_race_that_few_ctas_do_not_show_is_found(statement: str) -> None:
    found = about(COUNTED.format(statement))
    assert found.verdict == "finding"
    assert f"found with G = {LATE[statement]}, the smallest such value" in (format_reasons(found.reasons) or "")


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.daily(days=40)
def test_no_number_contradicts_a_proof_for_every_number(seed: int) -> None:
    assert not compare(generate(Random(seed)).text).contradicted_by


@pytest.mark.daily(days=4, least=0)
def test_random_sketches_are_proved_and_refuted() -> None:
    found = [compare(generate(Random(seed)).text, ()) for seed in range(FEW)]
    assert any(one.is_proved for one in found)
    assert any(one.every is not None and one.every.verdict == "finding" for one in found)


def test_what_the_statements_are_added_to_is_proved() -> None:
    assert about(COUNTED.format("")).ctas == AnyCtas(every=True, together=3)


def test_an_edited_model_has_no_proof(tmp_path: Path) -> None:
    model = load_model("ptx-7.5")
    program = parse(text_of("one_flag"), "any.litmus", every=True)
    assert ask(program, model, Question(about=Completeness.FINDINGS)).verdict == "bounded"


@pytest.mark.parametrize("kind", ["copies", "turns"])
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.daily(days=40)
def test_no_number_contradicts_a_proof_about(kind: str, seed: int) -> None:
    assert not compare(generate(Random(seed), kind).text).contradicted_by
