"""Clusters of CTAs that draw tiles, and copy them: what one cluster that is given one tile again and again says of all,
against the execution of every way to deal the tiles.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mcheck.base.verdicts import Verdict
from tests.fuzz.drawn_clusters import BY_ROWS, OWN, Line, Plan, compare, generate, judge

SECONDS = 60.0
SEEDS = 481
PER_TEST = 8
MANY = 8
"""Tiles of which the proof is one for any number of rounds."""
STORE = Line("store", OWN)
FILL = Line("fill", (("tile", 8), ("rank", 4)))
FLUSH = Line("flush", (("tile", 8), ("rank", 4)))
TOLD = (Line("store", (("thread", 1),), "peer"), Line("meet"), Line("load", (("thread", 1),), "shared"))
RIGHT = {
    "own words": Plan((STORE,)),
    "own words in rows": Plan((Line("store", BY_ROWS),), width=2),
    "one CTA": Plan((STORE,), ctas=1, clusters=3),
    "words of the other CTA": Plan((*TOLD, STORE)),
    "two stages": Plan((FILL,)),
    "one stage": Plan((replace(FILL, stages=1),)),
    "bulk stores": Plan((FLUSH,)),
    "bulk copies of both kinds, in rows": Plan((FILL, replace(FLUSH, place=(("y", 16), ("x", 8), ("rank", 4))))),
}
BROKEN = {
    "both CTAs": Plan((Line("store", (("tile", 2), ("thread", 1))),)),
    "rows that meet": Plan((Line("store", (("y", 4), ("x", 4), ("rank", 2), ("thread", 1))),)),
    "one word": Plan((Line("store", (("one", 500),), who=0, rank=0),)),
    "it does not meet to tell": Plan((STORE,), met=False),
    "it does not meet when it was told": Plan((STORE,), meets=False),
    "the other CTA is not told": Plan((replace(TOLD[0]), TOLD[2])),
    "the barrier of a CTA is not that of the cluster": Plan((TOLD[0], Line("barrier"), TOLD[2])),
    "one stage, twice": Plan((replace(FILL, stages=1), replace(FILL, stages=1))),
    "two stages, three times, without a meeting": Plan((FILL, FILL, FILL)),
    "a bulk store that nobody waits for": Plan((replace(FLUSH, wait="never"),)),
    "bulk stores of tiles that overlap": Plan((replace(FLUSH, place=(("tile", 4), ("rank", 4))),)),
    "of the cluster behind all tiles, and of a tile": Plan((STORE,), (Line("store", (("cluster", 1),), who=0),)),
}


@pytest.mark.parametrize("tiles", [3, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("plan", RIGHT.values(), ids=RIGHT)
def test_a_right_kernel_is_proved(plan: Plan, tiles: int) -> None:
    found, why, error = compare(plan, tiles, SECONDS)
    assert not error
    assert found is not None, why
    assert found.verdict is Verdict.PROVED


@pytest.mark.parametrize("tiles", [3, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("plan", BROKEN.values(), ids=BROKEN)
def test_a_broken_kernel_is_not(plan: Plan, tiles: int) -> None:
    found, why, error = compare(plan, tiles, SECONDS)
    assert error, "the judge knows"
    assert why not in ("missed", "invented")
    assert bool(why) == (found is None)


def test_who_draws_tells_the_other_cta_by_a_copy() -> None:
    """Which is not proved so far; it has no error."""
    plan = Plan((STORE,), hands="async")
    assert not judge(plan, 3)
    assert compare(plan, 3, SECONDS)[0] is None


@pytest.mark.daily
@pytest.mark.parametrize("first", range(1, SEEDS, PER_TEST))
def test_what_is_proved_has_no_error(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        plan, tiles = generate(Random(seed)), 2 + seed % 3
        _, why, error = compare(plan, tiles)
        assert why not in ("missed", "invented"), f"seed {seed}, {error}: {plan}"
