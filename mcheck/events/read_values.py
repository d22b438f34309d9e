"""The possible values of reads, for operands that a path must know: addresses, sizes, barrier numbers, tensor maps.

The paths are found again with the values that they themselves write, until there are no new ones. Only the bytes that
were
asked for, and those that their writes depend on, are followed.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import field
from operator import le

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.events.event import Event, Path
from mcheck.events.structure import initial_bytes
from mcheck.events.thread_state import State
from mcheck.ir.program import Program
from mcheck.semantics.terms import Term, Uid, Unknown, evaluate, reads_of

LIMIT = 64
"""Values of one read, and combinations of reads for one write."""

Place = tuple[int, int]
"""(physical address, size)"""
Cost = tuple[int, ...]
"""For each thread, how many of its writes it takes to come by a value."""
Ways = frozenset[Cost]
"""The costs of a value of which none is at most another one."""
Costs = dict[int, Ways]
MAX_WAYS = 8


@dataclass(slots=True)
class PossibleValues:
    """The values that the paths write to the locations asked for: a fixpoint from the initial memory.

    A value that justifies itself is none (8.10.4), so in an execution no write takes part twice in what led to a value:
    values that need more writes of a thread than its longest path holds are left out. That bounds a loop of
    compare-and-swap that increments, of which each thread succeeds once.
    """

    program: Program
    asked: dict[Place, Costs] = field(default_factory=dict)
    unsure: set[Place] = field(default_factory=set)
    """Those of the places asked for that may hold what nobody knows, beside these values."""
    new: bool = False

    def of(self, uid: Uid, state: State) -> tuple[int, ...] | None:
        """The raw values that an event may return, as known so far; ``None`` if nothing is known."""
        event = state.events[uid[1]]
        if not event.size:
            return None if {Tag.MET, Tag.ARRIVE} & event.tags else (0, 1)
        return tuple(sorted(self._place((event.address, event.size))))

    def open(self, uid: Uid, state: State) -> bool:
        """Whether a read may also return an unknown value."""
        event = state.events[uid[1]]
        place = event.address, event.size
        self._place(place)
        return place in self.unsure

    def _place(self, place: Place) -> Costs:
        known = self.asked.get(place)
        if known is None:
            initial = initial_bytes(self.program, *place)
            known = self.asked[place] = {initial: self._nothing()} if isinstance(initial, int) else {}
            if not known:
                self.unsure.add(place)
            self.new = True
        return known

    def _nothing(self) -> Ways:
        return frozenset({(0,) * len(self.program.threads)})

    def grow(self, found: list[list[Path]]) -> bool:
        """Add the writes of the paths to the locations asked for; returns whether to enumerate the paths again."""
        grown = False
        while True:
            self.new = False
            most = tuple(max((self._writes(p) for p in paths), default=0) for paths in found)
            before = [dict(v) for v in self.asked.values()]
            for paths in found:
                for path in paths:
                    events = {e.uid: e for e in path.events}
                    for e in path.events:
                        if Tag.W in e.tags:
                            self._write(e, events, path, most)
            if not self.new and before == list(self.asked.values()):
                return grown
            grown = True

    def _writes(self, path: Path) -> int:
        """The number of writes of a path to the locations asked for."""
        return sum(1 for e in path.events if Tag.W in e.tags and (e.address, e.size) in self.asked)

    def _write(self, e: Event, events: dict[Uid, Event], path: Path, most: Cost) -> None:
        place = (e.address, e.size)
        known = self.asked.get(place)
        if known is None:
            if any(a < e.address + e.size and e.address < a + n for a, n in self.asked):
                raise Unsupported("an address or a barrier number is read in other pieces than it was written")
            return
        # The path may have fixed what a read returned, which took writes as well.
        fixed = [self._returned(u, events).get(path.known[u]) for u in e.data if u in path.known]
        if None in fixed:
            return
        least = self._nothing()
        for ways in fixed:
            least = _both(least, ways or least)
        values, unknown = _value_set(e.value, lambda uid: self._returned(uid, events), least)
        for value, ways in values.items():
            own = {tuple(n + (k == path.thread) for k, n in enumerate(cost)) for cost in ways}
            own = {cost for cost in own if all(n <= m for n, m in zip(cost, most, strict=True))}
            if own:
                known[value] = _cheapest(own | known.get(value, frozenset()))
        if place not in self.unsure and (unknown or self._reads_unsure(e, events, path)):
            self.unsure.add(place)
            self.new = True
        if len(known) > LIMIT:
            raise Unsupported(f"an operand may have more than {LIMIT} values")

    def _reads_unsure(self, e: Event, events: dict[Uid, Event], path: Path) -> bool:
        """Whether a write depends on a read that may return an unknown value."""
        reads = (events[uid] for uid in reads_of(e.value) if uid not in path.known)
        return any((r.address, r.size) in self.unsure for r in reads)

    def _returned(self, uid: Uid, events: dict[Uid, Event]) -> Costs:
        event = events[uid]
        if event.size:
            return self._place((event.address, event.size))
        if Tag.MET in event.tags:
            raise Unsupported("the value of an operand comes from other lanes of the warp")
        if Tag.ARRIVE in event.tags:
            raise Unsupported("the value of an operand comes from the state of an mbarrier")
        return {0: self._nothing(), 1: self._nothing()}


def _both(a: Ways, b: Ways) -> Ways:
    """The cost of two values together: they may share writes."""
    return _cheapest({tuple(map(max, x, y)) for x in a for y in b})


def _cheapest(ways: AbstractSet[Cost]) -> Ways:
    """The minimal costs: those not above another one; if there are many, a lower bound of all."""
    found = frozenset(w for w in ways if not any(v != w and all(map(le, v, w)) for v in ways))
    return found if len(found) <= MAX_WAYS else frozenset({tuple(map(min, *found))})


def _value_set(term: Term, returned: Callable[[Uid], Costs], nothing: Ways) -> tuple[Costs, bool]:
    """The values of a term when each event returns any of its values, and whether it may have none that is known."""
    combinations: list[tuple[dict[Uid, int], Ways]] = [({}, nothing)]
    for uid in sorted(reads_of(term)):
        values = returned(uid)
        combinations = [({**c, uid: v}, _both(d, ways)) for c, d in combinations for v, ways in values.items()]
        if len(combinations) > LIMIT:
            raise Unsupported("the value of an operand depends on too many reads to enumerate")
    out: Costs = {}
    unknown = False
    for c, ways in combinations:
        try:
            value = evaluate(term, c.__getitem__)
        except Unknown:
            unknown = True
            continue
        out[value] = _cheapest(ways | out.get(value, frozenset()))
    return out, unknown
