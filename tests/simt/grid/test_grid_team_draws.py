"""Kernels of whose CTAs each warp, or each thread, draws tiles for itself: what one cluster that is given one tile for
each of them says of all, for right kernels and for broken ones.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mcheck.base.verdicts import Verdict
from tests.fuzz.draws import Line
from tests.fuzz.team_draws import BARRIER, OWN, TeamPlan, compare, generate, judge

SECONDS = 60.0
PER_TEST = 8
MANY = 8
"""Tiles of which the proof is one for any number of rounds."""

STORE, LOAD = Line("store", OWN), Line("load", OWN)
PART, OTHERS = (("thread", 1),), (("thread", -1), ("one", 1))
TABLE = Line("store", (("one", 2),), "shared", who=0)
LOOK = Line("load", (("one", 2),), "shared")
BEHIND = Line("store", (("thread", 1), ("cta", 4), ("one", 300)))
RIGHT = {
    "own words": TeamPlan((), (STORE, LOAD)),
    "a part of shared memory for each": TeamPlan(
        (), (Line("store", PART, "shared"), Line("load", PART, "shared"), STORE)
    ),
    "a table that is stored before": TeamPlan((TABLE, BARRIER), (LOOK, STORE)),
    "a word of each, behind its rounds": TeamPlan((), (STORE,), (BEHIND,)),
    "a word of each that draws two tiles": TeamPlan((), (STORE,), (replace(BEHIND, mask=("round", "==", 2)),)),
    "three CTAs": TeamPlan((), (STORE, LOAD), ctas=3),
}
BROKEN = {
    "no barrier behind the table": TeamPlan((TABLE,), (LOOK, STORE)),
    "a table that one goes on storing": TeamPlan((TABLE, BARRIER), (LOOK, TABLE, STORE)),
    "the part of the other one": TeamPlan((), (Line("store", PART, "shared"), Line("load", OTHERS, "shared"), STORE)),
    "the word of the next tile": TeamPlan((), (STORE, Line("load", (("tile", 1), ("one", 1))))),
    "one word, behind the rounds": TeamPlan((), (STORE,), (Line("store", (("cta", 1), ("one", 300))),)),
    "one word, of one with a tile and one with two": TeamPlan(
        (), (STORE,),
        (replace(BEHIND, place=(("cta", 1), ("one", 300)), who=0, mask=("round", "==", 1)),
         replace(BEHIND, place=(("cta", 1), ("one", 300)), who=1, mask=("round", "==", 2))),
    ),
    "by rounds": TeamPlan((), (Line("store", (("round", 2), ("thread", 1)),),)),
}  # fmt: skip


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("warps", [False, True], ids=["threads", "warps"])
@pytest.mark.parametrize("tiles", [3, MANY])
@pytest.mark.parametrize("plan", RIGHT.values(), ids=RIGHT)
def test_a_right_kernel_is_proved(plan: TeamPlan, tiles: int, warps: bool) -> None:
    plan = replace(plan, warps=warps)
    found, why, error = compare(plan, tiles, SECONDS)
    assert not error
    assert found is not None, why
    assert found.verdict is Verdict.PROVED


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("warps", [False, True], ids=["threads", "warps"])
@pytest.mark.parametrize("plan", BROKEN.values(), ids=BROKEN)
def test_a_broken_kernel_is_not(plan: TeamPlan, warps: bool) -> None:
    found, why, error = compare(replace(plan, warps=warps), 3, SECONDS)
    assert error, "the judge knows"
    assert why not in ("missed", "invented")
    assert bool(why) == (found is None)


QUICK = [*range(1, 17, PER_TEST)]
LATER = [pytest.param(k, marks=pytest.mark.slow) for k in range(17, 481, PER_TEST)]


@pytest.mark.daily
@pytest.mark.parametrize("first", [*QUICK, *LATER])
def test_what_is_proved_has_no_error(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        plan = generate(Random(seed))
        _, why, _ = compare(plan, 2 + seed % 2)
        assert why not in ("missed", "invented"), f"seed {seed}: {plan}"


def test_the_judge_knows_both() -> None:
    """Of the random kernels some are right and some are not."""
    assert {bool(judge(generate(Random(seed)), 2)) for seed in range(1, 20)} == {False, True}
