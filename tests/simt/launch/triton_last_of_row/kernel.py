"""Softmax weights of long rows: programs reduce parts of a row, and the last one of each row merges what they leave."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def last_of_row(scores, values, sums, tops, weights, count, target, TWIN: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    parts: tl.constexpr = 4
    at = (row * parts + part) * 64 + tl.arange(0, 64)
    score = tl.load(scores + at)
    top = tl.max(score, 0)
    weight = tl.exp(score - top)
    slot = row * parts + part
    tl.store(sums + slot, tl.sum(weight * tl.load(values + at), 0))
    tl.store(tops + slot, top)
    tl.store(weights + slot, tl.sum(weight, 0))
    tl.debug_barrier()
    if TWIN == 1:
        before = tl.atomic_add(count + row, 1, sem="relaxed")
    elif TWIN == 2:
        before = tl.atomic_add(count, 1) - row * parts
    else:
        before = tl.atomic_add(count + row, 1)
    if before == parts - 1:
        slots = row * parts + tl.arange(0, 4)
        top_of = tl.load(tops + slots)
        scale = tl.exp(top_of - tl.max(top_of, 0))
        total = tl.sum(scale * tl.load(sums + slots), 0)
        tl.store(target + row, total / tl.sum(scale * tl.load(weights + slots), 0))


def build(twin):
    signature = dict.fromkeys(("scores", "values", "sums", "tops", "weights"), "*fp32")
    signature |= {"count": "*i32", "target": "*fp32", "TWIN": "constexpr"}
    source = ASTSource(last_of_row, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
