"""A scan in which each program waits for the sum of the one before, by swaps of a value for itself."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def chained_sums(source, target, sums, ready, ticket, TWIN: tl.constexpr):
    if TWIN == 2:
        tile = tl.num_programs(0) - 1 - tl.program_id(0)
    else:
        tile = tl.atomic_add(ticket, 1, sem="relaxed")
    at = tile * 64 + tl.arange(0, 64)
    values = tl.load(source + at)
    before = tl.zeros([], tl.int32)
    if tile > 0:
        if TWIN == 1:
            while tl.atomic_cas(ready + tile - 1, 1, 1, sem="relaxed") != 1:
                pass
        else:
            while tl.atomic_cas(ready + tile - 1, 1, 1) != 1:
                pass
        before = tl.load(sums + tile - 1)
    tl.store(sums + tile, before + tl.sum(values, 0))
    tl.debug_barrier()
    tl.atomic_xchg(ready + tile, 1, sem="release")
    tl.store(target + at, tl.cumsum(values, 0) + before)


def build(twin):
    signature = dict.fromkeys(("source", "target", "sums", "ready", "ticket"), "*i32") | {"TWIN": "constexpr"}
    source = ASTSource(chained_sums, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
