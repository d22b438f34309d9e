"""Entries of a window: live events, the flags that hold of them, sets of events as bit masks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcheck.base.declared_state import (
    SHALLOW,
    SHARED,
    VALUE,
    Attribute,
    Unnamed,
    declare_state,
    read_from,
    state,
)
from mcheck.base.records import dataclass
from mcheck.engines.protocol.state.naming import EDGES, LIVE_EVENT, NUMBER, SORT
from mcheck.events.event import Event


@dataclass(slots=True, eq=False)
class Entry:
    """A live event in the window.

    ``edges`` are the sources of its incoming base edges by relation, ``back`` the targets of edges that lead from it to
    earlier events. ``exact``: its address is known; other memory events may be anywhere, and whoever looks for
    conflicts has to allow for that.
    """

    event: Event
    thread: int
    sets: frozenset[str]
    exact: bool
    edges: dict[str, int]
    back: dict[str, int]
    sort: int
    instruction: object = None
    slot: int = -1
    time: int = -1
    stand_in: Entry | None = None
    """The event that this one was merged into."""

    @property
    def bit(self) -> int:
        """The event, or the one that it was merged into, as a mask."""
        entry = self
        while entry.stand_in is not None:
            entry = entry.stand_in
        if entry is not self:
            self.stand_in = entry
        return 1 << entry.slot

    @property
    def representative(self) -> Entry | None:
        """The event that it was merged into in the end, if any."""
        entry = self.stand_in
        while entry is not None and entry.stand_in is not None:
            entry = entry.stand_in
        return entry


declare_state(
    Entry,
    event=Attribute(SHARED, LIVE_EVENT),
    thread=VALUE,
    sets=VALUE,
    exact=VALUE,
    edges=Attribute(SHALLOW, EDGES),
    back=Attribute(SHALLOW, EDGES),
    sort=Attribute(SHARED, SORT),
    instruction=Attribute(SHARED, Unnamed("no later event is of this instruction")),
    slot=NUMBER,
    time=NUMBER,
    stand_in=Attribute(
        read_from("representative", state("Entry")),
        Unnamed("the event that it was merged into is named instead"),
    ),
)


def to_mask(entries: Iterable[Entry]) -> int:
    """Return a mask of some events."""
    out = 0
    for entry in entries:
        out |= entry.bit
    return out


def union(sets: Iterable[int]) -> int:
    """Return the union of some masks."""
    out = 0
    for members in sets:
        out |= members
    return out


@dataclass(frozen=True, slots=True)
class Flagged:
    """A flag that holds of the new event: ``pairs`` are the earlier events, ``own`` if it holds of the event alone."""

    name: str
    pairs: int
    own: bool


@dataclass(frozen=True, slots=True)
class Check:
    """An axiom or a flag as the window evaluates it."""

    name: str
    node: int
    test: str
    role: str
    monotone: bool = False
    """Whether a cycle, once found, remains one whatever edges are added."""


MANY = 16
"""Members of a mask from which on its digits are searched."""


def bits(mask: int) -> Iterator[int]:
    """Return the members of a mask, in ascending order."""
    found = []
    if mask.bit_count() > MANY:  # to take one from a long mask costs as much as the mask is wide
        digits = f"{mask:b}"[::-1]
        k = digits.find("1")
        while k >= 0:
            found.append(k)
            k = digits.find("1", k + 1)
        return iter(found)
    while mask:  # from the top: to make a long mask negative costs as much as five steps
        k = mask.bit_length() - 1
        found.append(k)
        mask ^= 1 << k
    return reversed(found)


class Masks:
    """Live events by a key that they share.

    Added events are put into the mask of their key when it is asked for: it is as wide as all events, and those of most
    keys are asked for late or never.
    """

    __slots__ = ("_masks", "_new")

    def __init__(self, masks: dict[object, int] | None = None) -> None:
        self._masks = masks or {}
        self._new: dict[object, list[int]] = {}

    def add(self, key: object, slot: int) -> None:
        """Add an event under a key."""
        found = self._new.get(key)
        if found is None:
            self._new[key] = [slot]
        else:
            found.append(slot)

    def get(self, key: object) -> int:
        """Return the events with a key."""
        if key in self._new:
            self._gather(key)
        return self._masks.get(key, 0)

    @property
    def by_key(self) -> dict[object, int]:
        """The events by key."""
        for key in list(self._new):
            self._gather(key)
        return self._masks

    def put(self, key: object, events: int) -> None:
        """Set the events with a key."""
        self._new.pop(key, None)
        self._masks[key] = events

    def _gather(self, key: object) -> None:
        slots = self._new.pop(key)
        first = min(slots)
        mask = 0
        for slot in slots:
            mask |= 1 << slot - first
        self._masks[key] = self._masks.get(key, 0) | mask << first

    def drop(self, keep: int) -> None:
        """Remove all events outside ``keep``."""
        self._masks = {k: left for k, m in self.by_key.items() if (left := m & keep)}

    def copy(self) -> Masks:
        """Return a copy, which later additions to this one do not change."""
        return Masks(dict(self.by_key))


LARGE = 2048
"""From so many slots on, a set is compared with those of late events, to be kept once."""

KEYS = (
    "thread", "memory", "anywhere", "loc", "vloc", "footprint", "cta", "cluster", "gpu", "scope", "block", "object",
    "sort", "displaced",
)  # fmt: skip
