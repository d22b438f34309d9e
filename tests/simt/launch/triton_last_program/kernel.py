"""The last program adds what all have left."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def last_program(source, parts, target, count, programs, TWIN: tl.constexpr):
    at = tl.arange(0, 64)
    tl.store(parts + tl.program_id(0) * 64 + at, tl.load(source + tl.program_id(0) * 64 + at) * 2)
    tl.debug_barrier()
    if TWIN == 1:
        before = tl.atomic_add(count, 1, sem="relaxed")
    else:
        before = tl.atomic_add(count, 1)
    last = programs - 1
    if TWIN == 2:
        last = programs - 2
    if before == last:
        total = tl.zeros((64,), dtype=tl.float32)
        for k in range(programs):
            total += tl.load(parts + k * 64 + at)
        tl.store(target + at, total)


def build(twin):
    signature = {
        "source": "*fp32",
        "parts": "*fp32",
        "target": "*fp32",
        "count": "*i32",
        "programs": "i32",
        "TWIN": "constexpr",
    }
    source = ASTSource(last_program, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
