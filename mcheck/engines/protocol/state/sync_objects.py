"""What threads meet at: mbarriers, execution barriers, words that strong operations share, signals in flight."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.events.event import Event
from mcheck.semantics import mbarrier as state_machine
from mcheck.semantics.terms import Term

Place = tuple[int, int, int]
"""(gpu, cluster, CTA)"""
When = tuple[int, int]
"""(life of an mbarrier object, phase)"""


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
    until: int = 0
    """What that component is at most while the phase of the signal is not over."""
    effect: tuple[int, int] = (0, 0)
    """What it adds to the pending arrivals of an mbarrier, and to its tx-count."""
    entries: tuple[Live, ...] = ()
    """Its events in the window, if it is an operation on an mbarrier."""
    loose: tuple[Done, ...] = ()
    """Those before it in the same phase that no axiom puts there
    (``mcheck.engines.protocol.operations.mbarrier_reordering``).
    """

    def known(self, time: Vector) -> bool:
        """Whether what happens at a time comes after it, so that it cannot come before it."""
        return time[self.signal] > self.until if self.signal >= 0 else time[self.agent] >= self.step


@dataclass(slots=True)
class PhaseOperations:
    """The live operations of one phase of an mbarrier, as sets of the window.

    ``signals`` are those that a wait for the phase observes, ``copies`` the memory operations that they complete,
    ``waits`` those that found the object in this phase, ``ending`` what completed it or invalidated the object.
    """

    acts: int = 0
    signals: int = 0
    copies: int = 0
    waits: int = 0
    ending: int = 0

    def forget(self, keep: int) -> None:
        """Drops events that are no longer live."""
        self.acts &= keep
        self.signals &= keep
        self.copies &= keep
        self.waits &= keep
        self.ending &= keep


@dataclass(slots=True)
class Mbarrier:
    """An mbarrier object. ``seen`` is its component in the vectors of time."""

    address: int
    seen: int
    state: state_machine.State | None = None
    generation: int = 0
    began: Done | None = None
    ended: Done | None = None
    renewed: list[Done] = field(default_factory=list)
    """The invalidations of the objects that the memory held before, and the initialisations that followed."""
    now: list[Done] = field(default_factory=list)
    before: list[Done] = field(default_factory=list)
    older: dict[int, list[Done]] = field(default_factory=dict)
    """The operations of earlier phases than that of ``before``, as far back as a stale look may find one."""
    looks: list[Done] = field(default_factory=list)
    """Waits since the current phase began."""
    failed: list[Done] = field(default_factory=list)
    """Operations that were undefined: others could come before them, to other effect."""
    phases: dict[When, PhaseOperations] = field(default_factory=dict)
    time: Vector = field(default_factory=list)
    next_time: Vector = field(default_factory=list)
    times: dict[int, Vector] = field(default_factory=dict)
    """When the latest phases were complete."""
    waited: set[When] = field(default_factory=set)
    """The phases that some wait saw complete."""
    glimpsed: set[When] = field(default_factory=set)
    """Those that a look saw complete which may take effect later (``Setup.late``), and perhaps see another phase."""
    arrived: dict[When, Event] = field(default_factory=dict)
    """The first arrival of each phase."""
    unannounced: list[Problem] = field(default_factory=list)
    """What is said of the bytes that nobody announced to earlier objects, if the execution comes to its end."""
    expected_bytes: int = 0
    got_bytes: int = 0
    known: dict[int, int] = field(default_factory=dict)
    """By agent, the last phase that it saw complete."""
    joined: int = -1
    """The last phase whose operations are no longer told from those of earlier ones."""

    def count(self, phase: int) -> int:
        """What the component of the object is in a time at which so many of its phases are over: more than for all
        phases of an object that the memory held before, which say nothing of these.
        """
        return (self.generation - 1) * PHASES + phase

    def at(self, phase: int) -> PhaseOperations:
        """The operations of a phase of the present object."""
        return self.phases.setdefault((self.generation, phase), PhaseOperations())

    def earlier(self, phase: int) -> tuple[PhaseOperations, PhaseOperations]:
        """(those of all phases before this one, those of the same object alone)."""
        every, own = PhaseOperations(), PhaseOperations()
        for (life, number), acts in self.phases.items():
            if (life, number) >= (self.generation, phase):
                continue
            for into in (every, own) if life == self.generation else (every,):
                into.acts |= acts.acts
                into.signals |= acts.signals
                into.copies |= acts.copies
                into.waits |= acts.waits
        return every, own

    def before_phase(self, phase: int) -> tuple[int, int]:
        """The operations of all phases before this one, and the waits that found the object in one of them."""
        acts = waits = 0
        for when, found in self.phases.items():
            if when < (self.generation, phase):
                acts |= found.acts
                waits |= found.waits
        return acts, waits

    def done_in(self, phase: int) -> list[Done]:
        """The operations of a phase that is over, in their order: the last one has completed it."""
        if self.state is not None and phase == self.state.phase - 1:
            return self.before
        return self.older.get(phase, [])

    def told_as(self, when: When) -> When:
        """The phase as waits to come tell it from others: what is before all that they find is one to them."""
        life, number = when
        if self.state is None or life != self.generation or number < 0:
            return when
        return life, max(number, self.state.phase - KEPT_PHASES - 1)

    def since(self, when: When) -> tuple[int, int | str]:
        """A phase, from the present one of the object that there is; those that are long over are alike."""
        life, phase = when
        assert self.state is not None
        recent = life == self.generation and phase > self.joined
        return life - self.generation, phase - self.state.phase if recent else "over"

    def forget(self, keep: int) -> None:
        """Drops events that are no longer live, and joins phases that are long over."""
        for acts in self.phases.values():
            acts.forget(keep)
        if self.state is None:
            return
        old = [k for k in self.phases if k[0] == self.generation and 0 <= k[1] < self.state.phase - KEPT_PHASES]
        self.joined = max([self.joined, *(k[1] for k in old)])
        self.older = {phase: dones for phase, dones in self.older.items() if phase > self.joined}
        if len(old) > 1:
            last = self.phases[max(old)]
            for key in old:
                if key != max(old):
                    acts = self.phases.pop(key)
                    last.acts |= acts.acts
                    last.signals |= acts.signals
                    last.copies |= acts.copies
                    last.waits |= acts.waits


PHASES = 1 << 40
"""More than an object ever has."""
KEPT_PHASES = 1
"""Phases before the current one that a stale look may still find."""


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
    issues: tuple[Live, ...]


@dataclass(slots=True)
class Rendezvous:
    """An execution barrier. ``here`` are the agents that have arrived in this round, ``brought`` their arrivals and
    when they came, ``warps`` those of each warp.
    """

    key: tuple[object, ...]
    members: frozenset[int] = frozenset()
    """The agents that it waits for if it has no count."""
    round: int = 0
    count: int | None = None
    here: dict[int, Done] = field(default_factory=dict)
    again: dict[int, list[Done]] = field(default_factory=dict)
    """Further arrivals of an agent in this round, beside the first, which is in ``here``."""
    brought: dict[int, tuple[int, Vector]] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    arrivals: int = 0
    time: Vector = field(default_factory=list)
    before: list[Done] = field(default_factory=list)
    failed: list[Done] = field(default_factory=list)
    votes: dict[int, list[int | None]] = field(default_factory=dict)
    own: dict[int, list[tuple[Term, ...]]] = field(default_factory=dict)
    """Operands that only the lane itself looks at, of those who exchange values."""
    warps: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    last: int = 0
    """The live arrivals of the last complete round."""


@dataclass(slots=True, eq=False)
class Written:
    """A write to a shared word, in coherence order: its value and its events in the window."""

    agent: int
    step: int
    value: int | None
    time: Vector
    entries: tuple[Live, ...] = ()
    event: Event | None = None
    kind: str = ""
    position: int = -1

    @property
    def bits(self) -> int:
        """The write as a set of the window."""
        return to_mask(self.entries)

    @property
    def name(self) -> int:
        """What it is called in every order of the steps: by its agent, and the step there."""
        return (self.agent + 1) * WRITES + self.step


WRITES = 1 << 40
"""More than there are steps of one agent."""
NOTHING = -1
"""Instead of the name of a write: none of them."""
COPIED = "copied"
"""What an asynchronous operation writes; its value is known once its reads have returned (``overwritten``)."""
ORDERED = frozenset(("read", "write", "atomic", COPIED))
"""Kinds of accesses of which each has its place; every other kind is a function, and two that are alike may change
places.
"""


@dataclass(slots=True)
class Word:
    """A word that strong operations access. ``written`` are all its live writes."""

    address: int
    size: int
    writes: list[Written] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    version: int = 0
    written: int = 0
    taken: int | None = None
    """The write that an asynchronous reduction has just read, behind which its own comes."""
