"""Rows that an index tensor names: fetched by cp.async that an mbarrier tells of, or moved by tensor copies."""

from __future__ import annotations

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_mma,
    tma,
)


@gluon.jit
def fetching(table, index, tile, full, empty, n, WIDTH: gl.constexpr, ROWS: gl.constexpr, STAGES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [2, 16], [gl.num_warps(), 1], [1, 0])
    col = gl.arange(0, WIDTH, gl.SliceLayout(0, layout))
    row = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    base = gl.program_id(0) * n * ROWS
    for i in range(n):
        s = i % STAGES
        at = gl.load(index + base + i * ROWS + row)
        mbarrier.wait(empty.index(s), ((i // STAGES) & 1) ^ 1)
        async_copy.async_load(tile.index(s), table + at[:, None] * WIDTH + col[None, :])
        async_copy.mbarrier_arrive(full.index(s), increment_count=False)


@gluon.jit
def summing(out, tile, full, empty, n, WIDTH: gl.constexpr, ROWS: gl.constexpr, STAGES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [2, 16], [gl.num_warps(), 1], [1, 0])
    acc = gl.zeros((ROWS, WIDTH), gl.float32, layout)
    for i in range(n):
        s = i % STAGES
        mbarrier.wait(full.index(s), (i // STAGES) & 1)
        acc += tile.index(s).load(layout)
        mbarrier.arrive(empty.index(s), count=1)
    col = gl.arange(0, WIDTH, gl.SliceLayout(0, layout))
    row = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    gl.store(out + gl.program_id(0) * ROWS * WIDTH + row[:, None] * WIDTH + col[None, :], acc)


@gluon.jit
def gathers(table, index, out, n, WIDTH: gl.constexpr, ROWS: gl.constexpr, STAGES: gl.constexpr):
    tile = gl.allocate_shared_memory(gl.float32, [STAGES, ROWS, WIDTH], gl.SwizzledSharedLayout(4, 1, 8, [1, 0]))
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=64)  # two warps, every thread
        mbarrier.init(empty.index(i), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (summing, (out, tile, full, empty, n, WIDTH, ROWS, STAGES)),
            (fetching, (table, index, tile, full, empty, n, WIDTH, ROWS, STAGES)),
        ],
        [2],
        [40],
    )


@gluon.jit
def scatters(x_desc, index, w_desc, y_desc, K, bm: gl.constexpr):
    bk: gl.constexpr = x_desc.block_type.shape[1]
    bn: gl.constexpr = w_desc.block_type.shape[0]
    a = gl.allocate_shared_memory(x_desc.dtype, [2, bm, bk], x_desc.layout)
    b = gl.allocate_shared_memory(w_desc.dtype, [2, bn, bk], w_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(bars.index(i), count=1)
        mbarrier.init(done.index(i), count=1)
    fence_async_shared()
    acc = allocate_tensor_memory(gl.float32, [bm, bn], TensorMemoryLayout([bm, bn], col_stride=1))
    layout: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, gl.num_warps()], [1, 0]))
    at = gl.load(index + gl.program_id(0) * bm + gl.arange(0, bm, layout))
    n = gl.program_id(1) * bn
    rounds = gl.cdiv(K, bk)
    use = False
    for k in range(rounds):
        s = k % 2
        mbarrier.wait(done.index(s), ((k // 2) & 1) ^ 1)
        mbarrier.expect(bars.index(s), bm * bk * 2 + w_desc.block_type.nbytes)
        tma.async_gather(x_desc, at, k * bk, bars.index(s), a.index(s))
        tma.async_load(w_desc, [n, k * bk], bars.index(s), b.index(s))
        mbarrier.wait(bars.index(s), (k // 2) & 1)
        tcgen05_mma(a.index(s), b.index(s).permute((1, 0)), acc, use_acc=use, mbarriers=[done.index(s)])
        use = True
    last = rounds - 1
    mbarrier.wait(done.index(last % 2), (last // 2) & 1)
    out = gl.allocate_shared_memory(y_desc.dtype, [bm, bn], y_desc.layout)
    out.store(acc.load().to(y_desc.dtype))
    fence_async_shared()
    tma.async_scatter(y_desc, at, n, out)
    tma.store_wait(0)


def compile_(fn, signature, constants, capability, warps=4):
    source = GluonASTSource(fn, signature, constants)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})


def descriptor(dtype, block):
    layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    return f"tensordesc<{dtype}[{block[0]}, {block[1]}],{layout!r}>"


def rows(width=32, height=16, stages=3):
    """Two warps fetch, four add up."""
    signature = {"table": "*fp32", "index": "*i32", "out": "*fp32", "n": "i32"}
    return compile_(gathers, signature, {"WIDTH": width, "ROWS": height, "STAGES": stages}, 90)


def product(block=(128, 64, 64)):
    """Gathered rows times a matrix, on the tensor core of sm_100; its rows are scattered to where they came from."""
    bm, bn, bk = block
    signature = {
        "x_desc": descriptor("fp16", (1, bk)), "index": "*i32", "w_desc": descriptor("fp16", (bn, bk)),
        "y_desc": descriptor("fp16", (1, bn)), "K": "i32",
    }  # fmt: skip
    return compile_(scatters, signature, {"bm": bm}, 100)
