"""The rounds of a barrier with a count: which arrivals complete each, and what may come too early (PTX ISA 9.7.13.1).

A warp arrives once in a round, and all that arrive in it give one count and one kind. An arrival that may come while a
round to which it does not belong is open is undefined behaviour: the options say what must come before what for that,
as pairs of ``rounds``, and the model tells whether it can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from mcheck.errors import Unsupported
from mcheck.explore.choices import Option
from mcheck.graph.event import BarrierStep
from mcheck.graph.terms import Uid

WARP = 32
MAX_ASSIGNMENTS = 4096

COUNTS = ("UB304", "threads give one barrier different counts")
MIXED = ("UB304", "bar.red meets another kind of barrier instruction")
AGAIN = ("UB303", "arrives at a barrier again before its round is complete")

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Arrival:
    """One arrival of a warp: its barrier step, its first event, its graph events, the resumptions that wait for it,
    whether it is left standing.
    """

    step: BarrierStep
    uid: Uid
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    standing: bool

    @property
    def use(self) -> tuple[int | None, bool]:
        """What all arrivals of a round have in common."""
        return self.step.count, self.step.kind == "red"


Units = list[list[Arrival]]
"""The arrivals of each warp in program order."""


@dataclass(slots=True)
class _Search:
    units: Units
    found: dict[object, Option] = field(default_factory=dict)

    def needed(self, arrival: Arrival) -> int:
        """The warps that a round of this count has; without one, all."""
        return warps_needed(self.units, arrival)

    def note(self, option: Option) -> None:
        """Keeps an option once."""
        self.found.setdefault((option.edges, option.misstep), option)
        if len(self.found) > MAX_ASSIGNMENTS:
            raise Unsupported("too many ways to fill a named barrier")


def warps_needed(units: Units, arrival: Arrival) -> int:
    """How many warps complete a round of the count of an arrival."""
    return arrival.step.count // WARP if arrival.step.count else len(units)


def fill(units: Units) -> list[Option]:
    """Every way to fill the rounds; none if these paths cannot be: a thread passes a barrier that does not complete, or
    stands at one that does.
    """
    search = _Search(units)
    _fill(search, tuple(0 for _ in units), (), (), ())
    return list(search.found.values())


def _fill(search: _Search, at: tuple[int, ...], before: tuple[int, ...], pairs: Pairs, order: Pairs) -> None:
    """The rounds from here. ``before`` are the arrivals of the last complete round."""
    units = search.units
    ready = {u: unit[k] for u, (unit, k) in enumerate(zip(units, at, strict=True)) if k < len(unit)}
    _misuses(search, at, ready, before, pairs, order)
    completed = False
    for use in {a.use for a in ready.values()}:
        alike = [u for u, a in ready.items() if a.use == use]
        for chosen in combinations(alike, search.needed(ready[alike[0]])):
            completed = True
            here = [ready[u] for u in chosen]
            if any(a.standing for a in here):
                continue
            new = tuple((a, b) for x in here for a in x.sources for y in here for b in y.targets)
            now = tuple(n for x in here for n in x.sources)
            after = tuple(k + (u in chosen) for u, k in enumerate(at))
            _fill(search, after, now, pairs + new, order + _product(before, now))
    if not completed and not any(a.targets for a in ready.values()):
        # what is left are arrivals that nobody waits for, or that wait for ever
        left = tuple(n for a in ready.values() for n in a.sources)
        if len({a.use for a in ready.values()}) < 2 and not any(next_of(units[u], at[u]) for u in ready):
            search.note(Option((("barrier", pairs), ("rounds", order + _product(before, left)))))


def _misuses(
    search: _Search,
    at: tuple[int, ...],
    ready: dict[int, Arrival],
    before: tuple[int, ...],
    pairs: Pairs,
    order: Pairs,
) -> None:
    """What may come too early while the next round is open, with what has arrived in it by then."""
    for culprit, code, there in (*_strangers(search, ready), *_returning(search, at, ready)):
        first = culprit.sources[0]
        later = {
            n
            for u, k in enumerate(at)
            for number, a in enumerate(search.units[u][k:])
            for n in (*(() if u in there and number == 0 else a.sources), *a.targets)
            if n not in culprit.sources
        }
        now = (*(n for u in there for n in ready[u].sources),)
        edges = order + _product(before, (*now, first)) + _product(now, (first,)) + tuple((first, n) for n in later)
        search.note(Option((("barrier", pairs), ("rounds", edges)), misstep=(*code, culprit.uid)))


def _strangers(
    search: _Search, ready: dict[int, Arrival]
) -> Iterator[tuple[Arrival, tuple[str, str], tuple[int, ...]]]:
    """Arrivals with another count or kind than one that has arrived."""
    for u, first in ready.items():
        for other in ready.values():
            if search.needed(first) > 1 and other.use != first.use:
                yield other, COUNTS if other.step.count != first.step.count else MIXED, (u,)


def _returning(
    search: _Search, at: tuple[int, ...], ready: dict[int, Arrival]
) -> Iterator[tuple[Arrival, tuple[str, str], tuple[int, ...]]]:
    """Second arrivals of a warp, with as many others there as leave the round open."""
    for u, first in ready.items():
        again = next_of(search.units[u], at[u])
        needed = search.needed(first)
        if again is not None and needed > 1:
            others = [v for v in ready if v != u and ready[v].use == first.use]
            code = AGAIN if again.use == first.use else COUNTS if again.step.count != first.step.count else MIXED
            for there in combinations(others, min(needed - 2, len(others))):
                yield again, code, (u, *there)


def next_of(unit: list[Arrival], k: int) -> Arrival | None:
    """The arrival of a warp after one that does not wait."""
    return unit[k + 1] if k + 1 < len(unit) and not unit[k].targets and not unit[k].standing else None


def _product(first: tuple[int, ...], second: tuple[int, ...]) -> Pairs:
    return tuple((a, b) for a in first for b in second)
