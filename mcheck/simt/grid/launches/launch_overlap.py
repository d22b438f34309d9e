"""Whether accesses of two launches touch a common byte: by intervals and divisors, and by enumeration."""

from __future__ import annotations

from dataclasses import field
from itertools import product
from math import gcd, prod

import numpy as np

from mcheck.base.records import dataclass
from mcheck.simt.grid.footprints.overlap import UNDECIDED
from mcheck.simt.grid.footprints.regions import Extent, Ranges, enumerate_ranges
from mcheck.simt.grid.footprints.space import Space
from mcheck.simt.grid.launches.launch_accesses import LaunchAccess

MAX_RANGES = 1 << 21
"""Maximum number of ranges of an access, in all clusters, that are enumerated."""
KEPT = 8
"""Number of accesses whose ranges are kept."""
MAX_PAIRS = 4096
"""Maximum number of pairs of extents whose intervals and divisors are compared."""


@dataclass(frozen=True, slots=True)
class CommonBytes:
    """Bytes that two launches access: the half-open range, and the rows of the two clusters."""

    bytes: tuple[int, int]
    rows: tuple[int, int]


@dataclass(slots=True)
class OverlapFinder:
    """Finds common bytes; keeps the ranges that it has enumerated last."""

    ranges: dict[int, tuple[LaunchAccess, Ranges, bool]] = field(default_factory=dict)
    hulls: dict[int, tuple[LaunchAccess, tuple[int, int]]] = field(default_factory=dict)

    def find(self, one: LaunchAccess, other: LaunchAccess) -> CommonBytes | str | None:
        """Bytes of one memory that both access, ``UNDECIDED``, or ``None`` if there are none."""
        (low, high), (least, most) = self._hull(one), self._hull(other)
        if high <= least or most <= low:
            return None
        (mine, all_mine), (theirs, all_theirs) = self._enumerate(one), self._enumerate(other)
        found = _first_common(mine, theirs)
        if found is not None or (all_mine and all_theirs):
            return found
        return None if _is_disjoint(one, other) else UNDECIDED

    def _hull(self, access: LaunchAccess) -> tuple[int, int]:
        """The interval that contains all bytes of an access."""
        if id(access) not in self.hulls:
            found = [_interval(access.path.space, e) for e in access.extents]
            self.hulls[id(access)] = access, (min(low for low, _ in found), max(high for _, high in found))
        return self.hulls[id(access)][1]

    def _enumerate(self, access: LaunchAccess) -> tuple[Ranges, bool]:
        """The ranges of an access, and whether these are all."""
        if id(access) not in self.ranges:
            if len(self.ranges) >= KEPT:
                del self.ranges[next(iter(self.ranges))]
            self.ranges[id(access)] = access, *_ranges(access)
        return self.ranges[id(access)][1:]


def _ranges(access: LaunchAccess) -> tuple[Ranges, bool]:
    clusters, complete = access.path.clusters, access.path.complete
    each = sum(prod(count for _, count in e.steps) for e in access.extents)
    if each > MAX_RANGES:
        nothing = np.zeros(0, np.int64)
        return (nothing, nothing, nothing), False
    most = MAX_RANGES // each
    complete &= len(clusters) <= most
    clusters = clusters[:most]
    starts, ends, at = enumerate_ranges(access.extents, clusters, np.arange(len(clusters)))
    order = np.argsort(starts, kind="stable")
    return (starts[order], ends[order], at[order]), complete


def _first_common(x: Ranges, y: Ranges) -> CommonBytes | None:
    if not len(x[0]) or not len(y[0]):
        return None
    reach = np.maximum.accumulate(y[1])
    last = np.searchsorted(y[0], x[1], side="left") - 1
    meets = (last >= 0) & (reach[np.maximum(last, 0)] > x[0])
    if not meets.any():
        return None
    k = int(np.argmax(meets))
    j = int(np.argmax(y[1][: last[k] + 1]))
    both = max(int(x[0][k]), int(y[0][j])), min(int(x[1][k]), int(y[1][j]))
    return CommonBytes(both, (int(x[2][k]), int(y[2][j])))


# --- intervals and divisors -----------------------------------------------------------------------------------


def _is_disjoint(one: LaunchAccess, other: LaunchAccess) -> bool:
    """Whether there is certainly no common byte."""
    if len(one.extents) * len(other.extents) > MAX_PAIRS:
        return False
    return all(
        _extents_disjoint(one.path.space, x, other.path.space, y) for x, y in product(one.extents, other.extents)
    )


def _interval(space: Space, e: Extent) -> tuple[int, int]:
    least, most = space.bound_form(e.slopes)
    return e.low + least, e.low + most + e.reach


def _extents_disjoint(one: Space, x: Extent, other: Space, y: Extent) -> bool:
    (low, high), (least, most) = _interval(one, x), _interval(other, y)
    if high <= least or most <= low:
        return True
    divisor = gcd(*x.slopes, *y.slopes, *(stride for stride, _ in (*x.steps, *y.steps)))
    if divisor == 0:
        return False
    rest = (x.low - y.low) % divisor
    return rest >= y.length and divisor - rest >= x.length
