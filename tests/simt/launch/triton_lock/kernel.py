"""A sum under a lock."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def lock(source, target, word, TWIN: tl.constexpr):
    at = tl.arange(0, 64)
    value = tl.load(source + tl.program_id(0) * 64 + at)
    if TWIN == 1:
        while tl.atomic_cas(word, 0, 1, sem="relaxed") == 1:
            pass
    else:
        while tl.atomic_cas(word, 0, 1) == 1:
            pass
    tl.store(target + at, tl.load(target + at) + value)
    tl.debug_barrier()
    if TWIN == 2:
        tl.atomic_xchg(word, 0, sem="relaxed")
    else:
        tl.atomic_xchg(word, 0)


def build(twin):
    signature = {"source": "*fp32", "target": "*fp32", "word": "*i32", "TWIN": "constexpr"}
    source = ASTSource(lock, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
