"""Conflicts between clusters that wait for each other's signals, and pairs of clusters that show every kind of them.

A kind of conflict is told as that of clusters that count themselves (``mcheck.simt.grid.counters.counted_conflicts``),
and by what their signals and waits are to each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Protocol

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass
from mcheck.simt.distinct import distinct_rows
from mcheck.simt.grid.pairs.conflicts import (
    ALL,
    Kind,
    Side,
    Table,
    columns_between,
    cover_kinds,
    kinds_within,
    meetings,
    span_of,
    tabulate,
)
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.signal_order import PairLinks

Pair = tuple[int, int, PairLinks]
"""The numbers of two executions, and their links."""
Owners = tuple[int, int, frozenset[tuple[int, int]]]
"""The shapes of the clusters of both sides of a conflict, and their numbers, or ``ALL`` of the shape."""


class Orders(Protocol):
    """What orders the signals of clusters."""

    def links(self, one: int, other: int) -> Sequence[PairLinks]:
        """The links that two executions may have; none if they are not of two clusters of one launch."""


def choose_pairs(side: Side, orders: Orders, limit: Limit) -> list[Pair]:
    """Pairs of clusters in which each kind of conflict occurs, between two clusters and within one. Raises
    ``NotReducible``.
    """
    everything = tabulate(side)
    check_only_signals(side, limit, everything)
    numbers = range(len(side.executions))
    wanted = dict(_kinds_between(everything, numbers, side, orders, limit))
    for kind, number in kinds_within("", side, limit):
        beside = next((k for k in numbers if orders.links(number, k)), None)
        if beside is None:
            raise NotReducible("a cluster has no other one beside it")
        wanted.setdefault(kind, (number, beside, orders.links(number, beside)[0]))

    def show(pair: Pair) -> set[Kind]:
        one, other, links = pair
        oriented = {(one, other): links, (other, one): links[::-1]}
        between = _kinds_between(tabulate(side, (one, other)), (one, other), side, _Only(oriented), limit)
        shown = {kind for kind, _ in between}
        return shown.union(kind for kind, _ in kinds_within("", side, limit, (one, other)))

    return cover_kinds(wanted, show)


def check_words(side: Side, orders: Orders, limit: Limit) -> None:
    """Check that nothing but signals and waits accesses their words, and that clusters share others by weak accesses
    alone. Raises ``NotReducible``.
    """
    everything = tabulate(side)
    check_only_signals(side, limit, everything)
    for _ in _kinds_between(everything, range(len(side.executions)), side, orders, limit):
        pass


@dataclass(frozen=True, slots=True)
class _Only:
    """The links of one pair."""

    given: Mapping[tuple[int, int], PairLinks]

    def links(self, one: int, other: int) -> Sequence[PairLinks]:
        return [self.given[one, other]] if (one, other) in self.given else []


def check_only_signals(side: Side, limit: Limit, table: Table | None = None) -> None:
    """Check that nothing but signals, waits and draws of tickets accesses their words, and that no two words overlap.
    ``table`` has the accesses, if they are tabulated. Raises ``NotReducible``.
    """
    table = table or tabulate(side)
    mine, theirs = meetings(table, table, limit)
    other = table.counts[mine] & ~table.counts[theirs]
    if other.any():
        raise NotReducible(
            "a word that clusters signal by is accessed otherwise",
            span_of(side, table, int(theirs[other][0])),
        )
    both = table.counts[mine] & table.counts[theirs]
    apart = (table.starts[mine] != table.starts[theirs]) | (table.ends[mine] != table.ends[theirs])
    if (both & apart).any():
        raise NotReducible("words that clusters signal by overlap", span_of(side, table, int(mine[both & apart][0])))


def _kinds_between(
    table: Table, numbers: Collection[int], side: Side, orders: Orders, limit: Limit
) -> Iterator[tuple[Kind, Pair]]:
    """The kinds of conflicts of two of these clusters, each with a pair in which it occurs. Raises ``NotReducible``."""
    mine, theirs = meetings(table, table, limit)
    apart = (table.owners[mine] != table.owners[theirs]) | (table.owners[mine] == ALL)
    kept = apart & ~(table.counts[mine] & table.counts[theirs])
    mine, theirs = mine[kept], theirs[kept]
    strong = table.strong[mine] | table.strong[theirs]
    if strong.any():
        raise NotReducible(
            "clusters also share words by strong accesses or atomics", span_of(side, table, int(mine[strong][0]))
        )
    known: dict[Owners, dict[Kind, Pair]] = {}
    for base, owners in _by_kind(table, mine, theirs):
        limit.check()
        key = base[0], base[4], owners
        if key not in known:
            known[key] = _told_apart(side, numbers, orders, key)
        for told, pair in known[key].items():
            yield (*base, *told), pair


def _by_kind(
    table: Table, mine: Numbers, theirs: Numbers
) -> Iterator[tuple[tuple[int, ...], frozenset[tuple[int, int]]]]:
    """What tells kinds of conflicts apart, but for the clusters, and the owners of each."""
    columns = columns_between(table, mine, table, theirs)
    table_of_kinds = np.stack([*columns, table.owners[mine], table.owners[theirs]], axis=1)
    found: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for row in distinct_rows(table_of_kinds).tolist():
        found.setdefault(tuple(row[:-2]), set()).add((row[-2], row[-1]))
    for base, owners in found.items():
        yield base, frozenset(owners)


def _told_apart(side: Side, numbers: Collection[int], orders: Orders, given: Owners) -> dict[Kind, Pair]:
    """The pairs of clusters that are told apart, of those in which a conflict occurs."""
    one, other, owners = given
    found: dict[Kind, Pair] = {}
    for a, b in owners:
        for i, j in product(_members(side, numbers, one, a), _members(side, numbers, other, b)):
            for links in orders.links(i, j):
                found.setdefault((links,), (i, j, links))
    return found


def _members(side: Side, numbers: Collection[int], kind: int, owner: int) -> list[int]:
    return [k for k in side.members[kind] if k in numbers] if owner == ALL else [owner]
