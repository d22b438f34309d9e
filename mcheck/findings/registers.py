"""Undefined behaviour of registers that asynchronous instructions write. Only PTX modules have words for it."""

from __future__ import annotations

from mcheck.findings.entry import Entry

_HEAD = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
.reqntid 128, 1, 1
{
  .reg .b32 %r<4>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<5>;
  .shared .align 128 .b8 a[4096];
  mov.u32 %r1, a;
  cvt.u64.u32 %rd1, %r1;
  shr.u64 %rd1, %rd1, 4;
  or.b64 %rd1, %rd1, 0x0000000800080000;
  ld.param.u64 %rd2, [out];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd2, %rd2, %rd3;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd1, 0, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
"""
_WAIT = """\
  wgmma.wait_group.sync.aligned 0;
"""
_END = """\
  st.global.f32 [%rd2], %f1;
  ret;
}
"""

_TENSOR = """\
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
.reqntid 32, 1, 1
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  .shared .align 16 .b32 base;
  ld.param.u64 %rd2, [out];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd2, %rd2, %rd3;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
  bar.sync 0;
  ld.shared.b32 %r1, [base];
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2};
  tcgen05.wait::st.sync.aligned;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r1];
"""
_LOADED = """\
  tcgen05.wait::ld.sync.aligned;
"""
_USED = """\
  st.global.b32 [%rd2], %r3;
  bar.sync 0;
"""
_FREED = """\
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
  ret;
}
"""

ENTRIES = (
    Entry(
        code="UB701",
        name="register-used-before-its-wait",
        kind="undefined",
        goes_on=True,
        message="{instruction} uses a register that an asynchronous instruction may still be writing",
        explanation="""\
The accumulators of wgmma.mma_async are there once a wgmma.wait_group has waited for its group: before that, to use
them is undefined. Moves between registers are no use, and a use is told only if a store, a barrier, a fence or another
asynchronous instruction comes before the wait: compilers move arithmetic over it, which does no harm where nothing
else happens.""",
        section="PTX ISA 9.0 section 9.7.15.7.3",
        remedy="Wait for the group before the registers are used.",
        bad=_HEAD + _END,
        good=_HEAD + _WAIT + _END,
    ),
    Entry(
        code="UB702",
        name="tensor-memory-load-used-before-its-wait",
        kind="undefined",
        level="review",
        goes_on=True,
        message="{instruction} uses a register that tcgen05.ld may still be writing",
        explanation="""\
The registers of tcgen05.ld are there once tcgen05.wait::ld has waited: the text asks for it before they are used. It is
for review, since the assembler keeps the registers in order as it does after any load, and CUTLASS waits for the last
of several loads alone. Moves between registers are no use, and a use is told only if a barrier, a fence or another
asynchronous instruction, but not a load or a store of tensor memory, comes before the wait: compilers move a wait
over stores.""",
        section="PTX ISA 9.0 section 9.7.16.8",
        remedy="Wait for the load before the registers are used.",
        bad=_TENSOR + _USED + _LOADED + _FREED,
        good=_TENSOR + _LOADED + _USED + _FREED,
    ),
)
