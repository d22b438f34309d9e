"""Clusters that ask whether they are the last ones to count themselves: the orders of their signals for every choice.

Each cluster draws a number from a word as often as each other one, and does one thing if it is the last one of that
round and another one if it is not. A *choice* says which cluster is the last one in each round. For each choice all
executions have the same signals and waits (``mcheck.simt.grid.signals.signal_order``), where what the last draw returns
says that all others of the round were before. In every execution one choice is made: numbers are drawn once each, if
the draws of a round are a phase of the word, to which nothing else is added.

The clusters signal and wait in the same way, if they are last in the same rounds. So choices that differ by a
permutation of the clusters have orders that differ by it: one stands for all in which the same rounds have a last one
in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations

from mcheck.base.records import dataclass, replace
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.signal_order import PairLinks, SignalOrder, order_signals
from mcheck.simt.grid.signals.synchronisations import Synchronisation

Rounds = frozenset[int]
Code = tuple[Synchronisation, ...]
MAX_ROUNDS = 3
"""Maximum number of rounds in which a cluster asks whether it is the last one."""


@dataclass(slots=True)
class ChosenOrders:
    """The orders of choices. In each the first clusters are the last ones of some rounds, which are named."""

    owners: Sequence[tuple[int, Rounds]]
    """Of each execution the number of the cluster, and in which rounds it is the last one."""
    count: int
    orders: list[tuple[Sequence[Rounds], SignalOrder]] = field(default_factory=list)
    known: dict[tuple[Rounds, Rounds], Sequence[PairLinks]] = field(default_factory=dict)
    """Links that were asked for, by the rounds in which both clusters are the last ones."""

    def left(self, address: int) -> int | None:
        """What a word holds in the end; ``None`` if that depends on the choice."""
        values = {order.left(address) for _, order in self.orders}
        return values.pop() if len(values) == 1 else None

    def links(self, one: int, other: int) -> Sequence[PairLinks]:
        """The links of two executions of two clusters, in all choices to which they belong."""
        (i, mine), (j, theirs) = self.owners[one], self.owners[other]
        if i == j:
            return ()
        if (mine, theirs) not in self.known:
            self.known[mine, theirs] = tuple(dict.fromkeys(self._links(mine, theirs)))
        return self.known[mine, theirs]

    def _links(self, mine: Rounds, theirs: Rounds) -> Iterator[PairLinks]:
        for lasts, order in () if mine & theirs else self.orders:
            if not {mine, theirs} - {frozenset()} <= set(lasts):
                continue
            spare = iter(range(len(lasts), self.count))
            one, other = (lasts.index(rounds) if rounds else next(spare, None) for rounds in (mine, theirs))
            if one is not None and other is not None:
                yield order.pair(one, other)

    def first_to_wait(self) -> int | None:
        """A cluster that waits for others in some choice, if one does; all clusters are alike."""
        return None if all(order.first_to_wait() is None for _, order in self.orders) else 0


def order_choices(
    codes: Mapping[Rounds, Sequence[Code]], initial: Mapping[int, int], owners: Sequence[tuple[int, Rounds]]
) -> ChosenOrders:
    """The orders of all choices, given what each cluster does if it is the last one in some rounds. Raises
    ``NotReducible``.
    """
    alike: dict[Rounds, Code] = {}
    for rounds, each in codes.items():
        alike[rounds] = _with_ranks(each[0])
        if len({tuple(replace(one, span=None) for one in _with_ranks(code)) for code in each}) > 1:
            raise NotReducible("clusters that ask whether they are the last ones signal in different ways")
    nobody: Rounds = frozenset()
    count = len(codes[nobody])
    found = ChosenOrders(owners, count)
    total = frozenset().union(*codes)
    for lasts in _partitions(sorted(total)):
        if len(lasts) <= count:
            order = order_signals([alike[lasts[k] if k < len(lasts) else nobody] for k in range(count)], initial)
            _check_draws(order)
            found.orders.append((lasts, order))
    return found


def subsets(rounds: int) -> Iterator[Rounds]:
    """All sets of some of so many rounds, but the empty one."""
    return (frozenset(some) for size in range(1, rounds + 1) for some in combinations(range(rounds), size))


def _with_ranks(code: Code) -> Code:
    """The code with ranks instead of places."""
    places = sorted({p for one in code for p in (one.place, one.point, one.acquired) if p is not None})
    ranks: dict[int | None, int | None] = {None: None, **{place: rank for rank, place in enumerate(places)}}
    return tuple(
        replace(one, place=ranks[one.place] or 0, point=ranks[one.point], acquired=ranks[one.acquired]) for one in code
    )


def _partitions(rounds: Sequence[int]) -> Iterator[list[Rounds]]:
    """The ways to split rounds into those with a last cluster in common."""
    if not rounds:
        yield []
        return
    for rest in _partitions(rounds[1:]):
        yield [frozenset(rounds[:1]), *rest]
        for k, some in enumerate(rest):
            yield [*rest[:k], some | {rounds[0]}, *rest[k + 1 :]]


def _check_draws(order: SignalOrder) -> None:
    """Check that the draws of each round are a phase, and add one each. Raises ``NotReducible``."""
    numbers = {
        (number, k): sum(one.draws and not one.waits for one in code[:k])
        for number, code in enumerate(order.codes) for k in range(len(code))
    }  # fmt: skip
    for word in order.words.values():
        for phase in word.phases:
            draws = [order.at(at).draws for at in phase.signals]
            if not any(draws):
                continue
            plain = all(draws) and all(order.at(at).value == 1 and order.at(at).adds for at in phase.signals)
            if not plain or len(draws) != len(order.codes) or len({numbers[at] for at in phase.signals}) != 1:
                raise NotReducible(
                    "the numbers that are drawn are not those of a round", order.at(phase.signals[0]).span
                )
