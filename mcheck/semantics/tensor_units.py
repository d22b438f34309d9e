"""Where every unit of a tensor copy lies: in shared memory, in the tensor, and how much of it is inside.

A box is cut into units of 16 bytes (8 where the swizzle exchanges halves), which no swizzle and no stride tears apart:
strides, the start along dimension 0 and rows are multiples of 16 bytes. The part that depends on the map alone is kept
between copies. PTX ISA 9.0 sections 5.5 and 9.7.9.27.1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from mcheck.base.records import dataclass
from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics import tensor_footprint, tensor_map
from mcheck.semantics.undefined import Misuse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

PERIOD = 1024
"""The longest swizzle pattern repeats after so many bytes of shared memory."""
_ADDRESSES = 1 << 63
"""No object lies at this address or above it."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """One copy, unit by unit, in the order of the box, dimension 0 fastest. All arrays have one entry per unit.

    ``shared`` and ``address`` are absolute byte addresses (that of a unit outside the tensor means nothing), ``inside``
    is how many bytes of the unit, from its first on, are inside the tensor; ``whole`` says that all are, everywhere.
    """

    spec: TensorMapSpec
    unit: int
    shared: Integers
    address: Integers
    inside: Integers
    whole: bool


def plan(
    spec: TensorMapSpec,
    mode: str,
    coords: Sequence[int],
    shared: int,
    *,
    kind: str = "load",
    info: Sequence[int] = (),
    reduce: str | None = None,
) -> Plan:
    """Where every unit of a copy goes; arguments, ``Misuse`` and ``Unsupported`` as those of ``tensor.footprint``."""
    import numpy as np

    four = mode in tensor_footprint.FOUR_ROWS
    tensor_footprint.check_copy(spec, kind, 2 if four else len(coords), mode, shared, coords, info, reduce)
    _check_addresses(spec, mode, coords, info)
    rows = _rows(spec, mode, coords, info)
    unit = _unit(spec)
    columns, offsets = _image(spec, len(rows), shared % PERIOD)
    dims = np.array(spec.global_dim[1 : spec.rank], np.int64)
    strides = np.array(spec.global_stride[: spec.rank - 1], np.int64)
    size = tensor_map.step_bytes(spec)
    begin = coords[0] * size + columns
    inside = np.minimum(np.maximum(spec.global_dim[0] * size - begin, 0), unit)
    inside[begin < 0] = 0
    outer = np.asarray(((rows >= 0) & (rows < dims)).all(axis=1))
    address = ((spec.global_address + rows @ strides)[:, None] + begin[None, :]).reshape(-1)
    counts = np.where(outer[:, None], inside[None, :], 0).reshape(-1)
    base = shared - shared % PERIOD
    return Plan(spec, unit, offsets + base, address, counts, bool(outer.all() and (inside == unit).all()))


def _check_addresses(spec: TensorMapSpec, mode: str, coords: Sequence[int], info: Sequence[int]) -> None:
    """No byte inside the tensor lies beyond the addresses of a machine, where an array of addresses would wrap."""
    start, length = tensor_footprint.extent(spec)
    if start + length <= _ADDRESSES:
        return
    for address, size in tensor_footprint.rows_inside(spec, mode, coords, info):
        if address + size > _ADDRESSES:
            raise Misuse("UB103", f"the address {address:#x} is in no object", tensor_footprint.SECTION)


def _unit(spec: TensorMapSpec) -> int:
    return 8 if spec.swizzle_mode == "128B" and spec.swizzle_atomicity == "32B+8B" else 16


@lru_cache(maxsize=256)
def _image(spec: TensorMapSpec, rows: int, phase: int) -> tuple[Integers, Integers]:
    """First byte of every unit within its row of the tensor, and the place of every unit of the image at ``phase``
    after swizzling."""
    import numpy as np

    places_in_row = np.arange(0, tensor_map.inner_bytes(spec), _unit(spec), dtype=np.int64)
    pitch = tensor_map.row_pitch(spec)
    linear = phase + (np.arange(rows, dtype=np.int64) * pitch)[:, None] + places_in_row[None, :]
    columns = places_in_row
    width = tensor_map.slice_bytes(spec)
    if width:
        columns = places_in_row // width * (width * spec.element_stride[0]) + places_in_row % width
    places: Integers = tensor_footprint.swizzled(spec, linear.reshape(-1))
    columns.setflags(write=False)
    places.setflags(write=False)
    return columns, places


def _rows(spec: TensorMapSpec, mode: str, coords: Sequence[int], info: Sequence[int]) -> Integers:
    """The coordinates of every row in the dimensions from 1 on; shape (rows, rank - 1)."""
    import numpy as np

    if mode in tensor_footprint.FOUR_ROWS:
        return np.array(coords[1:], np.int64)[:, None]
    if mode.startswith("im2col"):
        return tensor_footprint.pixels(spec, mode, coords, info)
    rows: Integers = _grid(spec) + np.array(coords[1:], np.int64)
    return rows


@lru_cache(maxsize=256)
def _grid(spec: TensorMapSpec) -> Integers:
    """The rows of a tile relative to its start (5.5.3.2): along dimension i every element_stride[i]-th element."""
    import numpy as np

    counts = tensor_map.counts(spec)
    steps = [np.arange(counts[i], dtype=np.int64) * spec.element_stride[i] for i in range(1, spec.rank)]
    if not steps:
        return np.zeros((1, 0), np.int64)
    # The last dimension is the slowest: build the grid with it first, and turn the columns round.
    outer = np.stack(np.meshgrid(*reversed(steps), indexing="ij"), axis=-1).reshape(-1, len(steps))
    grid: Integers = outer[:, ::-1].copy()
    grid.setflags(write=False)
    return grid
