"""The classes of a grid: clusters that do the same up to their coordinates, and whether those of any two conflict.

Interior tiles are a class, the last column of tiles another one. A cluster outside of all classes so far is executed
until the grid is covered. Then the accesses of every cluster of every class are enumerated: two clusters conflict if
both access a byte of global memory and one of them has to be ordered with the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module, Statement
from mcheck.simt.distinct import distinct, distinct_rows
from mcheck.simt.grid.footprints.footprint import ANY, Footprint, Form
from mcheck.simt.grid.footprints.regions import Extent, Ranges, enumerate_ranges
from mcheck.simt.grid.footprints.space import AXES, Space
from mcheck.simt.grid.footprints.watched_execution import GridWatch, cluster_space
from mcheck.simt.grid.launches.launch_accesses import MAX_CLUSTERS, box_extents, class_symbols
from mcheck.simt.parametric.affine import Slopes
from mcheck.simt.trace_extraction import PathRules, follow_paths

ROUNDS_LEFT_OUT = PathRules(leaves_rounds_out=True, footprints_alone=True)
MAX_CLASSES = 12
"""Maximum number of classes."""
MAX_EACH = 160
"""Maximum number of clusters that are executed one by one."""
MAX_RANGES = 1 << 22
"""Maximum number of ranges of an access, in all clusters together."""

OWNER = 1 << 40
"""The distance that keeps the ranges of clusters apart where those of all are compared at once."""

IsConflict = Callable[[Form, Form], bool]


@dataclass(frozen=True, slots=True)
class Clash:
    """Two clusters, by their coordinates in clusters, that access a byte of ``buffer`` in conflict; for accesses
    that may be outside of their buffer, one cluster twice.
    """

    first: Coordinates
    second: Coordinates
    spans: tuple[Span | None, Span | None]


@dataclass(frozen=True, slots=True)
class ClassAccess:
    """The accesses of one form at one place in the code, in the clusters of a class."""

    form: Form
    span: Span | None
    extents: tuple[Extent, ...]
    symbols: NDArray[np.int64]
    numbers: NDArray[np.int64]
    size: int | None


@dataclass(slots=True)
class GridClasses:
    """The classes of a launch. ``lost``: why not all is known. ``unplaced``: because there are too many, or addresses
    do not follow from the coordinates as affine forms; each cluster by itself has them.
    """

    launch: Launch
    firsts: list[Coordinates] = field(default_factory=list)
    """The first CTA of the cluster executed for each class."""
    accesses: list[ClassAccess] = field(default_factory=list)
    lost: str = ""
    unplaced: bool = False
    _ranges: dict[int, Ranges] = field(default_factory=dict)
    """By ``id`` of an access, its ranges, as far as they have been asked for."""

    def ranges_of(self, access: ClassAccess) -> Ranges:
        """The ranges of one of the accesses in all clusters. Raises ``Incomparable`` if they are too many."""
        found = self._ranges.get(id(access))
        if found is None:
            found = self._ranges[id(access)] = _enumerate_clusters(access)
        return found

    def coordinates(self, number: int) -> Coordinates:
        """The coordinates of a cluster, in clusters."""
        a, b, _ = self.launch.cluster_counts
        return number % a, number // a % b, number // (a * b)


def find_classes(module: Module, launch: Launch, limit: Limit, *, exact: bool = False) -> GridClasses:
    """Execute a cluster of each class of a launch. Unless ``exact``, clusters of a class may omit weak accesses that
    the executed one makes: there are fewer classes then, but clashes need not be real.
    """
    found = GridClasses(launch)
    counts = launch.cluster_counts
    if prod(counts) > MAX_CLUSTERS:
        found.lost = f"more than {MAX_CLUSTERS} clusters"
        return found
    left = np.ones(counts[::-1], np.bool_)  # by z, y, x
    first = launch.first
    while not found.lost:
        _follow_class(module, replace(launch, first=first), limit, found, left, ExactWatch if exact else GridWatch)
        if not left.any():
            break
        if len(found.firsts) >= MAX_CLASSES:
            found.lost, found.unplaced = f"more than {MAX_CLASSES} classes of clusters", True
            break
        z, y, x = (int(k) for k in np.argwhere(left)[0])
        first = (x * launch.cluster[0], y * launch.cluster[1], z * launch.cluster[2])
    return found


def follow_each(module: Module, launch: Launch, limit: Limit) -> GridClasses:
    """Execute clusters one by one, each for itself alone, so that all addresses are known: all of a small grid, the
    first ones of a larger one.
    """
    found = GridClasses(launch)
    total = prod(launch.cluster_counts)
    if total > MAX_EACH:
        found.lost = f"more than {MAX_EACH} clusters"
    for number in range(min(total, MAX_EACH)):
        x, y, z = (a * b for a, b in zip(found.coordinates(number), launch.cluster, strict=True))
        one = replace(launch, first=(x, y, z))
        watch_one = partial(SingleWatch, _own_space(one))
        ways = list(follow_paths(module, one, limit, watch_one, rules=ROUNDS_LEFT_OUT))
        if len(ways) != 1 or any(c.recorded.order_gaps or c.recorded.gaps or c.chosen_spans for _, c, _ in ways):
            found.lost = "control depends on data"
            return found
        found.firsts.append(one.first)
        here = np.zeros((1, AXES), np.int64)
        ((_, _, watch),) = ways
        found.accesses += _accesses(watch.footprint, here, np.array([number], np.int64), watch.space, found)
    return found


def _own_space(launch: Launch) -> Space:
    """The space of one cluster alone."""
    x, y, z = launch.executed_clusters[0]
    return Space((0, 0, 0), (0, 0, 0), (x, y, z))


@dataclass(slots=True)
class SingleWatch(GridWatch):
    """The watch on a cluster that is compared with no other one: its coordinates are numbers."""

    def _coordinate(self, name: str, slopes: Slopes) -> None:
        """Coordinates do not vary."""


@dataclass(slots=True)
class ExactWatch(GridWatch):
    """The watch on a cluster whose class makes the same accesses."""

    def may_be_omitted(self, statement: Statement) -> bool:
        """No access."""
        del statement
        return False


def _follow_class(
    module: Module, launch: Launch, limit: Limit, found: GridClasses, left: NDArray[np.bool_], watch: type[GridWatch]
) -> None:
    followed = follow_paths(
        module, launch, limit, lambda: watch(cluster_space(launch)), rules=ROUNDS_LEFT_OUT, first_lane_leads=True
    )
    ways = [(cluster, seen) for _, cluster, seen in followed]
    spaces = [seen.space for _, seen in ways]
    if len(ways) != 1 or any(
        cluster.recorded.order_gaps or cluster.recorded.gaps or cluster.chosen_spans for cluster, _ in ways
    ):
        found.lost = "control depends on data"
        return
    symbols, members = class_symbols(spaces[0], spaces)
    places = symbols[:, :AXES] + np.array(spaces[0].first)
    mine = members & left[tuple(places.T[::-1])]
    left[tuple(places[mine].T[::-1])] = False
    found.firsts.append(launch.first)
    counts = launch.cluster_counts
    numbers = places @ np.array([1, counts[0], counts[0] * counts[1]], np.int64)
    for _, seen in ways:
        found.accesses += _accesses(seen.footprint, symbols[mine], numbers[mine], seen.space, found)


def _accesses(
    footprint: Footprint, symbols: NDArray[np.int64], numbers: NDArray[np.int64], space: Space, found: GridClasses
) -> Iterator[ClassAccess]:
    for form in footprint.beginnings:
        if form.buffer == ANY or form.whole:
            found.lost, found.unplaced = "some addresses are not known", True
            continue
        yield from accesses_of(footprint, form, symbols, numbers, space)


def accesses_of(
    footprint: Footprint, form: Form, symbols: NDArray[np.int64], numbers: NDArray[np.int64], space: Space
) -> Iterator[ClassAccess]:
    """The accesses of a form at known places, in clusters with these symbols and numbers."""
    sizes = {i.base: i.object.size for i in footprint.buffers}
    for span, starts in footprint.beginnings[form].items():
        if form.shape:
            rows = distinct_rows(np.concatenate(starts))
            extents = tuple(box_extents(form, rows, space, sizes[form.buffer])[0])
        else:
            found = (r.dimensions[0] for r in footprint.regions_at(form, span))
            extents = tuple(replace(e, low=e.low - form.buffer) for e in found)
        size = None if form.shape else sizes.get(form.buffer)
        if extents:
            yield ClassAccess(form, span, extents, symbols, numbers, size)


# --- conflicts ------------------------------------------------------------------------------------------------------


class Incomparable(Exception):
    """Accesses of clusters could not be compared: there are too many ranges of bytes."""


def find_clashes(classes: GridClasses, is_conflict: IsConflict, limit: Limit) -> Iterator[Clash]:
    """Pairs of clusters that conflict, one for each pair of accesses. Raises ``Incomparable``."""
    for buffer in dict.fromkeys(a.form.buffer for a in classes.accesses):
        mine = [a for a in classes.accesses if a.form.buffer == buffer]
        held: list[tuple[ClassAccess, Ranges]] = []
        for access in mine:
            limit.check()
            ranges = classes.ranges_of(access)
            held.append((access, ranges))
            outside = _first_outside(access, ranges)
            if outside is not None:
                at = classes.coordinates(outside)
                yield Clash(at, at, (access.span, access.span))
        for k, (one, x) in enumerate(held):
            for other, y in held[k:]:
                limit.check()
                if is_conflict(one.form, other.form) and (pair := _first_pair(x, y)) is not None:
                    first, second = map(classes.coordinates, pair)
                    yield Clash(first, second, (one.span, other.span))


def find_mixed(classes: GridClasses, is_conflict: IsConflict, limit: Limit) -> list[Coordinates]:
    """The first CTAs of the clusters that are not executed, and in which conflicting accesses that move by different
    slopes meet. What they do to each other in the executed cluster says nothing about them: the same slopes keep two
    accesses as far apart in each cluster of a class, different ones do not. Raises ``Incomparable``.
    """
    found: set[int] = set()
    for one, other in combinations(classes.accesses, 2):
        a, b = one.form, other.form
        if a.buffer != b.buffer or (a.slopes, a.shape) == (b.slopes, b.shape) or not is_conflict(a, b):
            continue
        limit.check()
        found.update(meeting_owners(classes.ranges_of(one), classes.ranges_of(other)))
    executed = set(classes.firsts)
    places = [
        tuple(k * n for k, n in zip(classes.coordinates(number), classes.launch.cluster, strict=True))
        for number in sorted(found)
    ]
    return [(x, y, z) for x, y, z in places if (x, y, z) not in executed]


def meeting_owners(x: Ranges, y: Ranges) -> list[int]:
    """The clusters that have a byte of both. The ranges of a cluster are disjoint, in their order."""
    (a, b, owners), (c, d) = (*(e + x[2] * OWNER for e in x[:2]), x[2]), (e + y[2] * OWNER for e in y[:2])
    low, high = np.searchsorted(d, a, side="right"), np.searchsorted(c, b, side="left") - 1
    return [int(k) for k in distinct(owners[high >= low])]


def _enumerate_clusters(access: ClassAccess) -> Ranges:
    """The ranges of an access in all clusters, those of a cluster joined where they touch. Raises ``Incomparable``."""
    each = sum(prod(count for _, count in e.steps) for e in access.extents)
    if each * len(access.numbers) > MAX_RANGES:
        raise Incomparable
    starts, ends, owners = enumerate_ranges(access.extents, access.symbols, access.numbers)
    order = np.lexsort((starts, owners))
    starts, ends, owners = starts[order], ends[order], owners[order]
    reach = np.maximum.accumulate(ends + owners * OWNER)
    fresh = np.ones(len(starts), np.bool_)
    fresh[1:] = starts[1:] + owners[1:] * OWNER > reach[:-1]
    begins = np.flatnonzero(fresh)
    last = np.append(begins[1:], len(starts)) - 1
    return starts[begins], reach[last] - owners[begins] * OWNER, owners[begins]


def _first_outside(access: ClassAccess, ranges: Ranges) -> int | None:
    """A cluster in which an access leaves its buffer."""
    if access.size is None:
        return None
    bad = (ranges[0] < 0) | (ranges[1] > access.size)
    return int(ranges[2][np.argmax(bad)]) if bad.any() else None


def _first_pair(x: Ranges, y: Ranges) -> tuple[int, int] | None:
    """Two different clusters of which one has a byte of ``x`` and the other one of ``y``."""
    x, y = _by_start(x), _by_start(y)
    if not _is_disjoint(y):
        if not _is_disjoint(x):
            return _sweep(x, y)
        found = _first_pair_disjoint(y, x)
        return None if found is None else found[::-1]
    return _first_pair_disjoint(x, y)


def _by_start(x: Ranges) -> Ranges:
    order = np.argsort(x[0], kind="stable")
    return x[0][order], x[1][order], x[2][order]


def _is_disjoint(x: Ranges) -> bool:
    return not (x[1][:-1] > x[0][1:]).any()


def _first_pair_disjoint(x: Ranges, y: Ranges) -> tuple[int, int] | None:
    """The same if the ranges of ``y`` are disjoint: those that a range meets follow each other."""
    low = np.searchsorted(y[1], x[0], side="right")
    high = np.searchsorted(y[0], x[1], side="left") - 1
    some = high >= low
    if not some.any():
        return None
    first, last = np.where(some, low, 0), np.where(some, high, 0)
    changes = np.concatenate([[0], np.cumsum(y[2][1:] != y[2][:-1])])
    foreign = some & (y[2][first] != x[2])
    mixed = some & (changes[first] != changes[last])
    if foreign.any():
        k = int(np.argmax(foreign))
        return int(x[2][k]), int(y[2][first[k]])
    if mixed.any():
        k = int(np.argmax(mixed))
        owners = y[2][first[k] : last[k] + 1]
        return int(x[2][k]), int(owners[owners != x[2][k]][0])
    return None


def _sweep(x: Ranges, y: Ranges) -> tuple[int, int] | None:
    """The same for any ranges, one after the other."""
    events = sorted([*zip(*(c.tolist() for c in x), [0] * len(x[0]), strict=True),
                     *zip(*(c.tolist() for c in y), [1] * len(y[0]), strict=True)])  # fmt: skip
    furthest: list[list[tuple[int, int]]] = [[], []]  # of each side, the furthest ends of two owners
    for start, end, owner, side in events:
        for reach, other in furthest[1 - side]:
            if reach > start and other != owner:
                return (owner, other) if side == 0 else (other, owner)
        best = {o: e for e, o in furthest[side]}
        best[owner] = max(end, best.get(owner, end))
        furthest[side] = sorted(((e, o) for o, e in best.items()), reverse=True)[:2]
    return None
