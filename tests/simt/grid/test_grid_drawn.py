"""Kernels whose CTAs draw tiles from a counter: what one cluster that is given one tile again and again says of all,
for right kernels and for broken ones.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from mcheck.base.verdicts import Verdict
from tests.fuzz.draws import HEAD, OWN, Line, Plan, answer_by_one, compare, generate, judge, make_plan, write
from tests.fuzz.pair_answers import build

SECONDS = 60.0
SEEDS = 480
PER_TEST = 8
MANY = 8
"""Tiles of which the proof is one for any number of rounds."""

STORE, LOAD = Line("store", OWN), Line("load", OWN)
BARRIER = Line("barrier")
OTHER = Line("load", (("tile", 2), ("thread", -1), ("one", 1)))
"""A load of what the other thread of the CTA has stored."""
BEHIND = Line("store", (("one", 300),), who=0)
RIGHT: dict[str, Plan] = {
    "own words": make_plan(STORE),
    "own words, ahead": make_plan(STORE, ahead=True),
    "two slots": make_plan(STORE, slots=2),
    "two slots, ahead": make_plan(STORE, slots=2, ahead=True),
    "the words of the tile, behind a barrier": make_plan(STORE, BARRIER, OTHER),
    "a part of a tile": make_plan(replace(STORE, mask=("tile", "<", 2))),
    "three CTAs": replace(make_plan(STORE, LOAD), ctas=3),
    "a word of each CTA, behind its rounds": make_plan(
        STORE, behind=(Line("store", (("cta", 1), ("one", 300)), who=0, mask=("round", "==", 1)),)
    ),
}
BROKEN: dict[str, Plan] = {
    "one word": make_plan(Line("store", (("one", 1),), who=0)),
    "by rounds": make_plan(Line("store", (("round", 2), ("thread", 1)))),
    "by rounds of each CTA": make_plan(Line("store", (("cta", 1), ("round", 1)), who=0)),
    "the word of the next tile": make_plan(STORE, Line("load", (*OWN, ("one", 2)))),
    "of the tile before": make_plan(Line("store", (("before", 2), ("thread", 1)))),
    "no barrier between the threads": make_plan(STORE, OTHER),
    "no barrier before": replace(make_plan(STORE), body=make_plan(STORE).body[:1] + make_plan(STORE).body[2:]),
    "no barrier behind": replace(make_plan(STORE), body=make_plan(STORE).body[:3] + make_plan(STORE).body[4:]),
    "a slot that is not free": make_plan(STORE, Line("store", (("one", 8),), "shared", who=1)),
    "in one tile alone": make_plan(STORE, Line("store", (("one", 200),), mask=("tile", "==", 1))),
    "by a CTA without a tile": replace(make_plan(STORE, behind=(replace(BEHIND, mask=("round", "==", 0)),)), ctas=3),
    "by a CTA with one tile": replace(make_plan(STORE, behind=(replace(BEHIND, mask=("round", "==", 1)),)), ctas=3),
    "by the number of tiles": replace(
        make_plan(STORE, behind=(Line("store", (("round", 1), ("cta", 2), ("one", 300)), who=0),)), ctas=3
    ),
    "tiles outside": make_plan(Line("store", (("tile", 256), ("thread", 1)))),
}


@pytest.mark.parametrize("tiles", [3, MANY])
@pytest.mark.parametrize("plan", RIGHT.values(), ids=RIGHT)
def test_a_right_kernel_is_proved(plan: Plan, tiles: int) -> None:
    found, why, error = compare(plan, tiles, SECONDS)
    assert not error
    assert found is not None, why
    assert found.verdict is Verdict.PROVED


@pytest.mark.parametrize("tiles", [3, MANY])
@pytest.mark.parametrize("plan", BROKEN.values(), ids=BROKEN)
def test_a_broken_kernel_is_not(plan: Plan, tiles: int) -> None:
    found, why, error = compare(plan, tiles, SECONDS)
    assert error, "the judge knows"
    assert why not in ("missed", "invented")
    assert bool(why) == (found is None)


def test_numbers_behind_the_tiles_differ() -> None:
    """A thread that draws twice behind the last tile gets two numbers, so it stores; all do that to one word."""
    again = "atom.relaxed.gpu.global.add.u32 %r9, [%a2], 1;\nsetp.eq.u32 %p, %r9, %r8;\n@%p bra X;\n"
    text = write(make_plan(STORE)).replace("E:\n", f"E:\n@!%z bra X;\n{again}st.global.u32 [%a1+1200], %r1;\nX:\n")
    launch = {"grid": 2, "params": {"out": {"buffer": 2048}, "count": _zero(), "tiles": 3}}
    found, why = answer_by_one(*build(text, launch, cooperative=False), SECONDS)
    assert why if found is None else found.verdict is Verdict.FINDING


def test_a_product_with_the_number_given_is_not_the_same_for_all() -> None:
    """The tile that is given is 0, so its products with the number of rounds are, too; with other tiles these grow."""
    product = "mul.lo.u32 %r11, %r3, %r4;\nmul.wide.u32 %a3, %r11, 4;\nadd.s64 %a3, %a1, %a3;\n"
    text = write(make_plan(STORE)).replace("E:\n", f"E:\n@!%z bra X;\n{product}st.global.u32 [%a3+400], %r1;\nX:\n")
    launch = {"grid": 2, "params": {"out": {"buffer": 2048}, "count": _zero(), "tiles": MANY}}
    found, why = answer_by_one(*build(text, launch, cooperative=False), SECONDS)
    assert why if found is None else found.verdict is Verdict.FINDING


def test_boxes_move_by_their_elements() -> None:
    """A box that moves by 8 elements meets in the second tile what moves by 8 bytes, though not in the first one."""
    copy = (
        "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%a4, {%r10}], [data];\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
    )
    body = (
        "shl.b32 %r10, %r5, 3;\nmul.wide.u32 %a3, %r5, 8;\nadd.s64 %a3, %a1, %a3;\n@!%z st.global.u32 [%a3+24], %r5;\n"
        f"@!%z bra N;\n{copy}N:\nmov.u32 %r4, %r5;"
    )
    text = (
        write(make_plan())
        .replace("mov.u32 %r4, %r5;", body)
        .replace(".param .u64 out,", ".param .align 64 .b8 box[128], .param .u64 out,")
        .replace("mov.u32 %r3, 0;", "mov.u32 %r3, 0;\nmov.b64 %a4, box;\ncvta.param.u64 %a4, %a4;")
        .replace(".shared .align 4", ".shared .align 128 .b8 data[128];\n.shared .align 4")
    )
    box = {
        "global_address": "out", "rank": 1, "box_dim": [4], "global_dim": [64], "global_stride": [],
        "element_stride": [1], "elemtype": "f32", "interleave_layout": "none", "swizzle_mode": "none",
        "fill_mode": "zero",
    }  # fmt: skip
    params = {"box": {"tensormap": box}, "out": {"buffer": 256}, "count": _zero(), "tiles": 2}
    found, why = answer_by_one(*build(text, {"grid": 2, "params": params}, cooperative=False), SECONDS)
    assert found is None
    assert why == "accesses that move differently meet in some round"


def _zero() -> dict[str, Any]:
    return {"buffer": 4, "init": {"hex": "00000000"}}


QUICK = [*range(1, 17, PER_TEST)]
LATER = [pytest.param(k, marks=pytest.mark.slow) for k in range(17, SEEDS, PER_TEST)]


@pytest.mark.parametrize("first", [*QUICK, *LATER])
def test_what_is_proved_has_no_error(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        plan, tiles = generate(Random(seed)), 2 + seed % 2
        _, why, _ = compare(plan, tiles)
        assert why not in ("missed", "invented"), f"seed {seed}: {plan}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2001, 2101, PER_TEST))
def test_what_is_proved_for_any_number_of_rounds_has_no_error(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        plan = generate(Random(seed))
        _, why, _ = compare(plan, MANY)
        assert why not in ("missed", "invented"), f"seed {seed}: {plan}"


def test_the_judge_knows_both() -> None:
    """Of the random kernels some are right and some are not."""
    errors = {bool(judge(generate(Random(seed)), 2)) for seed in range(1, 40)}
    assert errors == {False, True}
    assert HEAD in write(make_plan(STORE))
