"""Softmax of the rows of a matrix."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(source, target, columns, TWIN: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, 128)
    value = tl.load(source + row * columns + at, mask=at < columns, other=-float("inf"))
    power = tl.exp2(value - tl.max(value, axis=0))
    pitch = columns
    if TWIN == 1:
        pitch = columns - 1
    inside = at < columns
    if TWIN == 2:
        inside = at <= columns
    tl.store(target + row * pitch + at, power / tl.sum(power, axis=0), mask=inside)


def build(twin):
    signature = {"source": "*fp32", "target": "*fp32", "columns": "i32", "TWIN": "constexpr"}
    source = ASTSource(softmax, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
