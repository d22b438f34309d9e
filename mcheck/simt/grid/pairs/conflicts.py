"""Conflicts between clusters that were executed one by one, and pairs of clusters that show every kind of them.

A kind of conflict is told by the shapes of two executions, and by role and segment of both accesses: accesses of one
thread between two operations that may synchronise are ordered alike with all others. Threads of a CTA have one role if
they do the same operations that may synchronise, with the same operands (in one warp, if those of warps are among
them): where two of them change their places, the order of everything else is as before. Whether a load is
non-coherent counts, too, since no order helps such a one. Where barriers say enough of both accesses, the phases of
``mcheck.simt.grid.pairs.barrier_phases`` are in the place of roles and segments; within a cluster such accesses are
ordered.

A copy accesses memory when it likes, between its issue and its completion. It is a segment of its own, and may conflict
with other accesses of its thread.

Lanes of a warp may access a place as one, and act as one up to some place in their code: of their conflicts the warp
and the code of both lanes count, and in it the place of the access of the earlier segment, or of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.pairs.barrier_phases import NO_PHASE
from mcheck.simt.grid.pairs.cluster_accesses import Execution
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.reduction import NotReducible

MAX_MEETINGS = 1 << 23
"""Maximum number of pairs of accesses of common bytes."""
MAX_PAIRS = 32
"""Maximum number of pairs of clusters."""
APART = 1 << 42
"""The distance between the accesses of clusters where those of each are compared at once."""
OTHER_PROXY = -2
"""Stands for a role, of an access that is told by its phase and is not through the generic proxy."""
ALL = -1
"""The owner of an access that all clusters of a class make at the same place."""

Kind = tuple[object, ...]
P = TypeVar("P")
"""A pair of clusters, by their coordinates or their numbers."""


@dataclass(slots=True)
class Side:
    """The executions of all clusters in one situation (as the last one, say); ``kinds`` numbers their shapes."""

    executions: Sequence[Execution]
    kinds: dict[object, int] = field(default_factory=dict)
    members: dict[int, list[int]] = field(init=False)
    """The executions of a shape, by their numbers."""

    def __post_init__(self) -> None:
        self.members = {}
        for number, one in enumerate(self.executions):
            self.members.setdefault(self.kind(one), []).append(number)

    def kind(self, one: Execution) -> int:
        """The number of the shape of an execution."""
        return self.kinds.setdefault(one.shape, len(self.kinds))


@dataclass(slots=True)
class Table:
    """Accesses of several executions, a row each. ``owners`` are the executions, or ``ALL``."""

    starts: Numbers
    ends: Numbers
    kinds: Numbers
    threads: Numbers
    roles: Numbers
    segments: Numbers
    owners: Numbers
    columns: Numbers
    """The number of an access in its execution."""
    writes: NDArray[np.bool_]
    strong: NDArray[np.bool_]
    non_coherent: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    copies: NDArray[np.bool_]
    generic: NDArray[np.bool_]
    phases: Numbers
    fenced_phases: Numbers


def tabulate(side: Side, numbers: Iterable[int] | None = None) -> Table:
    """The accesses of these executions; of all of a side those that a class makes at one place once."""
    parts: list[tuple[Any, ...]] = []
    chosen = None if numbers is None else set(numbers)
    for kind, members in side.members.items():
        mine = members if chosen is None else [k for k in members if k in chosen]
        if not mine:
            continue
        still, moving = _split(side, mine)
        for owners, columns in (
            [([ALL], still), (mine, moving)] if len(mine) > 1 else [(mine, np.arange(len(still) + len(moving)))]
        ):
            parts.append(_rows(side, kind, owners, mine, columns))
    return Table(*(np.concatenate(found) for found in zip(*parts, strict=True)))


def _split(side: Side, members: Sequence[int]) -> tuple[Numbers, Numbers]:
    """The columns of executions of one shape whose accesses are at the same place in all, and the others."""
    first = side.executions[members[0]].accesses
    moves = np.zeros(len(first.sizes), np.bool_)
    seen: set[int] = set()
    for one in (side.executions[k].accesses for k in members):
        moves[one.moved] = True
        if id(one.origins) not in seen:
            seen.add(id(one.origins))
            moves |= one.origins != first.origins
    return np.flatnonzero(~moves), np.flatnonzero(moves)


def _rows(side: Side, kind: int, owners: Sequence[int], members: Sequence[int], columns: Numbers) -> tuple[Any, ...]:
    """These columns of some executions of one shape, or once for all of them."""
    first = side.executions[members[0]].accesses
    chosen = members[:1] if owners == [ALL] else owners
    at = np.concatenate([side.executions[k].accesses.starts[columns] for k in chosen])
    every = np.tile(columns, len(chosen))
    return (
        at, at + first.sizes[every], np.full(len(at), kind), first.threads[every], first.roles[every],
        first.segments[every], np.repeat(np.array(owners, np.int64), len(columns)), every, first.writes[every],
        first.strong[every], first.non_coherent[every], first.counts[every], first.copies[every],
        first.generic[every], first.phases[every], first.fenced_phases[every],
    )  # fmt: skip


def meetings(x: Table, y: Table, limit: Limit) -> tuple[Numbers, Numbers]:
    """Pairs of rows, of ``x`` and of ``y``, with a common byte that one of them writes."""
    order = np.argsort(y.starts, kind="stable")
    starts, reach = y.starts[order], int((y.ends - y.starts).max(initial=1))
    low = np.searchsorted(starts, x.starts - reach, side="right")
    high = np.searchsorted(starts, x.ends, side="left")
    counts = np.maximum(high - low, 0)
    if int(counts.sum()) > MAX_MEETINGS:
        raise NotReducible("there are too many accesses of common bytes")
    limit.check()
    mine = np.repeat(np.arange(len(x.starts)), counts)
    within = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = order[np.repeat(low, counts) + within]
    meet = (y.ends[theirs] > x.starts[mine]) & (x.writes[mine] | y.writes[theirs])
    meet &= (x.ends[mine] > x.starts[mine]) & (y.ends[theirs] > y.starts[theirs])
    return mine[meet], theirs[meet]


def span_of(side: Side, table: Table, row: int) -> Span | None:
    """Where the access of a row is."""
    kind, column = int(table.kinds[row]), int(table.columns[row])
    return side.executions[side.members[kind][0]].accesses.spans[column]


def cover_kinds(wanted: Mapping[Kind, P], show: Callable[[P], set[Kind]]) -> list[P]:
    """Pairs that show all kinds of conflicts, each of which is known to occur in a pair. Raises ``NotReducible``."""
    left, pairs = dict(wanted), list[P]()
    while left:
        if len(pairs) == MAX_PAIRS:
            raise NotReducible(f"the conflicts of clusters are of more kinds than {MAX_PAIRS} pairs show")
        pair = left[next(iter(left))]
        pairs.append(pair)
        shown = show(pair)
        assert not shown.isdisjoint(left)
        left = {kind: p for kind, p in left.items() if kind not in shown}
    return pairs


def columns_between(x: Table, mine: Numbers, y: Table, theirs: Numbers) -> list[Numbers]:
    """What tells kinds of conflicts of two clusters apart: of each side four columns."""
    generic = x.generic[mine] & y.generic[theirs]
    phases = [np.where(generic, t.phases[r], t.fenced_phases[r]) for t, r in ((x, mine), (y, theirs))]
    told = (phases[0] != NO_PHASE) & (phases[1] != NO_PHASE)
    columns: list[NDArray[np.generic]] = []
    for table, rows, phase in ((x, mine, phases[0]), (y, theirs, phases[1])):
        roles = np.where(told, np.where(table.generic[rows], NO_PHASE, OTHER_PROXY), table.roles[rows])
        segments = np.where(told, phase, table.segments[rows])
        columns += [table.kinds[rows], roles, segments, table.non_coherent[rows]]
    return [column.astype(np.int64) for column in columns]


def distinct(x: Table, mine: Numbers, y: Table, theirs: Numbers) -> Iterator[tuple[Kind, int, int]]:
    columns = columns_between(x, mine, y, theirs)
    found, first = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)
    for row, at in zip(found.tolist(), first.tolist(), strict=True):
        yield tuple(row), int(mine[at]), int(theirs[at])


def kinds_within(
    name: str, side: Side, limit: Limit, numbers: Iterable[int] | None = None
) -> Iterator[tuple[Kind, int]]:
    """The kinds of conflicts of threads of one cluster, and the shapes, each with a cluster in which it occurs: of
    these, or of all.
    """
    chosen = None if numbers is None else set(numbers)
    groups: dict[tuple[int, int], list[int]] = {}
    for kind, members in side.members.items():
        for k in members if chosen is None else [k for k in members if k in chosen]:
            groups.setdefault((kind, id(side.executions[k].accesses.operations)), []).append(k)
    for (kind, _), mine in groups.items():  # of each those of one class, or one cluster
        limit.check()
        yield (name, kind), mine[0]
        still, moving = _split(side, mine)
        alike = Table(*_rows(side, kind, [ALL], mine, still))
        yield from _kinds_of(name, side, mine, alike, *meetings(alike, alike, limit))
        if not len(moving):
            continue
        own = Table(*_rows(side, kind, mine, mine, moving))
        yield from _kinds_of(name, side, mine, own, *meetings(own, alike, limit), alike)
        apart = replace(own, starts=own.starts + own.owners * APART, ends=own.ends + own.owners * APART)
        yield from _kinds_of(name, side, mine, own, *meetings(apart, apart, limit))


def _are_ordered(one: Execution, these: Numbers, those: Numbers) -> NDArray[np.bool_]:
    """Which accesses of a cluster barriers order, or program order, and so that no race is possible."""
    a, near = one.accesses, np.zeros(len(these), np.bool_)
    ranks = a.ranks[a.threads]
    for first, second in ((these, those), (those, these)):
        barrier = (ranks[first] == ranks[second]) & (a.over[first] < a.begun[second])
        thread = (a.threads[first] == a.threads[second]) & (a.complete[first] < a.places[second])
        weak = ~(a.strong[first] | a.strong[second])
        near |= (barrier | thread) & weak & (a.generic[second] | ~a.generic[first])
    return near & ~(a.non_coherent[these] | a.non_coherent[those])


def _kinds_of(
    name: str, side: Side, members: Sequence[int], x: Table, mine: Numbers, theirs: Numbers, y: Table | None = None
) -> Iterator[tuple[Kind, int]]:
    """The kinds of these meetings of rows of one cluster, each with a cluster."""
    y = x if y is None else y
    one = side.executions[members[0]]
    lanes, places, operations, codes = one.lanes, one.accesses.places, one.accesses.operations, one.accesses.codes
    turned = x.threads[mine] > y.threads[theirs]
    copied = x.copies[mine] | y.copies[theirs]
    alone = (x.threads[mine] == y.threads[theirs]) & (x.columns[mine] != y.columns[theirs])
    kept = (x.threads[mine] < y.threads[theirs]) | (turned & (x is not y)) | (alone & copied)
    kept &= copied | ~(x.strong[mine] & y.strong[theirs])
    kept &= ~_are_ordered(one, x.columns[mine], y.columns[theirs])
    mine, theirs, turned, alone = mine[kept], theirs[kept], turned[kept], alone[kept]
    owners = np.where(x.owners[mine] == ALL, members[0], x.owners[mine])
    near = lanes[x.threads[mine]] // WARP == lanes[y.threads[theirs]] // WARP
    here, there = x.columns[mine], y.columns[theirs]
    joint = near & (operations[here] == operations[there])
    columns: list[NDArray[np.generic]] = [alone, joint, np.where(near, lanes[x.threads[mine]] // WARP, -1)]
    told = [(getattr(x, name)[mine], getattr(y, name)[theirs]) for name in ("roles", "segments", "non_coherent")]
    one_segment, other = told[1]
    told.append((np.where(near, codes[here], 0), np.where(near, codes[there], 0)))
    first, second = near & (one_segment <= other), near & (other <= one_segment)
    told.append((np.where(first, places[here], 0), np.where(second, places[there], 0)))
    for a, b in told:
        columns += [np.where(turned, b, a), np.where(turned, a, b)]
    found, rows = np.unique(np.stack(columns, axis=1).astype(np.int64), axis=0, return_index=True)
    kind = int(side.kind(one))
    for row, at in zip(found.tolist(), rows.tolist(), strict=True):
        yield (name, kind, *row), int(owners[at])
