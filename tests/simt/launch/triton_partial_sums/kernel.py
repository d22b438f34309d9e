"""Partial sums of rows in a few buffers, each under a lock, with a word that says whether a row is the first there."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def partial_sums(source, sums, locks, BUFFERS: tl.constexpr, TWIN: tl.constexpr):
    at = tl.arange(0, 64)
    row = tl.program_id(0)
    own = row % BUFFERS
    value = tl.load(source + row * 64 + at)
    lock = locks + own
    begun = lock + BUFFERS
    target = sums + own * 64 + at
    if TWIN == 1:
        while tl.atomic_cas(lock, 0, 1, sem="relaxed") == 1:
            pass
    else:
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
    if tl.load(begun) == 0:
        tl.atomic_xchg(begun, 1)
    else:
        value += tl.load(target)
    if TWIN == 2:
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)
        tl.store(target, value)
    elif TWIN == 3:
        tl.store(sums + row // BUFFERS % BUFFERS * 64 + at, value)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)
    elif TWIN == 4:
        tl.store(target, value)
        tl.debug_barrier()
        tl.store(lock, 0)
    else:
        tl.store(target, value)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)


def build(twin):
    constants = {"BUFFERS": 4, "TWIN": twin}
    signature = {"source": "*fp32", "sums": "*fp32", "locks": "*i32", "BUFFERS": "constexpr", "TWIN": "constexpr"}
    source = ASTSource(partial_sums, signature, constants)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
