"""Softmax of the rows of a matrix by a few programs, each of which takes every twentieth row and copies rows ahead."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def row_loop(source, target, rows, columns, TWIN: tl.constexpr):
    at = tl.arange(0, 128)
    end = rows
    if TWIN == 1:
        end = rows + 1
    for row in tl.range(tl.program_id(0), end, tl.num_programs(0), num_stages=3):
        inside = at < columns
        if TWIN == 2:
            inside = at <= columns
        value = tl.load(source + row * columns + at, mask=inside, other=-float("inf"))
        power = tl.exp2(value - tl.max(value, axis=0))
        pitch = columns
        if TWIN == 3:
            pitch = columns - 1
        tl.store(target + row * pitch + at, power / tl.sum(power, axis=0), mask=at < columns)


def build(twin):
    signature = {"source": "*fp32", "target": "*fp32", "rows": "i32", "columns": "i32", "TWIN": "constexpr"}
    source = ASTSource(row_loop, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
