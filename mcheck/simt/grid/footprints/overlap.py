"""Whether two clusters of a class touch a common byte: by intervals and divisors, by enumeration of neighbours,
by Z3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd
from typing import Any

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass
from mcheck.simt.grid.footprints.regions import Extent, Region, hull, regions_intersect
from mcheck.simt.grid.footprints.space import AXES, Space

MAX_ENUMERATED = 1 << 16
"""Maximum number of ranges that are enumerated."""
MAX_PAIRS = 4096
"""Maximum number of pairs of regions of two forms that are compared."""
EFFORT = 400_000
"""Z3's limit for a question (its rlimit): about a second."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two clusters with a common byte, by their distance from the executed one; the same one twice if it is one
    cluster.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]


NO_PAIR = None
UNDECIDED = "open"
"""It is unknown whether there is a pair."""
Answer = Pair | str | None


def find_overlap(
    space: Space, one: Sequence[Region], other: Sequence[Region], limit: Limit, *, apart: bool, solve: bool = True
) -> Answer:
    """Find a pair of clusters, different ones if ``apart`` and else the same, of which the first touches with ``one``
    what the second touches with ``other``. The regions of each side have the same slopes. Without ``solve`` Z3 is not
    asked.
    """
    if _is_disjoint(space, _common_hull(one), _common_hull(other), apart=apart):
        return NO_PAIR
    if len(one) * len(other) > MAX_PAIRS * 64:
        return UNDECIDED
    pairs = [(a, b) for a, b in product(one, other) if not _is_disjoint(space, a, b, apart=apart)]
    if not pairs:
        return NO_PAIR
    for first, second in _nearby_pairs(space, apart=apart):
        if not (space.contains(first) and space.contains(second)):
            continue
        x, y = space.symbols(first), space.symbols(second)
        for a, b in pairs[:MAX_PAIRS]:
            if regions_intersect(a, b, x, y, MAX_ENUMERATED):
                return Pair(first, second)
    if len(pairs) > MAX_PAIRS or not solve:
        return UNDECIDED
    return _solve(space, pairs, limit, apart=apart)


def _common_hull(regions: Sequence[Region]) -> Region:
    """A region that contains all of these."""
    out = []
    for found in zip(*(r.dimensions for r in regions), strict=True):
        steps = {e.steps for e in found}
        low, high = hull(found)
        if len(steps) == 1 and len(found) > 1:  # their beginnings lie close to each other, as rows of a tile do
            common = found[0].steps
            reach = max(e.low + e.length for e in found) - low
            out.append(Extent(low, reach, common, found[0].slopes))
        elif len(found) == 1:
            out.append(found[0])
        else:
            out.append(Extent(low, high - low, (), found[0].slopes))
    return Region(tuple(out))


def _nearby_pairs(space: Space, *, apart: bool) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Clusters close to the executed one, each paired with it or with itself."""
    here = (0,) * AXES
    near = [range(max(low, -1), min(high, 1) + 1) for low, high in zip(space.low, space.high, strict=True)]
    for other in sorted(product(*near), key=lambda c: sum(map(abs, c))):
        if apart and other != here:
            yield here, other
            yield other, here
        elif not apart:
            yield other, other


# --- intervals and divisors ---------------------------------------------------------------------------------------


def _is_disjoint(space: Space, a: Region, b: Region, *, apart: bool) -> bool:
    """Whether there is certainly no common byte."""
    return any(
        _intervals_disjoint(space, x, y, apart=apart) or _divisors_disjoint(x, y, apart=apart)
        for x, y in zip(a.dimensions, b.dimensions, strict=True)
    ) or (apart and _implies_same_cluster(space, a, b))  # fmt: skip


def _intervals_disjoint(space: Space, x: Extent, y: Extent, *, apart: bool) -> bool:
    """Whether the intervals from the first to the last byte are disjoint, wherever the clusters are."""
    if apart:
        (low, high), (least, most) = space.bound_form(x.slopes), space.bound_form(y.slopes)
        return x.low + high + x.reach <= y.low + least or y.low + most + y.reach <= x.low + low
    low, high = space.bound_form(_difference(x, y))
    return x.low + high + x.reach <= y.low or y.low + y.reach <= x.low + low


def _difference(x: Extent, y: Extent) -> list[int]:
    length = max(len(x.slopes), len(y.slopes))
    padded = [(*e.slopes, *(0,) * (length - len(e.slopes))) for e in (x, y)]
    return [p - q for p, q in zip(*padded, strict=True)]


def _divisors_disjoint(x: Extent, y: Extent, *, apart: bool) -> bool:
    """Whether the beginnings differ by an amount that the common divisor of all varying terms rules out."""
    varying = [*x.slopes, *y.slopes] if apart else _difference(x, y)
    divisor = gcd(*varying, *(stride for stride, _ in (*x.steps, *y.steps)))
    if divisor == 0:
        return False  # nothing varies: the intervals decide
    rest = (x.low - y.low) % divisor
    return rest >= y.length and divisor - rest >= x.length


def _implies_same_cluster(space: Space, a: Region, b: Region) -> bool:
    """Whether clusters with a common byte are equal along every axis: digits of numbers that do not carry.

    For regions with the same slopes, along a dimension: the difference of two beginnings is a sum of multiples, of the
    slopes by the distance of the clusters and of the strides by the distance of the ranges. Where the largest
    coefficient in it exceeds all others together with the lengths, its multiple has to be zero.
    """
    if any(x.slopes != y.slopes for x, y in zip(a.dimensions, b.dimensions, strict=True)):
        return False
    if any(any(x.slopes[AXES:]) for x in a.dimensions):
        return False  # quotients of different clusters are related: that is for Z3
    same = {k for k in range(AXES) if space.low[k] == space.high[k]}
    before = -1
    while before != len(same):
        before = len(same)
        for x, y in zip(a.dimensions, b.dimensions, strict=True):
            same |= _forced_axes(space, x, y, same)
    return len(same) == AXES


def _forced_axes(space: Space, x: Extent, y: Extent, same: set[int]) -> set[int]:
    terms: list[tuple[int, int, int | None]] = []
    for axis, slope in enumerate(x.slopes[:AXES]):
        if slope and axis not in same:
            terms.append((abs(slope), space.high[axis] - space.low[axis], axis))
    counts: dict[int, int] = {}
    for steps in (x.steps, y.steps):
        mine: dict[int, int] = {}
        for stride, count in steps:
            mine[stride] = mine.get(stride, 0) + count - 1
        for stride, often in mine.items():
            counts[stride] = max(counts.get(stride, 0), often)
    # Of one stride both ranges are from 0 to at most so many, so they are no further than that from each other.
    terms += [(abs(stride), often, None) for stride, often in counts.items()]
    left = abs(x.low - y.low) + max(x.length, y.length)
    rest = left + sum(size * often for size, often, _ in terms)
    found: set[int] = set()
    for size, often, one in sorted(terms, key=lambda t: t[0], reverse=True):
        rest -= size * often
        if size < rest:
            break
        if one is not None:
            found.add(one)
    return found


# --- Z3 -----------------------------------------------------------------------------------------------------------


def _solve(space: Space, pairs: Sequence[tuple[Region, Region]], limit: Limit, *, apart: bool) -> Answer:
    import z3

    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", EFFORT)

    def cluster(name: str) -> list[z3.ArithRef]:
        symbols = [z3.Int(f"{name}{k}", context) for k in range(len(space.bounds))]
        for symbol, (low, high) in zip(symbols, space.bounds, strict=True):
            solver.add(symbol >= low, symbol <= high)
        for k, q in enumerate(space.quotients):
            inner = q.base + _sum(q.slopes, symbols)
            solver.add(q.divisor * symbols[AXES + k] <= inner, inner < q.divisor * (symbols[AXES + k] + 1))
        for condition in space.conditions.values():
            solver.add(_sum(condition.slopes, symbols) <= condition.bound)
        return symbols

    first = cluster("a")
    second = cluster("b") if apart else first
    if apart:
        solver.add(z3.Or([first[k] != second[k] for k in range(AXES)]))
    unknown = False
    for number, (a, b) in enumerate(pairs):
        limit.check()
        solver.push()
        for k, (x, y) in enumerate(zip(a.dimensions, b.dimensions, strict=True)):
            here = x.low + _sum(x.slopes, first) + _range_term(solver, context, x, f"x{number}.{k}")
            there = y.low + _sum(y.slopes, second) + _range_term(solver, context, y, f"y{number}.{k}")
            solver.add(here - there < y.length, there - here < x.length)
        found = solver.check()
        if found == z3.sat:
            model = solver.model()
            at = [tuple(model.eval(s, model_completion=True).as_long() for s in c[:AXES]) for c in (first, second)]
            return Pair(*at)
        unknown |= found == z3.unknown
        solver.pop()
    return UNDECIDED if unknown else NO_PAIR


def _sum(slopes: Sequence[int], symbols: Sequence[Any]) -> Any:
    return sum(slope * symbol for slope, symbol in zip(slopes, symbols, strict=False))


def _range_term(solver: Any, context: Any, extent: Extent, name: str) -> Any:
    import z3

    total: Any = 0
    for k, (stride, count) in enumerate(extent.steps):
        index = z3.Int(f"{name}.{k}", context)
        solver.add(index >= 0, index < count)
        total = total + stride * index
    return total
