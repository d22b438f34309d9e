"""Attention for one head in Triton, by tensor descriptors: two products in a loop with a running maximum."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def attention(q, k, v, out, keys, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    row = tl.program_id(0) * BM
    queries = q.load([row, 0])
    highest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    weight = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, keys, BN):
        scores = tl.dot(queries, k.load([start, 0]).T) * scale
        top = tl.maximum(highest, tl.max(scores, axis=1))
        p = tl.exp2(scores - top[:, None])
        decay = tl.exp2(highest - top)
        weight = weight * decay + tl.sum(p, axis=1)
        total = tl.dot(p.to(tl.float16), v.load([start, 0]), total * decay[:, None])
        highest = top
    out.store([row, 0], (total / weight[:, None]).to(tl.float16))


def compiled(capability, warps, stages, tile):
    bm, bn, d = tile
    signature = {
        "q": f"tensordesc<fp16[{bm}, {d}]>",
        "k": f"tensordesc<fp16[{bn}, {d}]>",
        "v": f"tensordesc<fp16[{bn}, {d}]>",
    }
    signature |= {"out": f"tensordesc<fp16[{bm}, {d}]>", "keys": "i32", "scale": "fp32"} | dict.fromkeys(
        ("BM", "BN", "D"), "constexpr"
    )
    source = ASTSource(attention, signature, {"BM": bm, "BN": bn, "D": d})
    return triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps, "num_stages": stages}
    )
