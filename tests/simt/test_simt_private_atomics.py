"""Atomics of a thread on words of its own need not be followed; what is wrong with them is found all the same."""

from __future__ import annotations

import pytest

from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ptx import check
from mcheck.simt.trace_extraction import extract_traces

SUMS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry sums(.param .u64 out)
.reqntid 128, 1, 1
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  red.relaxed.gpu.global.add.f32 [%rd3], 0f3F800000;
  AGAIN
  ret;
}
"""
OTHERS = "xor.b32 %r2, %r1, 1; mul.wide.u32 %rd4, %r2, 4; add.u64 %rd5, %rd1, %rd4;"


def ask(again: str, size: int = 512) -> tuple[str, frozenset[str], int]:
    """The verdict, the codes, and how many atomics the engine is given."""
    text, given = SUMS.replace("AGAIN", again), {"grid": 1, "params": {"out": {"buffer": size}}}
    read = parse_module(text, "sums.ptx")
    program = next(extract_traces(read, build_launch(read, from_object(given)))).program
    left = sum(isinstance(op, ops.Atomic) for thread in program.threads for op in thread.code)
    found = check(text, given)
    return found.verdict, frozenset(f.code for f in found.findings), left


@pytest.mark.parametrize("again", ["", "red.release.gpu.global.add.f32 [%rd3], 0f3F800000;"])
def test_words_of_one_thread_are_not_followed(again: str) -> None:
    assert ask(again) == ("proved", frozenset(), 0)


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize(
    ("again", "code"),
    [
        (OTHERS + "ld.global.f32 %f1, [%rd5];", "RACE001"),
        (OTHERS + "st.global.u8 [%rd5 + 1], %r1;", "RACE002"),
    ],
)
def test_what_others_touch_is(again: str, code: str) -> None:
    verdict, codes, left = ask(again)
    assert (verdict, left >= 128) == ("finding", True)
    assert code in codes


def test_words_of_two_threads_are_followed() -> None:
    assert ask(OTHERS + "red.relaxed.gpu.global.add.f32 [%rd5], 0f3F800000;")[2] == 256


def test_a_word_outside_the_buffer_is_told() -> None:
    verdict, codes, _ = ask("", 256)
    assert (verdict, codes) == ("finding", {"UB103"})
