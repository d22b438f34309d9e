"""CTAs that draw tickets, look at flags and wait, against the executions of their threads as a litmus test."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.base.verdicts import Verdict
from mcheck.frontend.litmus import parse
from tests.fuzz.differential import DEFAULT_MODEL, model_of, run_engine
from tests.fuzz.grids import Grid, check_module, compare, contradict, generate, make_grid, report

SEEDS = 40
BLOCKS = (
    "st.global.u32 [d], 1;",
    "for k in 0..2 {",
    "atom.acq_rel.gpu.global.add.u32 r0, [x], 1;",
    "}",
    "if (r0 == 3) {",
    "ld.global.u32 r1, [e];",
    "} else {",
    "await ld.acquire.gpu.global.u32 r2, [x] == 4;",
    "}",
)


def handed_over(sem: str) -> Grid:
    """One CTA writes and draws a ticket, the other one goes on if it comes second."""
    first = ("st.global.u32 [d], 1;", f"atom.{sem}.gpu.global.add.u32 r0, [x], 1;")
    second = ("atom.acquire.gpu.global.add.u32 r0, [x], 1;", "if (r0 == 1) {", "ld.global.u32 r1, [d];", "}")
    return make_grid([first, second], 1, cooperative=False)


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_grid_has_the_errors_of_its_threads(seed: int) -> None:
    found = compare(generate(Random(seed)))
    assert not found.what, report(found)


@pytest.mark.parametrize(("sem", "verdict"), [("release", Verdict.PROVED), ("relaxed", Verdict.FINDING)])
def test_both_forms_of_a_program_are_answered(sem: str, verdict: Verdict) -> None:
    found = compare(handed_over(sem))
    assert (found.what, found.outcome, found.module.verdict) == ("", verdict, verdict)
    assert found.judge.kinds == ({"race"} if verdict == Verdict.FINDING else frozenset())


def test_an_answer_about_another_program_is_a_contradiction() -> None:
    right, wrong = handed_over("release"), handed_over("relaxed")
    judges = [
        run_engine("explicit", parse(grid.draft.text(), "grid.litmus"), model_of(DEFAULT_MODEL))
        for grid in (right, wrong)
    ]
    assert contradict(check_module(right), judges[1]) == "missed"
    assert contradict(check_module(wrong), judges[0]) == "invented"


@pytest.mark.parametrize(("first", "kinds"), [("st.global.u32 [d], 1;", frozenset({"race"})), ("", frozenset())])
def test_blocks_and_waits_are_the_same_in_both_forms(first: str, kinds: frozenset[str]) -> None:
    found = compare(make_grid([(first, *BLOCKS[1:]) if first else BLOCKS[1:], BLOCKS], 1, cooperative=True))
    assert (found.what, found.judge.kinds) == ("", kinds)
    assert {f.kind for f in found.module.findings} == kinds
