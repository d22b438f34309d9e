"""tcgen05: small modules that are right are proved, and each of their bugs is found at its line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir.memory import SHARED_BASE, TENSOR_OFFSET, TENSOR_SIZE
from mcheck.ir.missing_cells import MissingCells, missing_cells
from mcheck.isa.opcode import read_opcode
from mcheck.simt.execution.tensor_memory import Rectangle, TensorMemory
from mcheck.simt.instructions.instruction_descriptors import Shape, product_footprint

HEAD = """.version 8.7
.target sm_100a
.address_size 64
"""
PRODUCT = (
    HEAD
    + """
.visible .entry product(.param .u64 src, .param .u32 rounds)
.reqntid 192, 1, 1
{
  .reg .pred %p<16>;
  .reg .b32 %r<64>;
  .reg .b64 %rd<16>;
  .shared .align 128 .b8 a[4096];
  .shared .align 128 .b8 b[1024];
  .shared .align 8 .b64 full;
  .shared .align 8 .b64 empty;
  .shared .align 8 .b64 over;
  .shared .align 4 .b32 base;
  ld.param.u64 %rd1, [src];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  shr.u32 %r3, %r2, 5;
  mov.u32 %r4, base;
  mov.u32 %r5, full;
  mov.u32 %r6, empty;
  mov.u32 %r7, over;
  mov.u32 %r8, a;
  mov.u32 %r9, b;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra MEET;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 32;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra MEET;
  mbarrier.init.shared::cta.b64 [%r5], 1;
  mbarrier.init.shared::cta.b64 [%r6], 1;
  mbarrier.init.shared::cta.b64 [%r7], 1;
MEET:
  bar.sync 0;
  ld.shared.b32 %r10, [base];
  mov.u32 %r11, 0;
  setp.eq.u32 %p3, %r2, 128;
  @%p3 bra PRODUCE;
  setp.eq.u32 %p4, %r2, 160;
  @%p4 bra MULTIPLY;
  setp.gt.u32 %p5, %r2, 127;
  @%p5 bra DONE;
  OVER: mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r7], 0;
  @!%p6 bra OVER;
  tcgen05.fence::after_thread_sync;
  shl.b32 %r12, %r3, 21;
  add.u32 %r13, %r12, %r10;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}, [%r13 + 16];
  tcgen05.wait::ld.sync.aligned;
  tcgen05.fence::before_thread_sync;
  bar.sync 1, 128;
  @%p1 bra DONE;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;
  bra DONE;
PRODUCE:
  setp.ge.u32 %p7, %r11, %r1;
  @%p7 bra DONE;
  and.b32 %r14, %r11, 1;
  xor.b32 %r15, %r14, 1;
  FREE: mbarrier.try_wait.parity.shared::cta.b64 %p8, [%r6], %r15;
  @!%p8 bra FREE;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 4096;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r8], [%rd1], 4096, [%r5];
  add.u32 %r11, %r11, 1;
  bra PRODUCE;
MULTIPLY:
  st.shared.u32 [%r9], 0;
  fence.proxy.async.shared::cta;
  shr.u32 %r30, %r8, 4;
  or.b32 %r31, %r30, 0x80000;
  shr.u32 %r32, %r9, 4;
  or.b32 %r33, %r32, 0x80000;
  mov.u32 %r34, 0x4010;
  mov.b64 %rd2, {%r31, %r34};
  mov.b64 %rd3, {%r33, %r34};
  mov.u32 %r35, 0x8080010;
LOOP:
  setp.ge.u32 %p9, %r11, %r1;
  @%p9 bra LAST;
  and.b32 %r14, %r11, 1;
  FULL: mbarrier.try_wait.parity.shared::cta.b64 %p10, [%r5], %r14;
  @!%p10 bra FULL;
  setp.ne.u32 %p11, %r11, 0;
  tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd2, %rd3, %r35, %p11;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];
  add.u32 %r11, %r11, 1;
  bra LOOP;
LAST:
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r7];
DONE:
  ret;
}
"""
)
PRODUCT_LAUNCH: dict[str, object] = {"grid": 1, "params": {"src": {"buffer": 4096}, "rounds": 3}}


def ask(text: str, given: Mapping[str, object]) -> Answer:
    """The answer about a module, as ``mcheck check`` has it."""
    read = parse_module(text)
    question = Question(about=Completeness.FINDINGS, timeout=60)
    return answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)


def found_lines(text: str, found: Answer) -> list[str]:
    """The instructions that the errors name."""
    numbers = {a.span.line for f in found.findings if f.severity == "error" for a in f.accesses if a.span is not None}
    return [text.splitlines()[number - 1].strip() for number in sorted(numbers)]


def test_a_product_is_proved() -> None:
    found = ask(PRODUCT, PRODUCT_LAUNCH)
    assert found.verdict == "proved", (found.reason, found.findings)


EARLY = "  FREE: mbarrier.try_wait.parity.shared::cta.b64 %p8, [%r6], %r15;\n  @!%p8 bra FREE;\n"
FULL = "  FULL: mbarrier.try_wait.parity.shared::cta.b64 %p10, [%r5], %r14;\n  @!%p10 bra FULL;\n"
OVER = "  OVER: mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r7], 0;\n  @!%p6 bra OVER;\n"
FREED = "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];\n"
ENDED = "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r7];\n"


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("old", "new", "kind", "at"),
    [
        pytest.param(EARLY, "", "race", ("cp.async.bulk",), id="refilled before the commit is waited for"),
        pytest.param(FULL, "", "race", ("cp.async.bulk", "tcgen05.mma"), id="multiplied before the copy is waited for"),
        pytest.param("[%r5], %r14;", "[%r5], 1;", "deadlock", ("FULL",), id="parity"),
        pytest.param(OVER, "", "race", ("tcgen05.mma", "tcgen05.ld"), id="accumulator not waited for"),
        pytest.param(FREED, "", "deadlock", ("FREE",), id="slot without a commit"),
        pytest.param(ENDED, "", "deadlock", ("OVER",), id="accumulator without a commit"),
        pytest.param("  tcgen05.wait::ld.sync.aligned;\n", "", "race", ("tcgen05.ld", "dealloc"), id="wait::ld"),
        pytest.param(
            "  bar.sync 1, 128;\n", "", "race", ("tcgen05.ld", "dealloc"), id="freed while another warp reads"
        ),
        pytest.param("  fence.proxy.async.shared::cta;\n", "", "race", ("st.shared", "tcgen05.mma"), id="proxy fence"),
        pytest.param("MEET:\n  bar.sync 0;\n", "MEET:\n", "race", ("alloc", "ld.shared"), id="address not handed over"),
    ],
)
def test_a_broken_product_is_found(old: str, new: str, kind: str, at: tuple[str, ...]) -> None:
    assert old in PRODUCT
    text = PRODUCT.replace(old, new)
    found = ask(text, PRODUCT_LAUNCH)
    assert found.verdict == "finding", found.reason
    assert kind in {f.kind for f in found.findings if f.severity == "error"}
    said = found_lines(text, found)
    assert all(any(part in line for line in said) for part in at), said


FREE = "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\n"
PERMIT = "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
ALLOC = "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 32;\n"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("old", "new", "code", "at"),
    [
        pytest.param(FREE, "", "UB601", "tcgen05.alloc", id="not freed"),
        pytest.param(ALLOC, 2 * ALLOC, "UB601", "tcgen05.alloc", id="one of two not freed"),
        pytest.param("[%r4], 32", "[%r4], 48", "UB602", "tcgen05.alloc", id="no power of two"),
        pytest.param("[%r4], 32", "[%r4], 16", "UB602", "tcgen05.alloc", id="too few"),
        pytest.param(ALLOC, PERMIT + ALLOC, "UB602", "tcgen05.alloc", id="without the permit"),
        pytest.param(
            PERMIT, ALLOC.replace("[%r4], 32", "[%r7], 64"), "UB602", "tcgen05.alloc", id="more than the last time"
        ),
        pytest.param("b32 %r10, 32", "b32 %r10, 64", "UB603", "tcgen05.dealloc", id="more freed than allocated"),
        pytest.param(FREE, 2 * FREE, "UB603", "tcgen05.dealloc", id="freed twice"),
    ],
)
def test_allocations_against_the_rules_are_found(old: str, new: str, code: str, at: str) -> None:
    assert PRODUCT.count(old) == 1
    text = PRODUCT.replace(old, new)
    found = ask(text, PRODUCT_LAUNCH)
    assert found.verdict == "finding", found.reason
    assert [f.code for f in found.findings if f.severity == "error"] == [code]
    assert all(at in line for line in found_lines(text, found))


def test_two_allocations_that_shrink_are_right() -> None:
    first, second = ALLOC.replace("32;", "64;"), ALLOC.replace("[%r4]", "[%r4 + 4]")
    text = PRODUCT.replace(ALLOC, first + second).replace("b32 base;", "b32 base[2];")
    text = text.replace(
        FREE, FREE.replace("32;", "64;") + "  ld.shared.b32 %r40, [base + 4];\n" + FREE.replace("%r10", "%r40")
    )
    found = ask(text, PRODUCT_LAUNCH)
    assert found.verdict == "proved", (found.reason, found.findings)


def test_what_is_left_allocated_hides_nothing() -> None:
    text = PRODUCT.replace(FREE, "").replace("  fence.proxy.async.shared::cta;\n", "")
    found = ask(text, PRODUCT_LAUNCH)
    assert {f.code for f in found.findings if f.severity == "error"} == {"RACE004", "UB601"}


@pytest.mark.parametrize(
    ("old", "new", "cells"),
    [
        ("[%r13 + 16]", "[%r13 + 32]", "columns 32 to 39 in lane 0 of tensor memory: not all of them are allocated"),
        (
            "shl.b32 %r12, %r3, 21", "mov.u32 %r12, 0",
            "in lanes 0 to 31 of tensor memory: only a warp whose number is 0 modulo 4 accesses those",
        ),
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_accessed(old: str, new: str, cells: str) -> None:
    assert old in PRODUCT
    found = ask(PRODUCT.replace(old, new), PRODUCT_LAUNCH)
    assert any(cells in f.message for f in found.findings if f.code == "UB103")


def test_addresses_keep_which_cells_are_missing() -> None:
    for cells in product((0, 31, 128, 255), (0, 511, 2047), (False, True), (0, 3)):
        lane, column, barred, cta = cells
        address = MissingCells(lane, column, barred).address(cta)
        assert missing_cells(address) == MissingCells(lane, column, barred)
    inside = SHARED_BASE + TENSOR_OFFSET
    assert [missing_cells(at) for at in (0, SHARED_BASE, inside, inside + TENSOR_SIZE - 1)] == [None] * 4


HANDED = (
    HEAD
    + """
.visible .entry handed()
.reqntid 64, 1, 1
{
  .reg .pred %p<8>;
  .reg .b32 %r<16>;
  .shared .align 8 .b64 ready;
  .shared .align 4 .b32 base;
  mov.u32 %r1, %tid.x;
  shr.u32 %r2, %r1, 5;
  mov.u32 %r3, base;
  mov.u32 %r4, ready;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra MEET;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3], 32;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra MEET;
  mbarrier.init.shared::cta.b64 [%r4], 32;
MEET:
  bar.sync 0;
  ld.shared.b32 %r5, [base];
  @%p1 bra SHIFT;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r1};
  tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync;
  mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r4];
  bar.sync 0;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 32;
  bra DONE;
SHIFT:
  setp.ne.u32 %p3, %r1, 32;
  @%p3 bra LEAVE;
  READY: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p4, [%r4], 0;
  @!%p4 bra READY;
  tcgen05.fence::after_thread_sync;
  mbarrier.inval.shared::cta.b64 [%r4];
  mbarrier.init.shared::cta.b64 [%r4], 1;
  tcgen05.shift.cta_group::1.down [%r5];
  tcgen05.shift.cta_group::1.down [%r5];
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
  AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r4], 0;
  @!%p4 bra AGAIN;
LEAVE:
  bar.warp.sync -1;
  bar.sync 0;
DONE:
  ret;
}
"""
)


def test_fences_hand_tensor_memory_over_where_the_mbarrier_is_relaxed() -> None:
    found = ask(HANDED, {"grid": 1})
    assert found.verdict == "proved", (found.reason, found.findings)


@pytest.mark.daily
@pytest.mark.parametrize(
    "line",
    [
        "  tcgen05.fence::before_thread_sync;\n",
        "  tcgen05.fence::after_thread_sync;\n",
        "  tcgen05.wait::st.sync.aligned;\n",
    ],
)
def test_without_them_it_is_a_race(line: str) -> None:
    text = HANDED.replace(line, "")
    found = ask(text, {"grid": 1})
    assert found.verdict == "finding", found.reason
    said = found_lines(text, found)
    assert any("tcgen05.st" in x for x in said)
    assert any("tcgen05.shift" in x for x in said)


@pytest.mark.parametrize(
    ("opcode", "m", "n", "lanes", "columns"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16", 128, 64, 128, 64),
        ("tcgen05.mma.cta_group::1.kind::f16", 64, 64, 64, 64),
        ("tcgen05.mma.ws.cta_group::1.kind::f16", 64, 64, 128, 32),
        ("tcgen05.mma.ws.cta_group::1.kind::f16", 32, 64, 128, 16),
        ("tcgen05.mma.cta_group::2.kind::f16", 256, 64, 128, 64),
        ("tcgen05.mma.cta_group::2.kind::f16", 128, 64, 128, 32),
    ],
)
def test_where_accumulators_lie(opcode: str, m: int, n: int, lanes: int, columns: int) -> None:
    shape = Shape.decode(read_opcode(tuple(opcode.split("."))), m >> 4 << 24 | n >> 3 << 17)
    assert (shape.m, shape.n) == (m, n)
    cells = product_footprint(shape).d
    assert sum(high - low for low, high in cells.lanes) == lanes
    assert cells.columns == columns


def test_columns_are_allocated_where_none_are_taken() -> None:
    memory = TensorMemory()
    statement = parse_module(PRODUCT).functions["product"].body[0]

    def allocated(columns: int) -> int | None:
        return memory.allocate(0, columns, 0, statement)

    assert allocated(256) == 0
    assert allocated(128) == 256
    assert allocated(256) is None
    assert memory.deallocate(0, 0, 256)
    assert not memory.deallocate(0, 0, 256)
    assert allocated(256) == 0
    assert [(a.first, a.columns) for a in memory.live_allocations()] == [(256, 128), (0, 256)]
    assert len(memory.rectangle_cells(0, 16 << 16 | 8, Rectangle(((0, 32),), 4))) == 32


PAIR = (
    HEAD
    + """
.visible .entry pair()
.reqntid 128, 1, 1
.reqnctapercluster 2, 1, 1
{
  .reg .pred %p<8>;
  .reg .b16 %rs<4>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<8>;
  .shared .align 128 .b8 a[4096];
  .shared .align 128 .b8 b[1024];
  .shared .align 8 .b64 over;
  .shared .align 4 .b32 base;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, base;
  mov.u32 %r4, over;
  mov.u32 %r5, a;
  mov.u32 %r6, b;
  shr.u32 %r7, %r1, 5;
  setp.ne.u32 %p1, %r7, 0;
  @%p1 bra MEET;
  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r3], 64;
  tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra MEET;
  mbarrier.init.shared::cta.b64 [%r4], 1;
  fence.mbarrier_init.release.cluster;
MEET:
  bar.sync 0;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ld.shared.b32 %r8, [base];
  or.b32 %r9, %r1, %r2;
  setp.ne.u32 %p3, %r9, 0;
  @%p3 bra WAIT;
  shr.u32 %r10, %r5, 4;
  or.b32 %r11, %r10, 0x80000;
  shr.u32 %r12, %r6, 4;
  or.b32 %r13, %r12, 0x80000;
  mov.u32 %r14, 0x4010;
  mov.b64 %rd1, {%r11, %r14};
  mov.b64 %rd2, {%r13, %r14};
  mov.u32 %r15, 0x10100010;
  tcgen05.mma.cta_group::2.kind::f16 [%r8], %rd1, %rd2, %r15, 0;
  mov.u16 %rs1, 3;
  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r4], %rs1;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r4], 0;
  @!%p4 bra WAIT;
  shl.b32 %r16, %r7, 21;
  add.u32 %r17, %r16, %r8;
  tcgen05.ld.sync.aligned.16x256b.x1.b32 {%r20,%r21,%r22,%r23}, [%r17];
  tcgen05.wait::ld.sync.aligned;
  bar.sync 0;
  @%p1 bra DONE;
  tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r8, 64;
DONE:
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ret;
}
"""
)


def test_a_product_of_two_ctas_is_proved() -> None:
    found = ask(PAIR, {"grid": 2})
    assert found.verdict == "proved", (found.reason, found.findings)


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("old", "new", "kind", "at"),
    [
        ("%rs1, 3;", "%rs1, 1;", "deadlock", "try_wait"),
        ("  @!%p4 bra WAIT;\n", "", "race", "tcgen05.ld"),
        ("  bar.sync 0;\n  @%p1 bra DONE;", "  @%p1 bra DONE;", "race", "dealloc"),
    ],
)
def test_a_broken_product_of_two_ctas_is_found(old: str, new: str, kind: str, at: str) -> None:
    assert old in PAIR
    text = PAIR.replace(old, new)
    found = ask(text, {"grid": 2})
    assert found.verdict == "finding", found.reason
    assert kind in {f.kind for f in found.findings if f.severity == "error"}
    assert any(at in line for line in found_lines(text, found))


IN_ORDER = (Path(__file__).parents[2] / "benchmarks" / "modules" / "pipe-commits-in-order.ptx").read_text("utf-8")
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"


def test_commits_of_a_thread_arrive_in_their_order() -> None:
    """Nobody waits for the first, whose mbarrier is invalidated behind the second (Q26)."""
    found = ask(IN_ORDER, {"grid": 1})
    assert (found.verdict, found.findings) == ("proved", ())


def test_a_later_commit_may_find_its_mbarrier_gone() -> None:
    one, two = f"  {COMMIT} [first];\n", f"  {COMMIT} [second];\n"
    assert one + two in IN_ORDER
    text = IN_ORDER.replace(one + two, two + one)
    found = ask(text, {"grid": 1})
    assert {f.code for f in found.findings} == {"UB215"}
    assert "mbarrier.inval.shared::cta.b64 [first];" in found_lines(text, found)


def test_commits_of_two_threads_are_in_no_order() -> None:
    one = f"  {COMMIT} [first];\n"
    text = IN_ORDER.replace(one, "").replace("%p2 bra WAITS;\n", f"%p2 bra OTHER;\n{one}OTHER:\n")
    assert text.count(COMMIT) == 2
    text = text.replace(f"OTHER:\n  {COMMIT}", f"OTHER:\n  setp.ne.u32 %p2, %r1, 33;\n  @%p2 bra WAITS;\n  {COMMIT}")
    found = ask(text, {"grid": 1})
    assert {f.code for f in found.findings} == {"UB215"}


MOVED = (
    HEAD
    + """
.visible .entry moved()
.reqntid 32, 1, 1
{
  .reg .b32 %r<8>;
  .shared .align 4 .b32 base;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 64;
  bar.sync 0;
  ld.shared.b32 %r1, [base];
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2};
  tcgen05.wait::st.sync.aligned;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r1];
  WAIT
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;
  ret;
}
"""
)


def test_a_load_is_waited_for_before_the_columns_are_freed() -> None:
    found = ask(MOVED.replace("WAIT", ""), {"grid": 1}).findings
    told = [f.missing for f in found if f.code == "RACE003"]
    lines = MOVED.split("\n")
    free = next(k for k, line in enumerate(lines, 1) if "dealloc" in line)
    assert told == [f"Execute tcgen05.wait::ld.sync.aligned before line {free}."]
    assert ask(MOVED.replace("WAIT", "tcgen05.wait::ld.sync.aligned;"), {"grid": 1}).verdict == "proved"


def test_what_the_pipe_still_uses_is_stored_to_again_behind_its_commit() -> None:
    store = "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r1};\n  tcgen05.wait::st.sync.aligned;\n"
    end = "  bar.sync 0;\n  tcgen05.dealloc"
    text = HANDED.replace(end, store + end)
    lines = text.split("\n")
    again = [k for k, line in enumerate(lines, 1) if "tcgen05.st." in line][1]
    commit = next(k for k, line in enumerate(lines, 1) if "tcgen05.commit" in line)
    told = [f.missing for f in ask(text, {"grid": 1}).findings if f.code == "RACE003"]
    assert told
    for each in told:
        assert f"that the tcgen05.commit at line {commit} completes before line {again}" in each


def test_the_write_of_an_address_is_that_of_the_alloc() -> None:
    text = HANDED.replace("MEET:\n  bar.sync 0;\n  ld.shared.b32 %r5, [base];", "MEET:\n  ld.shared.b32 %r5, [base];")
    text = text.replace("  @%p1 bra SHIFT;\n", "  bar.sync 0;\n  @%p1 bra SHIFT;\n")
    found = ask(text, {"grid": 1}).findings
    races = [f for f in found if any("tcgen05.alloc" in a.instruction for a in f.accesses)]
    assert races
    assert all("'s tcgen05.alloc" in f.message for f in races)
