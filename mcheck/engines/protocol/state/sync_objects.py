"""The synchronisation objects of an execution: mbarriers, execution barriers, tracked words, signals in flight."""

from __future__ import annotations

from dataclasses import field

from mcheck.base.declared_state import (
    SHALLOW,
    SHARED,
    VALUE,
    Attribute,
    Unnamed,
    declare_state,
    listed,
    mapped,
    optional,
    state,
    tupled,
)
from mcheck.base.records import dataclass
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.state import naming as by
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.events.event import Event
from mcheck.semantics import mbarrier as state_machine
from mcheck.semantics.terms import Term

Placement = tuple[int, int, int]
"""(gpu, cluster, CTA)"""
PhaseId = tuple[int, int]
"""(lifetime of an mbarrier object, phase)"""


@dataclass(slots=True)
class SyncOperation:
    """An operation on a synchronisation object: its agent, step, position in the trace, and vector clock."""

    agent: int
    step: int
    position: int
    time: Vector
    event: Event
    kind: str
    phase: int
    signal: int = -1
    """The clock component of the mbarrier if this is a completion signal, else -1."""
    clock_bound: int = 0
    """The largest value of that component while the signal's phase is not over."""
    effect: tuple[int, int] = (0, 0)
    """What it adds to the pending arrivals of an mbarrier, and to its tx-count."""
    entries: tuple[Live, ...] = ()
    """Its events in the window, if it is an operation on an mbarrier."""
    reorderable: tuple[SyncOperation, ...] = ()
    """The operations before it in the same phase that no axiom orders before it
    (``mcheck.engines.protocol.operations.mbarrier_reordering``).
    """

    def is_before(self, time: Vector) -> bool:
        """Whether it precedes everything at a time, so that no step at that time could precede it."""
        return time[self.signal] > self.clock_bound if self.signal >= 0 else time[self.agent] >= self.step


declare_state(
    SyncOperation,
    agent=VALUE,
    step=Attribute(SHARED, by.STEP),
    position=by.NUMBER,
    time=by.CLOCK,
    event=Attribute(SHARED, by.FOOTPRINT),
    kind=VALUE,
    phase=Attribute(SHARED, by.PHASE),
    signal=Attribute(SHARED, by.SIGNALLED_OBJECT),
    clock_bound=by.NUMBER,
    effect=VALUE,
    entries=Attribute(tupled(state("Entry")), by.ENTRIES),
    reorderable=Attribute(tupled(state("SyncOperation")), by.REORDERABLE),
)


@dataclass(slots=True)
class PhaseOperations:
    """The live operations of one phase of an mbarrier, as sets of the window.

    ``signals`` are those that a wait for the phase observes, ``copies`` the memory operations that they complete,
    ``waits`` those that found the object in this phase, ``completing`` the operation that completed the phase or
    invalidated the object.
    """

    operations: int = 0
    signals: int = 0
    copies: int = 0
    waits: int = 0
    completing: int = 0

    def drop_dead_events(self, keep: int) -> None:
        """Drop events that are no longer live."""
        self.operations &= keep
        self.signals &= keep
        self.copies &= keep
        self.waits &= keep
        self.completing &= keep


declare_state(
    PhaseOperations,
    operations=by.EVENT_MASK,
    signals=by.EVENT_MASK,
    copies=by.EVENT_MASK,
    waits=by.EVENT_MASK,
    completing=by.EVENT_MASK,
)


@dataclass(slots=True)
class Mbarrier:
    """An mbarrier object. ``clock_index`` is its component in vector clocks."""

    address: int
    clock_index: int
    state: state_machine.State | None = None
    lifetime: int = 0
    initialisation: SyncOperation | None = None
    invalidation: SyncOperation | None = None
    lifetime_changes: list[SyncOperation] = field(default_factory=list)
    """The invalidations of earlier objects at this address, and the initialisations that followed."""
    current_operations: list[SyncOperation] = field(default_factory=list)
    previous_operations: list[SyncOperation] = field(default_factory=list)
    older_operations: dict[int, list[SyncOperation]] = field(default_factory=dict)
    """The operations of phases before the previous one, as far back as a stale wait may find a phase."""
    waits: list[SyncOperation] = field(default_factory=list)
    """Waits since the current phase began."""
    failed_operations: list[SyncOperation] = field(default_factory=list)
    """Operations that were undefined; others could precede them, with another effect."""
    phases: dict[PhaseId, PhaseOperations] = field(default_factory=dict)
    time: Vector = field(default_factory=list)
    pending_time: Vector = field(default_factory=list)
    completion_times: dict[int, Vector] = field(default_factory=dict)
    """When the latest phases completed."""
    waited_phases: set[PhaseId] = field(default_factory=set)
    """The phases that some wait saw complete."""
    delayed_waited_phases: set[PhaseId] = field(default_factory=set)
    """The phases that a wait saw complete which may take effect later (``Setup.delayed_waits``) and then perhaps see
    another phase.
    """
    first_arrivals: dict[PhaseId, Event] = field(default_factory=dict)
    """The first arrival of each phase."""
    unannounced_bytes: list[Problem] = field(default_factory=list)
    """Problems with bytes that no expect-tx announced to earlier objects; reported if the execution completes."""
    expected_bytes: int = 0
    received_bytes: int = 0
    last_phase_seen: dict[int, int] = field(default_factory=dict)
    """For each agent, the last phase that it saw complete."""
    merged_phase: int = -1
    """The last phase whose operations are merged with those of earlier phases."""

    def clock_value(self, phase: int) -> int:
        """The object's clock component once so many of its phases are over. It exceeds those of all earlier objects at
        this address, whose phases say nothing about these.
        """
        return (self.lifetime - 1) * MAX_PHASES + phase

    def operations_of(self, phase: int) -> PhaseOperations:
        """The operations of a phase of the present object."""
        return self.phases.setdefault((self.lifetime, phase), PhaseOperations())

    def earlier_operations(self, phase: int) -> tuple[PhaseOperations, PhaseOperations]:
        """The operations of all earlier phases, and those of the same object alone."""
        every, own = PhaseOperations(), PhaseOperations()
        for (life, number), acts in self.phases.items():
            if (life, number) >= (self.lifetime, phase):
                continue
            for into in (every, own) if life == self.lifetime else (every,):
                into.operations |= acts.operations
                into.signals |= acts.signals
                into.copies |= acts.copies
                into.waits |= acts.waits
        return every, own

    def operations_before(self, phase: int) -> tuple[int, int]:
        """The operations of all earlier phases, and the waits that found the object in one of them."""
        acts = waits = 0
        for when, found in self.phases.items():
            if when < (self.lifetime, phase):
                acts |= found.operations
                waits |= found.waits
        return acts, waits

    def completed_operations(self, phase: int) -> list[SyncOperation]:
        """The operations of a completed phase, in order: the last one completed it."""
        if self.state is not None and phase == self.state.phase - 1:
            return self.previous_operations
        return self.older_operations.get(phase, [])

    def merged_phase_of(self, when: PhaseId) -> PhaseId:
        """The phase as later waits distinguish it: phases before all that they can find count as one."""
        life, number = when
        if self.state is None or life != self.lifetime or number < 0:
            return when
        return life, max(number, self.state.phase - KEPT_PHASES - 1)

    def relative_phase(self, when: PhaseId) -> tuple[int, int | str]:
        """A phase relative to the present one of the object; phases that are merged are equal."""
        life, phase = when
        assert self.state is not None
        recent = life == self.lifetime and phase > self.merged_phase
        return life - self.lifetime, phase - self.state.phase if recent else "over"

    def drop_dead_events(self, keep: int) -> None:
        """Drop events that are no longer live, and merge phases that no wait can find any more."""
        for acts in self.phases.values():
            acts.drop_dead_events(keep)
        if self.state is None:
            return
        old = [k for k in self.phases if k[0] == self.lifetime and 0 <= k[1] < self.state.phase - KEPT_PHASES]
        self.merged_phase = max([self.merged_phase, *(k[1] for k in old)])
        self.older_operations = {
            phase: dones for phase, dones in self.older_operations.items() if phase > self.merged_phase
        }
        if len(old) > 1:
            last = self.phases[max(old)]
            for key in old:
                if key != max(old):
                    acts = self.phases.pop(key)
                    last.operations |= acts.operations
                    last.signals |= acts.signals
                    last.copies |= acts.copies
                    last.waits |= acts.waits


declare_state(
    Mbarrier,
    address=Attribute(SHARED, by.ADDRESS),
    clock_index=by.CONSTANT,
    state=Attribute(SHARED, by.MBARRIER_STATE),
    lifetime=VALUE,
    initialisation=Attribute(
        optional(state("SyncOperation")),
        Unnamed("a step that time orders after it in one round is ordered after it in all later ones"),
    ),
    invalidation=Attribute(optional(state("SyncOperation")), by.INVALIDATION),
    lifetime_changes=by.operations(by.LIFETIME_CHANGES),
    current_operations=by.operations(by.CURRENT_OPERATIONS),
    previous_operations=by.operations(by.CURRENT_OPERATIONS),
    older_operations=Attribute(by.OPERATIONS_BY_NUMBER, by.EARLIER_OPERATIONS),
    waits=by.operations(by.CURRENT_OPERATIONS),
    failed_operations=by.operations(by.CURRENT_OPEN_OPERATIONS),
    phases=Attribute(mapped(state("PhaseOperations")), by.PHASE_OPERATIONS),
    time=Attribute(SHARED, by.CURRENT_TIME),
    pending_time=Attribute(SHARED, by.CURRENT_TIME),
    completion_times=Attribute(SHALLOW, by.COMPLETION_TIMES),
    waited_phases=Attribute(SHALLOW, by.RECENT_PHASES),
    delayed_waited_phases=Attribute(SHALLOW, by.RECENT_PHASES),
    first_arrivals=Attribute(SHALLOW, by.FIRST_ARRIVALS),
    unannounced_bytes=Attribute(SHALLOW, by.COUNT),
    expected_bytes=by.remembered(SHARED),
    received_bytes=by.remembered(SHARED),
    last_phase_seen=Attribute(SHALLOW, by.UNSEEN_PHASES),
    merged_phase=Attribute(SHARED, by.CACHE),
)


MAX_PHASES = 1 << 40
"""A bound on the phases of an object."""
KEPT_PHASES = 1
"""Phases before the current one that a stale wait may still find."""


@dataclass(slots=True)
class Signal:
    """The completion signal of an asynchronous operation, in flight to its mbarrier; of several lanes, the signals of
    all. ``time`` is what all lanes together know, ``known_time`` what each of them does.
    """

    key: tuple[int, int, int]
    agent: int
    step: int
    address: int
    kind: str
    tx: int
    count: int
    time: Vector
    known_time: Vector
    event: Event
    records: list[Record]
    issues: tuple[Live, ...]


declare_state(
    Signal,
    key=Attribute(SHARED, by.SIGNAL_KEY),
    agent=VALUE,
    step=by.NUMBER,
    address=Attribute(SHARED, by.ADDRESS),
    kind=VALUE,
    tx=VALUE,
    count=VALUE,
    time=by.CLOCK,
    known_time=by.CLOCK,
    event=Attribute(SHARED, by.SOURCE),
    records=Attribute(listed(state("Record")), by.COMPLETED_ACCESSES),
    issues=Attribute(tupled(state("Entry")), by.ENTRIES),
)


@dataclass(slots=True)
class BarrierState:
    """An execution barrier. ``arrived`` are the agents that have arrived in this generation, ``arrival_events`` their
    arrivals with the time of each, ``warps`` the agents of each warp among them.
    """

    key: tuple[object, ...]
    members: frozenset[int] = frozenset()
    """The agents that it waits for if it has no count."""
    generation: int = 0
    count: int | None = None
    arrived: dict[int, SyncOperation] = field(default_factory=dict)
    repeated_arrivals: dict[int, list[SyncOperation]] = field(default_factory=dict)
    """Further arrivals of an agent in this generation; the first one is in ``arrived``."""
    arrival_events: dict[int, tuple[int, Vector]] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    arrivals: int = 0
    time: Vector = field(default_factory=list)
    previous_arrivals: list[SyncOperation] = field(default_factory=list)
    failed_arrivals: list[SyncOperation] = field(default_factory=list)
    votes: dict[int, list[int | None]] = field(default_factory=dict)
    lane_operands: dict[int, list[tuple[Term, ...]]] = field(default_factory=dict)
    """Operands of collectives that only the lane itself reads."""
    warps: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    previous_events: int = 0
    """The live arrivals of the last complete generation."""


declare_state(
    BarrierState,
    key=VALUE,
    members=by.CONSTANT,
    generation=by.NUMBER,
    count=VALUE,
    arrived=Attribute(mapped(state("SyncOperation")), by.ARRIVALS),
    repeated_arrivals=Attribute(by.OPERATIONS_BY_NUMBER, by.REPEATED_ARRIVALS),
    arrival_events=Attribute(SHALLOW, by.ARRIVAL_EVENTS),
    kinds=Attribute(SHALLOW, by.SET),
    arrivals=by.EVENT_MASK,
    time=by.CLOCK,
    previous_arrivals=by.operations(by.PREVIOUS_ARRIVALS),
    failed_arrivals=by.operations(by.PREVIOUS_ARRIVALS),
    votes=Attribute(mapped(SHALLOW), by.BY_LANE),
    lane_operands=Attribute(mapped(SHALLOW), by.BY_LANE),
    warps=Attribute(mapped(SHALLOW), by.WARPS),
    previous_events=by.EVENT_MASK,
)


@dataclass(slots=True, eq=False)
class Write:
    """A write to a tracked word, in coherence order, with its value and its events in the window."""

    agent: int
    step: int
    value: int | None
    time: Vector
    entries: tuple[Live, ...] = ()
    event: Event | None = None
    kind: str = ""
    position: int = -1

    @property
    def event_set(self) -> int:
        """The write as a set of the window."""
        return to_mask(self.entries)

    @property
    def write_id(self) -> int:
        """An identity that does not depend on the order of steps: its agent, and the step there."""
        return (self.agent + 1) * MAX_WRITES + self.step


declare_state(
    Write,
    agent=VALUE,
    step=by.NUMBER,
    value=VALUE,
    time=by.CLOCK,
    entries=Attribute(tupled(state("Entry")), by.ENTRIES),
    event=Attribute(SHARED, Unnamed("asked of asynchronous writes alone, at which a proof gives up")),
    kind=VALUE,
    position=Attribute(SHARED, by.FOUND_PLACE),
)


MAX_WRITES = 1 << 40
"""A bound on the steps of one agent."""
NO_WRITE = -1
"""The choice of no write."""
ASYNC_WRITE = "copied"
"""The kind of a write by an asynchronous operation; its value is known once its reads have returned."""
NON_COMMUTING = frozenset(("read", "write", "atomic", ASYNC_WRITE))
"""Kinds of accesses that do not commute with their like. Any other kind names a function, and two accesses of one
function commute.
"""


@dataclass(slots=True)
class Word:
    """A tracked word: one that strong operations access, or whose value decides something. ``write_events`` are all its
    live writes.
    """

    address: int
    size: int
    writes: list[Write] = field(default_factory=list)
    operations: list[SyncOperation] = field(default_factory=list)
    version: int = 0
    write_events: int = 0
    read_index: int | None = None
    """The write that an asynchronous reduction has just read; its own write follows directly."""
    first: int = 0
    """The first write that may still be read or followed: the latest that has written other bytes as well."""


declare_state(
    Word,
    address=VALUE,
    size=VALUE,
    writes=Attribute(listed(state("Write")), by.WRITES),
    operations=by.operations(by.WORD_OPERATIONS),
    version=by.NUMBER,
    write_events=by.EVENT_MASK,
    read_index=Attribute(SHARED, by.PRESENCE),
    first=Attribute(SHARED, by.CACHE),
)
