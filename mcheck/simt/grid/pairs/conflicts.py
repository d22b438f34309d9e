"""Conflicts between clusters that were executed one by one, and pairs of clusters that show every kind of them.

A kind of conflict is told by the shapes of two executions, and by thread and segment of both accesses: accesses of one
thread between two operations that may synchronise are ordered alike with all others. Whether a load is non-coherent
counts, too, since no order helps such a one. Lanes of a warp may access a place as one: of their conflicts the places
in the code count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.pairs.cluster_accesses import Execution, Numbers
from mcheck.simt.grid.pairs.reduction import NotReducible

MAX_MEETINGS = 1 << 23
"""Maximum number of pairs of accesses of common bytes."""
MAX_PAIRS = 32
"""Maximum number of pairs of clusters."""
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
    segments: Numbers
    owners: Numbers
    columns: Numbers
    """The number of an access in its execution."""
    writes: NDArray[np.bool_]
    strong: NDArray[np.bool_]
    non_coherent: NDArray[np.bool_]
    counts: NDArray[np.bool_]


def tabulate(side: Side, numbers: Iterable[int] | None = None) -> Table:
    """The accesses of these executions; of all of a side those that a class makes at one place once."""
    parts: list[tuple[NDArray[np.generic], ...]] = []
    chosen = None if numbers is None else list(numbers)
    for kind, members in side.members.items():
        mine = members if chosen is None else [k for k in members if k in chosen]
        if not mine:
            continue
        first = side.executions[mine[0]].accesses
        count = len(first.starts)
        starts = np.stack([side.executions[k].accesses.starts for k in mine])
        size = first.ends - first.starts
        same = (starts == starts[:1]).all(axis=0) & (len(mine) > 1)
        everything = np.arange(count)
        for owners, columns in [([ALL], everything[same]), (mine, everything[~same])]:
            at = starts[: len(owners), columns].reshape(-1)
            all_columns = np.tile(columns, len(owners))
            parts.append((
                at, at + size[all_columns], np.full(len(at), kind), first.threads[all_columns],
                first.segments[all_columns], np.repeat(np.array(owners, np.int64), len(columns)), all_columns,
                first.writes[all_columns], first.strong[all_columns], first.non_coherent[all_columns],
                first.counts[all_columns],
            ))  # fmt: skip
    return Table(*(np.concatenate(found) for found in zip(*parts, strict=True)))


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


def distinct(x: Table, mine: Numbers, y: Table, theirs: Numbers, *more: Numbers) -> Iterator[tuple[Kind, int, int]]:
    columns: list[NDArray[np.generic]] = [*more]
    for table, rows in ((x, mine), (y, theirs)):
        columns += [table.kinds[rows], table.threads[rows], table.segments[rows], table.non_coherent[rows]]
    found, first = np.unique(np.stack(columns, axis=1).astype(np.int64), axis=0, return_index=True)
    for row, at in zip(found.tolist(), first.tolist(), strict=True):
        yield tuple(row), int(mine[at]), int(theirs[at])


def kinds_within(name: str, side: Side, number: int, limit: Limit) -> Iterator[Kind]:
    """The kinds of conflicts of threads of one cluster, and its shape."""
    one = side.executions[number]
    accesses = one.accesses
    table = tabulate(side, [number])
    mine, theirs = meetings(table, table, limit)
    kept = (table.threads[mine] < table.threads[theirs]) & ~(table.strong[mine] & table.strong[theirs])
    mine, theirs = mine[kept], theirs[kept]
    lanes = one.lanes
    near = lanes[table.threads[mine]] // WARP == lanes[table.threads[theirs]] // WARP
    columns = table.columns[mine], table.columns[theirs]
    places = [np.where(near, accesses.places[c], 0) for c in columns]
    joint = near & (accesses.operations[columns[0]] == accesses.operations[columns[1]])
    yield name, side.kind(one)
    for kind, _, _ in distinct(table, mine, table, theirs, *places, joint):
        yield name, *kind
