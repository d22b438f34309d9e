"""A constant that is any number: what shows with some N is found, and what repeats is proved for all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, use_clock
from mcheck.base.errors import InputError, Unsupported
from mcheck.base.reasons import Cause, Reason, timeout_reason
from mcheck.cat import load_model
from mcheck.checking.policy import every_n
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.ir.program import Program
from mcheck.proofs.parametric_proof import Proof

RING = """PTX ring
const S = 2, N = any;
{{
  .global .align 16 .u32 src[4];
  .shared .align 16 .b8 buf[S][16];
  .shared .b64 full[S], empty[S];
}}
producer@cta 0, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 1;
  }}
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf[k%S]], [src], 16, [full[k%S]];
  }}
}}
consumer@cta 0, warp 1, lane 0 {{
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], {parity};
    ld.shared.u32 r0, [buf[k%S]];
    {fence}
    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];
  }}
}}
"""
FENCE = "fence.proxy.async.shared::cta;"


def about(text: str, seconds: float | None = None) -> Answer:
    program = parse(text, "any.litmus", every=True)
    return ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=seconds), "protocol")


@pytest.mark.daily
@pytest.mark.parametrize(
    ("parity", "fence", "smallest"),
    [
        ("(k/S)%2", "", 3),
        ("((k + S*(k*k > N*N))/S)%2", FENCE, None),
        ("((k + k*k/4096)/S)%2", FENCE, 66),
        ("((k & 63)/S + k/64)%2", FENCE, 65),
        ("((k + S*(k >= 9))/S)%2", FENCE, 10),
        ("((k + k/11)/S)%2", FENCE, 12),
    ],
)
def test_the_smallest_number_is_named(
    parity: str, fence: str, smallest: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(every_n, "LARGEST", 18)
    monkeypatch.setattr(every_n, "OPERATIONS", 0)
    given = about(RING.format(parity=parity, fence=fence))
    assert given.reason is not None
    assert not given.covered
    if smallest is None:
        assert (given.verdict, given.findings) == ("unknown", ())
        assert "0 to 8, 12, 18" in given.reason
    else:
        assert given.verdict == "finding"
        assert f"N = {smallest}, the smallest" in given.reason


@pytest.mark.parametrize(
    ("guard", "smallest"),
    [
        pytest.param("k == 302", 303, marks=pytest.mark.daily(days=4, least=0)),
        pytest.param("k*k + k >> 8 == 90", 153, marks=pytest.mark.daily(days=4, least=0)),
        pytest.param("k*k == 998001", 1000, marks=pytest.mark.slow),
        pytest.param("3*k == 3000", 1001, marks=pytest.mark.slow),
        pytest.param("k >= 1020", 1021, marks=pytest.mark.slow),
        pytest.param("k >> 8 == 3", 769, marks=pytest.mark.slow),
        pytest.param("k % 1021 == 1020", 1021, marks=pytest.mark.slow),
        pytest.param("N == 1021", 1021, marks=pytest.mark.slow),
        pytest.param("k + N >= 1000", 501, marks=pytest.mark.slow),
    ],
)
def test_an_error_in_a_late_round_is_found_and_all_smaller_numbers_are_proved(guard: str, smallest: int) -> None:
    given = about(RING.format(parity=f"((k/S) + ({guard}))%2", fence=FENCE))
    assert given.verdict == "finding", given.reason
    assert given.reason is not None
    assert f"N = {smallest}, the smallest" in given.reason


@pytest.mark.daily(one_of="heavy")
def test_numbers_before_a_late_change_are_proved_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(every_n, "OPERATIONS", 0)
    asked: list[int] = []
    answer = every_n.Sketches.answer

    def answered(self: every_n.Sketches, number: int, seconds: float | None) -> Answer:
        asked.append(number)
        return answer(self, number, seconds)

    monkeypatch.setattr(every_n.Sketches, "answer", answered)
    given = about(RING.format(parity="(k/S)%2", fence=FENCE + "\n    if (k == 302) { mov.u32 r1, 0; }"))
    assert given.verdict == "unknown"
    assert "0 to 304" in str(given.reason)
    assert len([number for number in asked if number < 302]) < 40


def test_what_repeats_is_proved_for_every_number() -> None:
    given = about(RING.format(parity="((k & 3)/S)%2", fence=FENCE))
    assert (given.verdict, given.findings, given.covered) == ("proved", (), True)
    assert given.reason is not None
    assert given.reason.startswith("for every number of rounds from 0 on")
    assert "sizes as written: 2 threads in 1 CTA" in given.assumptions


def test_the_number_may_be_declared_behind_the_init_block() -> None:
    text = RING.format(parity="(k/S)%2", fence=FENCE).replace("const S = 2, N = any;\n", "const S = 2;\n", 1)
    given = about(text.replace("}\nproducer", "}\nconst N = any;\nproducer", 1))
    assert (given.verdict, given.covered) == ("proved", True), given.reason


BOUNDS = {
    "from 1 on": ("N = any", "1..N", "(k-1)"),
    "one round more": ("N = any, M = N + 1", "0..M", "k"),
    "two rounds less": ("N = any, L = N - 1, M = L - 1", "0..M", "k"),
    "no name": ("T = 2", "0..any", "k"),
}


def bounded(constants: str, bounds: str, k: str, *, fence: str) -> str:
    """The ring whose loops have other bounds, and count stages from 0 on."""
    text = RING.format(parity="(k/S)%2", fence=fence).replace("N = any", constants)
    for old, new in (("0..N", bounds), ("[k%S]", f"[{k}%S]"), ("(k/S)", f"({k}/S)")):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.daily
@pytest.mark.parametrize(("constants", "bounds", "k"), BOUNDS.values(), ids=BOUNDS)
def test_bounds_may_be_made_of_the_number(constants: str, bounds: str, k: str) -> None:
    """A loop whose end lies before its start has no rounds."""
    given = about(bounded(constants, bounds, k, fence=FENCE))
    assert (given.verdict, given.covered) == ("proved", True), given.reason


@pytest.mark.daily
@pytest.mark.parametrize(
    ("bounds", "smallest"),
    list(zip(BOUNDS.values(), ("N = 4", "N = 2", "N = 5", "any = 3"), strict=True)),
    ids=BOUNDS,
)
def test_the_first_round_that_shows_it_is_counted_in_the_loop(bounds: tuple[str, str, str], smallest: str) -> None:
    given = about(bounded(*bounds, fence=""))
    assert codes(given) == ["RACE006"]
    assert (
        given.reason
        == f"found with {smallest}, the smallest such value, so not before round 2 of a loop (the first is 0)"
    )


def test_a_size_made_of_a_smaller_number_is_no_size_for_all() -> None:
    text = bounded("N = any, M = N - 1", "0..M", "k", fence=FENCE).replace("src[4]", "src[4*M + 8]")
    program = parse(text, "any.litmus", every=True)
    assert program.rounds is not None
    with pytest.raises(Aperiodic, match=r"M in a size that is not computed by \+ and \* alone"):
        program.rounds()
    program = parse(text.replace("N - 1", "N + 1"), "any.litmus", every=True)
    assert program.rounds is not None
    assert program.rounds().loops


def codes(given: Answer) -> list[str]:
    return sorted({f.code for f in given.findings})


@pytest.mark.daily(one_of="heavy")
def test_what_is_for_review_ends_no_search_for_errors() -> None:
    """Two arrive in every round of a stage whose mbarrier counts one: UB212 shows with two rounds, the race with 3."""
    given = about(RING.format(parity="(k/S)%2", fence=FENCE).replace("warp 1, lane 0", "warp 1..3, lane 0"))
    assert given.verdict == "finding"
    assert given.reason is not None
    assert "N = 3, the smallest" in given.reason
    assert {"RACE003", "UB212"} <= set(codes(given))


BEHIND = """  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf[0]], 16;
  cp.async.bulk.commit_group;
}}
"""


@pytest.mark.daily(one_of="late")
def test_what_is_for_review_is_so_for_every_number() -> None:
    text = RING.removesuffix("}}\n") + BEHIND
    text = text.replace("src[4];", "src[4], dst[4];")
    given = about(text.format(parity="(k/S)%2", fence=FENCE))
    assert (given.verdict, codes(given), given.covered) == ("finding", ["UB501"], True), given.reason
    assert [f.severity for f in given.findings] == ["review"]
    assert given.reason is not None
    assert given.reason.startswith("for every number of rounds from 0 on")


@pytest.mark.daily(one_of="heavy")
def test_errors_that_are_left_out_end_no_search() -> None:
    program = parse(RING.format(parity="((k + S*(k >= 9))/S)%2", fence=""), "any.litmus", every=True)
    without = Question(about=Completeness.FINDINGS, thorough=True, excused=lambda f: f.code == "RACE006")
    given = ask(program, load_model("ptx-9.0"), without, "protocol")
    assert given.reason is not None
    assert "N = 10, the smallest" in given.reason


TWO = """PTX two-errors
const N = any;
{
  .global .align 16 .u32 src[4];
  .shared .align 16 .b8 buf[16];
  .shared .b64 full, done;
}
producer@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [done], 1;
  bar.sync 0;
  for k in 0..N {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [full];
    await mbarrier.try_wait.parity.shared::cta.b64 [full], k%2;
    if (k == 0) { mbarrier.arrive.shared::cta.b64 _, [done]; }
  }
}
consumer@cta 0, warp 1, lane 0 {
  bar.sync 0;
  for k in 0..N { if (k >= 1) { ld.shared.u32 r0, [buf]; } }
  await mbarrier.try_wait.parity.shared::cta.b64 [done], 0;
}
"""


def test_errors_of_other_kinds_that_larger_numbers_have_are_told_too() -> None:
    """Without rounds nobody arrives; the race takes two."""
    given = about(TWO)
    assert codes(given) == ["DEAD003", "RACE003"]
    assert given.reason == "found with N = 0, the smallest such value; RACE003 with N = 2"
    program = parse(TWO, "any.litmus", every=True)
    assert program.instance is not None
    alone = [
        ask(program.instance(k), load_model("ptx-9.0"), Question(about=Completeness.FINDINGS), "protocol")
        for k in range(3)
    ]
    assert [codes(one) for one in alone] == [["DEAD003"], [], ["RACE003"]]


def test_larger_numbers_are_no_longer_looked_at_where_there_are_many_executions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(every_n, "EXECUTIONS", 0)
    assert codes(about(TWO)) == ["DEAD003"]


@pytest.mark.daily(one_of="late")
def test_what_an_engine_cannot_prove_is_unknown() -> None:
    program = parse(RING.format(parity="(k/S)%2", fence=FENCE), "any.litmus", every=True)
    given = ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=0.5), "explicit")
    assert given.verdict == "unknown"


def test_a_number_that_takes_too_long_hides_no_larger_one() -> None:
    """Half of the time that is left is for one number; the error of the next one is found, and what is missing told."""
    program = parse(RING.format(parity="(k/S)%2", fence=""), "any.litmus", every=True)
    model, given_time = load_model("ptx-9.0"), []

    def answer(one: Program, seconds: float | None) -> Answer:
        assert one.instance is None
        assert seconds is not None
        given_time.append(seconds)
        if len(given_time) == 2:
            return Answer(verdict="unknown", reasons=(timeout_reason(seconds),))
        return ask(one, model, Question(about=Completeness.FINDINGS, timeout=seconds), "protocol")

    given = every_n.check_every_number(program, 100.0, answer)
    assert max(given_time[:4]) < 50.001  # halves of what is left are rounded
    assert given.verdict == "finding"
    assert "RACE006" in codes(given)
    assert given.reason is not None
    assert given.reason.startswith("found with N = 3, 1 was not checked")


COUNTER = """PTX counter
const N = any;
{ .global .align 4 .u32 g; }
P@cta 0..2, warp 0, lane 0 { for k in 0..N { atom.global.add.u32 r0, [g], 1; } }
"""


@pytest.mark.daily(one_of="heavy")
def test_what_takes_long_is_not_followed_by_what_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody has said how much time there is."""
    monkeypatch.setattr(every_n, "PATIENCE", -1.0)
    given = about(COUNTER)
    assert given.reason is not None
    assert "nothing was found with N = 0; larger values are not proved safe" in given.reason
    given = about(COUNTER, seconds=3.0)
    assert "N = 0 to 8, 12, 18" in (given.reason or "")


@pytest.mark.daily(days=6, least=0)
@pytest.mark.parametrize(("condition", "number"), [("k == 2000", 2001), ("N == 2000", 2000), ("k >= 2003", 2004)])
def test_a_number_at_which_something_turns_is_looked_at(
    condition: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some numbers near the one in the text, though the program with the largest of the others is large enough."""
    monkeypatch.setattr(every_n, "OPERATIONS", 1000)
    text = COUNTER.replace("{ atom.global.add.u32 r0, [g], 1; }", f"{{ if ({condition}) {{ st.global.u32 [g], 1; }} }}")
    program = parse(text, "any.litmus", every=True)
    looked: list[int] = []

    def answer(one: Program, _: float | None) -> Answer:
        looked.append(len(one.threads[0].rounds and next(iter(one.threads[0].rounds.values()))) - 1)
        return Answer(verdict="proved")

    def prove(_: Limit) -> Proof:
        assert program.rounds is not None
        program.rounds()
        raise AssertionError

    given = every_n.check_every_number(program, 100.0, answer, prove)
    assert given.verdict == "unknown"
    assert number in looked


@pytest.mark.daily(one_of="late")
def test_a_number_that_a_proof_has_met_an_error_with_is_looked_at_early() -> None:
    program = parse(COUNTER, "any.litmus", every=True)
    looked: list[int] = []

    def answer(one: Program, _: float | None) -> Answer:
        looked.append(len(next(iter(one.threads[0].rounds.values()), (0,))) - 1)
        return Answer(verdict="proved")

    def prove(_: Limit) -> Proof:
        raise Aperiodic("something is found", turn=20)

    every_n.check_every_number(program, 100.0, answer, prove)
    assert looked[:9] == [0, 1, 2, 19, 20, 21, 28, 3, 4]
    assert len(looked) == len(set(looked))


@pytest.mark.daily(one_of="heavy")
def test_numbers_that_were_followed_to_the_end_are_told_beside_one_that_was_not() -> None:
    program = parse(COUNTER, "any.litmus", every=True)

    def answer(one: Program, _: float | None) -> Answer:
        large = len(one.threads[0].code) > 12
        bound = (Reason(Cause.BOUND, "12 rounds"),)
        return Answer(verdict="bounded" if large else "proved", covered=not large, reasons=bound if large else ())

    given = every_n.check_every_number(program, 10.0, answer)
    assert given.verdict == "unknown"
    assert (
        given.reason == "N is any number: nothing was found with N = 0 to 8, 12; with N = 18: explored up to 12 rounds"
    )


@pytest.mark.daily(one_of="heavy")
def test_an_engine_that_is_late_is_not_asked_about_larger_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse(COUNTER, "any.litmus", every=True)
    asked: list[tuple[str, int]] = []

    def slow(name: str, one: Program, *rest: object) -> Answer:
        asked.append((name, len(one.threads[0].code)))
        return Answer(verdict="unknown" if name == "explicit" else "proved", engine=name, covered=name != "explicit",
                      reasons=(timeout_reason(5.0),) if name == "explicit" else ())  # fmt: skip

    monkeypatch.setattr("mcheck.checking.policy.ask.ask_engine", slow)
    ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=10.0))
    explicit = [size for name, size in asked if name == "explicit"]
    protocol = [size for name, size in asked if name == "protocol"]
    assert len(explicit) == 1
    assert len(protocol) > 8


def test_an_error_that_was_found_before_the_time_was_over_counts() -> None:
    program = parse(RING.format(parity="(k/S)%2", fence=""), "any.litmus", every=True)
    model = load_model("ptx-9.0")

    def answer(one: Program, seconds: float | None) -> Answer:
        given = ask(one, model, Question(about=Completeness.FINDINGS, timeout=seconds), "protocol")
        return replace(given, reasons=(timeout_reason(seconds),)) if given.findings else given

    given = every_n.check_every_number(program, 100.0, answer)
    assert given.verdict == "finding"
    assert "RACE006" in codes(given)


def test_an_error_that_is_found_when_the_time_is_over_is_told() -> None:
    program = parse(RING.format(parity="(k/S)%2", fence=""), "any.litmus", every=True)
    now = [0.0]

    def answer(one: Program, _: float | None) -> Answer:
        given = ask(one, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS), "protocol")
        now[0] += 0.4 if given.findings else 0.0
        return given

    with use_clock(lambda: now[0]):
        given = every_n.check_every_number(program, 0.3, answer)
    assert now[0] > 0.3
    assert given.verdict == "finding"


def test_time_that_is_over_proves_nothing() -> None:
    given = about(RING.format(parity="(k/S)%2", fence=FENCE), seconds=0.0)
    assert given.verdict == "unknown"
    assert given.cut


def test_others_are_told_that_there_is_no_one_program() -> None:
    text = RING.format(parity="(k/S)%2", fence=FENCE)
    with pytest.raises(Unsupported, match="parametric programs"):
        parse(text, "any.litmus")
    with pytest.raises(Unsupported, match="N is any number"):
        ask(parse(text, "any.litmus", every=True), load_model("ptx-9.0"), Question())


def test_a_number_that_makes_no_program_is_named() -> None:
    text = RING.format(parity="(k/S)%2", fence=FENCE).replace("src[4]", "src[4*N]")
    with pytest.raises(InputError) as caught:
        about(text)
    assert "with N = 0" in caught.value.message


@pytest.mark.parametrize("body", ["bar.sync 0;", "for k in 0..N%3 { bar.sync 0; }", "if (N == 4) { bar.sync 0; }"])
def test_a_program_that_does_not_grow_has_an_answer(body: str) -> None:
    text = f"PTX still\nconst N = any;\n{{ }}\nP@cta 0 {{ {body} }}\n"
    answer = ask(parse(text, "still.litmus", every=True), load_model("ptx-9.0"), Question(about=Completeness.FINDINGS))
    assert (answer.verdict, answer.findings) == ("unknown", ())
    assert "nothing was found with N = 0 to 8" in (answer.reason or "")
