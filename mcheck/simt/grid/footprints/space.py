"""The coordinates of the clusters of a grid, and the class of the executed cluster.

A cluster is named by its distance from the executed one, in clusters along x, y and z: those three numbers are the
first symbols. Further symbols are quotients of affine forms in earlier symbols by a constant, rounded down, again
relative to the executed cluster; so all symbols are zero there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import product
from math import gcd

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Span
from mcheck.base.records import dataclass

AXES = 3
MAX_SYMBOLS = 16
"""Coordinates and quotients together."""

MAX_ENUMERATED = 1024
"""Maximum number of clusters that are enumerated."""

Slopes = tuple[int, ...]
"""The coefficient of each symbol; trailing zeros are omitted."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """``(base + slopes * symbols) // divisor`` with a ``base`` of at least 0 and below ``divisor``: the multiples are
    taken off, so it is 0 where all symbols are.
    """

    base: int
    slopes: Slopes
    divisor: int


@dataclass(frozen=True, slots=True)
class Condition:
    """``slopes * symbols <= bound``, where ``bound`` is at least 0; ``span`` is its origin."""

    slopes: Slopes
    bound: int
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Space:
    """The clusters of a grid. ``low`` and ``high`` are the range of each coordinate; ``first`` are the coordinates of
    the executed cluster, in clusters.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    first: tuple[int, ...]
    quotients: list[Quotient] = field(default_factory=list)
    bounds: list[tuple[int, int]] = field(default_factory=list)
    """The range of each symbol."""
    known_bounds: dict[Slopes, tuple[int, int]] = field(default_factory=dict)
    """The ranges of forms, as far as they have been asked for."""
    conditions: dict[Slopes, Condition] = field(default_factory=dict)
    """The conditions that do not hold for the whole grid: the strictest for each left-hand side."""
    reasons_lost: dict[str, Span | None] = field(default_factory=dict)
    """Why nothing is known of any other cluster: reasons, each with its first location."""

    def __post_init__(self) -> None:
        self.bounds = list(zip(self.low, self.high, strict=True))

    @property
    def axes(self) -> int:
        """The number of coordinates: of a cluster three, and others that vary as they do."""
        return len(self.low)

    @property
    def cluster_count(self) -> int:
        """The number of clusters of the grid."""
        count = 1
        for low, high in zip(self.low, self.high, strict=True):
            count *= high - low + 1
        return count

    def bound_form(self, slopes: Sequence[int]) -> tuple[int, int]:
        """Bounds of ``slopes * symbols`` in the grid: those of its symbols, each by itself, and those of the remainders
        that it contains, such as ``x - 4 * (x // 4)``.
        """
        key = trim_slopes(slopes)
        found = self.known_bounds.get(key)
        if found is None:
            found = self.known_bounds[key] = self._compute_bounds(key)
        return found

    def _compute_bounds(self, slopes: Slopes) -> tuple[int, int]:
        low = high = 0
        for slope, (least, most) in zip(slopes, self.bounds, strict=False):
            if slope > 0:
                low, high = low + slope * least, high + slope * most
            elif slope:
                low, high = low + slope * most, high + slope * least
        for number, slope in enumerate(slopes[self.axes :]):
            quotient = self.quotients[number]
            if not slope or slope % quotient.divisor:
                continue
            times = -slope // quotient.divisor  # base + slopes * symbols = divisor * quotient + remainder
            taken = (*quotient.slopes, *(0 for _ in slopes[len(quotient.slopes) :]))
            rest = [a - times * b for a, b in zip(slopes, taken, strict=True)]
            rest[self.axes + number] = 0
            least, most = self.bound_form(rest)
            ends = (-quotient.base * times, (quotient.divisor - 1 - quotient.base) * times)
            low, high = max(low, least + min(ends)), min(high, most + max(ends))
        return low, high

    def bound_form_exactly(self, slopes: Sequence[int]) -> tuple[int, int]:
        """The same, exact where it contains quotients and the grid is small."""
        if len(slopes) <= self.axes or self.cluster_count > MAX_ENUMERATED:
            return self.bound_form(slopes)
        found = [dot(slopes, self.symbols(cluster)) for cluster in self.all_clusters()]
        return min(found), max(found)

    def holds(self, slopes: Sequence[int], bound: int) -> bool:
        """Whether ``slopes * symbols <= bound`` for every cluster of the grid."""
        return self.bound_form(slopes)[1] <= bound

    def require(self, slopes: Sequence[int], bound: int, span: Span | None) -> None:
        """Restrict the class to clusters with ``slopes * symbols <= bound``; ``bound`` is at least 0."""
        if self.holds(slopes, bound):
            return
        key = trim_slopes(slopes)
        known = self.conditions.get(key)
        if known is None or bound < known.bound:
            self.conditions[key] = Condition(key, bound, span)

    def is_still(self, slopes: Sequence[int]) -> bool:
        """Whether ``slopes * symbols`` is zero in all clusters of the class, by its bounds and the conditions about it
        alone.
        """
        low, high = self.bound_form(slopes)
        over, under = (self.conditions.get(trim_slopes([sign * x for x in slopes])) for sign in (1, -1))
        high = high if over is None else min(high, over.bound)
        low = low if under is None else max(low, -under.bound)
        step = gcd(*slopes)
        return -step < low and high < step

    def isolate(self, reason: str, span: Span | None) -> None:
        """Remove all other clusters from the class."""
        self.reasons_lost.setdefault(reason, span)

    def quotient(self, base: int, slopes: Sequence[int], divisor: int) -> int | None:
        """The symbol of a quotient, made if it is new; ``None`` where there are too many."""
        made = Quotient(base % divisor, trim_slopes(slopes), divisor)
        if made in self.quotients:
            return self.axes + self.quotients.index(made)
        if self.axes + len(self.quotients) >= MAX_SYMBOLS:
            return None
        low, high = self.bound_form(made.slopes)
        self.quotients.append(made)
        self.bounds.append(((made.base + low) // divisor, (made.base + high) // divisor))
        return self.axes + len(self.quotients) - 1

    def symbols(self, cluster: Sequence[int]) -> tuple[int, ...]:
        """The values of all symbols in a cluster at this distance from the executed one."""
        found = list(cluster)
        for q in self.quotients:
            found.append((q.base + dot(q.slopes, found)) // q.divisor)
        return tuple(found)

    def symbol_rows(self, clusters: NDArray[np.int64]) -> NDArray[np.int64]:
        """The values of all symbols in clusters at these distances, a row each."""
        rows = clusters
        for q in self.quotients:
            value = (q.base + rows[:, : len(q.slopes)] @ np.array(q.slopes, np.int64)) // q.divisor
            rows = np.concatenate([rows, value[:, None]], axis=1)
        return rows

    def contains(self, cluster: Sequence[int]) -> bool:
        """Whether a cluster is in the class."""
        if self.reasons_lost:
            return not any(cluster)
        symbols = self.symbols(cluster)
        return all(dot(c.slopes, symbols) <= c.bound for c in self.conditions.values())

    def all_clusters(self) -> Iterator[tuple[int, ...]]:
        """Every cluster of the grid, by its distance from the executed one."""
        ranges = [range(low, high + 1) for low, high in zip(self.low, self.high, strict=True)]
        for backwards in product(*reversed(ranges)):
            yield backwards[::-1]

    def grid_coordinates(self, cluster: Sequence[int]) -> tuple[int, ...]:
        """The coordinates of a cluster in the grid."""
        return tuple(a + b for a, b in zip(self.first, cluster, strict=True))


def trim_slopes(slopes: Sequence[int]) -> Slopes:
    """Slopes without zeros at their end."""
    last = max((k + 1 for k, slope in enumerate(slopes) if slope), default=0)
    return tuple(map(int, slopes[:last]))


def dot(slopes: Sequence[int], symbols: Sequence[int]) -> int:
    """``slopes * symbols``."""
    return sum(a * b for a, b in zip(slopes, symbols, strict=False))
