"""Grids whose slices count themselves in the counters of their tiles: what a box of clusters says of all."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.base.verdicts import Verdict
from tests.fuzz.tile_counters import Plan, answer_by_box, compare, generate, read

SECONDS = 60.0
RESET = "st.relaxed.gpu.global.u32 [%a6], 0;"
RIGHT = {
    "plain": Plan(),
    "reset": Plan(reset=RESET),
    "by shared memory": Plan(by_shared=True),
    "up to the last": Plan(draw="atom.acq_rel.gpu.global.inc.u32 %r8, [%a6], %r9;"),
    "up to more": Plan(draw="atom.acq_rel.gpu.global.inc.u32 %r8, [%a6], 100;", by_shared=True),
    "fences": Plan(
        draw="atom.relaxed.gpu.global.add.u32 %r8, [%a6], 1;", fence="fence.acq_rel.gpu;", after="fence.acq_rel.gpu;"
    ),
}
OPEN = {
    "one counter for all": Plan(word="mov.u32 %r7, 0;"),
    "two tiles share a counter": Plan(word="shr.u32 %r7, %r1, 1;"),
    "a counter of every other tile": Plan(word="and.b32 %r7, %r1, 1;"),
    "the last one reads the next tile": Plan(read="add.s64 %a5, %a5, 8;"),
    "all tiles write one sum": Plan(out="mov.u32 %r10, 0;"),
    "another slice writes another sum": Plan(out="mov.u32 %r10, %r2;"),
    "a counter that starts at one": Plan(first=(0, 1)),
    "counters that start at one": Plan(first=(1,) * 8),
    "a tile without a fence": Plan(
        draw="atom.relaxed.gpu.global.add.u32 %r8, [%a6], 1;",
        fence="@%q bra F;\nfence.acq_rel.gpu;\nF:",
        after="fence.acq_rel.gpu;",
    ),
    "up to the last but one": Plan(
        draw="sub.u32 %r15, %r9, 1;\natom.acq_rel.gpu.global.inc.u32 %r8, [%a6], %r15;",
        ask="setp.ne.u32 %p, %r8, %r15;",
    ),
    "up to another number in each tile": Plan(
        draw="add.u32 %r15, %r9, %r1;\natom.acq_rel.gpu.global.inc.u32 %r8, [%a6], %r15;",
        ask="setp.ne.u32 %p, %r8, %r15;",
    ),
    "up to the last, in any order": Plan(draw="atom.relaxed.gpu.global.inc.u32 %r8, [%a6], %r9;"),
    "the last but one": Plan(ask="setp.ne.u32 %p, %r8, 0;"),
    "the counter of another tile is reset": Plan(reset="st.relaxed.gpu.global.u32 [%a2], 0;"),
    "a CTA that does not count itself": Plan(stray="@%q ret;"),
}


@pytest.mark.daily
@pytest.mark.parametrize("name", RIGHT)
def test_a_tile_stands_for_all(name: str) -> None:
    found, why = answer_by_box(*read(RIGHT[name], 4, 3), SECONDS)
    assert found is not None, why
    assert found.verdict is Verdict.PROVED
    assert found.covers is not None
    assert found.covers.clusters == 12


@pytest.mark.daily
@pytest.mark.parametrize("name", OPEN)
def test_a_tile_that_does_not_stand_for_all(name: str) -> None:
    found, _ = answer_by_box(*read(OPEN[name], 4, 3), SECONDS)
    assert found is None or found.verdict is not Verdict.PROVED


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("by_shared", [False, True])
def test_what_the_number_is_compared_with_is_the_same_in_all_tiles(*, by_shared: bool) -> None:
    """In the second tile the last two slices go on."""
    ask = "sub.u32 %r15, %r9, %r1;\nsetp.lt.u32 %p, %r8, %r15;"
    found, _ = answer_by_box(*read(Plan(ask=ask, by_shared=by_shared), 2, 3), SECONDS)
    assert found is None or found.verdict is not Verdict.PROVED


@pytest.mark.daily(days=12, least=0)
@pytest.mark.parametrize("start", range(0, 16, 4))
def test_random_tiles_are_answered_as_all_clusters_together_are(start: int) -> None:
    for seed in range(start, start + 4):
        found = compare(generate(Random(seed)), SECONDS)
        assert not found.wrong, found
