"""What is known of a result, of which not all sources are, and of what it decides."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

HEAD = """.version 8.0
.target sm_90a
.address_size 64
.entry k(.param .u64 a, .param .u32 n) {
  .reg .pred %p<6>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .b128 %rq<2>; .reg .f32 %f<8>;
  .shared .align 16 .b8 words[256];
  mov.u32 %r9, %tid.x;
  ld.param.u64 %rd1, [a];
"""
LAUNCH = {"grid": 1, "block": 64, "params": {"a": {"buffer": 4096}}}


def answer(body: str) -> tuple[str, frozenset[str]]:
    given = check(HEAD + body + "\n  ret;\n}\n", LAUNCH)
    return given.verdict, frozenset(f.code for f in given.findings if f.severity == "error")


@pytest.mark.parametrize("number", ["1", "3"])
def test_an_or_with_some_ones_does_not_decide_a_number(number: str) -> None:
    body = f"""
  ld.global.u32 %r1, [%rd1];
  or.b32 %r2, %r1, {number};
  setp.eq.u32 %p1, %r2, {number};
  @%p1 bra DONE;
  st.shared.u32 [words], %r9;
DONE:"""
    assert answer(body)[1] == {"RACE001"}


def test_ones_all_over_decide_an_or() -> None:
    body = """
  ld.global.u32 %r1, [%rd1];
  or.b32 %r2, %r1, -1;
  setp.eq.u32 %p1, %r2, -1;
  @%p1 bra DONE;
  st.shared.u32 [words], %r9;
DONE:"""
    assert answer(body) == ("proved", frozenset())


def test_the_upper_half_of_a_wide_move_is_no_value_that_all_have() -> None:
    body = """
  mov.u64 %rd2, 7;
  mov.u64 %rd4, 7;
  cvt.u64.u32 %rd3, %r9;
  mov.b128 %rq1, {%rd2, %rd3};
  mov.b128 {%rd5, %rd4}, %rq1;
  st.shared.u64 [words], %rd4;"""
    assert answer(body)[1] == {"RACE001"}


@pytest.mark.parametrize("way", ["setp.eq.u32 %p1, %r1, 1;\n  @%p1 bra B;\n  bra A;", "brx.idx %r1, TARGETS;"])
def test_both_ways_of_a_branch_on_the_order_of_atomics_are_followed(way: str) -> None:
    body = f"""
TARGETS: .branchtargets A, B;
  setp.ne.u32 %p3, %r9, 0;
  @!%p3 st.shared.u32 [words], 0;
  bar.sync 0;
  and.b32 %r8, %r9, 31;
  setp.ne.u32 %p2, %r8, 0;
  @%p2 exit;
  atom.shared.add.u32 %r1, [words], 1;
  {way}
A:
  st.shared.u32 [words+16], 1;
B:"""
    assert answer(body) == ("proved", set())
    late = body.replace("B:", "B: @!%p3 st.shared.u32 [words+16], 2;")
    assert answer(late)[1] == {"RACE001"}, "where the second warp goes to A"


def test_a_branch_by_a_parameter_that_lacks_is_an_error() -> None:
    body = """
TARGETS: .branchtargets A, B;
  ld.param.u32 %r1, [n];
  brx.idx %r1, TARGETS;
A:
  st.shared.u32 [words+16], 1;
B:"""
    given = check(HEAD + body + "\n  ret;\n}\n", LAUNCH)
    assert given.verdict == "error"
