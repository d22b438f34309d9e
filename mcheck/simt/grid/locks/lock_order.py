"""The orders in which clusters may take locks, and what that orders.

A *section* of a cluster begins when it takes a lock and ends when it releases that. Sections of one lock come one after
the other, and each hands on what it has acquired.

*Conditions.* They are checked for the code of each cluster.

1. A lock is taken by a compare-and-swap, or an exchange, that is repeated until it finds the value of a free one and
   leaves another; it is released by a strong store, or an exchange, of that value, by the thread that has taken it. All
   agree on the two values, the first one is that of a free lock, and nothing else accesses the word.
2. Taking acquires, and releasing releases, by a pattern of the access itself or of a fence (8.8), and not before what
   the section has acquired.
3. Who takes a lock while holding others does so in one order of all locks.

*The argument.* An atomic reads the write just before it in coherence order (8.10.3). So the write after one by which a
lock is taken is the release of the same section: no other atomic finds a free lock there, and a store of another
section comes just after the taking of that. Hence sections of a lock are ordered as their writes are, and each taking
synchronises with the release of the section before (1, 2), so that causality order goes from each section to all later
ones (8.9.5).

Take two clusters of an execution. Program order and the order of the sections of each lock lie in causality order, so
they have no circle: there is an order of all their sections together in which no two sections of a lock overlap. All
such orders are found here. A section comes behind the release of the last one of the other cluster before it.

All sections end: a section that never ends, or never begins, waits for a lock. Of these the last one in the order of 3
is held by nobody who waits, and as there are finitely many sections, somebody who asks again finds it free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.signal_order import Links, PairLinks
from mcheck.simt.grid.signals.synchronisations import Synchronisation

Code = tuple[Synchronisation, ...]
Steps = tuple[tuple[int, bool], ...]
"""The locks that a cluster takes and releases, and which of these it does."""
MAX_STEPS = 8
"""Maximum number of times that a cluster takes or releases a lock."""


@dataclass(slots=True)
class LockOrders:
    """The orders of the sections of any two clusters. ``owners`` are the numbers of the clusters of executions."""

    owners: Sequence[int]
    steps: Sequence[Steps]
    known: dict[tuple[Steps, Steps], Sequence[PairLinks]] = field(default_factory=dict)

    def links(self, one: int, other: int) -> Sequence[PairLinks]:
        """The links of two executions of two clusters, in all orders of their sections."""
        if self.owners[one] == self.owners[other]:
            return ()
        key = self.steps[one], self.steps[other]
        if key not in self.known:
            self.known[key] = tuple(dict.fromkeys(_links(key, order) for order in _orders(*key)))
        return self.known[key]


def order_locks(codes: Sequence[Code], owners: Sequence[int], initial: Mapping[int, int]) -> LockOrders:
    """The orders of the locks that clusters take, whose first values are given. Raises ``NotReducible``."""
    values: dict[int, tuple[int, int]] = {}
    before: dict[int, set[int]] = {}
    for code in codes:
        _check_sections(code, values, before)
    for code in codes:
        for one in code:
            free, _ = values.get(one.address, (None, None))
            if one.value % (1 << 8 * one.size) != free or initial[one.address] != free:
                raise NotReducible("a lock is not free at first, or released by another value", one.span)
    _check_one_order(before)
    return LockOrders(owners, [tuple((one.address, one.waits) for one in code) for code in codes])


def _check_sections(code: Code, values: dict[int, tuple[int, int]], before: dict[int, set[int]]) -> None:
    """Check the sections of a cluster; the values of locks, and which are held when they are taken, are added."""
    if len(code) > MAX_STEPS:
        raise NotReducible(f"a cluster takes and releases locks more than {MAX_STEPS} times", code[0].span)
    held: dict[int, Synchronisation] = {}
    acquired = -1
    for one in code:
        if one.adds or one.draws or one.looks or (one.waits and one.taken is None):
            raise NotReducible("clusters also signal otherwise than by locks", one.span)
        if one.point is None:
            raise NotReducible("a lock is taken, or released, without a fence", one.span)
        if one.taken is not None:
            if one.address in held:
                raise NotReducible("a cluster takes a lock that it holds", one.span)
            if values.setdefault(one.address, (one.value, one.taken)) != (one.value, one.taken):
                raise NotReducible("clusters take a lock by different values", one.span)
            before.setdefault(one.address, set()).update(held)
            held[one.address] = one
            acquired = max(acquired, one.point)
        elif held.pop(one.address, None) is None:
            raise NotReducible("a lock is released by a cluster that does not hold it", one.span)
        elif one.point < acquired:
            raise NotReducible("a lock may be released before what its section has acquired", one.span)
    for one in held.values():
        raise NotReducible("a lock is not released", one.span)


def _check_one_order(before: Mapping[int, set[int]]) -> None:
    """Check that all clusters take locks in one order. Raises ``NotReducible``."""
    left = dict(before)
    while left:
        free = [lock for lock, held in left.items() if held.isdisjoint(left)]
        if not free:
            raise NotReducible("clusters take locks in different orders")
        for lock in free:
            del left[lock]


def _orders(mine: Steps, theirs: Steps) -> Iterator[tuple[int, ...]]:
    """The orders of what two clusters do, as whose turn it is, in which no lock is taken that the other one holds."""

    def go_on(at: tuple[int, int], holders: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
        if at == (len(mine), len(theirs)):
            yield ()
        for who, steps in enumerate((mine, theirs)):
            if at[who] == len(steps):
                continue
            lock, takes = steps[at[who]]
            if takes and lock in holders:
                continue
            then = {**holders, lock: who} if takes else {key: v for key, v in holders.items() if key != lock}
            reached = (at[0] + 1, at[1]) if who == 0 else (at[0], at[1] + 1)
            for rest in go_on(reached, then):
                yield (who, *rest)

    return go_on((0, 0), {})


def _links(both: tuple[Steps, Steps], order: Sequence[int]) -> PairLinks:
    """The links of two clusters: each section waits for the last release of its lock by the other one."""
    at = [0, 0]
    released: list[dict[int, int]] = [{}, {}]
    waits: list[dict[int, int]] = [{}, {}]
    for who in order:
        lock, takes = both[who][at[who]]
        if not takes:
            released[who][lock] = at[who]
        elif lock in released[1 - who]:
            waits[who][at[who]] = released[1 - who][lock]
        at[who] += 1
    return _numbered(both[0], waits[0], waits[1]), _numbered(both[1], waits[1], waits[0])


def _numbered(steps: Steps, mine: Mapping[int, int], theirs: Mapping[int, int]) -> Links:
    taught, learnt = ({place: k for k, place in enumerate(sorted(set(by.values())), 1)} for by in (theirs, mine))
    return tuple(
        (learnt[mine[k]] if k in mine else 0) if takes else taught.get(k, 0) for k, (_, takes) in enumerate(steps)
    )
