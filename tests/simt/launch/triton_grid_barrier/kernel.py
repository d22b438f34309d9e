"""A barrier over the grid."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def grid_barrier(data, target, count, programs, TWIN: tl.constexpr):
    at = tl.arange(0, 64)
    number = tl.program_id(0)
    tl.store(data + number * 64 + at, at + number)
    tl.debug_barrier()
    if TWIN == 1:
        tl.atomic_add(count, 1, sem="relaxed")
    else:
        tl.atomic_add(count, 1, sem="release")
    every = programs
    if TWIN == 2:
        every = programs + 1
    while tl.atomic_add(count, 0, sem="acquire") < every:
        pass
    value = tl.load(data + (number + 1) % programs * 64 + at)
    tl.store(target + number * 64 + at, value)


def build(twin):
    signature = {"data": "*i32", "target": "*i32", "count": "*i32", "programs": "i32", "TWIN": "constexpr"}
    source = ASTSource(grid_barrier, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
