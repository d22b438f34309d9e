"""The sizes of PTX types (PTX ISA 9.0 section 5.2)."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=256)
def type_size(type_name: str) -> int:
    """Bytes of a PTX type: ``u32`` -> 4; a predicate counts as 1."""
    if type_name == "pred":
        return 1
    digits = "".join(c for c in type_name if c.isdigit())
    match type_name:
        case "bf16" | "f16":
            return 2
        case "f16x2" | "bf16x2":
            return 4
        case "tf32":
            return 4
    return max(int(digits) // 8, 1)
