"""Tiles in an order that keeps groups of rows together."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def grouped_tiles(source, target, rows, columns, TWIN: tl.constexpr):
    number = tl.program_id(0)
    tiles_m = tl.cdiv(rows, 16)
    tiles_n = tl.cdiv(columns, 16)
    first = number // (2 * tiles_n) * 2
    size = tl.minimum(tiles_m - first, 2)
    m = first + number % (2 * tiles_n) % size
    n = number % (2 * tiles_n) // size
    if TWIN == 1:
        n = number % (2 * tiles_n) // 2
    y = m * 16 + tl.arange(0, 16)
    x = n * 16 + tl.arange(0, 16)
    inside = (y < rows)[:, None] & (x < columns)[None, :]
    pitch = columns
    if TWIN == 2:
        pitch = columns - 1
    value = tl.load(source + number * 256 + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(target + y[:, None] * pitch + x[None, :], value, mask=inside)


def build(twin):
    signature = {"source": "*fp32", "target": "*fp32", "rows": "i32", "columns": "i32", "TWIN": "constexpr"}
    source = ASTSource(grouped_tiles, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
