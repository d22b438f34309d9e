"""The types and the predefined registers of PTX (PTX ISA 5.2, 10)."""

from __future__ import annotations

import re
from typing import Final

_BYTES = {
    1: ("b8", "u8", "s8", "e4m3", "e5m2", "ue8m0"),
    2: ("b16", "u16", "s16", "f16", "bf16", "e4m3x2", "e5m2x2"),
    4: ("b32", "u32", "s32", "f32", "f16x2", "bf16x2", "u16x2", "s16x2", "u8x4", "s8x4", "tf32"),
    8: ("b64", "u64", "s64", "f64", "f32x2", "texref", "samplerref", "surfref"),
    16: ("b128",),
}
SIZES: Final = {name: size for size, names in _BYTES.items() for name in names} | {"pred": 1}
"""Bytes by type. A predicate lives in registers only; a reference to a texture is as wide as its handle."""

OPAQUE: Final = ("texref", "samplerref", "surfref")

VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
ELEMENTS: Final = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
"""The names of a vector's elements."""

SPECIAL: Final = re.compile(
    r"%(?:(?:n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)(?:\.[xyzw])?"
    r"|laneid|warpid|nwarpid|smid|nsmid|gridid|is_explicit_cluster|cluster_n?ctarank"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|pm[0-7](?:_64)?|envreg(?:[12]?\d|3[01])"
    r"|globaltimer(?:_lo|_hi)?|reserved_smem_offset_(?:begin|end|cap|[01])|total_smem_size|aggr_smem_size"
    r"|dynamic_smem_size|current_graph_exec|locality_domain_(?:id|supplemental_sm))"
)
