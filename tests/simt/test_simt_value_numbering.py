"""Values that nobody knows have names; matrices and vectors of atomics, as compilers write them."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"
TWICE = (
    HEAD
    + """
.visible .entry twice(.param .u64 x, .param .u64 y)
{
  .reg .pred %p<2>; .reg .b32 %r<12>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 s[256];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  shl.b32 %r3, %r2, 2;
  mov.u32 %r4, s;
  add.u32 %r5, %r4, %r3;
  cvt.u64.u32 %rd3, %r3;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
  ex2.approx.f32 %f2, %f1;
  add.f32 %f3, %f2, 0f3F800000;
  st.shared.f32 [%r5], %f3;
  bar.sync 0;
  ld.shared.f32 %f4, [s+64];
  mul.wide.u32 %rd5, %r1, 4;
  add.u64 %rd6, %rd2, %rd5;
  st.global.f32 [%rd6], %f4;
  ret;
}
"""
)
LAUNCH = {"grid": [1], "block": [64], "params": {"0": {"buffer": 4096}, "1": {"buffer": 4096}}}


def test_two_warps_that_store_what_both_computed_do_not_race() -> None:
    found = check(TWICE, LAUNCH)
    assert found.verdict == "proved"
    assert any("store one value to one place count as one" in text for text in found.assumptions)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cvt.u64.u32 %rd3, %r3;", "mul.wide.u32 %rd3, %r1, 4;"),  # each warp its own data
        ("add.f32 %f3, %f2, 0f3F800000;", "cvt.rn.f32.u32 %f3, %r1;"),  # a number of the thread's own
        (
            "add.f32 %f3, %f2, 0f3F800000;",
            "shr.u32 %r6, %r1, 5; cvt.rn.f32.u32 %f5, %r6; fma.rn.f32 %f3, %f2, %f2, %f5;",
        ),
        ("add.f32 %f3, %f2, 0f3F800000;", "and.b32 %r6, %r1, 32; setp.eq.u32 %p1, %r6, 0; @%p1 add.f32 %f2, %f2, %f2;"),
    ],
)
def test_two_warps_that_store_different_values_race(old: str, new: str) -> None:
    found = check(TWICE.replace(old, new), LAUNCH)
    assert [(f.code, f.accesses[0].span.line) for f in found.findings] == [("RACE001", 23)]


@pytest.mark.parametrize(("name", "verdict"), [("add", "proved"), ("sub", "finding")])
def test_a_sum_does_not_depend_on_the_order_of_its_terms(name: str, verdict: str) -> None:
    """Each warp has the two terms in another order."""
    swapped = TWICE.replace(
        "ex2.approx.f32 %f2, %f1;",
        "ld.global.f32 %f5, [%rd1+512]; setp.lt.u32 %p1, %r1, 32; selp.f32 %f6, %f1, %f5, %p1;"
        f" selp.f32 %f7, %f5, %f1, %p1; {name}.f32 %f2, %f6, %f7;",
    )
    assert check(swapped, LAUNCH).verdict == verdict


@pytest.mark.parametrize("cluster", [[1], [2]])
def test_ctas_that_store_one_value_to_one_place_race(cluster: list[int]) -> None:
    """Weak stores of two CTAs are in conflict (8.7), whether the CTAs are of one cluster or of two."""
    found = check(TWICE, {**LAUNCH, "grid": [2], "cluster": cluster})
    assert [(f.code, f.accesses[0].span.line) for f in found.findings] == [("RACE001", 28)]


FRAGMENTS = (
    HEAD
    + """
.visible .entry fragments(.param .u64 x, .param .u64 y)
{
  .reg .b32 %r<20>;
  .reg .f32 %f<12>;
  .reg .b64 %rd<8>;
  .shared .align 32 .b8 s[768];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  mad.lo.u32 %r2, %r1, 24, 0;
  mov.u32 %r3, s;
  add.u32 %r4, %r3, %r2;
  st.shared.b64 [%r4], 0;
  st.shared.b64 [%r4+8], 0;
  st.shared.b64 [%r4+16], 0;
  bar.sync 0;
  mov.u32 %r5, 24;
  wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13}, [%r3], %r5;
  wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {%r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13}, [%r3], %r5;
  wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};
  mul.wide.u32 %rd3, %r1, 32;
  add.u64 %rd4, %rd2, %rd3;
  red.global.add.v4.f32 [%rd4], {%f1, %f2, %f3, %f4};
  red.global.add.noftz.f16x2 [%rd4+16], %r6;
  ret;
}
"""
)


@pytest.mark.daily(least=0)
def test_the_lines_of_a_matrix_are_followed() -> None:
    launch = {"grid": [1], "block": [32], "params": {"0": {"buffer": 1024}, "1": {"buffer": 1012}}}
    assert check(FRAGMENTS, launch).verdict == "proved"
    early = check(FRAGMENTS.replace("bar.sync 0;", ""), launch)
    assert {a.span.line for f in early.findings for a in f.accesses if a.access == "read"} == {22, 23}
    small = check(FRAGMENTS, {**launch, "params": {"0": {"buffer": 1020}, "1": {"buffer": 1012}}})
    assert [(f.kind, f.accesses[0].span.line) for f in small.findings] == [("undefined", 24)]
    short = check(FRAGMENTS, {**launch, "params": {"0": {"buffer": 1024}, "1": {"buffer": 1008}}})
    assert {f.accesses[0].span.line for f in short.findings} == {28}
