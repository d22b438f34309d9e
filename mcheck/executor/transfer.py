"""The data of tensor copies, by NumPy: a whole box at once.

A box is cut into units of 16 bytes (8 where the swizzle exchanges halves), which no swizzle and no stride tears apart:
strides, the start along dimension 0 and rows are multiples of 16 bytes. A ``Plan`` says for every unit where it lies in
shared memory, where in the tensor, and how many of its bytes are inside the tensor. The part that depends on the map
alone is kept between copies. ``mcheck.executor.tensor`` has the same as a list of runs, byte by byte.
PTX ISA 9.0 sections 5.5 and 9.7.9.27.1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from mcheck.executor import arrays, tensor, tensor_map
from mcheck.executor.behaviour import DOCUMENTED, Behaviour
from mcheck.executor.memory import Memory
from mcheck.executor.misuse import Misuse
from mcheck.executor.reductions import element_size
from mcheck.executor.units import Units, elementwise, put, take, whole
from mcheck.program.memory import TensorMapSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_PERIOD = 1024
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

    four = mode in tensor.FOUR_ROWS
    tensor.check(spec, kind, 2 if four else len(coords), mode, shared, coords, info, reduce)
    _check_addresses(spec, mode, coords, info)
    rows = _rows(spec, mode, coords, info)
    unit = _unit(spec)
    columns, offsets = _image(spec, len(rows), shared % _PERIOD)
    dims = np.array(spec.global_dim[1 : spec.rank], np.int64)
    strides = np.array(spec.global_stride[: spec.rank - 1], np.int64)
    size = tensor_map.step_bytes(spec)
    begin = coords[0] * size + columns
    inside = np.minimum(np.maximum(spec.global_dim[0] * size - begin, 0), unit)
    inside[begin < 0] = 0
    outer = np.asarray(((rows >= 0) & (rows < dims)).all(axis=1))
    address = ((spec.global_address + rows @ strides)[:, None] + begin[None, :]).reshape(-1)
    counts = np.where(outer[:, None], inside[None, :], 0).reshape(-1)
    base = shared - shared % _PERIOD
    return Plan(spec, unit, offsets + base, address, counts, bool(outer.all() and (inside == unit).all()))


def _check_addresses(spec: TensorMapSpec, mode: str, coords: Sequence[int], info: Sequence[int]) -> None:
    """No byte inside the tensor lies beyond the addresses of a machine, where an array of addresses would wrap."""
    start, length = tensor.extent(spec)
    if start + length <= _ADDRESSES:
        return
    for address, size in tensor.inside(spec, mode, coords, info):
        if address + size > _ADDRESSES:
            raise Misuse("UB103", f"the address {address:#x} is in no object", tensor.SECTION)


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
    places: Integers = tensor.swizzled(spec, linear.reshape(-1))
    columns.setflags(write=False)
    places.setflags(write=False)
    return columns, places


def _rows(spec: TensorMapSpec, mode: str, coords: Sequence[int], info: Sequence[int]) -> Integers:
    """The coordinates of every row in the dimensions from 1 on; shape (rows, rank - 1)."""
    import numpy as np

    if mode in tensor.FOUR_ROWS:
        return np.array(coords[1:], np.int64)[:, None]
    if mode.startswith("im2col"):
        return tensor.pixels(spec, mode, coords, info)
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


# --- moving the bytes ---------------------------------------------------------------------------------


def gather(memory: Memory, what: Plan) -> Units:
    """The units of a load as they go to shared memory: converted, with the fill outside."""
    import numpy as np

    fill = tensor_map.fill_pattern(what.spec)
    if what.whole:
        return _converted(what, take(memory, what.address, what.unit))
    pattern = np.frombuffer(fill * (what.unit // len(fill)), np.uint8)
    used = what.inside > 0
    if not used.any():
        return Units(np.tile(pattern, (len(used), 1)))
    units = _converted(what, _inside(memory, what, used))
    whole(units.data)[~used] = whole(pattern.reshape(1, -1))[0]
    outside = np.arange(what.unit) >= what.inside[:, None]
    partial = np.flatnonzero(used & (what.inside < what.unit))
    if len(partial):
        units.data[partial] = np.where(outside[partial], pattern, units.data[partial])
    if units.known is not None:
        units.known[outside] = 1
    return units


def _inside(memory: Memory, what: Plan, used: NDArray[np.bool_]) -> Units:
    """The units that are ``used``, as they lie in the tensor; the others have any contents."""
    import numpy as np

    last = int(what.address[used].max())
    block, offset = memory.locate(last)
    if offset + what.unit <= len(block.data):
        return take(memory, np.where(used, what.address, last), what.unit)
    # The tensor ends within its last unit, and so does the object.
    units = Units(np.zeros((len(used), what.unit), np.uint8), np.ones((len(used), what.unit), np.uint8))
    assert units.known is not None
    for k in np.flatnonzero(used).tolist():
        count = int(what.inside[k])
        data, known = memory.read(int(what.address[k]), count)
        units.data[k, :count] = np.frombuffer(data, np.uint8)
        if known is not None:
            units.known[k, :count] = np.frombuffer(known, np.uint8)
    return Units(units.data) if units.known.all() else units


def _converted(what: Plan, units: Units) -> Units:
    """What a load makes of the units; an element that is computed from an unknown byte is unknown as a whole."""
    elemtype = what.spec.elemtype
    known = elementwise(tensor_map.element_size(elemtype), units.known) if elemtype.startswith("tf32") else units.known
    return Units(arrays.converted(elemtype, units.data), known)


def deposit(memory: Memory, what: Plan, image: Units, shift: int = 0) -> None:
    """Writes the units of a load into shared memory, ``shift`` bytes further on (that of another CTA's window)."""
    put(memory, what.shared + shift, image)


def image_of(memory: Memory, what: Plan) -> Units:
    """The units of a store, from shared memory; those outside the tensor are read like the others."""
    return take(memory, what.shared, what.unit)


def scatter(memory: Memory, what: Plan, image: Units, reduce: str | None = None, how: Behaviour = DOCUMENTED) -> None:
    """Writes the units of a store into the tensor, or reduces into it; what lies outside is skipped (5.5.3.3)."""
    import numpy as np

    # A map of f32.ftz flushes on every chip; what .ftz is for besides, nothing says.
    flush = how.flushes_f32 or what.spec.elemtype.endswith(".ftz")
    if how.pads_stores:
        what = padded(what)
    full = np.ones(len(what.inside), bool) if what.whole else what.inside == what.unit
    kind = tensor_map.reduction_type(what.spec.elemtype, reduce)

    def reduced(old: Units, new: Units) -> Units:
        assert reduce is not None
        known = elementwise(element_size(kind), old.known, new.known)
        return Units(arrays.reduced(reduce, kind, old.data, new.data, flush=flush), known)

    if reduce is None:
        put(memory, what.address[full], image[full])
    else:
        # Rows may be named twice (scatter4): each addition has to see the one before.
        places, values = what.address[full], image[full]
        for part in _distinct(places):
            put(memory, places[part], reduced(take(memory, places[part], what.unit), values[part]))
    for k in np.flatnonzero((what.inside > 0) & ~full):
        count, address = int(what.inside[k]), int(what.address[k])
        piece = image[k, :count]
        if reduce is not None:
            data, known = memory.read(address, count)
            old = Units(np.frombuffer(data, np.uint8), None if known is None else np.frombuffer(known, np.uint8))
            piece = reduced(old, piece)
        memory.write(address, piece.data.tobytes(), None if piece.known is None else piece.known.tobytes())


def padded(what: Plan) -> Plan:
    """The plan of a store that writes every unit whole of which a byte is inside the tensor."""
    import numpy as np

    return replace(what, inside=np.where(what.inside > 0, what.unit, 0))


def check_tensor(memory: Memory, what: Plan) -> None:
    """Every byte of the copy inside the tensor has to lie in one object; nothing has been touched before this."""
    import numpy as np

    used = what.inside > 0
    if not used.any():
        return
    low = int(what.address[used].min())
    ends = what.address[used] + what.inside[used]
    block, offset = memory.locate(low)
    beyond = int(ends.max()) - (low - offset) - len(block.data)
    if beyond > 0:
        # Several objects under one map are legal as long as every piece is in one; rare, so looked at one by one.
        for k in np.flatnonzero(used):
            memory.locate(int(what.address[k]), int(what.inside[k]))


def _distinct(places: Integers) -> list[Integers]:
    """Index sets that together cover ``places``, each without a repeated place, in order."""
    import numpy as np

    _, first = np.unique(places, return_index=True)
    if len(first) == len(places):
        return [np.arange(len(places))]
    rest = np.setdiff1d(np.arange(len(places)), first)
    return [first, *(rest[part] for part in _distinct(places[rest]))]


def load(
    memory: Memory, spec: TensorMapSpec, mode: str, coords: Sequence[int], shared: int, info: Sequence[int] = ()
) -> int:
    """A whole tensor load at once; the byte count of its complete-tx. Nothing is written before an error."""
    what = plan(spec, mode, coords, shared, info=info)
    check_tensor(memory, what)
    _check_shared(memory, what)
    deposit(memory, what, gather(memory, what))
    return tensor.box_bytes(spec, mode, info)


def store(
    memory: Memory,
    spec: TensorMapSpec,
    mode: str,
    coords: Sequence[int],
    shared: int,
    reduce: str | None = None,
    how: Behaviour = DOCUMENTED,
) -> None:
    """A whole tensor store or reduction at once. Nothing is written before an error."""
    what = plan(spec, mode, coords, shared, kind="store", reduce=reduce)
    check_tensor(memory, padded(what) if how.pads_stores else what)
    _check_shared(memory, what)
    scatter(memory, what, image_of(memory, what), reduce, how)


def _check_shared(memory: Memory, what: Plan) -> None:
    low, high = int(what.shared.min()), int(what.shared.max()) + what.unit
    instance = memory.find(low)
    if instance is None or instance.object.space != "shared":
        raise Misuse("UB103", f"the shared address {low:#x} is in no shared object", tensor.SECTION)
    memory.locate(low, high - low)
