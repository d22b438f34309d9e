"""Input bytes that are the same everywhere and forever: made by SHAKE-128, not by a generator that may change."""

from __future__ import annotations

import hashlib
import struct

SPECIAL = {
    "f32": (0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0x00000001, 0x80000001,
            0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x33800000,
            0x3F800001, 0x4B800000, 0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0x7FFFFFFF, 0x7FFFE000),
    "f16": (0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400,
            0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x1000, 0x3C01, 0x6400, 0x7FFF, 0x5000),
    "bf16": (0x0000, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080, 0x8080,
             0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x3B80, 0x3F81, 0x4380, 0x7FFF),
    "f64": (0, 1 << 63, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000000001,
            0x7FF0000000000001, 1, (1 << 63) + 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000,
            0xBFF0000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x3CA0000000000000, 0x4340000000000000),
    "u32": (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 5, 6),
    "u64": (0, 1, 1 << 63, (1 << 63) - 1, (1 << 64) - 1, 0xFFFFFFFF, 1 << 32),
}  # fmt: skip
_ALIASES = {"s32": "u32", "b32": "u32", "s64": "u64", "b64": "u64", "tf32": "f32"}
_SIZES = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8, "u32": 4, "u64": 8}


def stream(key: str, size: int) -> bytes:
    """``size`` bytes that ``key`` decides."""
    return hashlib.shake_128(key.encode()).digest(size)


def make(kind: str, key: str, size: int) -> bytes:
    """``random`` bytes, or elements of a type of which half are special values and the others random bits."""
    if kind == "random":
        return stream(key, size)
    if kind.startswith(("across ", "along ")):
        order, _, name = kind.partition(" ")
        values = SPECIAL[name]
        grid = [a if order == "across" else b for a in values for b in values]
        return b"".join(v.to_bytes(_SIZES[name], "little") for v in grid).ljust(size, b"\0")[:size]
    type_ = _ALIASES.get(kind.removesuffix(".ftz"), kind.removesuffix(".ftz"))
    width, special = _SIZES[type_], SPECIAL[type_]
    bits, picks = stream(key, size), stream(key + "/pick", 2 * (size // width))
    out = bytearray(bits)
    code = {2: "<H", 4: "<I", 8: "<Q"}[width]
    for k in range(size // width):
        choose, which = picks[2 * k], picks[2 * k + 1]
        if choose & 1:
            out[k * width : (k + 1) * width] = struct.pack(code, special[which % len(special)])
        elif choose & 2 and type_[0] in "bf":
            # Exponents near each other, so that additions round.
            value = int.from_bytes(out[k * width : (k + 1) * width], "little")
            exponent = {"f32": (23, 8, 120), "f16": (10, 5, 12), "bf16": (7, 8, 120), "f64": (52, 11, 1020)}[type_]
            value &= ~(((1 << exponent[1]) - 1) << exponent[0])
            value |= (exponent[2] + which % 12) << exponent[0]
            out[k * width : (k + 1) * width] = struct.pack(code, value)
    return bytes(out)
