"""The sum of all programs in one word, by an atomic of each."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def total(source, target, TWIN: tl.constexpr):
    value = tl.sum(tl.load(source + tl.program_id(0) * 128 + tl.arange(0, 128)), 0)
    if TWIN == 1:
        tl.store(target, tl.load(target) + value)
    else:
        tl.atomic_add(target, value, sem="relaxed")


def build(twin):
    signature = {"source": "*fp32", "target": "*fp32", "TWIN": "constexpr"}
    source = ASTSource(total, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
