"""Kernels of whose CTAs each warp, or each thread, draws tiles for itself: what one cluster that is given one tile for
each of them says of all, for right kernels and for broken ones.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mcheck.base.budget import Limit
from mcheck.base.reasons import Cause, Reason
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.drawn_grid import ask_drawn
from tests.fuzz.draws import Line, answer_by_one
from tests.fuzz.pair_answers import build
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
COMMON = (("cta", 1), ("one", 300))
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
    "one word, behind the rounds": TeamPlan((), (STORE,), (Line("store", COMMON),)),
    "one word, of one with a tile and one with two": TeamPlan(
        (), (STORE,),
        (replace(BEHIND, place=COMMON, who=0, mask=("round", "==", 1)),
         replace(BEHIND, place=COMMON, who=1, mask=("round", "==", 2))),
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


ROUNDS_IN_CLUSTER = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 count, .param .u32 tiles)
.reqntid 1, 1, 1
.reqnctapercluster 2, 1, 1
{
.reg .pred %p;
.reg .b32 %r<6>;
.reg .b64 %a<4>;
ld.param.u64 %a1, [out];
ld.param.u64 %a2, [count];
ld.param.u32 %r0, [tiles];
mov.u32 %r1, 0;
mov.u32 %r2, %cluster_ctarank;
add.u32 %r2, %r2, 1;
L:
atom.relaxed.gpu.global.add.u32 %r3, [%a2], 1;
setp.ge.u32 %p, %r3, %r0;
@%p bra E;
add.u32 %r1, %r1, 1;
bra L;
E:
setp.ne.u32 %p, %r1, %r2;
@%p bra X;
mov.u32 %r4, %clusterid.x;
mul.wide.u32 %a3, %r4, 4;
add.u64 %a3, %a3, %a1;
red.relaxed.SCOPE.global.add.u32 [%a3], 1;
X:
ret;
}
"""
"""A CTA of a cluster that draws one tile adds to a word, and the other one if it draws two."""


@pytest.mark.parametrize(("scope", "proved"), [("cta", False), ("cluster", True)])
def test_updates_are_of_a_scope_that_includes_both(scope: str, proved: bool) -> None:
    launch = {
        "grid": 4,
        "params": {"out": {"buffer": 64}, "count": {"buffer": 4, "init": {"hex": "00000000"}}, "tiles": 4},
    }
    module, read = build(ROUNDS_IN_CLUSTER.replace("SCOPE", scope), launch, cooperative=False)
    found, _ = answer_by_one(module, read, SECONDS)
    assert (found is not None and found.verdict is Verdict.PROVED) is proved


NEIGHBOUR = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 count, .param .u32 tiles)
.reqntid 4, 1, 1
{
.reg .pred %p, %q;
.reg .b32 %r<8>;
.reg .b64 %a<5>;
ld.param.u64 %a1, [out];
ld.param.u64 %a2, [count];
ld.param.u32 %r0, [tiles];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
shl.b32 %r4, %r1, 2;
add.u32 %r5, %r4, %r2;
mul.wide.u32 %a3, %r5, 4;
add.u64 %a3, %a3, %a1;
min.u32 %r6, %r2, 2;
add.u32 %r6, %r6, %r4;
mul.wide.u32 %a4, %r6, 4;
add.u64 %a4, %a4, %a1;
L:
atom.relaxed.gpu.global.add.u32 %r3, [%a2], 1;
setp.ge.u32 %p, %r3, %r0;
@%p bra E;
st.global.u32 [%a3], %r3;
setp.lt.u32 %q, %r3, BOUND;
@%q st.global.u32 [%aPLACE], %r3;
bra L;
E:
ret;
}
"""
"""A thread stores to a word of its own in each round, and for the first tiles to that or, if it is the last one, to its
neighbour's.
"""


@pytest.mark.parametrize(("bound", "place", "proved"), [(1, 4, False), (5, 4, False), (5, 3, True)])
def test_what_a_team_does_for_another_tile_is_seen(bound: int, place: int, proved: bool) -> None:
    launch = {
        "grid": 4,
        "params": {"out": {"buffer": 64}, "count": {"buffer": 4, "init": {"hex": "00000000"}}, "tiles": 6},
    }
    text = NEIGHBOUR.replace("BOUND", str(bound)).replace("PLACE", str(place))
    found, _ = answer_by_one(*build(text, launch, cooperative=False), SECONDS)
    assert (found is not None and found.verdict is Verdict.PROVED) is proved


def test_without_time_a_reason_is_given() -> None:
    launch = {
        "grid": 4,
        "params": {"out": {"buffer": 64}, "count": {"buffer": 4, "init": {"hex": "00000000"}}, "tiles": 6},
    }
    module, read = build(NEIGHBOUR.replace("BOUND", "5").replace("PLACE", "3"), launch, cooperative=False)
    given = ask_drawn(module, read, lambda *_: None, None, Limit(0))
    assert isinstance(given, Reason)
    assert given.cause is Cause.TIME


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
