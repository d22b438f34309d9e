"""The engines judged by interleavings: the litmus suites, programs on which engines once differed, random loops.

What the interpreter does not know it refuses; how many programs it covers is part of the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from mcheck.frontend.litmus import load, parse
from mcheck.ir.program import Program
from tests.fuzz.differential import DEFAULT_MODEL, ENGINES, EngineAnswer, model_of, run_engine, run_engines
from tests.interleavings.__main__ import DEFAULT, program
from tests.interleavings.judge import contradictions
from tests.interleavings.pipelines import Plan, written
from tests.interleavings.search import Found, explore
from tests.interleavings.state import NotCovered

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests" / "agreement").glob("*.litmus"))
NOT_KNOWN = {
    "a-lane-that-arrives-once-more-than-its-mate.litmus",
    "a-lane-that-did-not-wait-gives-another-count.litmus",
    "a-lane-that-has-no-barrier-is-not-waited-for.litmus",
    "a-lane-that-has-stopped-is-not-waited-for.litmus",
    "a-lane-without-a-count.litmus",
    "another-aligned-barrier-behind-an-exit.litmus",
    "another-aligned-barrier-behind-the-first.litmus",
    "different-counts-before-lanes-part.litmus",
    "division-by-what-is-not-yet-there.litmus",
    "division-by-zero-that-decides.litmus",
    "election-of-a-lane-that-has-left.litmus",
    "expectations-of-lanes-that-come-late.litmus",
    "fence-by-a-leader-before-the-barrier.litmus",
    "guard-that-nobody-knows-of-a-step-that-waits.litmus",
    "lanes-part-before-their-counts-differ.litmus",
    "lanes-that-give-one-barrier-different-counts.litmus",
    "lanes-that-part-beside-an-undefined-one.litmus",
    "multicast-to-a-pair-that-is-not-whole.litmus",
    "no-pending-count-through-memory.litmus",
    "no-wait-for-data-that-decide.litmus",
    "one-unknown-value-decides-twice.litmus",
    "pending-count-through-memory.litmus",
    "relaxed-wait-for-data-that-decide.litmus",
    "state-and-one-in-memory.litmus",
    "state-and-one.litmus",
    "state-behind-a-flag.litmus",
    "state-cut-to-32-bits.litmus",
    "state-in-halves.litmus",
    "state-of-another-object-through-memory.litmus",
    "state-of-another-thread.litmus",
    "state-that-is-known-before-its-arrive.litmus",
    "state-that-may-not-be-there.litmus",
    "state-through-memory.litmus",
    "state-too-old-through-memory.litmus",
    "strong-copies-of-narrow-scope-in-no-order.litmus",
    "two-of-three-lanes-part.litmus",
    "words-packed-and-taken-apart.litmus",
}
"""What the interpreter refuses of them: barriers of single lanes, unknown values, multicasts with ``.cta_group``,
divisions, and registers that are packed.
"""
SUITES = {
    "atomics": 57,
    "barriers": 70,
    "bulk": 172,
    "cp-async": 68,
    "liveness": 35,
    "mbarrier": 126,
    "reduce": 50,
    "tensor": 60,
    "undefined": 109,
}
"""How many programs of each suite the interleavings cover, at least."""
BUDGET = 3000


def covered(paths: list[Path]) -> Iterator[tuple[Path, Program, Found]]:
    """The programs that the interpreter knows, with what it shows."""
    for path in paths:
        read = load(str(path))
        try:
            yield path, read, explore(read, BUDGET)
        except NotCovered:
            continue


@cache
def once_differed() -> tuple[tuple[Path, Program, Found, EngineAnswer], ...]:
    """The programs on which engines once differed that the interpreter knows, with what an engine says of each."""
    model = model_of(DEFAULT_MODEL)
    return tuple((path, read, found, run_engine("explicit", read, model, 20)) for path, read, found in covered(CASES))


@pytest.mark.daily(days=4, least=0)
def test_what_engines_once_differed_on() -> None:
    """All engines say one thing of these; ``test_agreement_cases.py`` sees to it."""
    for path, read, found, heard in once_differed():
        assert contradictions(read, found, heard) == [], path.name
    assert {path.name for path in CASES} - {path.name for path, *_ in once_differed()} == NOT_KNOWN


@pytest.mark.daily
@pytest.mark.parametrize("suite", SUITES)
def test_the_suites(suite: str) -> None:
    judged = 0
    for path, read, found in covered(sorted((ROOT / "litmus" / suite).glob("*.litmus"))):
        judged += 1
        heard = run_engine("explicit", read, model_of(read.model or DEFAULT_MODEL), 20)
        assert contradictions(read, found, heard) == [], path.name
    assert judged >= SUITES[suite]


@pytest.mark.daily
@pytest.mark.parametrize("number", range(16))
def test_random_loops(number: int) -> None:
    made = program(Random(f"test:{number}"), DEFAULT)
    read = parse(made.text(), "random.litmus")
    found = explore(read, BUDGET)
    for engine in ("explicit", "protocol"):
        heard = run_engine(engine, read, model_of(DEFAULT_MODEL), 0.5)
        assert contradictions(read, found, heard) == [], (engine, made.text())


@pytest.mark.daily
@pytest.mark.parametrize("reading", ["load", "wgmma", "store"])
@pytest.mark.parametrize("how", ["bulk", "tensor", "cp.async", "generic", "multicast", "remote"])
def test_pipelines_as_planned(how: str, reading: str) -> None:
    """Nothing is wrong with a pipeline before it is damaged."""
    ctas = 2 if how in ("multicast", "remote") else 1
    plan = Plan(slots=1, rounds=2, ctas=ctas, consumers=1, how=how, reading=reading, looped=reading == "load")
    found = explore(parse(written(Random(1), plan).text(), "pipeline.litmus"), BUDGET)
    assert (found.races, found.misuses, found.dead) == ({}, {}, None)


COUNT_WITHOUT_OBJECT = """PTX count-without-object
{ .shared .align 8 .b64 b; }
P@cta 0 { mbarrier.init.shared::cta.b64 [b], 1; }
Q@cta 0 { mbarrier.arrive.shared::cta.b64 _, [b], 16; }
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_an_arrival_that_may_find_no_object_is_told_as_that_too(engine: str) -> None:
    read = parse(COUNT_WITHOUT_OBJECT, "count-without-object.litmus")
    heard = run_engine(engine, read, model_of(DEFAULT_MODEL), 20)
    assert contradictions(read, explore(read), heard) == []
    assert heard.codes == {"UB201", "UB205"}


def blind(heard: EngineAnswer, kind: str) -> EngineAnswer:
    """The answer of an engine that sees nothing of a kind, and calls that all there is."""
    assert heard.codes is not None
    assert heard.kinds is not None
    codes = frozenset(code for code in heard.codes if not code.startswith(kind))
    return replace(heard, codes=codes)


@pytest.mark.daily(days=6, least=0)
@pytest.mark.parametrize(("kind", "noticed"), [("RACE", 9), ("UB", 24), ("DEAD", 12)])
def test_who_is_blind_is_noticed(kind: str, noticed: int) -> None:
    """The judge can say no: of the programs on which engines once differed, so many show what is left out."""
    seen = sum(bool(contradictions(read, found, blind(heard, kind))) for _, read, found, heard in once_differed())
    assert seen >= noticed


ROUND_IN_VAIN = """PTX round-in-vain
{ .global .u32 x = 0; .global .u32 y = 0; }
P@cta 0 { st.global.u32 [y], 1; st.release.gpu.global.u32 [x], 1; }
Q@cta 1 { L: ld.global.u32 r1, [y]; ld.acquire.gpu.global.u32 r0, [x]; setp.ne.u32 %p1, r0, 1; @%p1 bra L; }
exists (Q:r1 == 0)
"""


def told(**what: object) -> EngineAnswer:
    """An answer that leaves nothing open."""
    known = {"verdict": "pass", "undefined": False, "kinds": frozenset(), "codes": frozenset(), "states": None}
    return EngineAnswer(**(known | what))  # type: ignore[arg-type]


def states(*values: int) -> frozenset[tuple[tuple[str, int], ...]]:
    return frozenset((("Q:r1", value),) for value in values)


RACY = frozenset({"RACE001"})


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (told(codes=RACY, states=states(0, 1)), []),
        (told(states=states(0, 1)), ["race"]),  # the failed attempts left out
        (told(codes=RACY, states=states(1)), ["state"]),
        (told(codes=RACY, states=states(1), undefined=True), []),
        (told(codes=RACY, verdict="fail"), ["verdict"]),
        (told(codes=None, kinds=None, verdict="unknown"), []),
        (told(verdict="crash", codes=None, kinds=None), ["crash:"]),
    ],
)
def test_wrong_answers_are_noticed(answer: EngineAnswer, wrong: list[str]) -> None:
    read = parse(ROUND_IN_VAIN, "round-in-vain.litmus")
    assert [text.split(" ")[0] for text in contradictions(read, explore(read), answer)] == wrong


def test_every_engine_is_judged() -> None:
    read = parse(ROUND_IN_VAIN, "round-in-vain.litmus")
    assert {h.codes for h in run_engines(read, ENGINES).values()} == {RACY}
