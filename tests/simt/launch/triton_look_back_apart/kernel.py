"""A scan with look-back: a status, and two sums that it says are there."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def look_back_apart(source, target, status, sums, ticket, TWIN: tl.constexpr):
    tile = tl.atomic_add(ticket, 1, sem="relaxed")
    at = tile * 64 + tl.arange(0, 64)
    values = tl.load(source + at)
    mine = tl.sum(values, 0)
    if tile > 0:
        tl.store(sums + 2 * tile, mine)
        tl.debug_barrier()
        tl.atomic_xchg(status + tile, 1, sem="release")
    before = tl.zeros([], tl.int32)
    other = tile - 1
    while other >= 0:
        found = 0
        while found == 0:
            if TWIN == 2:
                found = tl.atomic_add(status + other, 0, sem="relaxed")
            else:
                found = tl.atomic_add(status + other, 0, sem="acquire")
        before += tl.load(sums + 2 * other + found - 1)
        other -= 1
        if found == 2:
            other = -1
    tl.store(sums + 2 * tile + 1, before + mine)
    tl.debug_barrier()
    if TWIN == 1:
        tl.atomic_xchg(status + tile, 2, sem="relaxed")
    else:
        tl.atomic_xchg(status + tile, 2, sem="release")
    tl.store(target + at, tl.cumsum(values, 0) + before)


def build(twin):
    pointers = dict.fromkeys(("source", "target", "status", "sums", "ticket"), "*i32")
    source = ASTSource(look_back_apart, pointers | {"TWIN": "constexpr"}, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
