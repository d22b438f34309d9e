"""Waits that cannot end before certain writes: one execution for all, at real sizes, and none of the broken twins."""

from __future__ import annotations

import random

import pytest

from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer as enumerate_all
from mcheck.engines.protocol.determined_waits import find_least_execution
from mcheck.engines.protocol.exploration import Search
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import passes_without
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.engines.protocol.counters import arrivals_of_warps, exchange_of_flags, grid_barrier, histogram, turns

MODEL = load_model("ptx-9.0")
SECONDS = 40.0

RIGHT = {
    "grid-barrier": grid_barrier(6, 3),
    "relaxed arrivals, fences": grid_barrier(3, 2, release="relaxed", acquire="relaxed")
    .replace("red.relaxed", "fence.acq_rel.gpu; red.relaxed")
    .replace("- 0;", "- 0; fence.acq_rel.gpu;"),
    "atomics, fence.sc": grid_barrier(3, 2, release="relaxed", acquire="relaxed")
    .replace("red.relaxed.gpu.global.add.u32 [met]", "fence.sc.gpu; atom.relaxed.gpu.global.add.u32 r9, [met]")
    .replace("- 0;", "- 0; fence.sc.gpu;"),
    "flags": exchange_of_flags(5, 3),
    "turns": turns(24, adds=False),
    "turns-by-additions": turns(24, adds=True),
    "whole-warps": arrivals_of_warps(2, 2),
    "more arrivals than are compared one by one": arrivals_of_warps(9, 1),
}
BROKEN = {
    "relaxed-arrival": (grid_barrier(6, 3, release="relaxed"), {"RACE001"}),
    "relaxed-wait": (grid_barrier(6, 3, acquire="relaxed"), {"RACE001"}),
    "narrow-scope": (grid_barrier(3, 2, scope="cta"), {"RACE001", "RACE010"}),
    "one-too-few": (grid_barrier(6, 3, few=1), {"RACE001"}),
    "a-value-that-is-missed": (grid_barrier(3, 2, test="=="), {"DEAD004"}),
    "turn-of-another": (turns(6, adds=True, first="%ctaid.x/2"), {"RACE001", "DEAD004"}),
    "relaxed-turn": (turns(12, adds=False, release="relaxed"), {"RACE001"}),
    "histogram": (histogram(2, 6, arrive="red.relaxed.gpu"), {"RACE001"}),
}


@pytest.mark.daily
@pytest.mark.parametrize("name", RIGHT)
def test_a_protocol_of_real_size_is_proved_from_two_executions(name: str) -> None:
    with processor_time():
        given = check(
            parse(RIGHT[name], "right.litmus"), MODEL, timeout=SECONDS, passes=passes_without(("joint-arrivals",))
        )
    assert (given.verdict, given.findings) == ("proved", ())
    assert given.executions == 2


def test_additions_behind_a_counter_are_read_in_one_execution() -> None:
    """Whoever has waited comes after every arrival that made the number, not only after the last one."""
    with processor_time():
        given = check(parse(histogram(3, 48), "histogram.litmus"), MODEL, timeout=SECONDS)
    assert (given.verdict, given.findings, given.executions) == ("proved", (), 1)


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_twin_is_found(name: str) -> None:
    text, codes = BROKEN[name]
    with processor_time():
        given = check(parse(text, "broken.litmus"), MODEL, timeout=SECONDS)
    assert given.verdict == "finding"
    assert {f.code for f in given.findings} <= codes


def test_the_codes_are_those_of_all_executions() -> None:
    for text in (grid_barrier(2, 1, few=1), turns(3, adds=True, first="%ctaid.x/2"), grid_barrier(2, 1)):
        program = parse(text, "twin.litmus")
        one, every = (
            check(program, MODEL, timeout=SECONDS, passes=passes_without(p)) for p in ((), ("determined-waits",))
        )
        assert (one.verdict, {f.code for f in one.findings}) == (every.verdict, {f.code for f in every.findings})


# --- what is concluded from one execution -------------------------------------------------------------------------


def stands_for_all(program: Program) -> bool:
    """Whether the execution in which waits observe least is taken for all."""
    search = Search(program, MODEL, "ptx", 2, limit=2, suggests_fixes=False)
    search.explore(SECONDS)
    return search.setup is not None and find_least_execution(search.setup)[0]


NOT_DETERMINED = {
    "either arrival will do": """
        a@cta 0 { red.release.gpu.global.add.u32 [c], 1; }
        b@cta 1 { red.release.gpu.global.add.u32 [c], 1; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] >= 1; }""",
    "either flag will do": """
        a@cta 0 { st.release.gpu.global.u32 [c], 1; }
        b@cta 1 { st.release.gpu.global.u32 [c], 1; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] == 1; }""",
    "the value is passed over": """
        a@cta 0 { st.release.gpu.global.u32 [c], 1; st.release.gpu.global.u32 [c], 2; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] == 1; }""",
    "the number is passed over": """
        a@cta 0 { red.release.gpu.global.add.u32 [c], 1; red.release.gpu.global.add.u32 [c], 1; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] == 1; }""",
    "a later store that releases less": """
        a@cta 0 { st.release.gpu.global.u32 [c], 1; st.release.cta.global.u32 [c], 1; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] == 1; }""",
    "a narrow scope": """
        a@cta 0 { red.release.cta.global.add.u32 [c], 1; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] == 1; }""",
    "a plain store": """
        a@cta 0 { st.global.u32 [c], 1; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] == 1; }""",
    "a ticket": """
        a@cta 0 { atom.acq_rel.gpu.global.add.u32 r1, [c], 1; if (r1 == 1) { ld.global.u32 r2, [x]; } }
        d@cta 2 { red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] == 2; }""",
    "a value that is used": """
        a@cta 0 { red.release.gpu.global.add.u32 [c], 1; red.release.gpu.global.add.u32 [c], 1; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] >= 1; if (r0 == 2) { ld.global.u32 r2, [x]; } }""",
    "a read that does not wait": """
        a@cta 0 { red.release.gpu.global.add.u32 [c], 1; }
        d@cta 2 { ld.acquire.gpu.global.u32 r1, [c]; await ld.acquire.gpu.global.u32 r0, [c] >= 1; }""",
    "subtractions": """
        a@cta 0 { red.release.gpu.global.add.u32 [c], 1; red.release.gpu.global.add.u32 [c], -1; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] != 0; }""",
    "an addition that is later in time only": """
        a@cta 0 { red.release.gpu.global.add.u32 [c], 1; st.relaxed.gpu.global.u32 [x], 1; }
        b@cta 1 { await ld.relaxed.gpu.global.u32 r0, [x] == 1; red.relaxed.gpu.global.add.u32 [c], 1; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] >= 1; }""",
    "a flag that is reset": """
        a@cta 0 { st.release.gpu.global.u32 [c], 1; st.relaxed.gpu.global.u32 [c], 0; }
        d@cta 2 { await ld.acquire.gpu.global.u32 r0, [c] == 1; }""",
}


@pytest.mark.parametrize("name", NOT_DETERMINED)
def test_what_may_be_otherwise_is_not_concluded(name: str) -> None:
    text = f"PTX t {{ .global .u32 c = 0, x = 0; }} {NOT_DETERMINED[name]}"
    assert not stands_for_all(parse(text, "t.litmus"))


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    "announce", ["red.relaxed.gpu.global.add.u32 [c], 1;", "st.relaxed.gpu.global.u32 [c], k + 1;"]
)
def test_a_write_before_the_fence_is_not_taken_for_one_of_the_many_behind_it(announce: str) -> None:
    """The wait may return a write that is far from the latest, when the window has grown and events are merged."""
    text = f"""PTX t {{ .global .u32 c = 0, x = 0, y = 0; }}
    a@cta 0 {{
      st.global.u32 [x], 1;
      for k in 0..4 {{ {announce} }}
      fence.acq_rel.gpu;
      for k in 4..150 {{ {announce} ld.global.u32 r9, [y]; }}
    }}
    d@cta 2 {{ await ld.acquire.gpu.global.u32 r0, [c] >= 1; ld.global.u32 r2, [x]; }}"""
    program = parse(text, "t.litmus")
    assert not stands_for_all(program)
    with processor_time():
        assert check(program, MODEL, timeout=SECONDS).verdict != "proved"


def drawn(seed: int) -> str:
    """A protocol of two or three threads: a barrier, a chain or turns, with something left out, moved or weaker."""
    rng = random.Random(seed)
    threads, kind, few = rng.choice([2, 3]), rng.randrange(4), rng.choice([0, 0, 0, 1, -1])

    def release() -> str:
        return rng.choice(["release"] * 6 + ["relaxed"])

    def acquire() -> str:
        return rng.choice(["acquire"] * 6 + ["relaxed"])

    code = []
    for k in range(threads):
        other = f"ld.global.u32 r1, [d{(k + 1) % 2}];"
        match kind:
            case 0:
                arrive = rng.choice([f"red.{release()}.gpu.global.add.u32", f"atom.{release()}.gpu.global.add.u32 r9,"])
                wait = f"await ld.{acquire()}.gpu.global.u32 r0, [c] {rng.choice(['>=', '>=', '=='])} {threads - few};"
                mine = [f"st.global.u32 [d{k % 2}], 1;" if k < 2 else "", f"{arrive} [c], 1;", wait, other]
            case 1:
                turn = f"await ld.{acquire()}.gpu.global.u32 r0, [f{k - 1}] == 1;" if k else ""
                mine = [turn, "st.global.u32 [d0], 1;", f"st.{release()}.gpu.global.u32 [f{k}], 1;"]
            case 2:
                turn = f"await ld.{acquire()}.gpu.global.u32 r0, [c] {rng.choice(['==', '>='])} {max(0, k + few)};"
                mine = [turn if k else "", "st.global.u32 [d0], 1;", f"red.{release()}.gpu.global.add.u32 [c], 1;"]
            case _:
                fences = [rng.choice(["fence.acq_rel.gpu;"] * 3 + ["fence.sc.gpu;", "fence.acq_rel.cta;", ""])] * 2
                arrive = rng.choice(["red.relaxed.gpu.global.add.u32", "atom.relaxed.gpu.global.add.u32 r9,"])
                wait = f"await ld.relaxed.gpu.global.u32 r0, [c] >= {threads - few};"
                mine = [
                    f"st.global.u32 [d{k}], 1;" if k < 2 else "",
                    fences[0],
                    f"{arrive} [c], 1;",
                    wait,
                    fences[1],
                    other,
                ]
        code.append([op for op in mine if op])
    odd = rng.choice(code)
    match rng.randrange(5):
        case 0:
            odd.pop(rng.randrange(len(odd)))
        case 1:
            rng.shuffle(odd)
    body = " ".join(f"t{k}@cta {k} {{ {' '.join(mine)} }}" for k, mine in enumerate(code))
    return f"PTX drawn {{ .global .u32 c = 0, f0 = 0, f1 = 0, f2 = 0, d0 = 0, d1 = 0; }} {body}"


@pytest.mark.daily
@pytest.mark.parametrize("part", range(4))
def test_of_random_protocols_only_those_without_a_finding_are_concluded(part: int) -> None:
    concluded = 0
    for seed in range(15 * part, 15 * part + 15):
        program = parse(drawn(seed), "drawn.litmus")
        if stands_for_all(program):
            concluded += 1
            with processor_time():
                given = add_verdict(enumerate_all(program, MODEL, findings=True, timeout=SECONDS))
            assert given.verdict in ("proved", "unknown"), seed
    assert concluded
