"""Tensor maps as CuTe DSL packs them into 128 bytes for the kernel, as fields of ``tensormap.replace``.

The layout is what the host code of releases 4.x writes: found from maps whose fields are known, one by one
(``tests/integrations/test_integrations_cute_recording.py``). What is not of that form is not read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from mcheck.integrations.arguments import Json

MAP_BYTES = 128
_FORM = 2
_ELEMENTS = {0: "u8", 1: "u16", 2: "u32", 3: "s32", 4: "u64", 5: "s64", 6: "f16", 7: "f32", 9: "f64", 10: "bf16"}
_SWIZZLES = ("none", "32B", "64B", "128B")
_UNIT = 16
"""The bytes that strides are counted in."""
_MOST = 5
"""The maximum rank."""


def read_map(data: bytes, pointer: Callable[[int], Any]) -> dict[str, Json] | None:
    """The fields of a map, with the buffer that ``pointer`` makes of its address; ``None`` if the bytes are none."""
    address, head = struct.unpack_from("<QI", data)
    strides = struct.unpack_from("<4I", data, 12)
    (high,) = struct.unpack_from("<I", data, 28)
    sizes = struct.unpack_from("<5I", data, 32)
    steps = int.from_bytes(data[52:55], "little")
    boxes = data[55:60]
    rank, element = (head >> 4 & 7) + 1, _ELEMENTS.get(head >> 7 & 15)
    interleaved, swizzle = head >> 11 & 3, head >> 13 & 7
    plain = not high and not steps and not interleaved and not any(data[60:64])
    if head & 15 != _FORM or rank > _MOST or element is None or swizzle >= len(_SWIZZLES) or not address or not plain:
        return None
    tf32 = element == "f32" and head >> 16 & 1
    return {
        "global_address": pointer(address),
        "elemtype": "tf32" if tf32 else element,
        "rank": rank,
        "global_dim": [size + 1 for size in sizes[:rank]],
        "global_stride": [stride * _UNIT for stride in strides[: rank - 1]],
        "box_dim": [box + 1 for box in boxes[:rank]],
        "element_stride": [1] * rank,
        "interleave_layout": "none",
        "swizzle_mode": _SWIZZLES[swizzle],
        "fill_mode": "zero",
    }
