"""What threads meet at: mbarriers, execution barriers, words that strong operations share, signals in flight."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcheck.executor import mbarrier as state_machine
from mcheck.graph.event import Event
from mcheck.protocol.clocks import Know, Vector
from mcheck.protocol.history import Record

Place = tuple[int, int, int]
Source = tuple[str, Place, bool]
"""Scope and place of a release, and whether it is the release half of a proxy fence, which only an acquire half
takes.
"""
Handed = dict[Source, Know]


def hand(into: Handed, source: Source, know: Know) -> None:
    """Adds what a release hands over."""
    known = into.get(source)
    into[source] = know if known is None else known.join(know)


@dataclass(slots=True)
class Done:
    """An operation on a shared object: who, at which step, where in the trace, what it knew of time."""

    agent: int
    step: int
    position: int
    time: Vector
    event: Event
    kind: str
    phase: int
    signal: int = -1
    """The component of the mbarrier if this is a completion signal."""


@dataclass(slots=True)
class Mbarrier:
    """An mbarrier object with what its phases hand over. ``seen`` and ``born`` are its components in the vectors."""

    address: int
    label: str
    seen: int
    born: int
    state: state_machine.State | None = None
    generation: int = 0
    began: Done | None = None
    ended: Done | None = None
    now: list[Done] = field(default_factory=list)
    before: list[Done] = field(default_factory=list)
    looks: list[Done] = field(default_factory=list)
    """Waits since the current phase began."""
    failed: list[Done] = field(default_factory=list)
    """Operations that were undefined: others could come before them, to other effect."""
    handed: Handed = field(default_factory=dict)
    next_handed: Handed = field(default_factory=dict)
    time: Vector = field(default_factory=list)
    next_time: Vector = field(default_factory=list)
    waited: set[int] = field(default_factory=set)
    arrived: dict[int, Event] = field(default_factory=dict)
    expected_bytes: int = 0
    got_bytes: int = 0
    known: dict[int, int] = field(default_factory=dict)
    """By agent, the last phase that it saw complete."""


@dataclass(slots=True)
class Signal:
    """A completion signal of an asynchronous operation, on its way to an mbarrier."""

    key: tuple[int, int, int]
    agent: int
    step: int
    address: int
    kind: str
    tx: int
    count: int
    time: Vector
    event: Event
    records: list[Record]


@dataclass(slots=True)
class Rendezvous:
    """An execution barrier. ``here`` are the agents that have arrived in this round, ``brought`` what they know and
    when they came, ``warps`` those of each warp.
    """

    key: tuple[object, ...]
    members: frozenset[int] = frozenset()
    """The agents that it waits for if it has no count."""
    round: int = 0
    count: int | None = None
    here: dict[int, Done] = field(default_factory=dict)
    brought: dict[int, tuple[Know, Vector]] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    know: Know | None = None
    handed: Handed = field(default_factory=dict)
    time: Vector = field(default_factory=list)
    before: list[Done] = field(default_factory=list)
    failed: list[Done] = field(default_factory=list)
    votes: dict[int, list[int | None]] = field(default_factory=dict)
    warps: dict[tuple[int, int], set[int]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Written:
    """A write to a shared word, in coherence order: its value, and what reading it hands over."""

    agent: int
    step: int
    value: int | None
    handed: Handed
    time: Vector
    scope: str | None
    place: Place
    event: Event | None
    observers: list[tuple[int, int]] = field(default_factory=list)
    records: tuple[Record, ...] = ()
    """Of the write, and of the read of the same atomic."""
    seen: Written | None = None
    """The write that the atomic observed: who observes the one observes the other (8.9.2)."""


@dataclass(slots=True)
class Word:
    """A word that strong operations access."""

    address: int
    size: int
    writes: list[Written] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    version: int = 0
