"""Kernels over rows in Triton: reductions through shared memory, and tensor maps that the kernel makes itself."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(target, source, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(source + row * stride + at, mask=at < columns, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(target + row * stride + at, x / tl.sum(x, axis=0), mask=at < columns)


@triton.jit
def column_sums(source, sums, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    column = tl.program_id(0) * BN
    desc = tl.make_tensor_descriptor(source, shape=[rows, columns], strides=[columns, 1], block_shape=[BM, BN])
    total = tl.zeros((BN,), dtype=tl.float32)
    for row in range(0, rows, BM):
        total += tl.sum(desc.load([row, column]).to(tl.float32), axis=0)
    tl.store(sums + column + tl.arange(0, BN), total)


@triton.jit
def split_sum(source, sums, lock, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(source + at, mask=at < count, other=0.0), axis=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    before = tl.load(sums)
    tl.debug_barrier()  # every warp has read before one writes
    tl.store(sums, before + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def compiled(kernel, signature, constants, capability, warps, stages=3):
    signature = {**signature, **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(globals()[kernel], signature, constants)
    return triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps, "num_stages": stages}
    )
