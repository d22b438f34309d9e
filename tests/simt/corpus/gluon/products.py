"""Products in Gluon: wgmma on sm_90 and tcgen05 on sm_100, operands by tensor copies."""

from __future__ import annotations

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def hopper(a, b, c, k, STAGES: gl.constexpr, WARPS: gl.constexpr):
    """The ring is refilled one round late: by then the product that read the stage is complete."""
    bm: gl.constexpr = a.block_type.shape[0]
    bk: gl.constexpr = a.block_type.shape[1]
    bn: gl.constexpr = b.block_type.shape[1]
    at_a = gl.allocate_shared_memory(a.dtype, [STAGES, bm, bk], a.layout)
    at_b = gl.allocate_shared_memory(b.dtype, [STAGES, bk, bn], b.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
    fence_async_shared()
    row = gl.program_id(0) * bm
    column = gl.program_id(1) * bn
    steps = k // bk
    for i in gl.static_range(STAGES - 1):
        mbarrier.expect(full.index(i), a.block_type.nbytes + b.block_type.nbytes, pred=i < steps)
        tma.async_load(a, [row, i * bk], full.index(i), at_a.index(i), pred=i < steps)
        tma.async_load(b, [i * bk, column], full.index(i), at_b.index(i), pred=i < steps)
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, bn, 16])
    total = gl.zeros([bm, bn], gl.float32, layout)
    for t in range(steps):
        s = t % STAGES
        mbarrier.wait(full.index(s), (t // STAGES) & 1)
        total = warpgroup_mma(at_a.index(s), at_b.index(s), total, is_async=True)
        total = warpgroup_mma_wait(num_outstanding=0, deps=(total,))
        ahead = t + STAGES - 1
        s = ahead % STAGES
        mbarrier.expect(full.index(s), a.block_type.nbytes + b.block_type.nbytes, pred=ahead < steps)
        tma.async_load(a, [row, ahead * bk], full.index(s), at_a.index(s), pred=ahead < steps)
        tma.async_load(b, [ahead * bk, column], full.index(s), at_b.index(s), pred=ahead < steps)
    at_c = gl.allocate_shared_memory(c.dtype, [bm, bn], c.layout)
    at_c.store(total.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [row, column], at_c)
    tma.store_wait(0)


@gluon.jit
def blackwell(a, b, c, k, STAGES: gl.constexpr, WARPS: gl.constexpr):
    """One accumulator in tensor memory; a stage is refilled when the commit says that its product is complete."""
    bm: gl.constexpr = a.block_type.shape[0]
    bk: gl.constexpr = a.block_type.shape[1]
    bn: gl.constexpr = b.block_type.shape[1]
    at_a = gl.allocate_shared_memory(a.dtype, [STAGES, bm, bk], a.layout)
    at_b = gl.allocate_shared_memory(b.dtype, [STAGES, bk, bn], b.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(done.index(i), count=1)
    fence_async_shared()
    row = gl.program_id(0) * bm
    column = gl.program_id(1) * bn
    memory: gl.constexpr = TensorMemoryLayout([bm, bn], col_stride=1)
    total = allocate_tensor_memory(gl.float32, [bm, bn], memory)
    steps = k // bk
    for t in range(steps):
        s = t % STAGES
        mbarrier.wait(done.index(s), ((t // STAGES) & 1) ^ 1)
        mbarrier.expect(full.index(s), a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [row, t * bk], full.index(s), at_a.index(s))
        tma.async_load(b, [t * bk, column], full.index(s), at_b.index(s))
        mbarrier.wait(full.index(s), (t // STAGES) & 1)
        tcgen05_mma(at_a.index(s), at_b.index(s), total, use_acc=t > 0)
        tcgen05_commit(done.index(s))
    last = steps - 1
    mbarrier.wait(done.index(last % STAGES), (last // STAGES) & 1)
    at_c = gl.allocate_shared_memory(c.dtype, [bm, bn], c.layout)
    at_c.store(total.load().to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [row, column], at_c)
    tma.store_wait(0)


def descriptor(block):
    layout = gl.NVMMASharedLayout.get_default_for(list(block), gl.float16)
    return f"tensordesc<fp16[{block[0]}, {block[1]}],{layout!r}>"


def product(kernel, capability, warps, stages, tile):
    bm, bn, bk = tile
    signature = {"a": descriptor((bm, bk)), "b": descriptor((bk, bn)), "c": descriptor((bm, bn)), "k": "i32"}
    signature |= {"STAGES": "constexpr", "WARPS": "constexpr"}
    source = GluonASTSource(globals()[kernel], signature, {"STAGES": stages, "WARPS": warps})
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})
