"""Copies in Gluon: a ring of tensor copies with specialised warps, a stream of tiles, cp.async in groups."""

from __future__ import annotations

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma

ALIGNED = [["tt.divisibility", 16]]


@gluon.jit
def doubled(source, target, tiles, HEIGHT: gl.constexpr, STAGES: gl.constexpr, WARPS: gl.constexpr):
    """One tile a round, fetched STAGES - 1 rounds ahead, doubled, and stored by a tensor copy."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [WARPS, 1], [1, 0])
    inbox = gl.allocate_shared_memory(source.dtype, [STAGES, HEIGHT, source.block_type.shape[1]], source.layout)
    outbox = gl.allocate_shared_memory(target.dtype, [HEIGHT, source.block_type.shape[1]], target.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
    fence_async_shared()
    first = gl.program_id(0) * tiles
    for i in gl.static_range(STAGES - 1):
        mbarrier.expect(full.index(i), source.block_type.nbytes, pred=i < tiles)
        tma.async_load(source, [(first + i) * HEIGHT, 0], full.index(i), inbox.index(i), pred=i < tiles)
    for k in range(tiles):
        ahead = k + STAGES - 1
        s = ahead % STAGES
        mbarrier.expect(full.index(s), source.block_type.nbytes, pred=ahead < tiles)
        tma.async_load(source, [(first + ahead) * HEIGHT, 0], full.index(s), inbox.index(s), pred=ahead < tiles)
        mbarrier.wait(full.index(k % STAGES), (k // STAGES) & 1)
        value = inbox.index(k % STAGES).load(layout)
        tma.store_wait(0)
        outbox.store(value + value)
        fence_async_shared()
        tma.async_store(target, [(first + k) * HEIGHT, 0], outbox)
    tma.store_wait(0)


@gluon.jit
def fetching(source, inbox, full, empty, tiles, HEIGHT: gl.constexpr, STAGES: gl.constexpr):
    first = gl.program_id(0) * tiles
    for k in range(tiles):
        s = k % STAGES
        mbarrier.wait(empty.index(s), ((k // STAGES) & 1) ^ 1)
        mbarrier.expect(full.index(s), source.block_type.nbytes)
        tma.async_load(source, [(first + k) * HEIGHT, 0], full.index(s), inbox.index(s))


@gluon.jit
def adding(
    sums,
    inbox,
    full,
    empty,
    tiles,
    HEIGHT: gl.constexpr,
    WIDTH: gl.constexpr,
    STAGES: gl.constexpr,
    WARPS: gl.constexpr,
):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [WARPS, 1], [1, 0])
    total = gl.zeros([HEIGHT, WIDTH], gl.float32, layout)
    for k in range(tiles):
        s = k % STAGES
        mbarrier.wait(full.index(s), (k // STAGES) & 1)
        total += inbox.index(s).load(layout)
        fence_async_shared()
        mbarrier.arrive(empty.index(s), count=1)
    rows = gl.arange(0, HEIGHT, gl.SliceLayout(1, layout))
    columns = gl.arange(0, WIDTH, gl.SliceLayout(0, layout))
    at = (gl.program_id(0) * HEIGHT + rows[:, None]) * WIDTH + columns[None, :]
    gl.store(sums + at, total)


@gluon.jit
def specialised(
    source, sums, tiles, HEIGHT: gl.constexpr, WIDTH: gl.constexpr, STAGES: gl.constexpr, WARPS: gl.constexpr
):
    """A ring: one warp fetches tiles, the others add them up."""
    inbox = gl.allocate_shared_memory(source.dtype, [STAGES, HEIGHT, WIDTH], source.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (adding, (sums, inbox, full, empty, tiles, HEIGHT, WIDTH, STAGES, WARPS)),
            (fetching, (source, inbox, full, empty, tiles, HEIGHT, STAGES)),
        ],
        [1],
        [24],
    )


@gluon.jit
def grouped(source, target, rounds, N: gl.constexpr, STAGES: gl.constexpr, WARPS: gl.constexpr):
    """cp.async STAGES - 1 rounds ahead; what a thread reads another one may have copied."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [WARPS], [0])
    turned: gl.constexpr = gl.BlockedLayout([1], [32], [WARPS], [0])
    ring = gl.allocate_shared_memory(gl.float32, [STAGES, N], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    base = gl.program_id(0) * rounds * N
    at = gl.arange(0, N, layout)
    for i in gl.static_range(STAGES - 1):
        async_copy.async_load(ring.index(i), source + base + i * N + at, mask=(at < N) & (i < rounds))
        async_copy.commit_group()
    for k in range(rounds):
        ahead = k + STAGES - 1
        async_copy.wait_group(STAGES - 2)
        value = ring.index(k % STAGES).load(turned)
        async_copy.async_load(
            ring.index(ahead % STAGES), source + base + ahead * N + at, mask=(at < N) & (ahead < rounds)
        )
        async_copy.commit_group()
        gl.store(target + base + k * N + gl.arange(0, N, turned), value)
    async_copy.wait_group(0)


def compile_(fn, signature, constants, capability, warps, attrs=None):
    signature = {**signature, **dict.fromkeys(constants, "constexpr")}
    source = GluonASTSource(fn, signature, constants, attrs)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})


def descriptor(dtype, block, swizzle):
    bits = {"fp16": 16, "fp32": 32}[dtype]
    layout = gl.NVMMASharedLayout(swizzle_byte_width=swizzle, element_bitwidth=bits, rank=2)
    return f"tensordesc<{dtype}[{block[0]}, {block[1]}],{layout!r}>"


def stream(capability=90, warps=4, block=(16, 32), stages=3):
    kind = descriptor("fp32", block, 128)
    return compile_(
        doubled,
        {"source": kind, "target": kind, "tiles": "i32"},
        {"HEIGHT": block[0], "STAGES": stages, "WARPS": warps},
        capability,
        warps,
    )


def ring(capability=90, warps=4, block=(16, 32), stages=4):
    signature = {"source": descriptor("fp32", block, 128), "sums": "*fp32", "tiles": "i32"}
    constants = {"HEIGHT": block[0], "WIDTH": block[1], "STAGES": stages, "WARPS": warps}
    return compile_(specialised, signature, constants, capability, warps)


def groups(capability=80, warps=4, n=512, stages=3):
    signature = {"source": "*fp32", "target": "*fp32", "rounds": "i32"}
    return compile_(
        grouped,
        signature,
        {"N": n, "STAGES": stages, "WARPS": warps},
        capability,
        warps,
        {(0,): ALIGNED, (1,): ALIGNED},
    )
