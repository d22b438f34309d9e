"""A sum over programs by atomics."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def split_sum(source, target, TWIN: tl.constexpr):
    at = tl.arange(0, 64)
    value = tl.load(source + tl.program_id(0) * 64 + at)
    if TWIN == 1:
        tl.store(target + at, tl.load(target + at) + value)
    elif TWIN == 2:
        tl.atomic_add(target + at, value, sem="relaxed", scope="cta")
    else:
        tl.atomic_add(target + at, value, sem="relaxed")


def build(twin):
    signature = {"source": "*fp32", "target": "*fp32", "TWIN": "constexpr"}
    source = ASTSource(split_sum, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
