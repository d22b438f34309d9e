"""Loops around several strong loads, which modules are followed with as loops."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.simt.execution.waits.load_loops import HEAD
from mcheck.simt.trace_extraction import extract_traces
from tests.fuzz import load_loops
from tests.fuzz.grids import compare

PAIR = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 flags, .param .u64 sums)
{
  .reg .pred %p<6>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [flags];
  ld.param.u64 %rd2, [sums];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r7, 0;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra WAITS;
  st.global.u32 [%rd2], 7;
  st.release.gpu.global.u32 [%rd1], 1;
  st.release.gpu.global.u32 [%rd1+4], 2;
  ret;
WAITS:
  mov.u32 %r9, 0;
AGAIN:
  ld.relaxed.gpu.global.u32 %r2, [%rd1];
  setp.ne.u32 %p2, %r2, 1;
  @%p2 bra AGAIN;
  ld.acquire.gpu.global.u32 %r3, [%rd1+4];
  setp.ne.u32 %p3, %r3, 2;
  @%p3 bra AGAIN;
  ld.global.u32 %r4, [%rd2];
  ret;
}
"""
LAST = "@%p3 bra AGAIN;"
FIRST = "st.release.gpu.global.u32 [%rd1], 1;"
SECOND = "st.release.gpu.global.u32 [%rd1+4], 2;"


def given(text: str, *, held: str | None = "00" * 16, cooperative: bool = True) -> tuple[Module, Launch]:
    """The launch of two CTAs of one thread; ``held`` are the first contents of the flags."""
    read = parse_module(text)
    known = {"init": {"hex": held}} if held is not None else {}
    params = {"flags": {"buffer": 16, **known}, "sums": {"buffer": 64}}
    launch = from_object({"grid": [2], "block": [1], "params": params, "cooperative": cooperative})
    return read, build_launch(read, launch)


def ask(module: Module, launch: Launch) -> Answer:
    return answer_launch(module, launch, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=20))


def loops(text: str) -> list[int]:
    """The number of loops that each thread is followed with."""
    module, launch = given(text)
    (way,) = extract_traces(module, replace(launch, together=(2, 1, 1)), whole_grid=True)
    return [sum(isinstance(op, ops.Label) and op.name.startswith(HEAD) for op in t.code) for t in way.program.threads]


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", ""),
        ("ld.acquire", "ld.relaxed", "RACE001"),
        ("ld.acquire.gpu", "ld.acquire.cta", "RACE010"),
        (SECOND, SECOND.replace("release", "relaxed"), "RACE001"),
        (SECOND, SECOND.replace("2;", "1;"), "DEAD001"),
        (FIRST, "", "DEAD001"),
        (FIRST, FIRST.replace("release.gpu.", ""), "RACE001"),  # races with a failed attempt
        (SECOND, f"{SECOND} st.relaxed.gpu.global.u32 [%rd1], 0;", "DEAD001"),  # overwritten before the wait has ended
        (SECOND, f"{SECOND} st.global.u32 [%rd2], 8;", "RACE001"),  # raised early
        ("  ld.acquire", "  mov.u32 %r2, 0;\n  ld.acquire", ""),
    ],
)
def test_a_wait_for_two_flags(old: str, new: str, wanted: str) -> None:
    assert old in PAIR
    found = ask(*given(PAIR.replace(old, new) if old else PAIR))
    if wanted:
        assert wanted in {f.code for f in found.findings}, (found.verdict, found.reason, found.findings)
    else:
        assert found.verdict == "proved", (found.verdict, found.reason, found.findings)


READ = "ld.global.u32 %r4, [%rd2];"


@pytest.mark.parametrize(
    ("old", "new", "number"),
    [
        ("", "", 1),
        (READ, f"mov.u32 %r5, %r3; {READ}", 0),  # what is loaded is read behind the loop
        (READ, f"add.u32 %r9, %r9, 1; setp.lt.u32 %p4, %r9, 2; @%p4 bra AGAIN; {READ}", 0),  # a loop that counts
        (
            READ,
            f"{READ} add.u32 %r9, %r9, 1; setp.lt.u32 %p4, %r9, 2; @%p4 bra AGAIN;",
            2,
        ),  # twice, with an access between
        (LAST, "add.u32 %r9, %r9, 1; setp.gt.u32 %p4, %r9, 5; @%p4 bra END; @%p3 bra AGAIN; END:", 0),  # gives up
        (LAST, f"nanosleep.u32 20; {LAST}", 1),
        ("ld.relaxed.gpu.global.u32 %r2", "ld.global.u32 %r2", 0),
        ("setp.ne.u32 %p2, %r2, 1;", "add.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 2;", 0),
    ],
)
def test_what_is_followed_as_a_loop(old: str, new: str, number: int) -> None:
    assert old in PAIR
    assert loops(PAIR.replace(old, new) if old else PAIR) == [number, 0]


def test_a_cta_that_waits_for_two_flags_of_a_later_one() -> None:
    """The first CTA may be resident alone (DEAD007)."""
    assert "DEAD007" in {f.code for f in ask(*given(PAIR, cooperative=False)).findings}


def test_first_contents_that_are_not_given() -> None:
    assert ask(*given(PAIR, held=None)).verdict != "proved"


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(48))
def test_random_loops(seed: int) -> None:
    found = compare(load_loops.generate(Random(seed)), 4.0)
    assert not found.what
