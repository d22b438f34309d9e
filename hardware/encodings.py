"""Tensor maps that the driver is asked to encode: legal ones, and ones that break a limit or stand right at it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hardware.maps import SIZES
from mcheck.ir.memory import TensorMapSpec

BASE = 1 << 32
_TILE = TensorMapSpec(BASE, "f16", 3, (64, 32, 8), (128, 4096), (1, 1, 1), (32, 8, 4))
_IM2COL = TensorMapSpec(
    BASE, "f16", 4, (64, 16, 16, 4), (128, 2048, 32768), (1, 1, 1, 1),
    pixel_box_lower_corner=(-1, -1), pixel_box_upper_corner=(-1, -1), channels_per_pixel=32, pixels_per_column=64,
)  # fmt: skip


def encodings() -> list[TensorMapSpec]:
    """All maps, in a fixed order."""
    out = [_TILE, _IM2COL]
    for base in (_TILE, _IM2COL):
        out += [replace(base, **change) for change in _changes(base)]
    rng = Random(7)
    while len(out) < 460:
        base = rng.choice((_TILE, _IM2COL))
        changes = _changes(base)
        out.append(replace(base, **{**rng.choice(changes), **rng.choice(changes)}))
    return out


def _changes(base: TensorMapSpec) -> list[dict[str, Any]]:
    rank = base.rank

    def entry(name: str, at: int, *values: int) -> list[dict[str, Any]]:
        old = getattr(base, name)
        return [{name: (*old[:at], value, *old[at + 1 :])} for value in values]

    out: list[dict[str, Any]] = [{"global_address": BASE + n} for n in (8, 16, 32)]
    out += [{"elemtype": e} for e in SIZES]
    out += [{"elemtype": e, "fill_mode": "nan"} for e in SIZES]
    for at in range(rank):
        out += entry("global_dim", at, 0, 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 1)
        out += entry("element_stride", at, 0, 1, 2, 8, 9)
    for at in range(rank - 1):
        out += entry("global_stride", at, 0, 8, 16, 48, 64, 136, (1 << 40) - 16, 1 << 40)
    modes = [("none", "16B"), ("32B", "16B"), ("64B", "16B"), ("128B", "16B"), ("128B", "32B"), ("128B", "32B+8B"),
             ("128B", "64B")]  # fmt: skip
    for swizzle, atom in modes:
        for interleave in ("none", "16B", "32B"):
            out.append({"swizzle_mode": swizzle, "swizzle_atomicity": atom, "interleave_layout": interleave})
    for swizzle, inner in (("32B", 16), ("32B", 24), ("64B", 32), ("64B", 40), ("128B", 64), ("128B", 72)):
        if base.box_dim:
            out.append({"swizzle_mode": swizzle, "box_dim": (inner, 8, 4)})
        else:
            out.append({"swizzle_mode": swizzle, "channels_per_pixel": inner})
    if base.box_dim:
        for at in range(rank):
            out += entry("box_dim", at, 0, 1, 4, 8, 255, 256, 257)
        out += [{"rank": 1}, {"rank": 2}, {"rank": 0}, {"box_dim": (128, 256, 8)}, {"box_dim": (256, 256, 256)}]
        out += [
            {"box_dim": box}
            for box in (
                (64, 256, 4),
                (64, 256, 6),
                (64, 256, 7),
                (64, 253, 7),
                (64, 256, 8),
                (64, 224, 8),
                (64, 227, 8),
                (64, 228, 8),
                (32, 256, 16),
            )
        ]
        out += [{"rank": 2, "interleave_layout": "16B"}]
    else:
        for name in ("pixel_box_lower_corner", "pixel_box_upper_corner"):
            for at in range(rank - 2):
                out += entry(name, at, -129, -128, -17, -16, 15, 16, 127, 128)
        out += [{"channels_per_pixel": n} for n in (0, 4, 8, 128, 256, 257, 264)]
        out += [{"pixels_per_column": n} for n in (0, 1, 256, 1024, 1025)]
        out += [{"rank": 3}, {"rank": 2}]
        out += [{"global_dim": (64, n, 16, 4)} for n in ((1 << 31) + 1, (1 << 31) + 2, (1 << 31) + 3)]
        out += [{"channels_per_pixel": 256, "pixels_per_column": n} for n in (255, 256, 448, 512, 513, 1024)]
    return out


def to_json(spec: TensorMapSpec) -> dict[str, Any]:
    """The fields of a map."""
    return {name: getattr(spec, name) for name in TensorMapSpec.__slots__}


def from_json(fields: dict[str, Any]) -> TensorMapSpec:
    """The map that ``to_json`` wrote."""
    return TensorMapSpec(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
