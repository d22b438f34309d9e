"""Why a state is forbidden: cycles of edges that the picture shows, of executions that end in the state."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.cat import parse_model
from mcheck.cat.algebra.explanation import Step, Violation, join_steps
from mcheck.checking.policy.executions import executions
from mcheck.checking.policy.question import Question
from mcheck.frontend import litmus
from tests.engines.explicit.explained import explained, faults
from tests.engines.explicit.models import all_models

ROOT = Path(__file__).parents[3]
LITMUS = ROOT / "litmus"
COMPAT = ROOT.parent / "shared" / "compat"
SAMPLE = 25
"""Of so many tests one is looked at every day."""

MODELS = all_models()
ALL = sorted(LITMUS.rglob("*.litmus"))


def lines(test: str, model: str | None = None) -> dict[tuple[object, ...], tuple[str, str]]:
    """By the values of a forbidden state its axiom and explanation, all of them sound."""
    found = explained(LITMUS / test, model)
    assert not [(f.state, fault) for f in found for fault in faults(f)]
    return {tuple(value for _, value in f.state): (f.axiom, f.explanation) for f in found}


def test_two_increments_that_lose_one() -> None:
    found = lines("atomics/Inc+gpus.litmus")
    assert found[1,] == ("Atomicity", "b: P1 U x 0→1 -fr→ a: P0 U x 0→1 -co→ b")


def test_coherence_ends_in_the_state() -> None:
    """Each location ends with 2, so each thread's second write comes before the other's first."""
    found = lines("classic/2+2W+rlx.litmus", "sc")
    told = "a: P0 W x = 2 -po→ b: P0 W y = 1 -co→ c: P1 W y = 2 -po→ d: P1 W x = 1 -co→ a"
    assert found[2, 2] == ("SC", told)


def test_message_passing() -> None:
    found = lines("classic/MP+rel+acq.litmus")
    told = "d: P1 R x = 0 -fr→ a: P0 W x = 1 -po→ b: P0 W f = 1 -rf→ c: P1 R f = 1 -po→ d"
    assert found[1, 0] == ("Causality", told)


def test_the_parts_of_an_access_that_tell() -> None:
    """A box of several events says what those of the cycle do."""
    found = lines("coherence/Single-copy+read.litmus")
    axiom, told = found[4369, 4369]
    assert axiom == "SingleCopyRead"
    assert "R x[bytes 0..2] = 4369 and R x[bytes 2..4] = 0 -fr→ a" in told


def test_the_ends_of_threads_are_drawn_where_they_tell() -> None:
    (told,) = lines("warps/warps-elect-lane-missing.litmus").values()
    assert told[0] == "NoThinAir"
    assert "exit -exited→ b" in told[1]


def test_no_step_leads_against_program_order() -> None:
    """That two accesses of a thread are morally strong is no reason for their order."""
    for test in ("atomics/MP+atom.acq_rels.litmus", "atomics/Ops+min-max.litmus"):
        assert not any("po^-1" in told or "←po" in told for _, told in lines(test).values())


OWN = """PTX own
{ .global .u32 x = 0; .global .u32 y = 0; }
P@cta 0 { st.relaxed.gpu.global.u32 [x], 1; st.relaxed.gpu.global.u32 [y], 1; }
Q@cta 1 { ld.relaxed.gpu.global.u32 r0, [y]; ld.relaxed.gpu.global.u32 r1, [x]; ld.relaxed.gpu.global.u32 r2, [x]; }
exists (Q:r0 == 1 /\\ Q:r1 == 0 /\\ Q:r2 == 0)
"""


@pytest.mark.parametrize(
    ("axiom", "told"),
    [
        ("empty (rf; po; fr) & int", "b: P W y = 1 -rf→ c: Q R y = 1 -po→ d: Q R x = 0 -fr→ a: P W x = 1"),
        ("empty (po; rf; po) & fr^-1", "a: P W x = 1 -po→ b: P W y = 1 -rf→ c: Q R y = 1 -po→ d: Q R x = 0 -fr→ a"),
        ("empty domain(rfe)", "a: P W x = 1 -rf→ d: Q R x = 1"),
        ("empty [range(rfe)]", "a: P W x = 1 -rf→ d: Q R x = 1"),
        ("empty (W * R) & ext & rf", "a: P W x = 1 -rf→ d: Q R x = 1"),
        ("acyclic po | rf | fr", "a: P W x = 1 -po→ b: P W y = 1 -rf→ c: Q R y = 1 -po→ d: Q R x = 0 -fr→ a"),
        ("irreflexive fr; po; rf; po", "d: Q R x = 0 -fr→ a: P W x = 1 -po→ b: P W y = 1 -rf→ c: Q R y = 1 -po→ d"),
    ],
)
def test_axioms_of_ones_own_are_shown_by_base_relations(axiom: str, told: str) -> None:
    """An empty axiom is no edge by itself: what its relation is made of is shown."""
    program = litmus.parse(OWN, "own.litmus")
    model = parse_model(f'"own"\nlet fr = rf^-1; co\n{axiom} as Own\n', "own.cat")
    found = executions(program, model, Question(), forbidden=9, drawn=0, networks=True).forbidden
    lines = [f.explanation for f in found]
    assert not [fault for f in found for fault in faults(f)]
    assert told in lines, lines


PROGRAMS = {
    "atomics": """PTX atomics
{ .global .u32 x = 0; }
P@cta 0 { atom.relaxed.gpu.global.add.u32 r0, [x], 1; ld.relaxed.gpu.global.u32 r1, [x]; }
Q@cta 1 { atom.relaxed.gpu.global.add.u32 r0, [x], 1; }
exists (P:r0 == 0 /\\ Q:r0 == 0 /\\ P:r1 == 1 /\\ x == 1)
""",
    "writes": """PTX writes
{ .global .u32 x = 0; .global .u32 y = 0; }
P@cta 0 { st.relaxed.gpu.global.u32 [x], 2; st.release.gpu.global.u32 [y], 1; }
Q@cta 1 { st.relaxed.gpu.global.u32 [y], 2; st.relaxed.gpu.global.u32 [x], 1; ld.acquire.gpu.global.u32 r0, [y]; }
exists (x == 2 /\\ y == 2 /\\ Q:r0 == 1)
""",
    "fences": """PTX fences
{ .global .u32 x = 0; .global .u32 y = 0; }
P@cta 0 { st.relaxed.gpu.global.u32 [x], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 r0, [y]; }
Q@cta 1 { st.relaxed.gpu.global.u32 [y], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 r0, [x]; }
exists (P:r0 == 0 /\\ Q:r0 == 0)
""",
}


NO_EDGES = ("no edge", *(f"an edge that the execution does not have: {kind}" for kind in ("prod", "comp")))
"""An axiom that asks for something, or for a write before itself, has no edges to show; a product or a complement of
sets and relations is no edge of an execution, and models of these shapes have axioms of nothing else.
"""


@pytest.mark.daily
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("model", MODELS)
def test_under_models_of_many_shapes(model: str, program: str) -> None:
    read, test = MODELS[model], litmus.parse(PROGRAMS[program], "test.litmus")
    found = executions(test, read, Question(), forbidden=9, drawn=0, networks=True).forbidden
    wrong = [(f.state, f.cycle, fault) for f in found for fault in faults(f)]
    assert not [w for w in wrong if w[2] not in NO_EDGES]


def test_steps_that_make_one_communication_are_joined() -> None:
    steps = (Step(0, 1, "rf^-1"), Step(1, 2, "co"), Step(2, 3, "po"), Step(3, 4, "po"), Step(4, 0, "rf"))
    assert join_steps(steps) == (Step(0, 2, "fr"), Step(2, 4, "po"), Step(4, 0, "rf"))
    there_and_back = (Step(0, 1, "co"), Step(1, 0, "co"))
    assert join_steps(there_and_back) == there_and_back, "no step leads from an event to itself"


def test_a_cycle_tells_more_than_an_edge() -> None:
    edge = Violation.of("A", (Step(0, 1, "rf"),), 2)
    cycle = Violation.of("B", (Step(0, 1, "rf"), Step(1, 2, "po"), Step(2, 0, "fr")), 9)
    atomic = Violation.of("C", (Step(0, 1, "fr"), Step(1, 2, "co"), Step(2, 0, "rmw^-1")), 10)
    assert min(edge, cycle, atomic, key=lambda v: v.rank) is atomic, "an atomic's read and write show as one"
    assert cycle.rank < edge.rank


@pytest.mark.daily
@pytest.mark.parametrize("path", ALL[::SAMPLE], ids=lambda path: path.stem)
def test_a_sample_of_explanations(path: Path) -> None:
    assert not [(f.state, fault) for f in explained(path) for fault in faults(f)]


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted(p for p in LITMUS.iterdir() if p.is_dir()), ids=lambda path: path.name)
def test_every_explanation(folder: Path) -> None:
    """Of all tests: ``python -m tests.engines.explicit.explained litmus`` says more."""
    wrong = [
        (path.name, f.state, fault)
        for path in sorted(folder.rglob("*.litmus"))
        for f in explained(path)
        for fault in faults(f)
    ]
    assert not wrong


@pytest.mark.slow
@pytest.mark.skipif(not COMPAT.is_dir(), reason="the tests of other tools are not here")
def test_every_explanation_of_other_tools_tests() -> None:
    wrong = [
        (path.name, f.state, fault)
        for path in sorted(COMPAT.rglob("*.litmus"))
        for f in explained(path)
        for fault in faults(f)
    ]
    assert not wrong
