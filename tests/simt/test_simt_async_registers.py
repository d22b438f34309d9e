"""Registers that wgmma and tcgen05.ld may still be writing (UB701, UB702)."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

WGMMA = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
.reqntid 128, 1, 1
{
  .reg .b32 %r<9>;
  .reg .f32 %f<19>;
  .reg .b64 %rd<9>;
  .reg .pred %p<3>;
  .shared .align 128 .b8 a[4096];
  mov.u32 %r3, a;
  cvt.u64.u32 %rd1, %r3;
  shr.u64 %rd1, %rd1, 4;
  or.b64 %rd1, %rd1, 0x0000000800080000;
  ld.param.u64 %rd2, [out];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd2, %rd2, %rd3;
  mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
  BODY
  ret;
}
"""
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd1, 1, 1, 1, 0, 0;"
FENCE, COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
ONE = f"{FENCE} {MMA} {COMMIT}"
STORE = "st.global.f32 [%rd2], %f1;"
OTHER = ONE.replace("{%f1,%f2,%f3,%f4}", "{%f11,%f12,%f13,%f14}")


def wait(pending: int) -> str:
    return f"wgmma.wait_group.sync.aligned {pending};"


TOO_EARLY = {
    "no wait": f"{ONE} {STORE}",
    "a wait for all but it": f"{ONE} {wait(1)} {STORE}",
    "a wait before the commit": f"{FENCE} {MMA} {wait(0)} {COMMIT} {STORE}",
    "arithmetic before a barrier": f"{ONE} add.f32 %f5, %f1, %f2; bar.sync 0; {wait(0)} st.global.f32 [%rd2], %f5;",
    "after a move": f"{ONE} mov.f32 %f5, %f1; st.global.f32 [%rd2], %f5; {wait(0)}",
    "after a loop": f"mov.u32 %r5, 0;\nL:\n{ONE} {wait(1)} add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3;"
    f" @%p1 bra L; {STORE}",
    "the younger of two groups": f"{ONE} {OTHER} {wait(1)} {STORE} st.global.f32 [%rd2+512], %f11;",
    "a fragment of the next one": f"{ONE} cvt.rn.f16x2.f32 %r6, %f1, %f2; {FENCE}"
    " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f11,%f12,%f13,%f14}, {%r6,%r6,%r6,%r6}, %rd1, 1, 1, 1, 0;"
    f" {COMMIT} {wait(0)}",
}
IN_TIME = {
    "a wait": f"{ONE} {wait(0)} {STORE}",
    "the older of two groups": f"{ONE} {OTHER} {wait(1)} {STORE} {wait(0)} st.global.f32 [%rd2], %f11;",
    "accumulators carried around a loop": "mov.u32 %r5, 0;\nL:\n"
    f"{ONE} {wait(1)} mov.f32 %f5, %f1; mov.f32 %f1, %f5; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3; @%p1 bra L;"
    f" {wait(0)} {STORE}",
    "arithmetic that was moved over the wait": f"{ONE} add.f32 %f5, %f1, %f2; {wait(0)} st.global.f32 [%rd2], %f5;",
    "registers that are written anew": f"{ONE} {wait(0)} mov.f32 %f1, 0f00000000; {OTHER} {STORE} {wait(0)}",
}

TENSOR = """\
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
.reqntid 128, 1, 1
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .reg .pred %p<3>;
  .shared .align 16 .b32 base;
  ld.param.u64 %rd2, [out];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd2, %rd2, %rd3;
  setp.ge.u32 %p1, %r2, 32;
  @%p1 bra READ;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
READ:
  bar.sync 0;
  ld.shared.b32 %r1, [base];
  shr.u32 %r4, %r2, 5;
  shl.b32 %r4, %r4, 21;
  add.u32 %r4, %r1, %r4;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {%r2};
  tcgen05.wait::st.sync.aligned;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r4];
  BODY
  bar.sync 0;
  @%p1 bra DONE;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
DONE:
  ret;
}
"""
LOADED = "tcgen05.wait::ld.sync.aligned;"
KEEP = "st.global.b32 [%rd2], %r3;"
LOAD_TOO_EARLY = {
    "a wait behind a barrier": f"{KEEP} bar.sync 0; {LOADED}",
    "a computation with a guard": f"@%p1 add.u32 %r5, %r3, 1; bar.sync 0; {LOADED}",
    "a wait for stores": f"tcgen05.wait::st.sync.aligned; {KEEP} bar.sync 0; {LOADED}",
}
LOAD_IN_TIME = {
    "a wait": f"{LOADED} {KEEP}",
    "a wait that was moved": f"{KEEP} {LOADED}",
    "a guard": f"{LOADED} @%p1 {KEEP}",
}


def codes(text: str, body: str) -> set[str]:
    found = check(text.replace("BODY", body), {"grid": 1, "params": {"out": {"buffer": 1024}}}, timeout=60)
    assert found.verdict in ("proved", "finding"), found
    return {f.code for f in found.findings}


@pytest.mark.daily
@pytest.mark.parametrize("name", TOO_EARLY)
def test_accumulators_that_are_used_before_their_group_is_over(name: str) -> None:
    assert "UB701" in codes(WGMMA, TOO_EARLY[name])


@pytest.mark.daily
@pytest.mark.parametrize("name", IN_TIME)
def test_accumulators_that_were_waited_for(name: str) -> None:
    assert codes(WGMMA, IN_TIME[name]) == set()


@pytest.mark.daily
@pytest.mark.parametrize("name", LOAD_TOO_EARLY)
def test_what_tensor_memory_gives_is_used_before_the_wait(name: str) -> None:
    assert "UB702" in codes(TENSOR, LOAD_TOO_EARLY[name])


@pytest.mark.daily
@pytest.mark.parametrize("name", LOAD_IN_TIME)
def test_what_tensor_memory_gives_was_waited_for(name: str) -> None:
    assert codes(TENSOR, LOAD_IN_TIME[name]) == set()
