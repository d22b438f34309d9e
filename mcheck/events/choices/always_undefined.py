"""Mbarrier operations that are undefined in every order of the operations on their object.

Their threads stop there, so that another misuse comes beside them, or of what stands behind them.
"""

from __future__ import annotations

from mcheck.events.event import Event
from mcheck.events.structure import Structure
from mcheck.findings.undefined_effects import continues_after
from mcheck.semantics.mbarrier import MAX_COUNT
from mcheck.semantics.terms import Uid

LIVES = ("init", "inval")


def find_always_undefined(s: Structure) -> tuple[Event, ...]:
    """The first operation on each object that is undefined by what its own thread has done to the object: where no
    other thread initialises or invalidates it, an init of one that holds an object, anything else on one that holds
    none (PTX ISA 9.0 sections 9.7.13.15.3 and .9). And what drops as many arrivals as are ever expected (9.7.13.15.14).
    """
    by_object: dict[int, list[Event]] = {}
    for event in s.events.values():
        if event.mbarrier is not None and event.order is not None:
            by_object.setdefault(event.mbarrier.address, []).append(event)
    found = [_first(s, events) for events in by_object.values()]
    found += [event for events in by_object.values() for event in _drops_all(s, events)]
    return tuple(event for event in found if event is not None)


def _drops_all(s: Structure, events: list[Event]) -> list[Event]:
    """The operations that leave no expected arrival, whatever came before: the initialisation says how many there are,
    where there is one alone, and they become no more. One with another count than there may be is undefined itself.
    """
    steps = [(event, event.mbarrier) for event in events if event.mbarrier is not None]
    expected = [step.count for _, step in steps if step.kind == "init"]
    if len(expected) != 1 or not 1 <= expected[0] <= MAX_COUNT:
        return []
    drops = (event for event, step in steps if step.kind == "drop" and step.count >= expected[0])
    return [event for event in drops if not continues_after(s.program, "UB207", event.op)]


def _first(s: Structure, events: list[Event]) -> Event | None:
    owners = {e.uid[0] for e in events if e.mbarrier is not None and e.mbarrier.kind in LIVES}
    valid = False
    for event in sorted((e for e in events if {e.uid[0]} == owners), key=lambda e: (e.order, e.uid)):
        assert event.mbarrier is not None
        kind = event.mbarrier.kind
        if (kind == "init") is valid:
            if not (valid and continues_after(s.program, "UB202", event.op)):
                return event
        elif kind in LIVES:
            valid = not valid
    return None


def is_only_misuse(s: Structure, never: tuple[Event, ...], uid: Uid) -> bool:
    """Whether what is misused at an event may be all that is: no other thread comes to one of these, nor its own before
    it; a signal is nothing that its thread waits for.
    """
    event = s.events[uid]
    for other in never:
        assert other.order is not None
        if other.uid != uid and (other.uid[0] != uid[0] or event.order is None or event.order > other.order):
            return False
    return True
