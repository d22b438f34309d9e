"""Scans in which one thread of a CTA looks back, and hands what it finds to all others through shared memory, as Triton
compiles them, and what the argument about looking grids says of them.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest

from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.looking_grid import answer_looking
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.grid.pairs.idle_atomics import without_idle_atomics
from tests.fuzz.looking_handed import ODD, RIGHT, Plan, generate, judge
from tests.fuzz.looking_handed import answer as answer_plan
from tests.fuzz.looking_handed import write as write_plan
from tests.fuzz.pair_answers import follow_pair, say_why

CTAS = 3
SCAN = """.version 8.8
.target sm_90
.address_size 64
.visible .entry scan(.param .u64 out, .param .u64 states, .param .u64 sums, .param .u64 ticket)
{
  .reg .pred %first, %p, %q, %odd;
  .reg .b32 %me, %tile, %other, %status, %got, %s, %sum, %value, %x;
  .reg .b64 %out, %states, %sums, %ticket, %off, %mine, %there, %from;
  .shared .align 16 .b8 sh[32];
  ld.param.u64 %out, [out];
  ld.param.u64 %states, [states];
  ld.param.u64 %sums, [sums];
  ld.param.u64 %ticket, [ticket];
  mov.u32 %me, %tid.x;
  setp.eq.u32 %first, %me, 0;
  setp.ge.u32 %odd, %me, 32;
  mov.u32 %s, sh;
  @%first atom.relaxed.gpu.global.add.u32 %tile, [%ticket], 1;
  @%first st.shared.u32 [%s], %tile;
  bar.sync 0;
  ld.shared.u32 %tile, [sh];
  mul.wide.u32 %off, %tile, 4;
  add.u64 %mine, %states, %off;
  mov.u32 %sum, %tile;
  sub.u32 %other, %tile, 1;
NEXT:
  setp.lt.s32 %p, %other, 0;
  @%p bra DONE;
  mul.wide.s32 %off, %other, 4;
  add.u64 %there, %states, %off;
  add.u64 %from, %sums, %off;
AGAIN:
  bar.sync 0;
  @%first ld.acquire.gpu.global.u32 %status, [%there];
  @%first st.shared.u32 [%s], %status;
  bar.sync 0;
  ld.shared.u32 %got, [sh];
  setp.eq.u32 %p, %got, 0;
  @%p bra AGAIN;
  ld.global.u32 %value, [%from];
  add.u32 %sum, %sum, %value;
  sub.u32 %other, %other, 1;
  setp.ne.u32 %p, %got, 2;
  @%p bra NEXT;
DONE:
  mul.wide.u32 %off, %tile, 4;
  add.u64 %from, %sums, %off;
  @%first st.global.u32 [%from], %sum;
  @%first st.release.gpu.global.u32 [%mine], 2;
  bar.sync 0;
  @%odd st.shared.u32 [%s], 7;
  ret;
}
"""
BEHIND = "  bar.sync 0;\n  @%odd st.shared.u32 [%s], 7;\n"
FENCED = ("  ld.global.u32 %value, [%from];\n", "  fence.acq_rel.gpu;\n  ld.global.u32 %value, [%from];\n")
RELAXED = ("ld.acquire.gpu", "ld.relaxed.gpu")
LOOK = "  @%first ld.acquire.gpu.global.u32 %status, [%there];\n"
ROUND = f"  bar.sync 0;\n{LOOK}"
HAND_ON = "  @%first st.shared.u32 [%s], %status;\n  bar.sync 0;\n  ld.shared.u32 %got, [sh];\n"


def answer(module: str) -> str:
    """``proved``, or why not."""
    parsed = without_idle_atomics(parse_module(module))
    words = {"buffer": 4 * CTAS, "init": {"hex": "00000000" * CTAS}}
    params = [{"buffer": 256 * CTAS}, words, {"buffer": 4 * CTAS}, {"buffer": 4, "init": {"hex": "00000000"}}]
    given = {"grid": [CTAS], "block": [64], "params": {str(k): one for k, one in enumerate(params)}}
    launch = build_launch(parsed, from_object(given))
    found, why = say_why(lambda: answer_looking(parsed, launch, partial(follow_pair, parsed), Limit(20)))
    return why if found is None else "proved" if found.verdict is Verdict.PROVED else "not proved"


def changed(*changes: tuple[str, str]) -> str:
    """The scan, changed in some places."""
    module = SCAN
    for old, new in changes:
        assert old in module
        module = module.replace(old, new)
    return module


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ((ROUND, ROUND.replace("  @%first", "  mov.u32 %status, 0;\n  @%first")),),
        ((RELAXED[0], "ld.acquire.sys"),),
        ((LOOK, f"  setp.eq.u32 %q, %me, 0;\n{LOOK}"),),
        (("  ld.global.u32 %value, [%from];\n", "  mov.u32 %value, 1;\n"), RELAXED),
    ],
    ids=[
        "as Triton has it",
        "with a first value",
        "of the system",
        "beside a computation",
        "without what is published",
    ],
)
def test_right_scans_are_proved(changes: tuple[tuple[str, str], ...]) -> None:
    assert answer(changed(*changes)) == "proved"


@pytest.mark.parametrize(
    "changes",
    [
        (RELAXED,),
        (RELAXED, FENCED),
        (("st.release.gpu", "st.relaxed.gpu"),),
        (("ld.acquire.gpu", "ld.acquire.cta"),),
        ((BEHIND, BEHIND.removeprefix("  bar.sync 0;\n")),),
        ((ROUND, LOOK),),
        ((HAND_ON, HAND_ON.replace("  bar.sync 0;\n", "")),),
        ((BEHIND, "  @%odd st.global.u32 [%from], 0;\n"),),
    ],
    ids=[
        "nobody acquires", "others fence", "nobody releases", "acquires in the CTA", "written behind the last round",
        "no barrier before a round", "no barrier in a round", "two threads publish",
    ],
)  # fmt: skip
def test_scans_with_a_race_are_not(changes: tuple[tuple[str, str], ...]) -> None:
    assert answer(changed(*changes)) != "proved"


@pytest.mark.parametrize(
    "changes",
    [
        (("  setp.ne.u32 %p, %got, 2;\n", "  setp.ne.or.u32 %p, %got, 2, %odd;\n"),),
        (("  setp.ne.u32 %p, %got, 2;\n  @%p bra NEXT;\n", "  @%odd bra NEXT;\n"),),
        (("  setp.eq.u32 %p, %got, 0;\n", "  setp.eq.u32 %p, %got, 0;\n  @%odd setp.eq.u32 %p, %got, 2;\n"),),
        (("  setp.eq.u32 %p, %got, 0;\n", "  redux.sync.or.b32 %x, %me, -1;\n  setp.lt.u32 %p, %got, %x;\n"),),
    ],
    ids=["a warp goes on", "warps part", "a warp waits for another status", "a warp's sum decides"],
)
def test_threads_that_may_go_different_ways_are_not_followed(changes: tuple[tuple[str, str], ...]) -> None:
    """They come to different barriers: some wait forever."""
    assert answer(changed(*changes)) != "proved"


@pytest.mark.parametrize(
    "changes",
    [
        (("  setp.eq.u32 %first, %me, 0;\n", "  setp.lt.u32 %first, %me, 2;\n"),),
        (("  ld.shared.u32 %got, [sh];\n", "  ld.shared.u32 %got, [sh+4];\n"),),
        (("  setp.eq.u32 %p, %got, 0;\n", "  setp.eq.u32 %p, %got, 0;\n  add.u32 %s, %s, 4;\n"),),
    ],
    ids=["two threads look", "another word is read", "each round has a word"],
)
def test_what_is_not_handed_on_is_not_followed(changes: tuple[tuple[str, str], ...]) -> None:
    assert answer(changed(*changes)) != "proved"


def test_a_scan_that_waits_for_what_nobody_says_is_not_proved() -> None:
    assert answer(changed(("[%mine], 2;", "[%mine], 0;"))) != "proved"


@pytest.mark.parametrize("plan", [RIGHT, replace(RIGHT, reads=False, acquires="none")])
def test_right_scans_are_judged_alike(plan: Plan) -> None:
    assert (judge(plan), answer_plan(write_plan(plan))) == ("fine", "proved")


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in ODD.items() for value in values])
def test_each_race_of_a_scan_is_judged_alike(name: str, value: object) -> None:
    plan = replace(RIGHT, **{name: value})  # type: ignore[arg-type]
    assert judge(plan) == "race"
    assert answer_plan(write_plan(plan)) != "proved"


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(20))
def test_random_scans_that_are_proved_are_fine(seed: int) -> None:
    plan = generate(random.Random(seed))
    assert judge(plan) == "fine" or answer_plan(write_plan(plan)) != "proved"
