"""The bytes of a tensor copy as ranges are those of its runs."""

from __future__ import annotations

import pytest

from mcheck.effects.effect import Box
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW, TensorMapSpec

HALVES = TensorMapSpec(1 << 20, "f16", 2, (64, 16), (128,), (1, 1), (64, 8), swizzle_mode="128B")
NARROW = TensorMapSpec(1 << 20, "f16", 2, (64, 16), (128,), (1, 1), (16, 8), swizzle_mode="128B")
SMALL = TensorMapSpec(1 << 20, "u8", 2, (64, 16), (64,), (1, 1), (32, 4), swizzle_mode="32B")
PLAIN = TensorMapSpec(1 << 20, "u8", 2, (64, 16), (64,), (1, 1), (48, 4))


INSIDE = [(0, 0), (0, 4), (16, 12), (48, 14), (208, 208)]


@pytest.mark.parametrize(
    ("kind", "coords"), [(k, c) for k in ("load", "store") for c in INSIDE] + [("load", (-16, -2))]
)
@pytest.mark.parametrize("spec", [HALVES, NARROW, SMALL, PLAIN])
@pytest.mark.parametrize("ranks", [1, 2])
def test_as_ranges(spec: TensorMapSpec, coords: tuple[int, ...], kind: str, ranks: int) -> None:
    """Swizzled and not, with gaps between rows, inside, at the edges and outside, to one CTA and to two."""
    targets = tuple(SHARED_BASE + k * SHARED_WINDOW + 1024 for k in range(ranks if kind == "load" else 1))
    box = Box(spec=spec, mode="tile", kind=kind, coords=coords, info=(), reduce=None, targets=targets)
    in_tensor: set[int] = set()
    in_shared: set[int] = set()
    for run in box.runs():
        outside, inside = (run.src, run.dst) if kind == "load" else (run.dst, run.src)
        assert inside is not None
        in_shared |= set(range(inside, inside + run.size))
        if outside is not None:
            in_tensor |= set(range(outside, outside + run.size))
    assert {at + k for at, size in box.rows() for k in range(size)} == in_tensor
    assert {at + k for at, size in box.image() for k in range(size)} == in_shared
