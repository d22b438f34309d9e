"""Tiles that are loaded with one gather: the whole image in the order of shared memory, from one object to another.

A ``Move`` says for every unit of the image where it comes from and what is fill. It is kept: by map and place in the
swizzle pattern for tiles within the tensor, whose coordinates only shift it; by its coordinates for a tile that leaves
it. What a move does not cover (several objects, unknown bytes, gaps between rows, rounding) is left to
``mcheck.semantics.tensor_transfer``, which says too what is wrong with a copy.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mcheck.base.records import dataclass, replace
from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics import tensor_footprint, tensor_map
from mcheck.semantics.memory import Memory
from mcheck.semantics.tensor_units import plan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

KEPT = 256
"""Moves that are remembered; one of 64 KiB has 32 KiB of indices."""
LONG = 64
"""Units from which on a range of fill is filled by itself."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Move:
    """``sources`` are in units of ``unit`` bytes behind ``low``, in the order of the image; ``low`` and ``high`` bound
    the bytes that are read. ``start`` is where the image begins, from the shared address on, ``size`` its bytes.
    ``fills`` are long ranges of units that are filled, each with ``fill``, and ``takes`` the ranges between them;
    ``words`` are the places of what else is filled, each with ``word``. ``counted`` is the byte count of the
    complete-tx.
    """

    unit: int
    sources: Integers
    low: int
    high: int
    start: int
    size: int
    fills: tuple[tuple[int, int], ...]
    fill: NDArray[Any]
    takes: tuple[tuple[int, int], ...]
    words: Integers | None
    word: NDArray[Any]
    counted: int


def load(memory: Memory, spec: TensorMapSpec, coords: tuple[int, ...], shared: int, phase: int) -> int | None:
    """Loads a tile by one gather; the byte count of its complete-tx, or ``None`` if nothing was done. ``phase`` is the
    place of ``shared`` in the pattern of swizzles.
    """
    import numpy as np

    move = move_of(spec, coords, phase)
    if move is None:
        return None
    source = memory.span(move.low, move.high - move.low)
    target = memory.span(shared + move.start, move.size)
    if source is None or target is None:
        return None
    (block, offset), (into, at) = source, target
    if block.known is not None or into.instance.object.space != "shared":
        return None
    table = np.frombuffer(block.data, move.fill.dtype, (len(block.data) - offset) // move.unit, offset)
    image = np.frombuffer(into.data, move.fill.dtype, len(move.sources), at)
    for first, last in move.takes:
        table.take(move.sources[first:last], out=image[first:last], mode="wrap")  # none is outside
    for first, last in move.fills:
        image[first:last] = move.fill
    if move.words is not None:
        image.view(move.word.dtype)[move.words] = move.word[0]
    if into.known is not None and into.known.find(0, at, at + move.size) >= 0:  # a look takes a third of the writing
        into.known[at : at + move.size] = _ones(move.size)
    return move.counted


@lru_cache(maxsize=16)
def _ones(count: int) -> bytes:
    return b"\1" * count


@lru_cache(maxsize=KEPT)
def move_of(spec: TensorMapSpec, coords: tuple[int, ...], phase: int) -> Move | None:
    """The move of a legal tile; ``None`` where there is none, legal or not. Raises what ``transfer.plan`` does."""
    if spec.elemtype.startswith("tf32") or len(coords) != spec.rank:
        return None
    lowest = _within(spec)
    if lowest is None or not all(0 <= x <= most for x, most in zip(coords, lowest, strict=True)):
        return _build(spec, coords, phase)
    tensor_footprint.check_copy(spec, "load", len(coords), "tile", phase, coords)
    inner = _inner(spec, phase)
    if inner is None:
        return None
    strides = (tensor_map.step_bytes(spec), *spec.global_stride)
    shift = sum(x * stride for x, stride in zip(coords, strides, strict=False))
    return replace(inner, low=inner.low + shift, high=inner.high + shift)


@lru_cache(maxsize=KEPT)
def _within(spec: TensorMapSpec) -> tuple[int, ...] | None:
    """The largest coordinates of a tile that is within the tensor as a whole; ``None`` if no tile is."""
    if tensor_map.violations(spec) or tensor_map.is_im2col(spec):
        return None
    counts = tensor_map.counts(spec)
    columns = tensor_map.inner_bytes(spec) // tensor_map.step_bytes(spec)
    width = spec.element_stride[0] if tensor_map.slice_bytes(spec) else 1
    spans = [
        (columns - 1) * width + 1,
        *((n - 1) * s + 1 for n, s in zip(counts[1:], spec.element_stride[1:], strict=False)),
    ]
    most = tuple(size - span for size, span in zip(spec.global_dim, spans, strict=False))
    return most if min(most) >= 0 else None


@lru_cache(maxsize=KEPT)
def _inner(spec: TensorMapSpec, phase: int) -> Move | None:
    """The move of the tile at the origin, which is within the tensor."""
    return _build(spec, (0,) * spec.rank, phase)


def _build(spec: TensorMapSpec, coords: tuple[int, ...], phase: int) -> Move | None:
    import numpy as np

    what = plan(spec, "tile", coords, phase)
    unit = what.unit
    used = what.inside > 0
    first = int(what.shared.min())
    order = (what.shared - first) // unit
    if not used.any() or int(order.max()) + 1 != len(order):  # nothing to read, or gaps between the rows
        return None
    low = int(what.address[used].min())
    sources = np.zeros(len(order), np.int64)
    sources[order] = np.where(used, (what.address - low) // unit, 0)
    high = int(what.address[used].max()) + unit
    inside = np.zeros(len(order), np.int64)
    inside[order] = what.inside
    fills, words, width = _filled(inside, unit)
    sources.setflags(write=False)
    fill = tensor_map.fill_pattern(spec)
    pattern = np.frombuffer(fill * (16 // len(fill)), np.uint8)
    ends = [0, *(end for both in fills for end in both), len(order)]
    return Move(
        unit=unit,
        sources=sources,
        low=low,
        high=high,
        start=first - phase,
        size=len(order) * unit,
        fills=fills,
        fill=pattern[:unit].view(np.complex128 if unit == 16 else np.uint64),  # moved much faster than rows of bytes
        takes=tuple((a, b) for a, b in zip(ends[::2], ends[1::2], strict=True) if a < b),
        words=words,
        word=pattern[:width].view(f"<u{width}"),
        counted=tensor_footprint.box_bytes(spec, "tile"),
    )


def _filled(inside: Integers, unit: int) -> tuple[tuple[tuple[int, int], ...], Integers | None, int]:
    """What of an image is fill, from how many bytes of each unit are not: long ranges of units, and the places of all
    other words of fill with the bytes of a word.
    """
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate(([0], inside == 0, [0])).astype(np.int8)))
    ranges = [(a, b) for a, b in edges.reshape(-1, 2).tolist() if b - a >= LONG]
    rest = inside.copy()
    for a, b in ranges:
        rest[a:b] = unit
    units = np.flatnonzero(rest < unit)
    if not len(units):
        return tuple(ranges), None, 8
    width = next(w for w in (8, 4, 2, 1) if not (rest[units] % w).any())
    columns = np.arange(0, unit, width)[None, :]
    words = (units[:, None] * unit + columns)[columns >= rest[units, None]] // width
    return tuple(ranges), words, width
