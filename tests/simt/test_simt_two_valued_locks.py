"""Locks whose word holds one of two values: failed attempts to take them change nothing."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module

SUM = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 lock, .param .u64 sum)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[16];
  ld.param.u64 %rd1, [lock];
  ld.param.u64 %rd2, [sum];
  mov.u32 %r1, %ctaid.x;
AGAIN:
  atom.acquire.gpu.global.exch.b32 %r2, [%rd1], 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra AGAIN;
  ld.global.u32 %r3, [%rd2];
  add.u32 %r3, %r3, 1;
  st.global.u32 [%rd2], %r3;
  st.release.gpu.global.u32 [%rd1], 0;
  ret;
}
"""
SWAP = "atom.acquire.gpu.global.exch.b32 %r2, [%rd1], 1;\n  setp.ne.u32 %p1, %r2, 0;"
SWAPS = {
    "exchange": SWAP,
    "exchange until it is not taken": SWAP.replace("ne.u32 %p1, %r2, 0", "eq.u32 %p1, %r2, 1"),
    "swap until it is not taken": "atom.acquire.gpu.global.cas.b32 %r2, [%rd1], 0, 1;\n  setp.eq.u32 %p1, %r2, 1;",
}
GIVEN_BACK = "st.release.gpu.global.u32 [%rd1], 0;"


def ask(text: str, *, held: str | None = "00" * 16, seconds: float = 4) -> Answer:
    """The answer about two CTAs of one thread; ``held`` are the first contents of the lock and what lies behind it."""
    read = parse_module(text)
    known = {"init": {"hex": held}} if held is not None else {}
    params = {"lock": {"buffer": 16, **known}, "sum": {"buffer": 64}}
    given = build_launch(read, from_object({"grid": [2], "block": [1], "params": params, "cooperative": True}))
    question = Question(about=Completeness.FINDINGS, timeout=seconds)
    return answer_launch(read, given, load_model("ptx-9.0"), question)


def codes(found: Answer) -> set[str]:
    return {f.code for f in found.findings}


@pytest.mark.daily
@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", ""),
        (GIVEN_BACK, GIVEN_BACK.replace("release", "relaxed"), "RACE001"),
        (GIVEN_BACK, GIVEN_BACK.replace("gpu", "cta"), "RACE010"),
        ("atom.acquire", "atom.relaxed", "RACE001"),
        (GIVEN_BACK, "", "DEAD004"),
        (GIVEN_BACK, "atom.release.gpu.global.exch.b32 %r4, [%rd1], 0;", ""),
        ("@%p1 bra AGAIN;", "", "RACE001"),
    ],
)
def test_a_sum_under_a_lock(swap: str, old: str, new: str, wanted: str) -> None:
    text = SUM.replace(SWAP, SWAPS[swap])
    assert old in text
    found = ask(text.replace(old, new) if old else text, seconds=30)
    assert codes(found) >= set(wanted.split()), (found.verdict, found.reason)
    assert wanted or found.verdict == "proved", (found.verdict, found.reason, found.findings)


@pytest.mark.daily(days=3)
@pytest.mark.parametrize(
    ("more", "held"),
    [
        ("", "02" + "00" * 15),  # a third value at first: exchanged for 1, and never free; swapped: free for all
        ("st.relaxed.gpu.global.u32 [%rd1], 2;", "00" * 16),
        ("st.relaxed.gpu.global.u8 [%rd1], 1;", "00" * 16),
        ("st.global.u32 [%rd1], 1;", "00" * 16),
        ("atom.relaxed.gpu.global.add.u32 %r5, [%rd1], 0;", "00" * 16),
        ("mov.b32 %r6, tile; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r6], 16;", "00" * 16),
    ],
)
@pytest.mark.parametrize("swap", SWAPS)
def test_another_value_or_another_kind_of_access_is_no_lock(more: str, held: str, swap: str) -> None:
    text = SUM.replace(SWAP, SWAPS[swap]).replace(GIVEN_BACK, f"{more} {GIVEN_BACK}")
    assert ask(text, held=held).verdict != "proved"


@pytest.mark.parametrize("swap", SWAPS)
def test_a_lock_that_the_launch_does_not_give_is_free_at_first(swap: str) -> None:
    """With contents that are not known at all, both threads would seem to have it at once."""
    text = SUM.replace(SWAP, SWAPS[swap])
    found = ask(text, held=None, seconds=30)
    assert (found.verdict, found.findings) == ("bounded", ())
    assert "the launch does not give the initial value of this word: 0 was assumed" in (found.reason or "")
    assert "RACE001" in codes(ask(text.replace("st.release", "st.relaxed"), held=None, seconds=30))
