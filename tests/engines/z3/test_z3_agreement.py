"""The two engines give the same answers: on the suites, on random programs, under models of unusual shape.

A sample, in seconds: ``python -m benchmarks.agreement litmus`` compares all engines on all tests, ``python -m
benchmarks.agreement`` on as many random programs as one likes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model, parse_model
from mcheck.cat.ast import Model
from mcheck.checking.policy.agreement import differences
from mcheck.checking.policy.question import Completeness, Question
from mcheck.engines.explicit.engine import answer as explicit
from mcheck.engines.z3 import value_literals
from mcheck.engines.z3.engine import answer as solved
from mcheck.frontend.litmus import load, parse
from mcheck.ir.program import Program
from tests.fuzz.programs import program as random_program

LITMUS = Path(__file__).parents[3] / "litmus"
SUITES = sorted({path.parent.name for path in LITMUS.glob("*/*.litmus")} - {"kernels"})
LONG = frozenset({
    "bulk-ring-one-of-two-consumers-fences", "bulk-ring-one-slot-three-rounds", "bulk-ring-two-consumers",
    "bulk-ring-two-consumers-counted-as-one", "bulk-ring-two-slots", "bulk-ring-two-slots-wrong-parity",
    "Co-cycle-of-observers", "CoRR2+scopes-overlapping",
    "CoRR2+scopes-overlapping-over-a-third-store", "mbarrier-poll-after-many-arrivals",
    "undefined-old-token-beside-a-drop", "warps-elect-by-lane-number", "warps-elect-waits-for-the-mask",
})  # fmt: skip
"""Tests that take Z3 more than a second each."""
EVERY = 3
"""Of the others one in so many is compared, of each suite."""

model_of = cache(load_model)


def sample(suite: str) -> list[Path]:
    """Some tests of a suite."""
    return [f for f in sorted((LITMUS / suite).glob("*.litmus")) if f.stem not in LONG][::EVERY]


def disagreement(
    program: Program,
    model: Model | None = None,
    *,
    known: Answer | None = None,
    prop: str = "spec",
    timeout: float = 20,
) -> list[str]:
    """In what the engines differ about a program, of which the explicit engine's answer may be known."""
    model = model or model_of(program.model or "ptx-9.0")
    given = known or explicit(program, model, prop=prop, timeout=timeout)
    told = solved(program, model, prop=prop, timeout=timeout)
    about = Completeness.LIVENESS if prop == "liveness" else Completeness.STATES
    return differences(given, told, Question(about=about))


@pytest.mark.daily
@pytest.mark.parametrize("suite", SUITES)
def test_suites(suite: str, enumerated: Callable[[Path], Answer]) -> None:
    """The tests of the suite have the same states, findings and verdict."""
    files = sample(suite)
    assert len(files) > 5
    assert {f.stem: d for f in files if (d := disagreement(load(str(f)), known=enumerated(f)))} == {}


@pytest.mark.daily
@pytest.mark.parametrize("suite", ["liveness", "classic", "barriers"])
def test_liveness(suite: str) -> None:
    """The engines agree on which tests may go on forever."""
    assert {f.stem: d for f in sample(suite) if (d := disagreement(load(str(f)), prop="liveness"))} == {}


@pytest.mark.daily
@pytest.mark.parametrize("number", range(20))
def test_random_programs(number: int) -> None:
    """Random programs: states, races, undefined behaviour, liveness, and the verdict by itself."""
    program = parse(random_program(Random(f"z3:{number}")), "random.litmus")
    model = model_of(program.model or "ptx-9.0")
    assert disagreement(program, timeout=2) == []
    assert disagreement(program, prop="liveness", timeout=2) == []
    verdicts = {engine(program, model, verdict_only=True, timeout=2).verdict for engine in (explicit, solved)}
    assert len(verdicts - {"unknown"}) < 2


@pytest.mark.daily
@pytest.mark.parametrize("suite", ["atomics", "reduce", "barriers"])
def test_values_as_bit_vectors(
    suite: str, enumerated: Callable[[Path], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that would be decision trees are bit-vectors, with the same answers."""
    monkeypatch.setattr(value_literals, "LEAVES", 0)
    assert {f.stem: d for f in sample(suite) if (d := disagreement(load(str(f)), known=enumerated(f)))} == {}


MODELS = {
    "a check that must fail": (
        "let fr = rf^-1; co\nempty ((W * W) & po & loc) \\ co as Co\n~empty (rf & ext) as External"
    ),
    "a check that heals": (
        "empty ((W * W) & po & loc) \\ co as Co\nempty ((W * R) & po & loc) \\ (rf | (co; rf)) as Own"
    ),
    "recursion that is no closure": (
        "let fr = rf^-1; co\nempty ((W * W) & loc & int & po) \\ co as Co\n"
        "let rec seen = rf | (seen; po; rf) | (rf; po; seen)\n"
        "irreflexive (seen; po) as Seen\nflag ~empty (seen & ext) as RACE001"
    ),
    "mutual recursion": (
        "empty ((W * W) & po & loc) \\ co as Co\n"
        "let rec even = rf | (odd; po; rf) and odd = (even; po; rf)\n"
        "irreflexive (odd; po) as Odd\nflag ~empty (even \\ odd) & ext as RACE001"
    ),
    "no word about co": "let fr = rf^-1; co\nacyclic (po | rf | co | fr) as SC",
    "closures subtracted": (
        "let fr = rf^-1; co\nlet strong = ((W * W) & loc) \\ id\nempty strong \\ (co | co^-1) as Total\n"
        "acyclic (po-loc | rf | co | fr) as Loc\nflag ~empty ((R * R) \\ (po | rf)+) & ext as RACE001"
    ),
    "flags on co": (
        "let fr = rf^-1; co\nempty ((W * W) & po & loc) \\ co as Co\nacyclic (po-loc | rf | co | fr) as Loc\n"
        "flag ~empty (co & ext) as RACE001\nflag ~empty (((W * W) & loc & ext) \\ (co | co^-1)) as RACE002\n"
        "flag ~empty ((co; co) & ext) as RACE003"
    ),
    "flags on domains": (
        "empty ((W * W) & po & loc) \\ co as Co\nacyclic (po | rf) as Thin\n"
        "flag ~empty ([R \\ range(rf & ext)]; po; [R]) as RACE001\nflag ~empty (domain(rf) * R) & ext & loc as RACE002"
    ),
}
"""Models that have what the shipped ones have not."""


@pytest.mark.daily
@pytest.mark.parametrize("name", MODELS)
def test_unusual_models(name: str) -> None:
    """Negated and healing checks, recursion, models that leave co free."""
    model = parse_model(f'"{name}"\n{MODELS[name]}\n', "unusual.cat")
    picked = [f for f in sorted((LITMUS / "classic").glob("*.litmus")) if load(str(f)).dialect][::4]
    verdicts: Counter[str] = Counter()
    for file in picked:
        program = load(str(file))
        assert disagreement(program, model) == [], file.stem
        verdicts[explicit(program, model, timeout=20).verdict] += 1
    assert verdicts["pass"]


@pytest.mark.parametrize("axiom", ["empty [IW] as Untouched", "empty ([IW]; loc; [IW]) as Untouched"])
def test_what_no_execution_accesses_has_no_initial_write(axiom: str) -> None:
    """On one path of the reader nothing is accessed, and only there a model that forbids initial writes has a say."""
    model = parse_model(f'"untouched"\ninclude "ptx-9.0.cat"\n{axiom}\n', "untouched.cat")
    program = load(str(LITMUS / "mbarrier" / "mbarrier-try-wait-guard-look.litmus"))
    assert disagreement(program, model) == []
    assert len(solved(program, model, timeout=20).outcomes) == 1
