"""Regions: products of strided ranges, one per dimension, that begin at affine forms in the coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.simt.distinct import distinct
from mcheck.simt.grid.footprints.space import Slopes, dot

MAX_RANGES = 1 << 17
"""Number of ranges beyond which only their hull is kept."""
MAX_DEPTH = 4

Steps = tuple[tuple[int, int], ...]
"""Strides, each with its count."""
Range = tuple[int, int, Steps]
"""A strided range: where it begins, the length of one range, and the steps."""


@dataclass(frozen=True, slots=True)
class Extent:
    """``length`` from ``low + slopes * symbols`` on, and again ``stride`` further on, ``count`` times in all, for each
    of the ``steps``.
    """

    low: int
    length: int
    steps: Steps
    slopes: Slopes

    @property
    def reach(self) -> int:
        """The length from the beginning of the first range to the end of the last."""
        return self.length + sum(stride * (count - 1) for stride, count in self.steps)


@dataclass(frozen=True, slots=True)
class Region:
    """A product of extents."""

    dimensions: tuple[Extent, ...]


def regions_of(starts: NDArray[np.int64], lengths: Sequence[int], slopes: Sequence[Slopes]) -> tuple[Region, ...]:
    """The regions of equal boxes that begin at the rows of ``starts``."""
    if starts.shape[1] == 1:
        return tuple(
            Region((Extent(low, length, steps, slopes[0]),))
            for low, length, steps in find_ranges(starts[:, 0], lengths[0])
        )
    return tuple(
        Region(tuple(Extent(int(low), n, (), s) for low, n, s in zip(row, lengths, slopes, strict=True)))
        for row in starts.tolist()
    )


Ranges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Ranges of bytes: first bytes, ends, and whose they are."""


def enumerate_ranges(extents: Iterable[Extent], symbols: NDArray[np.int64], owners: NDArray[np.int64]) -> Ranges:
    """The ranges of some extents in the clusters that have these symbols and numbers, a row each."""
    parts: list[Ranges] = []
    for e in extents:
        starts = e.low + symbols[:, : len(e.slopes)] @ np.array(e.slopes, np.int64)
        at = owners
        for stride, count in e.steps:
            starts = (starts[:, None] + stride * np.arange(count, dtype=np.int64)).reshape(-1)
            at = np.repeat(at, count)
        parts.append((starts, starts + e.length, at))
    first, ends, whose = (np.concatenate(found) for found in zip(*parts, strict=True))
    return first, ends, whose


def find_ranges(starts: NDArray[np.int64], length: int) -> list[tuple[int, int, Steps]]:
    """The given ranges of one length as few strided ranges: adjacent ones are joined, and progressions (and
    progressions of those) are found.
    """
    starts = distinct(starts)
    cuts = np.flatnonzero(np.diff(starts) > length)
    low = starts[np.concatenate([[0], cuts + 1])]
    high = starts[np.concatenate([cuts, [len(starts) - 1]])] + length
    if len(low) > MAX_RANGES:
        return [(int(low[0]), int(high[-1] - low[0]), ())]
    items: list[tuple[int, int, Steps]] = [(a, b - a, ()) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    for _ in range(MAX_DEPTH):
        fewer = _find_progressions(items)
        if len(fewer) == len(items):
            break
        items = fewer
    return items


def repeat_range(given: Range, stride: int, count: int) -> Range:
    """A strided range together with ``count - 1`` copies of it, each ``stride`` behind the one before."""
    low, length, steps = given
    low += min(stride, 0) * (count - 1)
    return low, *_simplified(length, (*steps, (abs(stride), count)))


def _simplified(length: int, steps: Steps) -> tuple[int, Steps]:
    """The same ranges by fewer steps: those that leave no bytes out make the ranges longer, and one that goes on where
    another one ends makes that one longer. The order of steps makes no difference.
    """
    left: list[tuple[int, int]] = []
    for stride, count in sorted(steps):
        if stride <= length:
            length += stride * (count - 1)
        elif count > 1 and left and left[-1][0] * left[-1][1] == stride:
            left[-1] = left[-1][0], left[-1][1] * count
        elif count > 1:
            left.append((stride, count))
    return length, tuple(left)


def join_ranges(given: Iterable[Range]) -> list[Range]:
    """The same bytes by fewer strided ranges: those that adjoin or overlap become one."""
    items = sorted({(low, *_simplified(length, steps)) for low, length, steps in given})
    before = -1
    while before != len(items):
        before = len(items)
        items = _join_each(items, _joined_lengths, key=lambda x: x[2])
        for depth in range(max((len(steps) for _, _, steps in items), default=0)):
            items = _join_each(items, partial(_joined_counts, depth), key=partial(_without_step, depth))
    return items


def _join_each(
    items: list[Range], join: Callable[[Range, Range], Range | None], key: Callable[[Range], Any]
) -> list[Range]:
    """Join neighbours among the ranges that have a key in common."""
    out: list[Range] = []
    for _, same in groupby(sorted(items, key=lambda x: (key(x), x)), key=key):
        first, *others = same
        for other in others:
            both = join(first, other)
            if both is None:
                out.append(first)
            first = other if both is None else both
        out.append(first)
    return sorted((low, *_simplified(length, steps)) for low, length, steps in out)


def _joined_lengths(a: Range, b: Range) -> Range | None:
    """Two ranges of the same steps, as one if the second begins in the first, or where that ends."""
    return (a[0], max(a[1], b[0] - a[0] + b[1]), a[2]) if b[0] <= a[0] + a[1] else None


def _without_step(depth: int, given: Range) -> tuple[int, int, Steps]:
    """What ranges that differ in the count of one step have in common."""
    _, length, steps = given
    return length, steps[depth][0] if depth < len(steps) else 0, (*steps[:depth], *steps[depth + 1 :])


def _joined_counts(depth: int, a: Range, b: Range) -> Range | None:
    """Two ranges that differ in the count of one step, as one if the second is further ranges of the first."""
    if depth >= len(a[2]):
        return None
    stride, count = a[2][depth]
    number, rest = divmod(b[0] - a[0], stride)
    if rest or number > count:
        return None
    steps = (*a[2][:depth], (stride, max(count, number + b[2][depth][1])), *a[2][depth + 1 :])
    return a[0], a[1], steps


def _find_progressions(items: list[tuple[int, int, Steps]]) -> list[tuple[int, int, Steps]]:
    out: list[tuple[int, int, Steps]] = []
    for (length, steps), same in groupby(sorted(items, key=lambda x: (x[1], x[2], x[0])), key=lambda x: x[1:]):
        lows = [low for low, _, _ in same]
        at = 0
        while at < len(lows):
            end = at + 1
            while end + 1 < len(lows) and lows[end + 1] - lows[end] == lows[at + 1] - lows[at]:
                end += 1
            if end < len(lows):
                out.append((lows[at], length, (*steps, (lows[at + 1] - lows[at], end - at + 1))))
            else:
                out.append((lows[at], length, steps))
            at = end + 1
    return sorted(out)


def enumerate_beginnings(extent: Extent, symbols: Sequence[int], most: int) -> NDArray[np.int64] | None:
    """The beginnings of the ranges of a dimension in one cluster; ``None`` if there are more than ``most``."""
    count = 1
    for _, often in extent.steps:
        count *= often
    if count > most:
        return None
    out = np.array([extent.low + dot(extent.slopes, symbols)], np.int64)
    for stride, often in extent.steps:
        out = (out[:, None] + stride * np.arange(often, dtype=np.int64)).reshape(-1)
    return np.sort(out)


def regions_intersect(a: Region, b: Region, first: Sequence[int], second: Sequence[int], most: int) -> bool | None:
    """Whether two regions intersect, each in its cluster; ``None`` if that takes too many comparisons."""
    unknown = False
    for one, other in zip(a.dimensions, b.dimensions, strict=True):
        x, y = enumerate_beginnings(one, first, most), enumerate_beginnings(other, second, most)
        if x is None or y is None:
            unknown = True
        elif not _ranges_intersect(x, one.length, y, other.length):
            return False
    return None if unknown else True


def _ranges_intersect(x: NDArray[np.int64], long: int, y: NDArray[np.int64], other: int) -> bool:
    """Whether a range of length ``long`` that begins at one of ``x`` intersects one of length ``other`` at one of
    ``y``.
    """
    after = np.searchsorted(y, x - other, side="right")
    inside = after < len(y)
    return bool((y[after[inside]] < x[inside] + long).any())


def first_common_range(
    a: Extent, b: Extent, first: Sequence[int], second: Sequence[int], most: int
) -> tuple[int, int] | None:
    """The first range that two dimensions have in common, each in its cluster."""
    x, y = enumerate_beginnings(a, first, most), enumerate_beginnings(b, second, most)
    if x is None or y is None:
        return None
    after = np.searchsorted(y, x - b.length, side="right")
    for low, k in zip(x.tolist(), after.tolist(), strict=True):
        if k < len(y) and y[k] < low + a.length:
            return max(low, int(y[k])), min(low + a.length, int(y[k]) + b.length)
    return None


def hull(extents: Iterable[Extent]) -> tuple[int, int]:
    """The range that dimensions of the same slopes span in the executed cluster."""
    found = list(extents)
    return min(e.low for e in found), max(e.low + e.reach for e in found)
