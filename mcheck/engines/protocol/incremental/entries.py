"""What a window holds: events, what the flags of a model say of them, sets of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mcheck.events.event import Event


@dataclass(slots=True, eq=False)
class Entry:
    """An event in the window.

    ``edges`` are the sources of its incoming base edges by relation, ``back`` the targets of edges that lead from it
    to earlier events. ``exact`` says that its address counts: other memory events may be anywhere, which those who look
    for conflicts know. ``where`` is the address as far as fences and objects ask for it.
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
    """The event that it has become one with."""

    @property
    def bit(self) -> int:
        """The event, or the one that stands for it, as a set."""
        entry = self
        while entry.stand_in is not None:
            entry = entry.stand_in
        if entry is not self:
            self.stand_in = entry
        return 1 << entry.slot


def sum_of(entries: Iterable[Entry]) -> int:
    """Some events as a set of the window."""
    out = 0
    for entry in entries:
        out |= entry.bit
    return out


def union(sets: Iterable[int]) -> int:
    """The union of some sets of the window."""
    out = 0
    for members in sets:
        out |= members
    return out


@dataclass(frozen=True, slots=True)
class Flagged:
    """What a flag of the model says of the new event: the earlier ones that it forms a pair with, ``own`` if it is
    about the new event alone.
    """

    name: str
    pairs: int
    own: bool


@dataclass(frozen=True, slots=True)
class Check:
    """An axiom or a flag as the window asks it."""

    name: str
    node: int
    test: str
    role: str
    monotone: bool = False
    """Whether a circle, once found, stays: it is one whatever else is ordered."""


def bits(mask: int) -> Iterator[int]:
    """The members of a set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Masks:
    """Which live events share a key."""

    __slots__ = ("of",)

    def __init__(self) -> None:
        self.of: dict[object, int] = {}

    def add(self, key: object, bit: int) -> None:
        """Adds an event under a key."""
        of = self.of
        of[key] = of[key] | bit if key in of else bit

    def get(self, key: object) -> int:
        """The events with a key."""
        return self.of.get(key, 0)

    def drop(self, keep: int) -> None:
        """Forgets all other events."""
        self.of = {k: left for k, m in self.of.items() if (left := m & keep)}


KEYS = (
    "thread", "memory", "anywhere", "loc", "vloc", "footprint", "cta", "cluster", "gpu", "scope", "block", "object",
    "instruction", "sort",
)  # fmt: skip
