"""Tiles in groups of eight rows; rows behind the last one are loaded as the first ones again, and not stored."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def wrapped_rows(source, target, rows, columns, TWIN: tl.constexpr):
    number = tl.program_id(0)
    tiles_m = tl.cdiv(rows, 32)
    tiles_n = tl.cdiv(columns, 64)
    in_group = 8 * tiles_n
    first = number // in_group * 8
    size = tl.minimum(tiles_m - first, 8)
    if TWIN == 1:
        first = number // in_group * 7
    m = first + number % in_group % size
    n = number % in_group // size
    y = m * 32 + tl.arange(0, 32)
    x = n * 64 + tl.arange(0, 64)
    loaded = tl.load(source + (y % rows)[:, None] * columns + (x % columns)[None, :])
    inside = (y < rows)[:, None] & (x < columns)[None, :]
    if TWIN == 2:
        y = y % rows
        inside = (y < rows)[:, None] & (x < columns)[None, :]
    tl.store(target + y[:, None] * columns + x[None, :], loaded * 2, mask=inside)


def build(twin):
    signature = {"source": "*fp32", "target": "*fp32", "rows": "i32", "columns": "i32", "TWIN": "constexpr"}
    source = ASTSource(wrapped_rows, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
