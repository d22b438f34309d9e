"""Grids of tiles, each with a word of its own, whose slices take turns: what one tile says of all."""

from __future__ import annotations

from typing import Any

import pytest

from mcheck.checking.run.result import Result
from mcheck.findings.waits import OfWord
from mcheck.ptx import check

TILES, SLICES, THREADS = 100, 3, 32
KERNEL = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 sums, .param .u64 turns, .param .u32 tiles)
{
  .reg .pred %p<12>; .reg .b32 %r<24>; .reg .f32 %f<8>; .reg .b64 %rd<16>;
  ld.param.u64 %rd2, [sums];
  ld.param.u64 %rd3, [turns];
  mov.u32 %r1, %ctaid.y;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd6, %r2, 4;
  add.s64 %rd3, %rd3, %rd6;
  mov.u32 %r20, -1;
  setp.ne.s32 %p1, %r3, 0;
  @%p1 bra WORK;
  ld.acquire.gpu.b32 %r20, [%rd3];
WORK:
  bra.uni ASK;
AGAIN:
  @%p1 bra ASK;
  ld.acquire.gpu.b32 %r20, [%rd3];
ASK:
  setp.ne.s32 %p2, %r20, %r1;
  bar.red.and.pred %p3, 0, %p2;
  @%p3 bra AGAIN;
  mad.lo.u32 %r4, %r2, 32, %r3;
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd5, %rd2, %rd4;
  ld.global.f32 %f1, [%rd5];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd5], %f2;
  bar.sync 0;
  @%p1 bra DONE;
  add.s32 %r5, %r1, 1;
  st.release.gpu.b32 [%rd3], %r5;
DONE:
  ret;
}
"""
"""Each CTA looks whether it has its turn, waits for it, and hands on the next."""
SHARED = ("mad.lo.u32 %r4, %r2, 32, %r3", "mov.u32 %r4, %r3")
"""All tiles are one."""


def ask(*edits: tuple[str, str], first: int = 0, cooperative: bool = True, timeout: float = 10) -> Result:
    """The answer about the grid, with parts of the kernel replaced; the word of the last tile begins with ``first``."""
    text = KERNEL
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    words = "00" * 4 * (TILES - 1) + first.to_bytes(4, "little").hex()
    launch: dict[str, Any] = {
        "grid": [TILES, SLICES], "block": [THREADS], "cooperative": cooperative,
        "params": {"sums": {"buffer": 4 * THREADS * TILES}, "turns": {"buffer": 4 * TILES, "init": {"hex": words}},
                   "tiles": TILES},
    }  # fmt: skip
    return check(text, launch, timeout=timeout)


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("edits", [(), (("  ld.acquire.gpu.b32 %r20, [%rd3];\nWORK:", "WORK:"),)])
def test_tiles_that_are_alike_are_proved_for_the_launch(edits: tuple[tuple[str, str], ...]) -> None:
    found = ask(*edits, timeout=60)
    assert found.verdict == "proved", found.reason
    assert found.covers is not None
    assert (found.covers.clusters, found.covers.total) == (TILES * SLICES, TILES * SLICES)
    assert any(f"each for those of the {SLICES} in its box" in said for said in found.assumptions)


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    "edits",
    [
        (SHARED,),
        (("st.release.gpu", "st.relaxed.gpu"),),
        (("add.s64 %rd3, %rd3, %rd6", "mov.b64 %rd7, %rd3"),),  # one word for all tiles
        (("add.s32 %r5, %r1, 1", "add.s32 %r5, %r1, %r2"),),  # a turn that depends on the tile
        (("setp.ne.s32 %p2, %r20, %r1", "add.s32 %r6, %r1, %r2; setp.ne.s32 %p2, %r20, %r6"),),
        (("bra.uni ASK;", "setp.ne.s32 %p2, %r2, 7; @%p2 bra ASK; mov.u32 %r20, %r1; bra ASK;"),),  # tile 7 waits never
        (("  bar.sync 0;\n", ""),),
    ],
)
def test_tiles_that_go_wrong_or_differ_are_not_proved(edits: tuple[tuple[str, str], ...]) -> None:
    assert ask(*edits).verdict != "proved"


@pytest.mark.daily(days=6, least=0)
@pytest.mark.parametrize("load", ["ld.relaxed.gpu", "ld.acquire.cta", "ld.volatile"])
def test_a_look_that_orders_less_than_the_wait_is_not_left_out(load: str) -> None:
    """If it finds the turn, there is no wait: nothing else acquires."""
    assert ask(("ld.acquire.gpu.b32 %r20, [%rd3];\nWORK:", f"{load}.b32 %r20, [%rd3];\nWORK:")).verdict != "proved"


@pytest.mark.daily(days=3, least=0)
def test_a_look_that_is_compared_with_another_turn_is_not_left_out() -> None:
    """The turn before decides something else, at the same place in the second round."""
    compared = """WORK:
  mov.u32 %r10, 0;
  mov.u32 %r11, %r1;
COMPARE:
  setp.ne.s32 %p2, %r20, %r11;
  setp.ne.u32 %p4, %r10, 0;
  @%p4 bra SECOND;
  @%p1 bra TURN;
  @!%p2 bra TURN;
POLL:
  ld.acquire.gpu.b32 %r21, [%rd3];
  setp.ne.s32 %p5, %r21, %r1;
  @%p5 bra POLL;
TURN:
  mov.u32 %r10, 1;
  sub.u32 %r11, %r1, 1;
  bra COMPARE;
SECOND:
  setp.eq.u32 %p6, %r1, 0;
  @%p6 bra END;
  @!%p2 st.global.u32 [%rd2+100000], %r1;
END:
  bar.sync 0;
"""
    before, _, rest = KERNEL.partition("WORK:\n")
    _, again, behind = rest.partition("  mad.lo.u32 %r4")
    assert ask((KERNEL, before + compared + again + behind)).verdict != "proved"
    harmless = compared.replace("@!%p2 st.global.u32 [%rd2+100000], %r1;", "").replace("sub.u32 %r11, %r1, 1", "nop")
    harmless = harmless.replace("nop;", "mov.u32 %r11, %r1;")
    assert ask((KERNEL, before + harmless + again + behind), timeout=60).verdict == "proved"


@pytest.mark.daily(days=3, least=0)
def test_tiles_whose_words_begin_otherwise_are_not_proved() -> None:
    assert ask(first=9).verdict != "proved"


@pytest.mark.daily(days=3, least=0)
def test_slices_that_need_not_be_resident_are_waited_for_in_vain() -> None:
    found = ask(cooperative=False, timeout=600)
    assert (found.verdict, [f.code for f in found.findings]) == ("finding", ["DEAD007"])
    assert found.covers is not None
    assert found.covers.clusters == TILES * SLICES


@pytest.mark.parametrize(("turn", "left"), [("add.s32 %r5, %r1, 2", 4), ("mov.u32 %r5, 0", 0)])
def test_a_turn_that_never_comes_is_a_deadlock(turn: str, left: int) -> None:
    found = ask(("add.s32 %r5, %r1, 1", turn), timeout=60)
    assert (found.verdict, [f.code for f in found.findings]) == ("finding", ["DEAD004"])
    (wait,) = {w.goal for w in found.findings[0].waits if isinstance(w.goal, OfWord)}
    assert wait.value == left


def test_a_turn_that_a_weak_store_hands_on_is_no_deadlock() -> None:
    found = ask(("st.release.gpu.b32 [%rd3], %r5", "st.b32 [%rd3], %r5"), timeout=60)
    assert found.verdict != "proved"
    assert all(not f.code.startswith("DEAD") for f in found.findings)
