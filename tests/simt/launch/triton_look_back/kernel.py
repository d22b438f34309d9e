"""A scan with look-back: status and sum in one word of 64 bits."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def word_of(value, status):
    return value.to(tl.uint32, bitcast=True).to(tl.uint64) << 32 | tl.full([], status, tl.uint64)


@triton.jit
def look_back(source, target, words, ticket, TWIN: tl.constexpr):
    tile = tl.atomic_add(ticket, 1, sem="relaxed")
    at = tile * 64 + tl.arange(0, 64)
    values = tl.load(source + at)
    mine = tl.sum(values, 0)
    if tile > 0:
        tl.atomic_xchg(words + tile, word_of(mine, 1), sem="relaxed")
    before = tl.zeros([], tl.int32)
    other = tile - 1
    while other >= 0:
        status = tl.full([], 0, tl.uint32)
        word = tl.full([], 0, tl.uint64)
        while status == 0:
            word = tl.atomic_add(words + other, 0, sem="relaxed")
            status = word.to(tl.uint32)
        before += (word >> 32).to(tl.uint32).to(tl.int32, bitcast=True)
        other -= 1
        if status == 2:
            other = -1
    if TWIN == 1:
        tl.store(words + tile, word_of(before + mine, 2))
    elif TWIN == 2:
        tl.atomic_xchg(words + tile, word_of(before + mine, 2), sem="relaxed", scope="cta")
    else:
        tl.atomic_xchg(words + tile, word_of(before + mine, 2), sem="relaxed")
    tl.store(target + at, tl.cumsum(values, 0) + before)


def build(twin):
    signature = {"source": "*i32", "target": "*i32", "words": "*u64", "ticket": "*i32", "TWIN": "constexpr"}
    source = ASTSource(look_back, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
