"""Numbers that atomics return: a path stands for all that its comparisons do not tell apart."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.answers.result import Answer
from mcheck.base.verdicts import Verdict
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.branch_paths import BranchPaths
from mcheck.simt.execution.compared_numbers import alike_values, find_compared
from mcheck.simt.execution.waits.value_tests import ValueTest
from mcheck.simt.trace_extraction import extract_traces
from tests.fuzz import told_apart

TEXT = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 count, .param .u64 out, .param .u32 last)
{
  .reg .pred %p<6>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [count];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [last];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd3, %rd2, %rd3;
  st.global.u32 [%rd3], %r2;
  atom.acq_rel.gpu.global.add.u32 %r3, [%rd1], 1;
  USE
DONE:
  ret;
}
"""
LAST = "setp.ne.u32 %p1, %r3, %r1; @%p1 bra DONE; ld.global.u32 %r4, [%rd2]; ld.global.u32 %r5, [%rd2+4];"


def read(use: str) -> Module:
    """The module in which each thread draws a number."""
    return parse_module(TEXT.replace("USE", use))


def launch_of(threads: int) -> object:
    """One CTA of so many threads."""
    zero = {"buffer": 64, "init": {"hex": "00" * 64}}
    return {"grid": [1], "block": [threads], "params": {"count": zero, "out": {"buffer": 64}, "last": threads - 1}}


def ask(use: str, threads: int) -> Answer:
    """The answer about threads that draw numbers."""
    module = read(use)
    question = Question(about=Completeness.FINDINGS, timeout=60)
    return answer_launch(module, build_launch(module, from_object(launch_of(threads))), load_model("ptx-9.0"), question)


@pytest.mark.parametrize("kind", ["s8", "u8", "b8"])
def test_the_numbers_with_one_result_of_a_comparison_are_ranges(kind: str) -> None:
    operators = ("==", "!=", "<", "<=", ">", ">=") if kind != "b8" else ("==", "!=")
    first = -128 if kind == "s8" else 0
    for operator in operators:
        for right in range(first, first + 256):
            test = ValueTest(operator, right, kind)
            for holds in (True, False):
                ranges = alike_values(test, holds=holds)
                assert all(low <= high for low, high in ranges)
                found = {n for low, high in ranges for n in range(low, high + 1)}
                assert found == {n for n in range(256) if test.holds(n) is holds}


@pytest.mark.parametrize(
    ("use", "counts"),
    [
        (LAST, True),
        ("setp.lt.s32 %p1, %r3, 5; setp.ge.u32 %p2, %r2, %r3; @%p1 bra DONE;", True),
        ("", True),
        ("mov.u32 %r4, %r3; setp.eq.u32 %p1, %r4, 5; @%p1 bra DONE;", False),
        (LAST + "st.global.u32 [%rd2+32], %r3;", False),
        ("setp.eq.u32 %p1, %r3, %r3; @%p1 bra DONE;", False),
        ("setp.eq.u16 %p1, %r3, 5; @%p1 bra DONE;", False),
        ("setp.eq.and.u32 %p1, %r3, 5, %p2; @%p1 bra DONE;", False),
        ("@%p2 mov.u32 %r3, 7;" + LAST, False),
        ("ld.relaxed.gpu.global.u32 %r6, [%rd1]; setp.eq.u32 %p1, %r3, %r6; @%p1 bra DONE;", False),
        ("ld.shared.u32 %r6, [%r2]; setp.eq.u32 %p1, %r3, %r6; @%p1 bra DONE;", False),
    ],
)
def test_what_is_read_by_comparisons_alone_is_seen_in_the_text(use: str, counts: bool) -> None:
    (function,) = (f for f in read(use).functions.values() if f.entry)
    assert [r.name for r in find_compared(function)] == (["%r3"] if counts else [])


def test_of_a_swap_the_number_is_told() -> None:
    text = TEXT.replace("add.u32 %r3, [%rd1], 1", "exch.b32 %r3, [%rd1], 1").replace("USE", LAST)
    (function,) = (f for f in parse_module(text).functions.values() if f.entry)
    assert not find_compared(function)


@pytest.mark.parametrize(
    ("use", "paths"),
    [
        (LAST, 3),
        ("setp.ge.u32 %p1, %r3, 2; @%p1 bra DONE; ld.global.u32 %r4, [%rd2];", 3),
        ("setp.ge.u32 %p1, %r3, 0; @!%p1 bra DONE; ld.global.u32 %r4, [%rd2];", 1),
        (LAST + "st.global.u32 [%rd2+32], %r3;", 6),
    ],
)
def test_a_path_stands_for_the_orders_that_it_does_not_tell_apart(use: str, paths: int) -> None:
    """Of three threads: who is the last one; which two are the first ones; nothing; who has which number."""
    module = read(use)
    branches = BranchPaths()
    count = 0
    for way in extract_traces(module, build_launch(module, from_object(launch_of(3))), branches=branches):
        count += 1
        given = check(way.program, load_model("ptx-9.0"))
        lanes = [t.place.lane for t in way.program.threads]
        branches.require((frozenset((lanes[t], at, v) for t, at, v in one) for one in given.branches), way.choices)
    assert (count, branches.incomplete) == (paths, False)


@pytest.mark.daily
def test_threads_that_count_themselves_need_no_path_for_each_order() -> None:
    """Five have 120 orders, more than there may be paths."""
    assert ask(LAST, 5).verdict is Verdict.PROVED


def test_the_last_one_of_relaxed_atomics_races() -> None:
    text = TEXT.replace("acq_rel", "relaxed").replace("USE", LAST)
    module = parse_module(text)
    question = Question(about=Completeness.FINDINGS, timeout=60)
    found = answer_launch(module, build_launch(module, from_object(launch_of(5))), load_model("ptx-9.0"), question)
    assert {f.code for f in found.findings} == {"RACE001"}


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(1, 49))
def test_random_threads_have_the_answer_of_the_explicit_engine_and_of_a_path_for_each_number(seed: int) -> None:
    found = told_apart.compare(told_apart.generate(Random(seed)), told_apart.SECONDS)
    assert not found.what, told_apart.report(found)
