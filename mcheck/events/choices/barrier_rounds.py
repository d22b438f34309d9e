"""Generations of a barrier with a count: the arrivals that complete each, and arrivals that may be too early (PTX ISA
9.7.13.1).

Every arrival of a warp counts, also a second one of a warp that did not wait at its first (open question Q22). All
that arrive in a round give one count and one kind. An arrival of another use that may come while a round is open is
undefined behaviour: the options say what must come before what for that, as pairs of ``rounds``, and the model tells
whether it can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import accumulate, permutations

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass, replace
from mcheck.events.choices.candidate import Option
from mcheck.events.event import BarrierStep
from mcheck.semantics.terms import Uid

WARP = 32
MAX_ASSIGNMENTS = 4096
MAX_WORK = 1_000_000

TOO_MANY = "too many ways to fill a named barrier"
COUNTS = ("UB304", "threads give one barrier different counts")
MIXED = ("UB304", "bar.red meets another kind of barrier instruction")

Pairs = tuple[tuple[int, int], ...]
Use = tuple[int | None, bool]
"""The count that an arrival gives, and whether it takes part in a reduction."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One arrival of a warp: its barrier step, its first event, its graph events, the resumptions that wait for it,
    whether it is left standing. ``lanes`` are the arrivals of its lanes, where it has several; ``mixed``: they use the
    barrier in different ways, so that there is no such arrival. ``stopped`` are the last events of lanes that have
    stopped at what is undefined, for which the others have waited until then.
    """

    step: BarrierStep
    uid: Uid
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    standing: bool
    lanes: tuple[Arrival, ...] = ()
    mixed: bool = False
    stopped: tuple[int, ...] = ()

    @property
    def use(self) -> Use:
        """The properties that all arrivals of a generation have in common."""
        return self.step.count, self.step.kind == "red"

    @property
    def each(self) -> tuple[Arrival, ...]:
        """The arrivals of its lanes."""
        return self.lanes or (self,)

    def before_mates(self, warp: Arrival) -> Arrival:
        """This arrival of a lane, with the events of the others, whose time does not matter."""
        return replace(self, sources=tuple(dict.fromkeys((*self.sources, *warp.sources))))

    @property
    def uses(self) -> set[Use]:
        """The uses of the barrier by its lanes."""
        return {lane.use for lane in self.each}

    @property
    def waits(self) -> bool:
        """Whether a lane waits for the generation to complete."""
        return bool(self.targets) or self.standing


Units = list[list[Arrival]]
"""The arrivals of each warp in program order."""


@dataclass(frozen=True, slots=True)
class LaneExits:
    """The exits for which a barrier without a count does not wait: by unit those of its lanes, ``None`` if one of them
    does not exit on these paths; ``others`` are those of the warps that never come.
    """

    units: tuple[tuple[int, ...] | None, ...]
    others: tuple[int, ...] | None

    def gone(self, units: Units, at: tuple[int, ...]) -> tuple[int, ...] | None:
        """The exits before a generation with all warps that have further arrivals; ``None`` if it never completes."""
        found = [self.others, *(self.units[u] for u, k in enumerate(at) if k == len(units[u]))]
        return None if None in found else tuple(n for exits in found for n in exits or ())


@dataclass(slots=True)
class _Search:
    units: Units
    leaving: LaneExits
    found: dict[object, Option] = field(default_factory=dict)
    work: int = 0

    def needed(self, arrival: Arrival, at: tuple[int, ...]) -> int:
        """The warps that a round of this count has; without one, all that have not exited."""
        if arrival.step.count:
            return arrival.step.count // WARP
        if self.leaving.gone(self.units, at) is None:
            return len(self.units) + 1
        return sum(k < len(unit) for unit, k in zip(self.units, at, strict=True))

    def note(self, option: Option) -> None:
        """Record an option, without duplicates."""
        self.found.setdefault((option.edges, option.misstep), option)
        if len(self.found) > MAX_ASSIGNMENTS:
            raise Unsupported(TOO_MANY)

    def worked(self, amount: int) -> None:
        """Counts what is looked at and written: ways that lead nowhere are not kept, and may be exponentially many."""
        self.work += amount
        if self.work > MAX_WORK:
            raise Unsupported(TOO_MANY)


def fill_rounds(units: Units, leaving: LaneExits) -> list[Option]:
    """Every way to fill the rounds; none if these paths cannot be: a thread passes a barrier that does not complete, or
    stands at one that does.
    """
    search = _Search(units, leaving)
    _fill(search, tuple(0 for _ in units), (), (), (), ())
    return list(search.found.values())


def _fill(
    search: _Search, at: tuple[int, ...], before: tuple[int, ...], pairs: Pairs, order: Pairs, exited: Pairs
) -> None:
    """The rounds from here. ``before`` are the arrivals of the last complete round."""
    units = search.units
    ready = {u: unit[k] for u, (unit, k) in enumerate(zip(units, at, strict=True)) if k < len(unit)}
    _misuses(search, at, ready, before, pairs, order, exited)
    completed = False
    for chosen in _rounds(search, at):
        completed = True
        here = [units[u][at[u] + n] for u, count in chosen.items() for n in range(count)]
        if any(a.standing for a in here):
            continue
        new = tuple((a, b) for x in here for a in x.sources for y in here for b in y.targets)
        now = tuple(n for x in here for n in x.sources)
        search.worked(len(pairs) + len(new) + len(order) + len(before) * len(now))
        after = tuple(k + chosen.get(u, 0) for u, k in enumerate(at))
        behind_stops = tuple((n, b) for x in here for n in x.stopped for b in x.targets)
        gone = () if here[0].step.count else search.leaving.gone(units, at) or ()
        behind = _product(gone, tuple(b for x in here for b in x.targets))
        _fill(search, after, now, pairs + new, order + _product(before, now) + behind_stops, exited + behind)
    rest = [a for unit, k in zip(units, at, strict=True) for a in unit[k:]]
    if not completed and not any(a.targets for a in rest) and len(_uses(rest)) < 2:
        # what is left are arrivals that nobody waits for, or that wait forever
        left = tuple(n for a in rest for n in a.sources)
        edges = (("barrier", pairs), ("rounds", order + _product(before, left)), ("exited", exited))
        search.note(Option(edges))


def _rounds(search: _Search, at: tuple[int, ...]) -> Iterator[dict[int, int]]:
    """Every way to complete the next round: how many of its next arrivals each warp contributes."""
    ready = (unit[k] for unit, k in zip(search.units, at, strict=True) if k < len(unit))
    for use, first in {a.use: a for a in ready if not a.mixed}.items():
        needed = search.needed(first, at)
        most = {u: n for u, k in enumerate(at) if (n := len(_joint_arrivals(search.units[u], k, use)))}
        yield from _contributions(search, most, needed, needed)


def _joint_arrivals(unit: list[Arrival], k: int, use: object) -> list[Arrival]:
    """The next arrivals of a warp that may fall into one round: all of one use, and none after one that waits."""
    out: list[Arrival] = []
    for arrival in unit[k:]:
        if arrival.use != use or arrival.mixed:
            break
        out.append(arrival)
        if arrival.waits:
            break
    return out


def _misuses(
    search: _Search,
    at: tuple[int, ...],
    ready: dict[int, Arrival],
    before: tuple[int, ...],
    pairs: Pairs,
    order: Pairs,
    exited: Pairs,
) -> None:
    """Arrivals of another use that may come while the next round is open, with what has arrived in it by then."""
    if len(_uses(a for unit, k in zip(search.units, at, strict=True) for a in unit[k:])) < 2:
        return

    def note(first: Arrival, there: dict[int, int], arrived: tuple[int, ...], culprit: Arrival) -> None:
        code = COUNTS if culprit.step.count != first.step.count else MIXED
        here = (n for u, count in there.items() for a in search.units[u][at[u] :][:count] for n in a.sources)
        now = (*here, *arrived)
        later = {
            n
            for u, k in enumerate(at)
            for number, a in enumerate(search.units[u][k:])
            for n in (*(() if number < there.get(u, 0) else a.sources), *a.targets)
            if n not in culprit.sources and n not in arrived
        }
        comes = culprit.sources[0]
        search.worked(len(order) + (len(before) + 1) * (len(now) + 1) + len(later))
        edges = order + _product(before, (*now, comes)) + _product(now, (comes,)) + _product((comes,), (*later,))
        given = (("barrier", pairs), ("rounds", edges), ("exited", exited))
        search.note(Option(given, misstep=(*code, culprit.uid)))

    for use, first in {a.use: a for a in ready.values() if not a.mixed}.items():
        for there in _open(search, at, use, search.needed(first, at)):
            for culprit in _conflicting_arrivals(search, at, use, there):
                note(first, there, (), culprit)
    for u, arrival in ready.items():
        for one, other in permutations(arrival.lanes, 2) if arrival.mixed else ():
            if one.use != other.use:
                for there in _open(search, at, one.use, search.needed(one, at), least=0, without=u):
                    note(one, there, one.sources, other.before_mates(arrival))


def _uses(arrivals: Iterable[Arrival]) -> set[Use]:
    """The uses of the barrier by some arrivals."""
    return {use for a in arrivals for use in a.uses}


def _open(
    search: _Search, at: tuple[int, ...], use: object, needed: int, *, least: int = 1, without: int = -1
) -> Iterator[dict[int, int]]:
    """Every state in which a round of this use is open: how many arrivals of each warp are there, ``without`` one."""
    most = {u: n for u, k in enumerate(at) if u != without and (n := len(_joint_arrivals(search.units[u], k, use)))}
    yield from _contributions(search, most, least, needed - 1)


def _contributions(search: _Search, most: dict[int, int], least: int, greatest: int) -> Iterator[dict[int, int]]:
    """Every choice of arrivals, at most so many of each warp, that has from ``least`` to ``greatest`` of them."""
    warps = list(most)
    able = [*accumulate((most[u] for u in reversed(warps)), initial=0)][::-1]  # of the warps from a place on

    def choose(k: int, chosen: dict[int, int], total: int) -> Iterator[dict[int, int]]:
        if k == len(warps):
            search.worked(len(warps))
            yield chosen
            return
        u = warps[k]
        for n in range(max(0, least - total - able[k + 1]), min(most[u], greatest - total) + 1):
            yield from choose(k + 1, {**chosen, u: n} if n else chosen, total + n)

    return choose(0, {}, 0)


def _conflicting_arrivals(
    search: _Search, at: tuple[int, ...], use: object, there: dict[int, int]
) -> Iterator[Arrival]:
    """The next arrivals of the lanes that do not wait in a round, as far as they are of another use."""
    for u, unit in enumerate(search.units):
        k = at[u] + there.get(u, 0)
        if k < len(unit):
            waiting = {x.uid[0] for x in unit[k - 1].each if x.waits} if u in there else ()
            found: dict[Use, Arrival] = {}
            for lane in unit[k].each:
                if lane.use != use and lane.uid[0] not in waiting:
                    found.setdefault(lane.use, lane.before_mates(unit[k]))
            yield from found.values()


def next_arrival(unit: list[Arrival], k: int) -> Arrival | None:
    """The arrival of a warp after one that does not wait."""
    return unit[k + 1] if k + 1 < len(unit) and not unit[k].waits else None


def _product(first: tuple[int, ...], second: tuple[int, ...]) -> Pairs:
    return tuple((a, b) for a in first for b in second)
