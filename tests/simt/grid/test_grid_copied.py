"""Grids whose clusters access memory by asynchronous copies, and between barriers: what pairs of them say of all."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mcheck.base.verdicts import Verdict
from mcheck.ir import ops
from mcheck.ir.expr import Const, Reg
from mcheck.ir.ops import Op
from mcheck.ptx import check
from mcheck.simt.grid.pairs.barrier_phases import Course, Phases, Point, When, meeting_barriers
from tests.fuzz.copied_grids import Plan, Work, answer_by_pairs, compare, generate, launch_of, read, write
from tests.fuzz.pair_answers import build

SECONDS = 60.0
SEEDS = 240
LARGE = 40
STORE = Work("stored", "store", "own")
COPY = Work("looping", "copy", "turning")

RIGHT = {
    "cp.async": Plan(works=(STORE, COPY)),
    "a tile that each copies in another round": Plan(works=(STORE, Work("looping", "copy", "own", turned=True))),
    "loads between barriers": Plan(works=(STORE, Work("looping", "load", "turning"))),
    "a copy of other data that nobody waits for": Plan(
        works=(STORE, Work("start", "copy", "own", "%a2", wait="never"))
    ),
    "a copy that its thread completes before it stores there": Plan(
        works=(Work("start", "copy", "own"), STORE, COPY)
    ),
    "bulk loads": Plan(works=(STORE, Work("looping", "bulk load", "turning"))),
    "bulk stores": Plan(works=(Work("stored", "bulk store", "own"), Work("looping", "load", "turning"))),
    "a barrier of the grid": Plan(rounds=1, works=(STORE, Work("gone on", "copy", "next"))),
    "bulk copies around a barrier of the grid": Plan(
        rounds=1, works=(Work("stored", "bulk store", "own"), Work("looping", "bulk load", "turning"))
    ),
    "two barriers of the grid": Plan(rounds=2, works=(STORE, Work("gone on", "copy", "next", "%a2"))),
}  # fmt: skip

WRONG = {
    "no fence": Plan(fence="", works=(STORE, COPY)),
    "no barrier": Plan(barrier=False, works=(STORE, COPY)),
    "no fence behind": Plan(fence_after="", works=(STORE, COPY)),
    "a copy that is issued too early": Plan(works=(STORE, Work("met", "copy", "next"))),
    "a copy that may still read what its cluster stores": Plan(
        works=(Work("start", "copy", "own", turned=True, wait="never"), STORE)
    ),
    "a copy that may still read what its own thread stores, of one cluster": Plan(
        works=(Work("start", "copy", "first", "%a2", wait="never"), Work("looping", "store", "own", "%a2"), STORE)
    ),
    "a copy that others may overwrite": Plan(
        rounds=1, works=(Work("stored", "copy", "next", wait="never"), Work("gone on", "store", "own"))
    ),
    "a copy that is complete only behind the barrier": Plan(
        rounds=1, works=(Work("stored", "copy", "next", wait="late"), Work("gone on", "store", "own"))
    ),
    "a bulk store that may not be complete": Plan(
        works=(Work("stored", "bulk store", "own", wait="never"), Work("looping", "load", "turning"))
    ),
    "a bulk store whose reads alone are complete": Plan(
        works=(Work("stored", "bulk store", "own", wait="late"), Work("looping", "load", "turning"))
    ),
    "a bulk load without a proxy fence": Plan(works=(STORE, Work("looping", "bulk load", "turning", fence=False))),
    "a store in a loop": Plan(rounds=1, works=(Work("looping", "store", "turning"), Work("looping", "load", "own"))),
}  # fmt: skip

READ = Work("looping", "load", "turning")
ODD = {
    "a copy that may still read what its thread stores": (
        Work("start", "copy", "own", "%a16", wait="never"), STORE, READ,
    ),
    "a bulk load without a proxy fence of what its cluster stores": (
        STORE, Work("met", "bulk load", "own", "%a16", fence=False), READ,
    ),
    "a bulk store of which only the reads are complete": (
        Work("start", "bulk store", "own", wait="late"), Work("met", "load", "own", "%a16", turned=True),
    ),
    "a bulk load ahead of a proxy fence": (
        STORE, Work("gone on", "bulk load", "next", "%a16", fence=False), Work("looping", "bulk load", "turning"),
    ),
    "a store behind the fence": (Work("counting", "store", "own"), Work("fenced", "store", "own", "%a16"), READ),
}  # fmt: skip
"""What a pair of clusters shows only if the odd one is one of the two."""
ODD_WAITS = {
    "a copy that is complete only behind the barrier": (
        Work("met", "load", "next"), Work("met", "copy", "next", "%a16", wait="never"), Work("end", "store", "own"),
    ),
}  # fmt: skip
OF_ONE_THREAD = {"a bulk load ahead of a proxy fence", *ODD_WAITS}


def answer(plan: Plan) -> tuple[Verdict | None, str]:
    """The answer that pairs give, or why they give none."""
    found, why = answer_by_pairs(*read(plan), SECONDS, signals=plan.rounds > 1)
    return None if found is None else found.verdict, why


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_grid_is_proved(name: str) -> None:
    assert answer(RIGHT[name]) == (Verdict.PROVED, "")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_grid_is_not_proved(name: str) -> None:
    found = compare(WRONG[name], SECONDS)
    assert found.whole.verdict is Verdict.FINDING
    assert found.pairs is None or found.pairs.verdict is Verdict.FINDING


@pytest.mark.parametrize("name", [*ODD, *ODD_WAITS])
def test_one_cluster_that_goes_wrong_is_not_overlooked(name: str) -> None:
    works, rounds = (ODD[name], 0) if name in ODD else (ODD_WAITS[name], 1)
    plan = Plan(clusters=12, threads=1 if name in OF_ONE_THREAD else 2, rounds=rounds, works=works)
    assert answer(plan) == (Verdict.PROVED, "")
    assert answer(replace(plan, odd=9))[0] is not Verdict.PROVED


@pytest.mark.parametrize("name", ["cp.async", "loads between barriers", "a barrier of the grid"])
def test_one_pair_stands_for_all_rounds_of_a_large_grid(name: str) -> None:
    plan = replace(RIGHT[name], clusters=LARGE)
    found = check(write(plan), {**launch_of(plan), "cooperative": bool(plan.rounds)})
    assert found.verdict is Verdict.PROVED
    assert found.covers is not None
    assert (found.covers.clusters, found.covers.together) == (LARGE, 2)
    assert any("1 pair was followed" in said for said in found.assumptions)


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(SEEDS))
def test_pairs_say_what_all_clusters_together_do(seed: int) -> None:
    found = compare(generate(Random(seed)))
    assert not found.wrong, found.plan


TWO_WARPS = Plan(rounds=1, works=(STORE, Work("looping", "load", "turning")))


@pytest.mark.parametrize("meets", ["all", "named", "two", "reduced", "both"])
def test_barriers_that_order_both_warps(meets: str) -> None:
    found, why = answer_by_pairs(*read(replace(TWO_WARPS, meets=meets)), SECONDS, signals=True)
    assert found is not None, why
    assert found.verdict is Verdict.PROVED


@pytest.mark.parametrize("meets", ["forth", "back", "in warps"])
def test_barriers_that_do_not(meets: str) -> None:
    plan = replace(TWO_WARPS, meets=meets)
    for signals in (False, True):
        found, _ = answer_by_pairs(*read(plan), SECONDS, signals=signals)
        assert found is None or found.verdict is Verdict.FINDING


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_pairs_of_clusters_whose_warps_meet_in_parts(seed: int) -> None:
    found = compare(generate(Random(seed), warps=True))
    assert not found.wrong, found.plan


# --- rounds and phases ------------------------------------------------------------------------------------------------

BARRIER = ops.Barrier(kind="sync", barrier=Const(0))
COMMIT = ops.Commit(family="cp.async")


def wait(pending: int, *, commits: bool = False) -> Op:
    return ops.WaitGroup(family="cp.async", pending=Const(pending), commits=commits)


@pytest.mark.parametrize(
    ("code", "done"),
    [
        ((COMMIT, wait(0)), {7: When(1, 0)}),
        ((COMMIT, BARRIER, wait(0)), {7: When(2, 1)}),
        ((wait(0),), {}),
        ((wait(0, commits=True),), {7: When(0, 0)}),
        ((COMMIT, wait(1)), {}),
        ((COMMIT, COMMIT, wait(1)), {7: When(2, 0)}),
        ((COMMIT, ops.WaitGroup(family="bulk", pending=Const(0))), {}),
    ],
)
def test_a_copy_is_complete_where_its_thread_waits_for_its_group(code: tuple[Op, ...], done: dict[int, When]) -> None:
    course = Course(frozenset({Const(0)}))
    course.issued["cp.async"].append(7)
    for op in code:
        course.step(op)
    assert course.done == done


WHOLE = ops.Barrier(kind="sync", barrier=Const(1), count=Const(32))
PART = ops.Barrier(kind="sync", barrier=Const(1), count=Const(16))
ARRIVAL = ops.Barrier(kind="arrive", barrier=Const(1), count=Const(32))
SOME = ops.Barrier(kind="sync", barrier=Reg("b"))


@pytest.mark.parametrize(
    ("barriers", "rounds"),
    [
        ([BARRIER], {BARRIER: 1}),
        ([ops.Barrier(kind="red", barrier=Const(0), red_op="or")], {BARRIER: 1}),
        ([WHOLE], {WHOLE: 1, BARRIER: 0}),
        ([PART], {PART: 0}),
        ([WHOLE, PART, BARRIER], {WHOLE: 0, PART: 0, BARRIER: 1}),
        ([WHOLE, ARRIVAL], {WHOLE: 0, ARRIVAL: 0}),
        ([BARRIER, SOME], {BARRIER: 0, SOME: 0}),
    ],
)
def test_a_barrier_at_which_all_threads_wait_ends_a_round(barriers: list[Op], rounds: dict[Op, int]) -> None:
    found = {op: Course(meeting_barriers(barriers, 32)) for op in rounds}
    for op, course in found.items():
        course.step(op)
    assert {op: course.round for op, course in found.items()} == rounds


def test_a_phase_is_told_by_the_points_ahead() -> None:
    given = Phases([Point(0, When(3, 1)), Point(0, When(9, 3))], {0: 0, 1: 0, 2: 1}, {0: 4, 1: 4, 2: 4})
    ahead = [given.phase(1, at, at) for at in (When(0, 0), When(5, 2), When(8, 4))]
    assert len({*ahead, None}) == 4
    assert given.phase(0, When(2, 1), When(2, 1)) == ahead[0]  # of the same thread program order tells
    assert given.phase(0, When(4, 1), When(4, 1)) == ahead[1]
    assert given.phase(1, When(5, 1), When(5, 1)) is None  # in the round of a point of another thread
    assert given.phase(1, When(1, 0), When(6, 2)) is None  # it may be complete before a point, or behind it
    assert given.phase(1, When(8, 4), None) == ahead[2]
    assert given.phase(1, When(5, 2), None) is None
    assert given.phase(2, When(5, 2), When(5, 2)) is None  # of another CTA


def test_who_leaves_before_a_barrier_is_not_ordered_by_it() -> None:
    given = Phases([Point(0, When(3, 1))], {0: 0, 1: 0}, {0: 2, 1: 0})
    assert given.phase(1, When(0, 0), When(0, 0)) is None
    given = Phases([Point(0, When(3, 0))], {0: 0, 1: 0}, {0: 0, 1: 2})
    assert given.phase(1, When(5, 1), When(5, 1)) is None


# --- what one cluster of many does ------------------------------------------------------------------------------------

FEW_CLUSTERS, CLUSTERS_IN_ROWS = 6, (4, 5)
ONLY_THERE = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 other, .param .u64 count)
.reqntid 64, 1, 1
{{
.reg .pred %p, %q;
.reg .b32 %r<20>;
.reg .b64 %a<20>;
.shared .align 128 .b8 tile[1024];
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [other];
ld.param.u64 %a3, [count];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %nctaid.x;
mov.u32 %r4, %ctaid.y;
mad.lo.u32 %r5, %r4, %r3, %r1;
mov.u32 %r6, tile;
mad.lo.u32 %r6, %r2, 16, %r6;
mul.wide.u32 %a4, %r5, 128;
add.s64 %a5, %a1, %a4;
mul.wide.u32 %a6, %r4, 4;
add.s64 %a7, %a2, %a6;
mul.wide.u32 %a8, %r5, 4;
add.s64 %a9, %a5, %a8;
{body}
setp.ne.u32 %q, %r2, 0;
@%q bra DONE;
st.global.u32 [%a5+64], 1;
fence.acq_rel.gpu;
atom.relaxed.gpu.global.add.u32 %r9, [%a3], 1;
fence.acq_rel.gpu;
setp.ne.u32 %p, %r9, {last};
@%p bra DONE;
ld.global.u32 %r10, [%a1+64];
DONE:
ret;
}}
"""
ARRIVES = """setp.ge.u32 %p, %r2, 32;
@%p bra SECOND;
bar.sync 1, 64;
bar.sync 0;
setp.ne.u32 %q, %r2, 0;
@%q bra MET;
st.global.u32 [%a5+20], 1;
MET:
bar.sync 0;
bra TOGETHER;
SECOND:
{first} 1, 64;
bar.sync 0;
setp.ne.u32 %q, %r2, 32;
@%q bra STORED;
st.global.u32 [%a9], 1;
STORED:
bar.sync 0;
TOGETHER:"""
NO_BYTES = {
    "cp.async": "cp.async.cg.shared.global [%r6], [%a7], 16, 0;\ncp.async.wait_all;",
    "cp.async.bulk": "cp.async.bulk.global.shared::cta.bulk_group [%a7], [%r6], 0;",
    "cp.async.bulk.prefetch": "cp.async.bulk.prefetch.L2.global [%a7], 64;",
}


def answer_about(body: str, grid: tuple[int, int]) -> Verdict | None:
    """The answer that pairs give about a grid, each of whose clusters executes ``body`` before it counts itself."""
    count = grid[0] * grid[1]
    given = {
        "grid": list(grid), "block": 64,
        "params": {
            "data": {"buffer": 128 * count}, "other": {"buffer": 128 * count},
            "count": {"buffer": 4, "init": {"hex": "00000000"}},
        },
    }  # fmt: skip
    text = ONLY_THERE.format(body=body, last=count - 1)
    found, _ = answer_by_pairs(*build(text, given, cooperative=False), SECONDS, signals=False)
    return None if found is None else found.verdict


@pytest.mark.parametrize("first", ["bar.arrive", "bar.sync"])
def test_who_arrives_without_waiting_ends_no_round(first: str) -> None:
    """Both warps store between the same two barriers, of the last cluster alone to the same word: where one has only
    arrived at the barrier before, it has waited one time less.
    """
    assert answer_about(ARRIVES.format(first=first), (FEW_CLUSTERS, 1)) is Verdict.FINDING


@pytest.mark.parametrize("name", NO_BYTES)
def test_an_address_is_aligned_even_if_nothing_is_accessed(name: str) -> None:
    """In rows of clusters, of which the first and the last one are aligned."""
    assert answer_about(NO_BYTES[name], CLUSTERS_IN_ROWS) is not Verdict.PROVED
    assert answer_about(NO_BYTES[name].replace("%a7", "%a2"), CLUSTERS_IN_ROWS) is Verdict.PROVED
