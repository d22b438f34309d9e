"""Products in Triton: by pointers (cp.async from sm_80 on) and by tensor descriptors (tensor copies from sm_90 on)."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ALIGNED = [["tt.divisibility", 16]]


@triton.jit
def matmul_pointers(
    a, b, c, m, n, k, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    at_a = a + rows[:, None] * stride_a + depth[None, :]
    at_b = b + depth[:, None] * stride_b + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        x = tl.load(at_a, mask=depth[None, :] < k - start, other=0.0)
        y = tl.load(at_b, mask=depth[:, None] < k - start, other=0.0)
        total = tl.dot(x, y, total)
        at_a += BK
        at_b += BK * stride_b
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def matmul_descriptors(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        total = tl.dot(a.load([row, start]), b.load([start, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def matmul_persistent(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIAL: tl.constexpr):
    across = tl.cdiv(n, BN)
    for tile in tl.range(
        tl.program_id(0), tl.cdiv(m, BM) * across, tl.num_programs(0), flatten=True, warp_specialize=SPECIAL
    ):
        row = tile // across * BM
        column = tile % across * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, k, BK):
            total = tl.dot(a.load([row, start]), b.load([start, column]), total)
        c.store([row, column], total.to(tl.float16))


@triton.jit
def matmul_made(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    at_a = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[BM, BK])
    at_b = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[BN, BK])
    at_c = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
    across = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * across, tl.num_programs(0)):
        row = tile // across * BM
        column = tile % across * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, k, BK):
            total = tl.dot(at_a.load([row, start]), at_b.load([column, start]).T, total)
        at_c.store([row, column], total.to(tl.float16))


@triton.jit
def matmul_split(a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.program_id(2) * BK + tl.arange(0, BK)
    at_a = a + rows[:, None] * k + depth[None, :]
    at_b = b + depth[:, None] * n + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(tl.cdiv(k, BK * SPLIT)):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += BK * SPLIT
        at_b += BK * SPLIT * n
    tl.atomic_add(c + rows[:, None] * n + columns[None, :], total)


def split(capability, warps, stages, tile, parts):
    bm, bn, bk = tile
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32", "k": "i32"}
    aligned = {(i,): ALIGNED for i in range(len(signature))}
    constants = {"BM": bm, "BN": bn, "BK": bk, "SPLIT": parts}
    signature |= dict.fromkeys(constants, "constexpr")
    return triton.compile(
        ASTSource(matmul_split, signature, constants, aligned),
        target=GPUTarget("cuda", capability, 32),
        options={"num_warps": warps, "num_stages": stages},
    )


def made(capability, warps, stages, tile):
    bm, bn, bk = tile
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "m": "i32", "n": "i32", "k": "i32"}
    aligned = {(i,): ALIGNED for i in range(len(signature))}
    signature |= dict.fromkeys(("BM", "BN", "BK"), "constexpr")
    source = ASTSource(matmul_made, signature, {"BM": bm, "BN": bn, "BK": bk}, aligned)
    return triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps, "num_stages": stages}
    )


def pointers(capability, warps, stages, tile):
    bm, bn, bk = tile
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp16"}
    signature |= dict.fromkeys(("m", "n", "k", "stride_a", "stride_b", "stride_c"), "i32")
    aligned = {(i,): ALIGNED for i in range(len(signature))}
    signature |= dict.fromkeys(("BM", "BN", "BK"), "constexpr")
    source = ASTSource(matmul_pointers, signature, {"BM": bm, "BN": bn, "BK": bk}, aligned)
    return triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps, "num_stages": stages}
    )


def descriptors(capability, warps, stages, tile, persistent=False, special=False):
    bm, bn, bk = tile
    signature = {
        "a": f"tensordesc<fp16[{bm}, {bk}]>",
        "b": f"tensordesc<fp16[{bk}, {bn}]>",
        "c": f"tensordesc<fp16[{bm}, {bn}]>",
    }
    constants = {"BM": bm, "BN": bn, "BK": bk}
    if persistent:
        signature |= {"m": "i32", "n": "i32"}
        constants["SPECIAL"] = special
    signature |= {"k": "i32"} | dict.fromkeys(constants, "constexpr")
    source = ASTSource(matmul_persistent if persistent else matmul_descriptors, signature, constants)
    return triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps, "num_stages": stages}
    )
