"""Small modules from launch to answer: correct ones are proved, twins with one bug are found at its line."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest

from mcheck.answers.result import Answer
from mcheck.base.errors import InputError
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.lane_arithmetic import lane_function
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.isa.opcode import read_opcode

HEAD = """.version 8.5
.target sm_90a
.address_size 64
"""
RING = (
    HEAD
    + """
.visible .entry ring(.param .u64 src, .param .u32 rounds)
{
  .reg .pred %p<8>;
  .reg .b32 %r<24>;
  .reg .b64 %rd<8>;
  .shared .align 128 .b8 buf[2048];
  .shared .align 8 .b64 full[2];
  .shared .align 8 .b64 empty[2];
  ld.param.u64 %rd1, [src];
  ld.param.u32 %r1, [rounds];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r2, %tid.x;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra READY;
  mov.u32 %r3, full;
  mov.u32 %r4, empty;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  mbarrier.init.shared::cta.b64 [%r3+8], 1;
  mbarrier.init.shared::cta.b64 [%r4], 32;
  mbarrier.init.shared::cta.b64 [%r4+8], 32;
  fence.mbarrier_init.release.cluster;
READY:
  bar.sync 0;
  mov.u32 %r5, 0;
  mov.u32 %r15, buf;
  mov.u32 %r16, full;
  mov.u32 %r17, empty;
  setp.ge.u32 %p2, %r2, 32;
  @%p2 bra CONSUME;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra DONE;
PRODUCE:
  setp.ge.u32 %p3, %r5, %r1;
  @%p3 bra DONE;
  and.b32 %r6, %r5, 1;
  shr.u32 %r7, %r5, 1;
  and.b32 %r7, %r7, 1;
  xor.b32 %r8, %r7, 1;
  mad.lo.u32 %r9, %r6, 8, %r17;
  mad.lo.u32 %r10, %r6, 8, %r16;
  mad.lo.u32 %r11, %r6, 1024, %r15;
FREE:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r9], %r8;
  @!%p4 bra FREE;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 1024;
  mul.wide.u32 %rd3, %r5, 1024;
  add.s64 %rd4, %rd2, %rd3;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r11], [%rd4], 1024, [%r10];
  add.u32 %r5, %r5, 1;
  bra PRODUCE;
CONSUME:
  setp.ge.u32 %p3, %r5, %r1;
  @%p3 bra DONE;
  and.b32 %r6, %r5, 1;
  shr.u32 %r7, %r5, 1;
  and.b32 %r7, %r7, 1;
  mad.lo.u32 %r9, %r6, 8, %r17;
  mad.lo.u32 %r10, %r6, 8, %r16;
  mad.lo.u32 %r11, %r6, 1024, %r15;
  and.b32 %r12, %r2, 31;
  mad.lo.u32 %r11, %r12, 4, %r11;
  { .reg .pred done;
  WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%r10], %r7;
  @done bra OVER;
  bra WAIT;
  OVER: }
  ld.shared.u32 %r13, [%r11];
  fence.proxy.async.shared::cta;
  mbarrier.arrive.shared::cta.b64 _, [%r9];
  add.u32 %r5, %r5, 1;
  bra CONSUME;
DONE:
  ret;
}
"""
)
RING_LAUNCH: dict[str, object] = {"grid": [1], "block": [64], "params": {"src": {"buffer": None}, "rounds": 3}}


def ask(text: str, given: Mapping[str, object]) -> Answer:
    """The answer about a module, as ``mcheck check`` has it."""
    read = parse_module(text)
    question = Question(about=Completeness.FINDINGS, timeout=60)
    return answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)


def line_of(text: str, part: str, number: int = 0) -> int:
    """The line of the ``number``-th place of a text."""
    lines = [k for k, line in enumerate(text.splitlines(), 1) if part in line]
    return lines[number]


def lines(found: Answer) -> set[int]:
    """The lines of the findings."""
    return {a.span.line for f in found.findings for a in f.accesses if a.span is not None}


def test_a_ring_is_proved() -> None:
    found = ask(RING, RING_LAUNCH)
    assert found.verdict == "proved", found.reason
    assert any("one cluster" in text for text in found.assumptions)


FULL, EMPTY = "[%r10], %r7;", "%p4, [%r9], %r8;"


@pytest.mark.parametrize(
    ("old", "new", "kind", "at", "rounds"),
    [
        ("[%r4], 32", "[%r4], 33", "deadlock", EMPTY, 3),
        ("_, [%r10], 1024", "_, [%r10], 2048", "deadlock", FULL, 3),
        ("  @done bra OVER;\n  bra WAIT;", "", "race", "ld.shared", 1),
        ("xor.b32 %r8, %r7, 1", "xor.b32 %r8, %r7, 0", "deadlock", EMPTY, 3),
        ("  bar.sync 0;\n", "", "undefined", FULL, 3),
    ],
)
def test_a_broken_ring_is_found(old: str, new: str, kind: str, at: str, rounds: int) -> None:
    assert old in RING
    text = RING.replace(old, new)
    found = ask(text, {**RING_LAUNCH, "params": {"src": {"buffer": None}, "rounds": rounds}})
    assert found.verdict == "finding", found.reason
    assert kind in {f.kind for f in found.findings if f.severity == "error"}
    assert any(at in text.splitlines()[line - 1] for line in lines(found))


def test_a_parameter_that_control_needs_is_asked_for() -> None:
    with pytest.raises(InputError) as error:
        ask(RING, {**RING_LAUNCH, "params": {"src": {"buffer": None}}})
    assert "'rounds'" in str(error.value.hint)
    assert error.value.span is not None
    assert error.value.span.line == line_of(RING, "@%p3 bra DONE")


DISPATCH = (
    HEAD
    + """
.func (.param .b32 result) twice(.param .b32 given)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [given];
  shl.b32 %r2, %r1, 1;
  st.param.b32 [result], %r2;
  ret;
}
.visible .entry dispatch(.param .u64 out)
{
  .reg .pred %p<6>;
  .reg .b16 %rs<3>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 role[4];
  .shared .align 4 .b32 cells[32];
  mov.u32 %r1, %tid.x;
  shr.u32 %r2, %r1, 5;
  shfl.sync.idx.b32 %r3, %r2, 0, 31, 0xffffffff;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra WORK;
  mov.b16 %rs1, 1;
  st.shared.b8 [role], %rs1;
  bar.sync 0;
  bra DONE;
WORK:
  bar.sync 0;
  ld.shared.b8 %rs2, [role];
  setp.ne.b16 %p2, %rs2, 1;
  @%p2 bra DONE;
  and.b32 %r4, %r1, 31;
  {
  .param .b32 value;
  .param .b32 back;
  st.param.b32 [value], %r4;
  call.uni (back), twice, (value);
  ld.param.b32 %r5, [back];
  }
  mov.u32 %r6, cells;
  mad.lo.u32 %r7, %r5, 2, %r6;
  st.shared.u32 [%r7], %r1;
  bar.warp.sync 0xffffffff;
  xor.b32 %r8, %r4, 1;
  mad.lo.u32 %r9, %r8, 4, %r6;
  ld.shared.u32 %r10, [%r9];
DONE:
  ret;
}
"""
)


def test_control_follows_a_byte_in_shared_memory_and_a_call() -> None:
    found = ask(DISPATCH, {"grid": 1, "block": 64})
    assert found.verdict == "proved", found.reason
    assert any("count as one" in text for text in found.assumptions)


@pytest.mark.parametrize(
    ("old", "new", "first", "second"),
    [
        ("  bar.warp.sync 0xffffffff;\n", "", "st.shared.u32", "ld.shared.u32"),
        ("  st.shared.b8 [role], %rs1;\n  bar.sync 0;\n", "  bar.sync 0;\n  st.shared.b8 [role], %rs1;\n", "b8", "b8"),
    ],
)
def test_a_missing_order_between_lanes_is_found(old: str, new: str, first: str, second: str) -> None:
    assert old in DISPATCH
    text = DISPATCH.replace(old, new)
    found = ask(text, {"grid": 1, "block": 64})
    assert found.verdict == "finding", found.reason
    seen = {text.splitlines()[line - 1] for line in lines(found)}
    assert any(first in line for line in seen)
    assert any(second in line for line in seen)


@pytest.mark.parametrize(
    ("opcode", "sources", "result"),
    [
        ("bfe.u32", (0xABCD1234, 8, 8), 0x12),
        ("bfe.s32", (0x00008000, 8, 8), 0xFFFFFF80),
        ("bfi.b32", (0xF, 0, 4, 4), 0xF0),
        ("prmt.b32", (0x33221100, 0x77665544, 0x7531), 0x77553311),
        ("lop3.b32", (0xF0, 0xCC, 0xAA, 0x80), 0x80),
        ("shf.l.wrap.b32", (0x80000000, 1, 1), 3),
        ("shf.r.clamp.b32", (0, 1, 4), 0x10000000),
        ("bfind.u32", (0x00010000,), 16),
        ("bfind.shiftamt.u32", (0x00010000,), 15),
        ("bfind.u32", (0,), 0xFFFFFFFF),
        ("brev.b32", (1,), 0x80000000),
        ("popc.b64", ((1 << 64) - 1,), 64),
        ("clz.b32", (1,), 31),
        ("mul.hi.u32", (0x80000000, 4), 2),
        ("mul.hi.s64", ((1 << 64) - 1, 5), (1 << 64) - 1),
        ("mul.wide.s32", (0xFFFFFFFF, 2), (1 << 64) - 2),
        ("mad.lo.s32", (3, 5, 0xFFFFFFFF), 14),
        ("shr.s32", (0x80000000, 40), 0xFFFFFFFF),
        ("shl.b32", (1, 32), 0),
        ("div.s32", (0xFFFFFFF9, 2), 0xFFFFFFFD),
        ("rem.s32", (0xFFFFFFF9, 2), 0xFFFFFFFF),
        ("cvt.s64.s32", (0xFFFFFFFF,), (1 << 64) - 1),
        ("cvt.u32.u64", (1 << 40 | 7,), 7),
        ("cvt.sat.u8.s32", (300,), 255),
        ("setp.lt.s32", (0xFFFFFFFF, 0), 1),
        ("setp.eq.f32", (0x80000000, 0), 1),
        ("setp.neu.f32", (0x7FC00000, 0), 1),
        ("min.s32", (0xFFFFFFFF, 1), 0xFFFFFFFF),
        ("sad.u32", (3, 10, 1), 8),
    ],
)
def test_arithmetic(opcode: str, sources: tuple[int, ...], result: int) -> None:
    function = lane_function(read_opcode(tuple(opcode.split("."))))
    assert function is not None
    assert int(function(*(np.array([s], np.uint64) for s in sources))[0][0]) == result


@pytest.mark.parametrize(
    "opcode", ["add.f32", "add.rn.bf16", "add.cc.u32", "cvt.rn.f16.f32", "setp.lt.bf16", "min.u16x2"]
)
def test_what_is_opaque(opcode: str) -> None:
    assert lane_function(read_opcode(tuple(opcode.split(".")))) is None


DIVIDED = (
    HEAD
    + """
.visible .entry divided(.param .u64 out)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .shared .align 4 .b32 cell;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, DIVISOR;
  div.u32 %r3, 5, %r2;
  setp.ge.u32 %p1, %r3, 4;
  @%p1 bra DONE;
  st.shared.b32 [cell], %r1;
DONE:
  ret;
}
"""
)


@pytest.mark.parametrize(("divisor", "codes"), [("1", set()), ("0", {"RACE001"})])
def test_nobody_knows_what_a_division_by_zero_gives(divisor: str, codes: set[str]) -> None:
    """All threads store to one place if five divided by the divisor is less than four."""
    found = ask(DIVIDED.replace("DIVISOR", divisor), {"grid": 1, "block": 64})
    assert {f.code for f in found.findings} == codes


@pytest.mark.parametrize(
    ("text", "says"),
    [("ld.b %r2, [role];", "'.b' is not a type"), ("setp.b32 %p1, %r1, %r2;", "'setp.b32' lacks a part of its name")],
)
def test_what_no_assembler_takes_is_named_by_line(text: str, says: str) -> None:
    broken = DISPATCH.replace("DONE:\n", f"DONE:\n  {text}\n")
    with pytest.raises(InputError) as caught:
        ask(broken, {"grid": 1, "block": 64})
    assert says in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.line == line_of(broken, text)


LONG = (
    HEAD
    + """
.visible .entry counts(.param .u64 p)
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  mov.u32 %r1, 0;
L:
  mad.lo.u32 %r1, %r1, 5, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra L;
  ret;
}
"""
)


def test_what_ran_when_the_time_was_over() -> None:
    question = Question(about=Completeness.FINDINGS, timeout=0.3)
    read = parse_module(LONG, "counts.ptx")
    started = build_launch(read, from_object({"grid": 1, "block": 32, "params": {"p": {"buffer": 16}}}))
    given = answer_launch(read, started, load_model("ptx-9.0"), question, "protocol")
    assert given.verdict == "unknown"
    assert re.search(r"^no answer within 0.3 s; a lane is in iteration \d+ of its loops", given.reason or "")


def test_that_other_grids_are_not_followed_is_assumed_where_a_kernel_waits_for_one() -> None:
    text = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k() { MORE ret; }\n"
    with_it, without = (
        ask(text.replace("MORE", more), {"grid": 1, "block": 32}) for more in ("griddepcontrol.wait;", "")
    )
    assert [a for a in with_it.assumptions if a not in without.assumptions] == [
        "only one grid is executed: the results of the preceding grid (griddepcontrol) are assumed to be there"
    ]
