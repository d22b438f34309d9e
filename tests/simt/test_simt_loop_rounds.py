"""Rounds of loops that do what the ones before them did need not be executed; nothing is lost by that."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.base.budget import Limit
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ptx import check
from mcheck.simt.trace_extraction import extract_traces
from tests.fuzz.even_loops import answers, find_difference, left_out, random_kernel

LOOP = """.version 8.0
.target sm_90
.address_size 64
.visible .entry sums(.param .u64 x, .param .u64 y, .param .u32 n)
.reqntid 64, 1, 1
{
  .reg .b32 %r<12>;
  .reg .b64 %rd<12>;
  .reg .f32 %f<4>;
  .reg .pred %p<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mad.lo.s32 %r4, %r3, 64, %r2;
  mul.lo.s32 %r5, %r4, BY;
  mad.wide.u32 %rd3, %r5, 4, %rd1;
  mad.wide.u32 %rd4, %r5, 4, %rd2;
  mov.f32 %f1, 0f00000000;
  mov.u32 %r6, 0;
AGAIN:
  ld.global.f32 %f2, [%rd3];
  add.f32 %f1, %f1, %f2;
  ACCESS
  add.s64 %rd3, %rd3, STEP;
  add.s64 %rd4, %rd4, STEP;
  add.s32 %r6, %r6, 1;
  setp.lt.u32 %p1, %r6, %r1;
  @%p1 bra AGAIN;
  BEHIND
  ret;
}
"""
STORE = "st.global.f32 [%rd4], %f1;"
ROWS, COLUMNS = (50257, 4), (1, 512)
"""The elements from a thread to the next one, and the bytes from a round to the next one: a row for each thread of two
CTAs, or all of their threads side by side.
"""


def kernel(layout: tuple[int, int], access: str = STORE, behind: str = "") -> str:
    """The loop with this access in each round, and what follows it."""
    text = LOOP.replace("BY", str(layout[0])).replace("STEP", str(layout[1]))
    return text.replace("ACCESS", access).replace("BEHIND", behind)


def launch(rounds: int, bytes_: int = 128 * 50257 * 4 + 512) -> dict[str, object]:
    """A launch of two CTAs."""
    return {"grid": 2, "params": [{"buffer": bytes_}, {"buffer": bytes_}, rounds]}


def ask(text: str, rounds: int) -> tuple[str, frozenset[str]]:
    """The verdict and the codes."""
    found = check(text, launch(rounds), timeout=60.0)
    return str(found.verdict), frozenset(f.code for f in found.findings)


@pytest.mark.parametrize("layout", [ROWS, COLUMNS])
def test_many_rounds_cost_what_a_few_do(layout: tuple[int, int]) -> None:
    read = parse_module(kernel(layout), "sums.ptx")
    given = build_launch(read, from_object(launch(50257)))
    (way,) = extract_traces(read, given, Limit(None), leaves_rounds_out=True)
    assert way.operations == 2 * 50257 * 64
    assert len(way.program.threads[0].code) < 64
    assert ask(kernel(layout), 50257) == ("proved", frozenset())


def test_rows_that_overlap_race() -> None:
    """A thread's row is one element shorter than its loop."""
    assert ask(kernel((59, 4)), 60) == ("finding", frozenset({"RACE001"}))
    assert ask(kernel((60, 4)), 60) == ("proved", frozenset())


def test_a_later_access_of_what_was_left_out_races() -> None:
    """A thread reads what its neighbour has stored in a round that is left out."""
    behind = "ld.global.f32 %f3, [%rd4+{}];"
    assert ask(kernel((60, 4), behind=behind.format(20 * 4)), 60) == ("finding", frozenset({"RACE001"}))
    assert ask(kernel((60, 4), behind=behind.format(-20 * 4)), 60) == ("proved", frozenset())
    assert ask(kernel((60, 4), behind="bar.sync 0;" + behind.format(-20 * 4)), 60) == ("proved", frozenset())


def test_the_last_round_leaves_the_buffer() -> None:
    found = check(kernel((60, 4)), launch(60, 128 * 60 * 4 - 4))
    assert {f.code for f in found.findings} == {"UB103"}


@pytest.mark.parametrize(
    ("access", "is_left_out"),
    [
        (STORE, True),
        ("st.volatile.global.f32 [%rd4], %f1;", False),
        ("st.relaxed.gpu.global.f32 [%rd4], %f1;", False),
        ("red.global.add.f32 [%rd4], %f1;", False),
        ("bar.sync 0;", False),
        ("fence.acq_rel.gpu;", False),
        ("shfl.sync.idx.b32 %r7, %r6, 0, 31, -1;", False),
        ("ld.global.u32 %r7, [%rd4]; mad.wide.u32 %rd5, %r7, 4, %rd2; st.global.f32 [%rd5], %f1;", False),
        ("ld.global.u32 %r7, [%rd4]; setp.eq.u32 %p2, %r7, 0; @%p2 st.global.f32 [%rd4], %f1;", False),
        ("mul.lo.u32 %r7, %r6, %r6; mad.wide.u32 %rd5, %r7, 4, %rd4; st.global.f32 [%rd5], %f1;", False),
        ("xor.b32 %r8, %r8, 4; cvt.u64.u32 %rd5, %r8; add.s64 %rd5, %rd4, %rd5; st.global.f32 [%rd5], %f1;", False),
    ],
)
def test_which_loops_have_rounds_left_out(access: str, is_left_out: bool) -> None:
    text = kernel(ROWS, access, "").replace("mov.u32 %r6, 0;", "mov.u32 %r6, 0; mov.u32 %r8, 0;")
    assert bool(left_out(text, launch(100))) is is_left_out


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("seed", range(24))
def test_random_loops_do_the_same(seed: int) -> None:
    text, given = random_kernel(Random(f"2 {seed}"))
    assert find_difference(text, given) == ""


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(24))
def test_random_loops_have_the_same_answer(seed: int) -> None:
    one, other = answers(*random_kernel(Random(f"3 {seed}")))
    assert one == other


def as_followed(text: str, given: dict[str, object]) -> tuple[object, ...]:
    """The answer, which is that of the execution of all rounds."""
    one, other = answers(text, given)
    assert one == other
    return one


@pytest.mark.parametrize("element", [50, 51])
def test_a_guard_that_alternates(element: int) -> None:
    """In every other round a thread stores; one of them then stores into the row of the first one."""
    access = "not.pred %p2, %p2; @%p2 st.global.f32 [%rd4], %f1;"
    behind = f"setp.eq.u32 %p3, %r4, 5; @%p3 st.global.f32 [%rd2+{4 * element}], %f1;"
    text = kernel((100, 4), access, behind).replace("mov.u32 %r6, 0;", "mov.u32 %r6, 0; setp.ne.u32 %p2, %r6, 0;")
    assert as_followed(text, launch(100)) == (
        ("finding", frozenset({"RACE001"})) if element == 50 else ("proved", frozenset())
    )


@pytest.mark.parametrize("changed", range(2, 8))
def test_what_only_the_round_before_has_changed(changed: int) -> None:
    """The bound of the loop is moved once; behind the loop all threads store if it has ended there."""
    access = f"{STORE} setp.eq.u32 %p2, %r6, {changed}; @%p2 add.s32 %r8, %r8, 10;"
    bound = "add.s32 %r6, %r6, 1; setp.ge.u32 %p3, %r6, %r8; @%p3 bra BEHIND;"
    behind = "BEHIND: setp.eq.u32 %p3, %r6, 60; @%p3 st.global.f32 [%rd2], %f1;"
    text = kernel((100, 4), access, behind).replace("mov.u32 %r6, 0;", "mov.u32 %r6, 0; mov.u32 %r8, 50;")
    given = launch(100)
    assert as_followed(text.replace("add.s32 %r6, %r6, 1;", bound), given) == ("finding", frozenset({"RACE001"}))


def test_an_instruction_whose_lanes_access_two_buffers() -> None:
    """Even threads store into their row of one buffer, odd ones into that of the thread before in the other one."""
    access = "st.global.f32 [%rd3], %f1; st.global.f32 [%rd4], %f1;"
    early = (
        "and.b32 %r8, %r2, 1; setp.eq.u32 %p2, %r8, 0; add.s64 %rd5, %rd4, -120; selp.b64 %rd5, %rd3, %rd5, %p2;"
        "st.global.f32 [%rd5], %f1; mov.u32 %r6, 0;"
    )
    text = kernel((60, 4), access).replace("mov.u32 %r6, 0;", early)
    assert as_followed(text, launch(60)) == ("finding", frozenset({"RACE001"}))


def test_places_that_no_number_is_large_enough_for() -> None:
    access = "ld.global.f32 %f2, [%rd5]; add.s64 %rd5, %rd5, 0x200000000;"
    text = kernel((0, 0), access).replace("mov.u32 %r6, 0;", "mov.u32 %r6, 0; mov.u64 %rd5, %rd1;")
    given: dict[str, object] = {"grid": 1, "params": [{"buffer": 1 << 39}, {"buffer": 64}, 0x7FFFFFFF]}
    assert "INTERNAL" not in str(check(text, given, timeout=0.5).reasons)


@pytest.mark.parametrize("racing", [False, True])
def test_values_of_other_threads_decide_behind_the_loop(racing: bool) -> None:
    """Accesses whose values decide have the same name on every path."""
    behind = (
        "atom.relaxed.gpu.global.add.u32 %r7, [%rd1], 1; setp.eq.u32 %p2, %r7, 1;"
        f"@%p2 ld.global.f32 %f2, [%rd2+{160 if racing else 4000}];"
    )
    text = kernel((60, 4), behind=behind).replace("ld.global.f32 %f2, [%rd3];", "").replace("64, 1, 1", "3, 1, 1")
    given: dict[str, object] = {
        "grid": 1,
        "params": [{"buffer": 256, "init": {"hex": "00" * 256}}, {"buffer": 1 << 13}, 60],
    }
    wanted = ("finding", frozenset({"RACE001"})) if racing else ("proved", frozenset[str]())
    assert as_followed(text, given) == wanted


def test_the_judge_knows_accesses_that_may_be_anywhere() -> None:
    """Where a thread stores may depend on what it has loaded."""
    behind = "ld.global.u32 %r7, [%rd1]; mad.wide.u32 %rd5, %r7, 4, %rd2; st.global.f32 [%rd5], %f1;"
    text = kernel((100, 4), behind=behind)
    assert find_difference(text, launch(100)) == ""


COPIED = "mov.u32 %r7, words; cp.async.bulk.global.shared::cta.bulk_group [%rd1+{}], [%r7], 16;"
READ = "mov.u32 %r7, words; cp.async.ca.shared.global [%r7], [%rd2+{}], 16;"


@pytest.mark.parametrize(
    ("before", "behind", "code"),
    [
        ("", COPIED + " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", "RACE004"),
        (READ, "cp.async.wait_all;", "RACE003"),
    ],
)
def test_copies_by_the_thread_whose_rounds_are_left_out(before: str, behind: str, code: str) -> None:
    """A copy is in no order with what its own thread has accessed before it, or accesses before it waits."""
    words = ".shared .align 16 .b8 words[16]; ld.param.u64 %rd1, [x];"
    access = f"st.global.f32 [%rd3], %f1; {STORE}"
    for at, found in ((192, True), (4096, False)):
        text = kernel((0, 4), access, behind.format(at)).replace(".reqntid 64", ".reqntid 1")
        text = text.replace("ld.param.u64 %rd1, [x];", words).replace("ld.global.f32 %f2, [%rd3];", "")
        text = text.replace("mov.u32 %r6, 0;", f"mov.u32 %r6, 0; {before.format(at)}")
        given: dict[str, object] = {"grid": 1, "params": [{"buffer": 8192}, {"buffer": 8192}, 100]}
        codes = as_followed(text, given)[1]
        assert isinstance(codes, frozenset)
        assert (code in codes) is found
