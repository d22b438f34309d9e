"""Twice the elements of a vector, in tiles that a few programs draw from a counter; the last tile is a part of one."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def drawn_tiles(source, target, counter, tiles, count, TWIN: tl.constexpr):
    width: tl.constexpr = 128 if TWIN != 1 else 127
    tile = tl.atomic_add(counter, 1, scope="gpu" if TWIN != 2 else "cta")
    while tile < tiles:
        at = tile * width + tl.arange(0, 128)
        inside = at < count
        tl.store(target + at, 2 * tl.load(source + at, mask=inside), mask=inside)
        tile = tl.atomic_add(counter, 1, scope="gpu" if TWIN != 2 else "cta")


def build(twin):
    signature = {
        "source": "*fp32", "target": "*fp32", "counter": "*i32", "tiles": "i32", "count": "i32", "TWIN": "constexpr",
    }  # fmt: skip
    source = ASTSource(drawn_tiles, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
