"""The state of one execution: its agents, memory, synchronisation objects, window and trace.

Emitters of ``mcheck.events`` decode operations into events, so that operands are checked in one place. The events go
into the execution's window (``mcheck.engines.protocol.incremental``), which evaluates the model in use. The effects on
memory and on objects are executed here and in ``mcheck.engines.protocol.operations``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol
from weakref import ref

from mcheck.answers.left_open import LeftOpen
from mcheck.answers.step_text import name_of_threads, text_of, thing_at
from mcheck.base.declared_state import (
    ABSENT,
    SHALLOW,
    SHARED,
    VALUE,
    Attribute,
    Unnamed,
    declare_state,
    listed,
    mapped,
    optional,
    row,
    state,
    tupled,
)
from mcheck.base.errors import UnknownData
from mcheck.base.phrase import Actor, Part, Phrase, Thing, say
from mcheck.base.records import replace
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import Flagged
from mcheck.engines.protocol.incremental.window import Window
from mcheck.engines.protocol.state import naming as by
from mcheck.engines.protocol.state.access_history import History, Record
from mcheck.engines.protocol.state.acquired_writes import Causality
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.memory_values import Memory
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.sync_objects import (
    BarrierState,
    Mbarrier,
    PhaseOperations,
    Signal,
    SyncOperation,
    Word,
)
from mcheck.engines.protocol.state.trace import PhaseReversal, PlannedStep, Prefix, Reversal, TraceEntry
from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.events.emit import Emitter, Stop, handler_of
from mcheck.events.event import Event
from mcheck.events.thread_state import State
from mcheck.findings import catalogue
from mcheck.findings.finding import Access
from mcheck.findings.fix import Fixes
from mcheck.ir.aligned_operations import Statement
from mcheck.ir.expr import Expr
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.ir.ops import Op, multimem_of
from mcheck.semantics.terms import Term, Uid, typed

MAX_STEPS = 3_000_000
MERGE_THRESHOLD = 160
"""The number of live events from which on indistinguishable ones are merged."""

Snapshot = tuple[
    tuple[object, ...], dict[int, tuple[int, int, int]], dict[int, int], dict[int, int], str | None, int, set[object],
    dict[tuple[int, int], PhaseOperations] | None,
]  # fmt: skip
"""The state that a trial must restore."""


FlagHandler = Callable[["Machine", "Agent", Live, list[Flagged]], None]


class MbarrierObserver(Protocol):
    """An observer of the operations on mbarriers, which may hide some of them from all other threads."""

    def hides(self, agent: Agent) -> bool:
        """Whether the present step of an agent is hidden from all others."""
        ...

    def on_wait(self, bar: Mbarrier, agent: Agent, event: Event, *, awaited: bool) -> None:
        """Called with a wait at an object."""

    def on_operation(self, m: Machine, bar: Mbarrier, done: SyncOperation, time: Vector) -> None:
        """Called with an operation or signal that counts in the present phase."""

    def on_arrival(self, m: Machine, bar: Mbarrier, done: SyncOperation, entries: tuple[Live, ...]) -> None:
        """Called with an arrival that has entered the window."""


class WaitObserver(Protocol):
    """An observer of the waits for tracked words, each of which returns the first write that ends it."""

    steps: set[tuple[int, int]]
    """The waits, as agent and step."""

    def on_wait(self, m: Machine, agent: Agent, word: Word, index: int, condition: tuple[str, str, int]) -> None:
        """Called with a wait that ends by the write at ``index``."""

    def on_access(self, m: Machine, agent: Agent, word: Word, event: Event, kind: str, *, waits: bool) -> None:
        """Called with every access to a word."""

    def on_write(self, m: Machine, agent: Agent, word: Word) -> None:
        """Called before a write to a word."""


class Machine:
    """One execution: first the steps of a prefix, then the default schedule (signals first, then the agent that ran
    last).
    """

    def __init__(self, setup: Setup, prefix: Prefix, on_flags: FlagHandler) -> None:
        self.setup = setup
        self.prefix = prefix
        self.program = setup.program
        zero = [0] * setup.clock_size
        self.zero_clock = zero
        self.memory = Memory(setup.program)
        self.agents = [self._make_agent(k, group, zero) for k, group in enumerate(setup.partition)]
        self.agent_of_thread = {t: k for k, group in enumerate(setup.partition) for t in group}
        self.window = Window(setup.program, setup.tape, setup.event_kinds, setup.sorts)
        if prefix:  # others share their first steps with this execution
            self.window.histories = setup.histories
        self.program_order: dict[int, tuple[int, int, int]] = {}
        """For each thread: the events before its present step in program order, that step, and the events of the
        step.
        """
        self.control_sources: dict[int, int] = {}
        """For each thread, the waits and branches that all later events depend on."""
        self.polls: dict[int, int] = {}
        """For each thread, the mbarrier polls whose result not all later events depend on."""
        self.merge_threshold = MERGE_THRESHOLD
        """The number of live events from which on indistinguishable ones are merged next."""
        self.exits: dict[int, int] = {}
        self.fences: dict[object, int] = {}
        """By warp, its wgmma.fence; by thread, its latest fence.proxy.async; fence.sc under None."""
        self.trace: list[TraceEntry] = []
        self._choices_made = 0
        """The number of choices made in the present step."""
        self.failed_steps: list[PlannedStep] = []
        self.blocked_steps: dict[object, tuple[int, TraceEntry]] = {}
        """For each agent or signal, its latest step that could not be executed, and the length of the trace then."""
        self.signals: dict[tuple[int, int, int], Signal] = {}
        self.queue: deque[tuple[int, int, int]] = deque()
        self.problems: list[Problem] = []
        self.reversals: list[Reversal] = []
        """The other orders of steps to run."""
        self.phase_reversals: list[PhaseReversal] = []
        """The reversals of two operations in different phases of one mbarrier."""
        self.observer: MbarrierObserver | None = None
        self.waits: WaitObserver | None = None
        self.causality: Causality | None = Causality() if setup.follows_causality and setup.tracked_words else None
        """What is ordered whichever order the atomics of a word come in, if that is followed."""
        self.decisions: list[object] = []
        """What distinguishes this execution from others up to the order of commuting steps."""
        self.agents_to_split: set[int] = set()
        """Agents whose lanes may have to be distinguished, because one of their steps may be reversed."""
        self.histories: dict[int, History] = {}
        """The access histories of objects, by base address."""
        self.tracked_words: dict[int, Word] = {}
        self.barriers: dict[tuple[object, ...], BarrierState] = {}
        """Execution barriers, aligned instructions of warps and collectives, by key."""
        self.sc_fences: list[tuple[str, SyncOperation, tuple[Live, ...]]] = []
        self.reported: set[object] = set()
        self.aligned_statements: dict[tuple[int, int], list[Statement]] = {}
        self.tokens: set[tuple[int, int]] = set()
        self.not_followed: str | None = None
        """What the engine could not follow, if anything: all executions are in doubt then."""
        self.findings_left_open: int | None = None
        """How many problems were found before what may be ordered, or read otherwise, by what is left open."""
        self.left_open: LeftOpen | None = None
        """A pair of accesses that an open question leaves open."""
        self.completed_barriers: list[tuple[tuple[object, ...], tuple[SyncOperation, ...]]] = []
        """The completed generations of barriers with a count: which barrier, and the arrivals."""
        self.ambiguous_arrivals = False
        """Whether an arrival may belong to the next generation of its barrier, so that a thread that waits may have
        been released.
        """
        self.inexact_reason: str | None = None
        """Why the values of this execution may differ from those of any execution of the model."""
        self.broken_axiom: str | None = None
        """The axiom of the model that this execution violates: it is inconsistent."""
        self.guess_count = 0
        self.guessed_truths: dict[Term, bool] = {}
        """The assumed truth of conditions that are not known."""
        self.on_flags = on_flags
        """Called with the flags of the model for events that access no memory."""
        self.trial_count = 0
        """The number of trials: events added to the window only to see whether the model allows them."""
        self.exit_passed_barrier = False
        """Whether a barrier completed because a thread had exited, which orders time and no memory."""
        self.bound: str | None = None
        """The bound that cut this execution, if any."""
        self.branch_values: set[tuple[int, int, int]] = set()
        """The values that decided control, by thread and branch (``ops.AssumedValue``)."""
        self.takes_other_branch = False
        """Whether one of them is not the value for which the code was recorded."""
        self.reordering: str | None = None
        """An operation on an mbarrier that might take effect after a later one of its thread, as a sentence."""
        self.unordered_finds: dict[tuple[int, int, int, int], int] = {}
        """By (agent, object, agent and step of its initialisation), where no time orders the initialisation before the
        first agent: the step of that agent that found the object first.
        """
        self.outcome = "end"
        """How it ended: "end", "stuck" (a deadlock), "undefined", or "cut" at a bound."""
        base = len(setup.partition)
        self.mbarriers: dict[int, Mbarrier] = {}
        for k, address in enumerate(setup.mbarriers):
            self.mbarriers[address] = Mbarrier(address, base + k, time=zero, pending_time=zero)
        self.mbarrier_places = sorted(self.mbarriers)

    def _make_agent(self, k: int, group: tuple[int, ...], zero: Vector) -> Agent:
        emitters = self.make_emitters(group)
        lanes = [e.start() for e in emitters]
        code = self.program.threads[group[0]].code
        return Agent(
            k, group, lanes, emitters, code, self.setup.placements[k], zero, sources=[{} for _ in group],
            single_representative=self.setup.single_representative[k],
        )  # fmt: skip

    def make_emitters(self, group: tuple[int, ...]) -> list[Emitter]:
        """Create the emitters that decode the operations of some threads for this execution."""
        return [
            Emitter(
                self.program, self.program.threads[t], self.setup.semantics, _MapReader(self), meets=False,
                strong_copies=False,
                layout=self.setup.layout,
                unwritten=self.setup.unrecorded_objects if self.setup.ignores_copied_data else None,
            )
            for t in group
        ]  # fmt: skip

    def map_contents(self, uid: Uid, state: State) -> tuple[int, ...]:
        """The bytes that a tensor copy reads as its tensor map."""
        event = state.events[uid[1]]
        memory = Memory(self.program) if self.setup.stale_maps else self.memory
        value = memory.load(event.address, event.size)
        if value is None:
            raise UnknownData("a tensor map with unknown contents", event.op.span)
        return (value,)

    # --- the window -----------------------------------------------------------------------------------------

    def make_entry(
        self, thread: int, event: Event, edges: dict[str, int], position: int, *, ordered: bool, exact: bool = False,
        where: int | None = None, back: dict[str, int] | None = None,
    ) -> Live:  # fmt: skip
        """Create a window entry for an event of a thread. ``position`` is its place in program order if it is
        ``ordered``: eight times the step of its agent, plus the part of that step.
        """
        if ordered:
            form = multimem_of(event.op)
            if form is not None:  # the accesses of one instruction have one place, that of the first of them
                position = 8 * (position // 8 - form.number)
            before, at, here = self.program_order.get(thread, (0, -1, 0))
            if position > at:
                before, at, here = before | here, position, 0
                self.program_order[thread] = before, at, here
            if before:
                edges["po"] = before
            waits = self.control_sources.get(thread, 0)
            if waits:
                edges["ctrl"] = edges["ctrl"] | waits if "ctrl" in edges else waits
            if thread in self.polls:
                awaited = edges.get("ctrl", 0) | edges.get("addr", 0) | edges.get("data", 0)
                regardless = self.polls[thread] & before & ~awaited
                if regardless:
                    edges["regardless"] = regardless
        return self.window.entry(
            event,
            thread,
            edges=edges,
            back=back,
            exact=exact,
            where=where,
            instruction=(position // 8, event.instruction),
        )

    def add_entry(self, entry: Live, *, ordered: bool, complete: bool = True, flags: bool = True) -> list[Flagged]:
        """Add an event to the window and return the flags of the model for it, if they are asked for. Most of the time
        is spent here, so the deadline is checked here.
        """
        self.setup.check_deadline()
        broken, found = self.window.add(entry, complete=complete, flags=flags)
        if broken is not None and self.broken_axiom is None:
            self.broken_axiom = broken
        if ordered:
            before, at, here = self.program_order[entry.thread]
            self.program_order[entry.thread] = before, at, here | 1 << entry.slot
        return found

    def add_event(
        self, agent: Agent, event: Event, *, part: int = 0, edges: Iterable[dict[str, int]] | None = None,
        exact: bool = False, where: int | None = None, common: dict[str, int] | None = None,
        back: dict[str, int] | None = None,
    ) -> tuple[Live, ...]:  # fmt: skip
        """Add an event of all lanes of an agent, ``part`` of its present step; ``edges`` are those of each
        representative, ``common`` those of all. Flags for events that access no memory are reported at once.
        """
        ordered = event.order is not None
        given = list(edges) if edges is not None else [{} for _ in agent.representatives]
        out = []
        for thread, own in zip(agent.representatives, given, strict=True):
            mine = {**(common or {}), **own}
            entry = self.make_entry(
                thread, event, mine, agent.step * 8 + part, ordered=ordered, exact=exact, where=where, back=back
            )
            flags = self.add_entry(entry, ordered=ordered)
            if flags:
                self.on_flags(self, agent, entry, flags)
            out.append(entry)
        return tuple(out)

    def add_dependency(self, agent: Agent, entries: Iterable[Live]) -> None:
        """Make all later events of the agent's threads depend on these events."""
        for thread, entry in zip(agent.representatives, entries, strict=True):
            self.control_sources[thread] = self.control_sources.get(thread, 0) | 1 << entry.slot

    def note_poll(self, agent: Agent, entries: Iterable[Live]) -> None:
        """Note polls of an mbarrier that order what depends on them, and no other later event."""
        for thread, entry in zip(agent.representatives, entries, strict=True):
            self.polls[thread] = self.polls.get(thread, 0) & ~self.control_sources.get(thread, 0) | entry.bit

    def save(self, bar: Mbarrier | None = None) -> Snapshot:
        """Save what ``restore`` needs to undo a trial."""
        phases = None if bar is None else {k: replace(a) for k, a in bar.phases.items()}
        self.trial_count += 1
        return (
            self.window.save(), dict(self.program_order), dict(self.control_sources), dict(self.polls),
            self.broken_axiom, len(self.problems), set(self.reported), phases,
        )  # fmt: skip

    def restore(self, saved: Snapshot, bar: Mbarrier | None = None) -> None:
        """Undo everything since ``save``."""
        window, program_order, control_sources, polls, broken_axiom, problems, reported, phases = saved
        self.window.restore(window)
        self.program_order, self.control_sources, self.polls, self.broken_axiom = (
            program_order,
            control_sources,
            polls,
            broken_axiom,
        )
        del self.problems[problems:]
        self.reported = reported
        if bar is not None and phases is not None:
            bar.phases = phases

    # --- names --------------------------------------------------------------------------------------------

    def thing_at(self, address: int) -> Thing:
        """The object at an address."""
        return thing_at(self.program, address)

    def name(self, agent: Agent, lane: int | None = None) -> str:
        """The name of a thread, or of the lanes of an agent, in results."""
        return name_of_threads(self.program, agent.threads if lane is None else (agent.threads[lane],))

    def warp_of(self, agent: Agent) -> tuple[int, int]:
        """The CTA and the warp of an agent."""
        return self.program.threads[agent.threads[0]].place.own_warp

    # --- choices --------------------------------------------------------------------------------------------

    @property
    def brief(self) -> bool:
        """Whether an error has been found, so that errors which only stale reads and waits show need not be sought."""
        if self.setup.thorough:
            return False
        return self.setup.brief or any(catalogue.get(p.code).severity("ptx") == "error" for p in self.problems)

    def begin_step(self, entry: TraceEntry) -> None:
        """Append a step to the trace."""
        entry.failed_steps, self.failed_steps = self.failed_steps, []
        self.trace.append(entry)
        self._choices_made = 0

    def undo_blocked_step(self) -> None:
        """Remove the last step, which could not be executed; its choice to wait is kept."""
        entry = self.trace.pop()
        self.blocked_steps[entry.actor] = len(self.trace), entry
        chosen = tuple(c for c, _ in entry.choices)
        self.failed_steps = [*entry.failed_steps, (entry.actor, chosen)] if chosen else entry.failed_steps

    def choose(self, count: int) -> int:
        """Choose one of ``count`` ways to continue; the others are explored later."""
        choices = self.trace[-1].choices
        k = self._choices_made
        self._choices_made += 1
        if k < len(choices):
            taken = min(choices[k][0], count - 1)
            choices[k] = (taken, -1)
        else:
            taken = 0
            choices.append((0, count))
        self.decisions.append((self.trace[-1].agent, self.trace[-1].step, "ways", count))
        return taken

    def choose_option(self, options: Sequence[int]) -> int:
        """Choose one of ``options`` whose meaning does not depend on the order of steps; the others are explored
        later.
        """
        choices = self.trace[-1].choices
        k = self._choices_made
        self._choices_made += 1
        wanted = choices[k][0] if k < len(choices) else None
        self.decisions.append((self.trace[-1].agent, self.trace[-1].step, "options", *options))
        if wanted is not None and wanted in options:
            choices[k] = (wanted, ())
            return wanted
        choices[k : k + 1] = [(options[0], tuple(options[1:]))]
        return options[0]

    def wake(self, reason: object) -> None:
        """Let the agents that are blocked on something try again."""
        for agent in self.agents:
            if agent.status == "blocked" and (agent.blocked_on is reason or isinstance(agent.blocked_on, list)):
                agent.status, agent.blocked_on = "run", None

    def tracked_address(self, event: Event, *, exact: bool) -> int | None:
        """The address of an access if the model distinguishes it: tracked words, mbarrier objects, tensor maps."""
        if exact or Tag.TMAP in event.tags:
            return event.address
        if self.mbarriers_in(event.address, event.address + event.size):
            return event.address
        return event.address if self.setup.touches_map(event.address, event.size) else None

    def object_of(self, event: Event) -> Part:
        """The object that an event uses."""
        step = event.mbarrier
        instance = self.program.memory.find(event.address if event.size or step is None else step.address)
        return instance.thing() if instance is not None else "shared memory"

    def owning_cta(self, event: Event) -> int:
        """The CTA whose shared memory an event uses."""
        step = event.mbarrier
        return ((event.address if event.size or step is None else step.address) - SHARED_BASE) // SHARED_WINDOW

    def exit_events(self, agents: Iterable[int]) -> int:
        """The exits of agents, as a set of the window."""
        out = 0
        for k in agents:
            out |= self.exits.get(k, 0)
        return out

    def find_lane_flag(self, record: Record, *, complete: bool) -> str | None:
        """The flag of the model for two lanes of one instruction that write the same bytes."""
        first, second = record.entries[0], record.entries[-1]
        if first is second:
            return None
        flags = self.window.check_conflicts(second, first.bit, complete=complete)
        return next((f.name for f in flags if f.pairs & first.bit), None)

    def add_branch_dependency(self, agent: Agent, names: list[str]) -> None:
        """Make all later events depend on the reads that the registers of a branch or guard come from."""
        for k, thread in enumerate(agent.representatives):
            mask = self.find_sources(agent, k, names)
            if mask:
                self.control_sources[thread] = self.control_sources.get(thread, 0) | mask

    def find_sources(self, agent: Agent, lane: int, names: Iterable[str]) -> int:
        """The live reads that the values of registers depend on."""
        known = agent.sources[lane]
        out = 0
        for name in names if known else ():
            out |= known.get(name, 0)
        return out

    # --- findings ---------------------------------------------------------------------------------------------

    def report_problem(
        self, code: str, said: str | Phrase, agent: Agent | None, op: Op, event: Event | None = None, fixes: Fixes = ()
    ) -> None:
        """Report undefined behaviour of one operation."""
        self.problems.append(self.make_problem(code, said, agent, op, event, fixes))

    def make_problem(
        self, code: str, said: str | Phrase, agent: Agent | None, op: Op, event: Event | None = None, fixes: Fixes = ()
    ) -> Problem:
        """Create the problem for undefined behaviour of one operation at this point of the execution."""
        who = self.name(agent) if agent is not None else ""
        access = Access(thread=who, instruction=text_of(op), span=op.span)
        if event is not None and event.mbarrier is not None:
            instance = self.program.memory.find(event.mbarrier.address)
            if instance is not None:
                start = event.mbarrier.address - instance.base
                access = replace(access, object=instance.label, bytes=(start, start + 8))
        agents = () if agent is None else (agent.index,)
        said = say("{}{}", Actor(who) if who else "", said)
        return Problem(code, said, (access,), agents, len(self.trace), fixes=fixes, section=op.section)

    # --- operands ---------------------------------------------------------------------------------------------

    def evaluate(self, agent: Agent, lane: int, expr: Expr) -> Term:
        """The value of an operand for one lane."""
        return agent.emitters[lane].term(expr, agent.lanes[lane])

    def uniform_value(self, agent: Agent, expr: Expr) -> Term:
        """The value of an operand on which all lanes must agree; split the agent where they do not."""
        first = self.evaluate(agent, 0, expr)
        if agent.is_single_thread or (not hasattr(expr, "name") and not hasattr(expr, "op")):
            return first
        values = [first] + [self.evaluate(agent, k, expr) for k in range(1, len(agent.lanes))]
        if any(v != first and not (isinstance(v, tuple) and isinstance(first, tuple)) for v in values):
            groups: dict[object, list[int]] = {}
            for thread, value in zip(agent.threads, values, strict=True):
                groups.setdefault(value if isinstance(value, int) else None, []).append(thread)
            raise Split([tuple(g) for g in groups.values()])
        return first

    def known_value(self, agent: Agent, expr: Expr | None) -> int | None:
        """``uniform_value`` of an operand whose value must be known."""
        if expr is None:
            return None
        value = self.uniform_value(agent, expr)
        if not isinstance(value, int):
            raise _unknown_operand(self.program.threads[agent.threads[0]].code[agent.pc])
        return value

    def decide_condition(self, value: Term) -> bool:
        """Whether a condition holds; where it is not known, both ways are explored, once for each value."""
        if isinstance(value, int):
            return bool(value)
        before = self.guessed_truths.get(value)
        if before is not None:
            return before
        taken = self.trace[-1].guess = self.choose(2)
        self.decisions.append(("guess", self.trace[-1].agent, self.trace[-1].step, taken))
        self.guess_count += 1
        if self.guess_count > 1:
            self.inexact_reason = "several branches depend on memory that nothing has written"
        if not _has_unnamed_part(value):
            self.guessed_truths[value] = taken == 0
        return taken == 0

    def emit(self, agent: Agent, lane: int, op: Op) -> list[Event]:
        """The events of an operation of one lane."""
        emitter, state = agent.emitters[lane], agent.lanes[lane]
        missing = emitter.needs(op, state)
        if missing is not None:
            raise _unknown_operand(op)
        before = len(state.events)
        state.instruction += 1
        emitter.stopped = []
        following = handler_of(op)(emitter, op, state)
        for stopped in emitter.stopped:  # undefined, but with an effect to continue from
            if stopped.misstep is not None and (stopped.misstep.code, op.span) not in self.reported:
                self.reported.add((stopped.misstep.code, op.span))
                self.report_problem(stopped.misstep.code, stopped.misstep.message, agent, op)
        if following[0] is not state:
            state = agent.lanes[lane] = following[0]
        if state.ended == "undefined" and state.misstep is not None:
            raise Stop(state.misstep, state.events[before:])
        return state.events[before:]

    def make_plain_event(self, agent: Agent, op: Op) -> Event:
        """Create an event that only names its operation."""
        return Event((agent.threads[0], 0), op, frozenset(), 0, agent.step, agent.placement[2])

    def set_register(self, agent: Agent, lane: int, name: str, type_name: str, raw: int | None) -> None:
        """Set a register; ``None`` makes its value unknown."""
        state = agent.lanes[lane]
        agent.sources[lane].pop(name, None)
        state.registers[name] = typed(type_name, raw) if raw is not None else ("?", (agent.index, lane, agent.step))

    # --- order in time ------------------------------------------------------------------------------------------

    def note_reversal(self, earlier: SyncOperation, agent: int, time: Vector, single: bool) -> bool:
        """Note that ``earlier`` could also come after the present step, unless time orders them; return whether it
        could.
        """
        if earlier.is_before(time):
            return False
        if earlier.signal < 0 and earlier.agent == agent:
            if single:
                return False
            threads = self.agents[agent].threads
            raise Split([threads[:1], threads[1:]])
        self.note_postponement(earlier.position)
        for k in (earlier.agent if earlier.signal < 0 else -1, agent):
            if k >= 0 and not self.agents[k].is_single_thread:
                self.agents_to_split.add(k)
        return True

    def note_bound(self, bound: str) -> None:
        """Note the bound that cuts this execution."""
        self.bound = self.bound or bound

    def is_past(self, done: SyncOperation) -> bool:
        """Whether everything still to come, signals in flight included, is after an operation."""
        for a in self.agents:
            if a.status in ("done", "undefined", "cut") or (
                a.index == done.agent and a.is_single_thread and done.signal < 0
            ):
                continue
            if not done.is_before(a.known_time()):
                return False
        return all(done.is_before(s.known_time) for s in self.signals.values())

    def note_postponement(self, position: int, others: tuple[int, ...] = (), *, now: bool = True) -> None:
        """Note that the step at ``position`` may run after those at ``others``, or directly after them if it is one of
        them; ``now``: after the present step as well.
        """
        after = {*others, *({len(self.trace) - 1} - {position} if now else ())}
        ends = tuple(self.trace[k] for k in sorted(after))
        if ends:  # a read that waits forever has no later step
            self.reversals.append((position, ends, len(self.trace)))

    def note_swap(self, first: int, second: int) -> None:
        """Note that the later of two steps of the trace could come first, unless time orders them."""
        earlier, later = self.trace[first], self.trace[second]
        if later.agent != earlier.agent and later.time[earlier.agent] < earlier.step:
            self.reversals.append((first, (later,), second + 1))

    def history_at(self, address: int) -> tuple[int, History]:
        """The base address and the access history of the object at an address."""
        emitter = self.agents[0].emitters[0]
        instance = emitter.site.at(address)
        assert instance is not None
        found = self.histories.get(instance.base)
        if found is None:
            circle = self.setup.rings.get(instance.base)
            found = self.histories[instance.base] = History.create(instance.base, instance.object.size, circle)
        return instance.base, found

    def mbarriers_in(self, low: int, high: int) -> list[Mbarrier]:
        """The mbarrier objects that a range of bytes touches."""
        places = self.mbarrier_places
        k = bisect_left(places, low - 7)
        out = []
        while k < len(places) and places[k] < high:
            out.append(self.mbarriers[places[k]])
            k += 1
        return out


NO_OBSERVER = Attribute(ABSENT, Unnamed("a proof follows its execution without observers"))
NO_CHOICE = Unnamed("a proof gives up at the first choice or reversal")

declare_state(
    Machine,
    setup=by.CONSTANT,
    prefix=by.CONSTANT,
    program=by.CONSTANT,
    zero_clock=by.CONSTANT,
    memory=Attribute(SHALLOW, by.CONTENTS),
    agents=Attribute(listed(state("Agent")), by.AGENTS),
    agent_of_thread=by.CONSTANT,
    window=Attribute(state("Window"), by.WINDOW),
    program_order=Attribute(SHALLOW, by.PROGRAM_ORDER),
    control_sources=Attribute(SHALLOW, by.EVENTS_BY_KEY),
    polls=Attribute(SHALLOW, by.POLLS),
    merge_threshold=Attribute(SHARED, Unnamed("events are merged to save time; no relation depends on when")),
    exits=Attribute(SHALLOW, by.EVENTS_BY_KEY),
    fences=Attribute(SHALLOW, by.EVENTS_BY_KEY),
    trace=by.remembered(),
    _choices_made=Attribute(SHARED, NO_CHOICE),
    failed_steps=Attribute(SHALLOW, by.SEQUENCE),
    blocked_steps=Attribute(SHALLOW, NO_CHOICE),
    signals=Attribute(mapped(state("Signal")), by.SIGNALS),
    queue=Attribute(SHALLOW, by.QUEUE),
    problems=Attribute(SHALLOW, Unnamed("a proof gives up at the first error, and a finding for review stops nobody")),
    reversals=Attribute(SHALLOW, NO_CHOICE),
    phase_reversals=Attribute(SHALLOW, NO_CHOICE),
    observer=NO_OBSERVER,
    waits=NO_OBSERVER,
    causality=Attribute(optional(state("Causality")), Unnamed("a proof follows its execution without tracked words")),
    decisions=Attribute(SHALLOW, NO_CHOICE),
    agents_to_split=Attribute(SHALLOW, NO_CHOICE),
    histories=Attribute(mapped(state("History")), by.HISTORIES),
    tracked_words=Attribute(mapped(state("Word")), by.WORDS),
    barriers=Attribute(mapped(state("BarrierState")), by.BARRIERS),
    sc_fences=Attribute(listed(row(SHARED, state("SyncOperation"), tupled(state("Entry")))), by.FENCES),
    reported=Attribute(SHALLOW, Unnamed("what has been found is found once, and a proof has no error")),
    aligned_statements=Attribute(mapped(SHALLOW), by.ALIGNED_STATEMENTS),
    tokens=Attribute(SHALLOW, by.TOKENS),
    not_followed=VALUE,
    completed_barriers=by.remembered(),
    ambiguous_arrivals=VALUE,
    inexact_reason=VALUE,
    broken_axiom=VALUE,
    guess_count=VALUE,
    guessed_truths=Attribute(SHALLOW, NO_CHOICE),
    on_flags=by.CONSTANT,
    trial_count=by.remembered(SHARED),
    exit_passed_barrier=VALUE,
    bound=VALUE,
    branch_values=by.remembered(),
    takes_other_branch=VALUE,
    findings_left_open=Attribute(SHARED, by.PRESENCE),
    left_open=VALUE,
    reordering=VALUE,
    unordered_finds=Attribute(SHALLOW, NO_CHOICE),
    outcome=VALUE,
    mbarriers=Attribute(mapped(state("Mbarrier")), by.MBARRIERS),
    mbarrier_places=Attribute(SHALLOW, by.CACHE),
)


class _MapReader:
    """A reader of the tensor maps of an execution. It holds the machine weakly, so that a finished execution is freed
    at once.
    """

    def __init__(self, m: Machine) -> None:
        self.machine = ref(m)

    def __call__(self, uid: Uid, state: State) -> tuple[int, ...]:
        m = self.machine()
        assert m is not None
        return m.map_contents(uid, state)


def _has_unnamed_part(value: Term) -> bool:
    """Whether a value contains an unknown without a name, so that another value may look the same."""
    return isinstance(value, tuple) and (
        value == ("?",) or any(_has_unnamed_part(x) for x in value if isinstance(x, tuple))
    )


def _unknown_operand(op: Op) -> UnknownData:
    return UnknownData("an address, a size or a barrier depends on a value that is not known", op.span)
