"""Waits that a barrier decides: one thread polls, and ``barrier.red`` tells its CTA whether to go on."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.execution.waits.barrier_waits import comes_back, find_barrier_wait

THREADS = 64
KERNEL = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 parts, .param .u64 sums, .param .u64 turns)
{
  .reg .pred %p<12>; .reg .b32 %r<24>; .reg .f32 %f<8>; .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [parts];
  ld.param.u64 %rd2, [sums];
  ld.param.u64 %rd3, [turns];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r20, -1;
  mov.u32 %r11, 0;
  setp.ne.s32 %p5, %r3, 32;
AGAIN:
  setp.ne.s32 %p1, %r3, 0;
  @%p1 bra ASK;
  ld.acquire.gpu.b32 %r20, [%rd3];
ASK:
  setp.ne.s32 %p2, %r20, %r1;
  bar.red.and.pred %p3, 0, %p2;
  @%p3 bra AGAIN;
  mul.wide.s32 %rd4, %r3, 4;
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
"""Each CTA waits for its turn, and hands on the next."""
OTHER = "@%p1 bra ASK;"
"""Where the threads that do not poll leave the way of the one that does."""


def ask(text: str, *, ctas: int = 2) -> Answer:
    """The answer about a grid of CTAs, each of them a cluster of its own."""
    read = parse_module(text)
    zeros = {"buffer": 16, "init": {"hex": "00" * 16}}
    params = {"parts": {"buffer": 1024}, "sums": {"buffer": 4 * THREADS}, "turns": zeros}
    given = build_launch(read, from_object({"grid": [ctas], "block": [THREADS], "cooperative": True, "params": params}))
    return answer_launch(read, given, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60))


def edited(*edits: tuple[str, str]) -> str:
    """The kernel with parts of it replaced."""
    text = KERNEL
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


COUNTED = (("ld.acquire", "add.s32 %r11, %r11, 1; ld.acquire"),)
"""A thread that counts its polls."""
LATE = ("%r20, %r1;\n", "%r20, %r1; setp.ge.and.s32 %p2, %r20, -4, %p2;\n")
"""A loop that ends when the value is less than -4, too."""
OR = ("setp.ne.s32 %p2, %r20", "setp.eq.s32 %p2, %r20"), ("bar.red.and", "bar.red.or"), ("@%p3 bra", "@!%p3 bra")


@pytest.mark.daily
@pytest.mark.parametrize(
    ("edits", "ctas"),
    [
        ((), 2),
        ((), 4),
        (OR, 2),
        ((("%p3, 0,", "%p3, 5,"),), 2),
        ((("setp.ne.s32 %p2, %r20, %r1", "setp.lt.s32 %p2, %r20, %r1"),), 2),
    ],
)
def test_turns_that_are_waited_for_around_a_barrier(edits: tuple[tuple[str, str], ...], ctas: int) -> None:
    found = ask(edited(*edits), ctas=ctas)
    assert found.verdict == "proved", (found.reason, found.findings)


@pytest.mark.daily
@pytest.mark.parametrize(
    ("edits", "code"),
    [
        ((("add.s32 %r5, %r1, 1", "mov.u32 %r5, 0"),), "DEAD004"),
        ((("add.s32 %r5, %r1, 1", "mov.u32 %r5, 1"), ("bar.sync 0;\n  @", "@")), "RACE001"),
        ((("ld.acquire.gpu", "ld.relaxed.gpu"),), "RACE001"),
        # A fence behind the barrier is too late: the others do not wait for that of the thread that polls.
        ((("ld.acquire.gpu", "ld.relaxed.gpu"), ("bra AGAIN;", "bra AGAIN; fence.acq_rel.gpu;")), "RACE001"),
        ((("ld.acquire.gpu", "ld.acquire.cta"),), "RACE010"),
        ((("st.release.gpu", "st.relaxed.gpu"),), "RACE001"),
        # A thread that ends the loop at once, and one that ends it in the second round, or the third.
        (((OTHER, "@!%p5 mov.b32 %r20, %r1; @%p1 bra ASK;"),), "RACE001"),
        (((OTHER, "@!%p5 add.s32 %r20, %r20, 1; @%p1 bra ASK;"), ("%r20, -1", "%r20, -2")), "RACE001"),
        (((OTHER, "@!%p5 sub.s32 %r20, %r20, 1; @%p1 bra ASK;"), LATE), "RACE001"),
        (((OTHER, "@!%p5 add.s32 %r11, %r11, 1; setp.gt.s32 %p6, %r11, 3; @%p6 mov.b32 %r20, %r1; @%p1 bra ASK;"),),
          "RACE001"),
        # The thread that polls leaves the loop after some rounds, whatever it has read.
        ((*COUNTED, ("  bar.red", "  setp.lt.and.s32 %p2, %r11, 3, %p2;\n  bar.red")), "RACE001"),
        # Rounds that are seen: by a store of the thread that polls, and by one of another.
        ((("  ld.acquire", "  st.global.f32 [%rd2], %f1;\n  ld.acquire"),), "RACE001"),
        (((OTHER, "@!%p5 st.global.f32 [%rd2], %f1; @%p1 bra ASK;"),), "RACE001"),
    ],
)  # fmt: skip
def test_turns_that_go_wrong(edits: tuple[tuple[str, str], ...], code: str) -> None:
    found = ask(edited(*edits))
    assert found.verdict == "finding", found.reason
    assert code in {f.code for f in found.findings}, found.findings


@pytest.mark.parametrize(
    "edits",
    [
        # Two threads poll; the polls of one of them are of another word.
        ((OTHER, "setp.ne.and.s32 %p1, %r3, 32, %p1; @%p1 bra ASK;"),),
        # Not all threads of the CTA come to the barrier.
        (("bar.red.and.pred %p3, 0,", "bar.red.and.pred %p3, 0, 64,"),),
        # How many rounds there were decides something afterwards.
        (*COUNTED, ("mul.wide.s32 %rd4", "setp.gt.s32 %p6, %r11, 5; @%p6 bra DONE; mul.wide.s32 %rd4")),
    ],
)  # fmt: skip
def test_loops_that_are_no_waits(edits: tuple[tuple[str, str], ...]) -> None:
    function = parse_module(edited(*edits)).functions["k"]
    index = {r.name: r.index for s in function.body for r in (*s.uses, *s.defs)}
    load = next(k for k, s in enumerate(function.body) if s.opcode.has("acquire"))
    barrier = next(k for k, s in enumerate(function.body) if s.opcode.has("red"))
    lane = {index["%r1"]: 1, index["%r3"]: 0, index["%rd3"]: 4096, index["%r11"]: 0, index["%r20"]: (1 << 32) - 1}
    other = {**lane, index["%r3"]: 32, index["%p2"]: 1}
    wait = find_barrier_wait(function, load, lane)
    assert wait is None or not comes_back(function, barrier, other, again=wait.again)
