"""Which values a read may return, for operands that a path must know: addresses, sizes, barrier numbers, tensor maps.

The paths are found again with the values that they themselves write, until there are no new ones. Only the bytes that
were
asked for, and those that their writes depend on, are followed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mcheck.errors import Unsupported
from mcheck.explore.state import State
from mcheck.graph.event import Event, Path
from mcheck.graph.structure import initial_bytes
from mcheck.graph.terms import Term, Uid, Unknown, evaluate, reads_of
from mcheck.program.program import Program

LIMIT = 64
"""Values of one read, and combinations of reads for one write."""

Place = tuple[int, int]
"""(physical address, size)"""


@dataclass(slots=True)
class PossibleValues:
    """Grows from the initial memory until it holds all that the paths write to the places asked for."""

    program: Program
    asked: dict[Place, set[int]] = field(default_factory=dict)
    new: bool = False

    def of(self, uid: Uid, state: State) -> tuple[int, ...]:
        """The raw values that an event may return, as far as they are known by now."""
        event = state.events[uid[1]]
        if not event.size:
            return (0, 1)
        return tuple(sorted(self._place((event.address, event.size))))

    def _place(self, place: Place) -> set[int]:
        known = self.asked.get(place)
        if known is None:
            initial = initial_bytes(self.program, *place)
            known = self.asked[place] = {initial} if isinstance(initial, int) else set()
            self.new = True
        return known

    def grow(self, found: list[list[Path]]) -> bool:
        """Adds what the paths write to the places asked for; whether the paths must be found again."""
        grown = False
        while True:
            self.new = False
            before = sum(len(v) for v in self.asked.values())
            for paths in found:
                for path in paths:
                    events = {e.uid: e for e in path.events}
                    for e in path.events:
                        if "W" in e.tags:
                            self._write(e, events)
            if not self.new and sum(len(v) for v in self.asked.values()) == before:
                return grown
            grown = True

    def _write(self, e: Event, events: dict[Uid, Event]) -> None:
        place = (e.address, e.size)
        known = self.asked.get(place)
        if known is None:
            if any(a < e.address + e.size and e.address < a + n for a, n in self.asked):
                raise Unsupported("an address or a barrier number is read in other pieces than it was written")
            return
        known |= _value_set(e.value, lambda uid: self._returned(uid, events))
        if len(known) > LIMIT:
            raise Unsupported(f"an operand may have more than {LIMIT} values")

    def _returned(self, uid: Uid, events: dict[Uid, Event]) -> set[int]:
        event = events[uid]
        return self._place((event.address, event.size)) if event.size else {0, 1}


def _value_set(term: Term, returned: Callable[[Uid], set[int]]) -> set[int]:
    """The values of a term when each event returns any of its values."""
    combinations: list[dict[Uid, int]] = [{}]
    for uid in sorted(reads_of(term)):
        values = returned(uid)
        combinations = [{**c, uid: v} for c in combinations for v in values]
        if len(combinations) > LIMIT:
            raise Unsupported("the value of an operand depends on too many reads to enumerate")
    out = set()
    for c in combinations:
        try:
            out.add(evaluate(term, c.__getitem__))
        except Unknown:
            continue
    return out
