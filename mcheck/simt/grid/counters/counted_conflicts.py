"""Conflicts between clusters that count themselves, and pairs of clusters that show every kind of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcheck.base.budget import Limit
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.simt.grid.pairs.cluster_accesses import Execution
from mcheck.simt.grid.pairs.conflicts import (
    ALL,
    Kind,
    Side,
    Table,
    cover_kinds,
    distinct,
    kinds_within,
    meetings,
    span_of,
    tabulate,
)
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.known_words import KnownWord
from mcheck.simt.grid.pairs.reduction import NotReducible

Pair = tuple[Coordinates, Coordinates]


class MeetEarly(NotReducible):
    """Two clusters conflict that are not last."""


def between_clusters(x: Table, y: Table, counter: KnownWord, limit: Limit, *, waits: bool) -> tuple[Numbers, Numbers]:
    """Those of different clusters, without the atomics that count, and the waits for them."""
    mine, theirs = meetings(x, y, limit)
    end = counter.address + counter.size
    on_counter = (x.starts[mine] < end) & (x.ends[mine] > counter.address)
    apart = (x.owners[mine] != y.owners[theirs]) | (x.owners[mine] == ALL)
    kept = apart & ~(on_counter if waits else x.counts[mine] & y.counts[theirs])
    mine, theirs, on_counter = mine[kept], theirs[kept], on_counter[kept]
    if (~on_counter & (x.strong[mine] | y.strong[theirs])).any():
        raise NotReducible("clusters also share words by strong accesses or atomics")
    return mine, theirs


def check_apart(side: Side, counter: KnownWord, limit: Limit) -> None:
    """Check that no two clusters that are not last conflict. Raises ``MeetEarly``, and ``NotReducible``."""
    table = tabulate(side)
    mine, _ = between_clusters(table, table, counter, limit, waits=False)
    if len(mine):
        raise MeetEarly("two clusters conflict before the last one has counted itself", span_of(side, table, mine[0]))


def choose_pairs(before: Side, last: Side, counter: KnownWord, limit: Limit, *, waits: bool) -> list[Pair]:
    """Pairs of clusters in which each kind of conflict occurs, between two clusters and within one. Raises
    ``NotReducible``.
    """
    wanted: dict[Kind, Pair] = {}
    x, y = tabulate(before), tabulate(last)
    for kind, row, other in _kinds_between(x, y, counter, limit, waits=waits):
        wanted[kind] = _witness(before, last, x, y, row, other)
    for name, side in (("before", before), ("last", last)):
        for kind, number in kinds_within(name, side, limit):
            beside = side.executions[number - 1 if number else 1].cluster
            wanted.setdefault(kind, (side.executions[number].cluster, beside))
    places = {one.cluster: number for number, one in enumerate(before.executions)}

    def show(pair: Pair) -> set[Kind]:
        first, second = places[pair[0]], places[pair[1]]
        shown: set[Kind] = set()
        for i, j in ((first, second), (second, first)):
            mine, theirs = tabulate(before, [i]), tabulate(last, [j])
            shown.update(kind for kind, _, _ in _kinds_between(mine, theirs, counter, limit, waits=waits))
            for name, side in (("before", before), ("last", last)):
                shown.update(kind for kind, _ in kinds_within(name, side, limit, [i]))
        return shown

    return cover_kinds(wanted, show)


def find_early_pairs(before: Side, number: int, early: Execution, counter: KnownWord, limit: Limit) -> Iterator[Pair]:
    """Pairs of clusters in which one conflicts with what that of a number does ``early``, before the last one has
    counted itself: a pair for each kind of conflict. Raises ``NotReducible``.
    """
    after = Side([early if k == number else one for k, one in enumerate(before.executions)])
    x, y = tabulate(before), tabulate(after, [number])
    for _, row, other in _kinds_between(x, y, counter, limit, waits=False):
        yield _witness(before, after, x, y, row, other)


def _kinds_between(
    x: Table, y: Table, counter: KnownWord, limit: Limit, *, waits: bool
) -> Iterator[tuple[Kind, int, int]]:
    """The kinds of conflicts of two clusters, each with the rows of one."""
    mine, theirs = between_clusters(x, y, counter, limit, waits=waits)
    yield from distinct(x, mine, y, theirs)


def _witness(before: Side, last: Side, x: Table, y: Table, row: int, other: int) -> Pair:
    """Two clusters of which one has the first row and the other one the second."""

    def members(side: Side, table: Table, at: int) -> Sequence[int]:
        owner = int(table.owners[at])
        return side.members[int(table.kinds[at])] if owner == ALL else [owner]

    for i in members(before, x, row)[:2]:
        for j in members(last, y, other)[:2]:
            if i != j:
                return before.executions[i].cluster, last.executions[j].cluster
    raise AssertionError("a conflict of two clusters has two")
