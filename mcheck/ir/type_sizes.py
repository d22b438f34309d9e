"""The sizes of PTX types (PTX ISA 9.0 section 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

TYPE_BITS: Final[Mapping[str, int]] = MappingProxyType(
    {f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64, 128)}
    | {"pred": 1, "b1": 1, "b2": 2, "f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "f64": 64}
    | {f"{kind}x2": 32 for kind in ("f16", "bf16", "s16", "u16")}
    | {f"{kind}x{count}": 8 * count for kind in ("e4m3", "e5m2") for count in (2, 4)}
)
"""The bits of each type; of a packed one, those of all its elements."""


def type_size(type_name: str) -> int:
    """Bytes of a PTX type: ``u32`` -> 4; a predicate counts as 1."""
    return max(TYPE_BITS[type_name] // 8, 1)
