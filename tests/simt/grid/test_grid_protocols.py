"""CTAs that draw tickets, look at flags and wait, against the executions of their threads as a litmus test."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mcheck.base.verdicts import Verdict
from tests.fuzz.grids import (
    Grid,
    check_module,
    compare,
    contradict,
    contradict_residency,
    generate,
    judge_threads,
    make_grid,
    report,
)

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


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(SEEDS))
def test_launches_on_two_gpus_have_the_errors_of_their_threads(seed: int) -> None:
    found = compare(generate(Random(seed), gpus=2))
    assert not found.what, report(found)


@pytest.mark.parametrize(("scope", "verdict"), [("sys", Verdict.PROVED), ("gpu", Verdict.FINDING)])
def test_both_forms_of_a_program_of_two_gpus_are_answered(scope: str, verdict: Verdict) -> None:
    grid = handed_over("release")
    wide = [tuple(line.replace(".gpu", f".{scope}") for line in role.lines) for role in grid.draft.roles]
    found = compare(make_grid(wide, 1, cooperative=False, gpus=(1, 1)), 30.0)
    assert (found.what, found.outcome, found.module.verdict) == ("", verdict, verdict)


@pytest.mark.daily(days=3)
@pytest.mark.parametrize(("sem", "verdict"), [("release", Verdict.PROVED), ("relaxed", Verdict.FINDING)])
def test_both_forms_of_a_program_are_answered(sem: str, verdict: Verdict) -> None:
    found = compare(handed_over(sem))
    assert (found.what, found.outcome, found.module.verdict) == ("", verdict, verdict)
    assert found.judge.kinds == ({"race"} if verdict == Verdict.FINDING else frozenset())


@pytest.mark.daily(one_of="promises")
def test_an_answer_about_another_program_is_a_contradiction() -> None:
    right, wrong = handed_over("release"), handed_over("relaxed")
    assert contradict(check_module(right), judge_threads(wrong.draft)) == "missed"
    assert contradict(check_module(wrong), judge_threads(right.draft)) == "invented"


@pytest.mark.daily(one_of="promises")
def test_what_is_said_of_ctas_that_are_not_resident_is_compared() -> None:
    waits = make_grid(
        [("await ld.acquire.gpu.global.u32 r0, [x] == 1;",), ("st.release.gpu.global.u32 [x], 1;",)],
        1,
        cooperative=False,
    )
    promised = replace(waits, cooperative=True)
    found = compare(waits, 30.0)
    assert (found.what, [f.code for f in found.module.findings]) == ("", ["DEAD007"])
    assert (
        contradict_residency(waits, replace(found.module, verdict=Verdict.PROVED, findings=()))
        == "missed: not resident"
    )
    assert contradict_residency(promised, found.module) == "invented: not resident"
    assert contradict_residency(handed_over("release"), found.module) == "invented: not resident"


@pytest.mark.daily(one_of="promises")
@pytest.mark.parametrize(("first", "kinds"), [("st.global.u32 [d], 1;", frozenset({"race"})), ("", frozenset())])
def test_blocks_and_waits_are_the_same_in_both_forms(first: str, kinds: frozenset[str]) -> None:
    found = compare(make_grid([(first, *BLOCKS[1:]) if first else BLOCKS[1:], BLOCKS], 1, cooperative=True), 30.0)
    assert (found.what, found.judge.kinds) == ("", kinds)
    assert {f.kind for f in found.module.findings} == kinds
