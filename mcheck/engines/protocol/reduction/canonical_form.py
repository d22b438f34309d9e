"""Canonical form of an execution's state: what later steps can distinguish, up to a renaming of events.

Two executions with equal forms continue alike: the same steps are enabled, with the same effect and the same findings,
and the same of them could be reversed. What is compared, and what not:

* Of the window, the events that a new edge may touch and the last one of each thread, in the order of their threads:
what the model asks of each (its sort), and every stored column, set and edge. Of all others, which kinds there are:
those of one thread and one sort that are in the same relations to these will be in the same relations to whatever
comes, which is why the window itself merges them (``mcheck.engines.protocol.incremental.indistinguishable``). Their
numbers make no difference. Nor does it which columns the window knows to be empty (``State.filled``): to visit one adds
nothing to a union.
* Times are compared with the steps that could still come after something later, the *live* operations on objects: a
time is, by agent, how many of them it covers. That is all it is ever used for, and joining two times preserves it.
* Of a tracked word, the latest writes, as many as anybody may still read.
* An operation that everybody is after, signals in flight included, is not live: none can come before it any more. Those
of the latest phases of an mbarrier are: where only time orders them before a test, another may come last.
* Phases count from the present one of their object, with its parity, and so do those of the states that arrives have
returned; of registers those that matter, unknown values being numbered by their first occurrence.
* Of copies whose completion will be observed together (``mcheck.engines.protocol.reduction.completion_classes``) it
matters which kinds there are; of loops that have been left for good nothing does
(``mcheck.engines.protocol.reduction.loop_memo``).
* What no later step depends on is left out: the trace, numbers of events, reported findings.

Places in the code are given by the caller, and so are objects that are used up as the rounds go
(``StreamedObject``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.incremental.entries import Entry
from mcheck.engines.protocol.reduction.completion_classes import find_completion_classes, find_records
from mcheck.engines.protocol.reduction.event_merging import merge_events
from mcheck.engines.protocol.reduction.event_names import EventNames, Part
from mcheck.engines.protocol.reduction.loop_memo import loop_state
from mcheck.engines.protocol.state.access_history import History, LaneOwners, Lanes, Record
from mcheck.engines.protocol.state.address_names import AddressNames, StreamedObject
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.cyclic_names import UNROTATED, RotatedNames
from mcheck.engines.protocol.state.sync_objects import (
    BarrierState,
    Mbarrier,
    PhaseOperations,
    Signal,
    SyncOperation,
    Word,
)
from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.events.thread_state import AsyncRecord, Groups
from mcheck.events.thread_state import State as Lane
from mcheck.ir.demanded_bits import ALL
from mcheck.semantics.mbarrier import pending_before, phases_behind
from mcheck.semantics.terms import Term, Uid, reads_of


class LaneForm(NamedTuple):
    """The form of one lane: its registers by name, and the rest."""

    registers: tuple[tuple[str, object], ...]
    rest: Part


class AgentForm(NamedTuple):
    """The form of an agent: its place in the code, its lanes, and the rest."""

    place: object
    lanes: tuple[LaneForm, ...]
    rest: Part


class Form(NamedTuple):
    """The canonical form of an execution; forms are compared for equality only."""

    agents: tuple[AgentForm, ...]
    rest: Part


def normalise_window(m: Machine) -> None:
    """Merge all events that can be merged, and recompute what was gathered along the threads from events in forms."""
    merge_events(m, every=True)
    m.window.memo = {}


class Forms:
    """Comparable canonical forms of executions of programs that do nothing that the ``whole`` one does not do.

    With ``contents`` the contents of memory are part of them.
    """

    def __init__(self, whole: Setup, *, contents: bool = True) -> None:
        self._whole = whole
        self._contents = contents
        self._kinds: dict[object, int] = {}

    def build(
        self,
        m: Machine,
        place: Callable[[Agent], object],
        moving: Sequence[StreamedObject] = (),
        turned: RotatedNames = UNROTATED,
    ) -> Form:
        """Return the form of an execution between two steps, after ``normalise_window``.

        ``place`` gives the place of an agent in its code. Names in ``turned`` are replaced by those before the
        rotation.
        """
        return _FormBuilder(m, self._whole, self._kinds, self._contents, AddressNames(moving, turned)).form(place)


class _FormBuilder:
    """What the parts of a form share: names of events, and live steps.

    ``kinds`` numbers the kinds of events without names, and sets that are equal.
    """

    def __init__(
        self, m: Machine, whole: Setup, kinds: dict[object, int], contents: bool, addresses: AddressNames
    ) -> None:
        self.m = m
        self.whole = whole
        self.addresses = addresses
        self.at = addresses.name_of
        self.contents = contents
        self.names = EventNames(m, find_completion_classes(m), addresses, kinds)
        self.records: dict[int, Part] = {}
        self.steps: dict[int, list[int]] = {}
        self.phases: dict[int, list[int]] = {}
        for done in self._live():
            self.steps.setdefault(done.agent, []).append(done.step)
            if done.signal >= 0:
                self.phases.setdefault(done.signal, []).append(done.clock_bound)
        for numbers in (*self.steps.values(), *self.phases.values()):
            numbers.sort()
        self.bars = {bar.clock_index: self.at(bar.address) for bar in m.mbarriers.values()}
        self.order_of_phases = sorted(self.phases, key=self.bars.__getitem__)

    def form(self, place: Callable[[Agent], object]) -> Form:
        m = self.m
        agents = tuple(AgentForm(place(a), self._lanes(a), self._agent(a)) for a in m.agents)
        return Form(agents, (
            self.names.window,
            tuple(sorted(((self.at(at), self._mbarrier(bar)) for at, bar in m.mbarriers.items()), key=_first)),
            tuple((at, self._word(word)) for at, word in sorted(m.tracked_words.items())),
            tuple((key, *self._meeting(x)) for key, x in sorted(m.barriers.items(), key=lambda kv: repr(kv[0]))),
            tuple(map(self._signal, m.signals.values())),
            tuple(list(m.signals).index(key) if key in m.signals else -1 for key in m.queue),
            tuple(
                (base, self._history(h)) for base, h in sorted(m.histories.items())
                if base not in m.setup.unwritten_objects and any(h.cells)
            ),
            self._memory(),
            frozenset((t, self.names.name(b | here)) for t, (b, _, here) in m.program_order.items()),
            frozenset((t, self.names.name(mask)) for t, mask in m.control_sources.items()),
            frozenset((t, self.names.name(mask & ~m.control_sources.get(t, 0))) for t, mask in m.polls.items()),
            frozenset((k, self.names.name(mask)) for k, mask in m.exits.items()),
            frozenset((k, self.names.name(mask)) for k, mask in m.fences.items()),
            tuple((scope, self._done(d, 0), self.events(es)) for scope, d, es in m.sc_fences),
            frozenset(self._aligned(warp) for warp in m.aligned_statements),
            self._tokens(),
            (m.not_followed, m.ambiguous_arrivals, m.inexact_reason, m.broken_axiom, m.guess_count,
            m.exit_passed_barrier, m.bound, m.reordering, m.takes_other_branch, m.outcome,
            m.findings_left_open is None),
            tuple(m.failed_steps),
        ))  # fmt: skip

    # --- events and times -------------------------------------------------------------------------------------

    def _sets(self, *masks: int) -> Part:
        return tuple(map(self.names.name, masks))

    def events(self, entries: Iterable[Entry]) -> Part:
        """Return the names of events; those of merged ones are those of their representatives."""
        return tuple(self.names.name(e.bit) for e in entries)

    def time(self, v: Vector | None) -> tuple[int, ...] | None:
        """Return how many live steps of each agent, and live signals of each object, a time covers."""
        if not v:
            return None
        return (
            *(bisect_right(numbers, v[k]) for k, numbers in sorted(self.steps.items())),
            *(bisect_left(self.phases[k], v[k]) for k in self.order_of_phases),
        )

    def _live(self) -> Iterator[SyncOperation]:
        m = self.m
        for bar in m.mbarriers.values():
            yield from bar.current_operations
            yield from bar.waits
            yield from bar.previous_operations
            yield from (d for dones in bar.older_operations.values() for d in dones)
            for dones in (
                bar.failed_operations,
                bar.lifetime_changes,
                [bar.invalidation] if bar.invalidation is not None else [],
            ):
                yield from self.open(dones)
        for word in m.tracked_words.values():
            yield from self.open(word.operations)
        for meeting in m.barriers.values():
            yield from meeting.arrived.values()
            yield from (done for dones in meeting.repeated_arrivals.values() for done in dones)
            yield from self.open(meeting.previous_arrivals)
            yield from self.open(meeting.failed_arrivals)
        yield from (done for _, done, _ in m.sc_fences)

    def open(self, dones: Iterable[SyncOperation]) -> list[SyncOperation]:
        """Return the operations that something later might still come before."""
        return [d for d in dones if not self.m.is_past(d)]

    def _done(self, d: SyncOperation, phase: int) -> Part:
        return (
            d.agent, bisect_left(self.steps.get(d.agent, []), d.step), d.kind, d.phase - phase,
            self.bars.get(d.signal), d.effect, self.time(d.time),
            d.event.op.span, d.event.size, self.at(d.event.address), self.events(d.entries),
            tuple((x.agent, x.kind, x.event.op.span) for x in d.reorderable),
        )  # fmt: skip

    def _word(self, word: Word) -> Part:
        """Return the form of a word that loads and stores alone access.

        Its writes are those that a read may still return or a store precede; its operations those that something may
        still precede.
        """
        count, done = len(word.writes), self.open(word.operations)
        first = min(count - self.m.setup.max_stale_writes - 1, *(d.phase - 1 for d in done), count)
        return (
            word.size, word.read_index is None, min(count, self.m.setup.max_stale_writes + 1),
            self.names.name(word.write_events),
            tuple(
                (w.agent, w.kind, w.position >= 0, w.value, self.time(w.time), self.names.name(w.event_set))
                for w in word.writes[max(first, 0) :]
            ),
            tuple(self._done(d, count) for d in done),
        )  # fmt: skip

    # --- agents -----------------------------------------------------------------------------------------------

    def _agent(self, a: Agent) -> Part:
        met, live = a.cluster_arrival, self.m.window.all
        loops = loop_state(self.m, a) if self.m.setup.loop_heads[a.index] else ()
        aligned = [b.aligned_count for b in self.m.agents if self.m.warp_of(b) == self.m.warp_of(a)]
        return (
            a.status, self._where(a.blocked_on), self.time(a.time), a.warp_synchronised, loops,
            a.aligned_count - min(aligned),
            None if met is None else (a.index in met.arrived, self.time(met.time), self._sets(met.arrivals,
            met.previous_events)),
            self.time(a.exit_time), self._groups_of_warp(a), self.time(a.commit_time),
            frozenset(map(self.record, a.pipe_records)),
            tuple(frozenset((n, self.names.name(mask)) for n, mask in o.items() if mask & live) for o in a.sources),
        )  # fmt: skip

    def _where(self, where: object) -> object:
        match where:
            case Mbarrier():
                return "mbarrier", self.at(where.address)
            case BarrierState():
                return "meeting", where.key
            case Word():
                return "word", where.address
        return repr(where)

    def _lanes(self, a: Agent) -> tuple[LaneForm, ...]:
        names: dict[object, int] = {}
        out = []
        for k, lane in enumerate(a.lanes):
            needed = self.m.setup.needed_registers[a.threads[k]].intersection(lane.registers)
            states = self.m.setup.facts_of(a.index).state_registers
            bits = self.whole.demanded_bits_of(a.index, stores=self.contents) if needed else {}
            registers = tuple(
                (
                    r,
                    self._state(lane.registers[r])
                    if r in states
                    else _demanded_value(lane.registers[r], bits.get(r, ALL), names),
                )
                for r in sorted(needed)
            )
            waited = {uid for uid, _ in lane.completes}
            groups = tuple(self._groups(a, k, family, g, waited) for family, g in sorted(lane.groups.items()))
            consumed = (
                len(lane.tracked) - (a.tracked_counts[k] if k < len(a.tracked_counts) else 0),
                len(lane.completes) - (a.completed_counts[k] if k < len(a.completed_counts) else 0),
            )
            told = self._copies(
                a, k, lane.cp_async if self.m.setup.facts_of(a.index).arrives_on_cp_async else (), waited
            )
            alone = (told, tuple(self._issued(a, k, r, waited) for r in lane.piped))
            rest = (lane.cluster_arrived, lane.ended, lane.forked, repr(self._established(lane)))
            out.append(LaneForm(registers, (groups, consumed, alone, rest)))
        return tuple(out)

    def _established(self, lane: Lane) -> Part:
        """Return the constraints on values of a lane.

        Where the contents of memory do not matter, those on reads that no register holds any more are left out.
        """
        constraints, known = lane.constraints, lane.known
        if not self.contents:
            held = {uid for value in lane.registers.values() for uid in reads_of(value)}
            constraints = [(term, truth) for term, truth in constraints if held.intersection(reads_of(term))]
            known = {uid: value for uid, value in known.items() if uid in held}
        return constraints, known, lane.unequal, lane.facts, lane.fixed, lane.stuck, lane.misstep

    def _groups(self, a: Agent, lane: int, family: str, groups: Groups, waited: set[Uid]) -> Part:
        """Return the groups of a lane: those that a wait may complete separately, and of all others the kinds of
        copies.

        The destination of copies matters while their group is open, until their completion is observed.
        """
        known = self.m.setup.facts_of(a.index).pending_depths(family)
        if known is None:
            shallow, deep = groups.committed, []
        else:
            depth = max(known.reads, known.writes)
            behind = max(len(groups.committed) - depth, 0)
            shallow, deep = groups.committed[behind:], groups.committed[:behind]
        new = groups.open[groups.covered_by_signal :]
        return (
            family, self._copies(a, lane, groups.open, waited),
            tuple(tuple((self.at(at), size) for at, size in r.destinations) for r in new),
            tuple(self._copies(a, lane, group, waited) for group in shallow),
            self._copies(a, lane, [r for group in deep for r in group], waited),
        )  # fmt: skip

    def _copies(self, a: Agent, lane: int, issued: Iterable[AsyncRecord], waited: set[Uid]) -> frozenset[Part]:
        """Return copies that complete together: equal ones have the same future, however many there are."""
        return frozenset(self._issued(a, lane, r, waited) for r in issued)

    def _issued(self, a: Agent, lane: int, record: AsyncRecord, waited: set[Uid]) -> Part:
        return record.family, tuple(
            (all(uid in waited for uid in uids), tuple(map(self.completed_record, find_records(a, lane, uids))))
            for uids in (record.reads, record.writes)
        )

    def _groups_of_warp(self, a: Agent) -> Part:
        """Return groups of wgmma: how many more than the other warps have, and those that somebody still has to wait
        for.
        """
        if not a.wgmma_groups and not a.open_wgmma:
            return (a.wgmma_fenced,)
        mine = self.m.program.threads[a.threads[0]].place.warpgroup
        mates = [b for b in self.m.agents if self.m.program.threads[b.threads[0]].place.warpgroup == mine]
        first = min((_count_completed_wgmma_groups(b) for b in mates if b.wgmma_groups), default=0)
        groups = a.wgmma_groups[max(first - 1, 0) :]
        return (
            len(a.wgmma_groups) - first, a.wgmma_fenced, tuple(map(self.record, a.open_wgmma)),
            tuple(
                (tuple(map(self.record, records)), self.time(time), self.names.name(awaited))
                for records, time, awaited in groups
            ),
        )  # fmt: skip

    # --- objects ----------------------------------------------------------------------------------------------

    def _mbarrier(self, bar: Mbarrier) -> Part:
        state = bar.state
        if state is None:
            phases = tuple((key, self._acts(acts)) for key, acts in sorted(bar.phases.items()))
            ended = self._dones([bar.invalidation] if bar.invalidation else [], 0)
            return bar.lifetime, None, ended, self._dones(bar.lifetime_changes, 0), phases, len(bar.unannounced_bytes)
        now = state.phase
        firsts = [max(0, bar.merged_phase + 1, bar.last_phase_seen.get(a.index, -1) + 1) - now for a in self.m.agents]
        oldest = min([0, *firsts])
        return (
            bar.lifetime, (now + self.addresses.rotation.parity_change(bar.address)) % 2,
            state.expected, state.pending, state.tx,
            tuple(firsts), len(bar.unannounced_bytes),
            self._dones(bar.current_operations, now), self._dones(bar.previous_operations, now), self._dones(bar.waits,
            now),
            tuple((p - now, self._dones(dones, now)) for p, dones in bar.older_operations.items()),
            self._dones(self.open(bar.failed_operations), now), self._dones(self.open(bar.lifetime_changes), now),
            tuple((bar.relative_phase(key), self._acts(acts)) for key, acts in sorted(bar.phases.items())),
            self.time(bar.time), self.time(bar.pending_time),
            tuple((p - now, self.time(v)) for p, v in sorted(bar.completion_times.items()) if p - now >= oldest),
            frozenset(p - now for life, p in bar.waited_phases if life == bar.lifetime and p >= now - 1),
            frozenset(p - now for life, p in bar.delayed_waited_phases if life == bar.lifetime and p >= now - 1),
            frozenset(p - now for life, p in bar.first_arrivals if life == bar.lifetime and p >= now),
            frozenset(
                (life, p - now, event.op.span) for (life, p), event in bar.first_arrivals.items()
                if p > 0 and (life, p - 1) not in bar.waited_phases
            ),
        )  # fmt: skip

    def _dones(self, dones: Iterable[SyncOperation], phase: int) -> Part:
        return tuple(self._done(d, phase) for d in dones)

    def _acts(self, acts: PhaseOperations) -> Part:
        return self._sets(acts.operations, acts.signals, acts.copies, acts.waits, acts.completing)

    def _meeting(self, x: BarrierState) -> Part:
        return (
            x.count, tuple((k, self._done(d, x.generation)) for k, d in x.arrived.items()), tuple((k, self._dones(dones,
            x.generation)) for k, dones in sorted(x.repeated_arrivals.items())), tuple((k, self.names.name(mask),
            self.time(v)) for k, (mask, v) in x.arrival_events.items()), frozenset(x.kinds),
            self.names.name(x.arrivals), self.time(x.time), self._dones(self.open(x.previous_arrivals), x.generation),
            self._dones(self.open(x.failed_arrivals), x.generation), repr(sorted(x.votes.items())),
            repr(sorted(x.lane_operands.items())), frozenset((warp, frozenset(inside)) for warp, inside in
            x.warps.items()), self.names.name(x.previous_events),
        )  # fmt: skip

    def _signal(self, s: Signal) -> Part:
        return (
            s.agent, self.at(s.address), s.kind, s.tx, s.count, s.key[2], self.time(s.time), self.events(s.issues),
            frozenset(map(self.completed_record, s.records)), s.event.op.span,
        )  # fmt: skip

    def _aligned(self, warp: tuple[int, int]) -> Part:
        """Return the aligned barriers that some of the warp has executed, and others have not."""
        done = [a.aligned_count for a in self.m.agents if self.m.warp_of(a) == warp]
        return warp, tuple(self.m.aligned_statements[warp][min(done) :])

    def _state(self, term: Term) -> object:
        """Return the state that an arrive returned, as waits use it (PTX ISA 9.7.13.15.16).

        That is its object, and whether it is of the present phase or the one before. Waits cannot be given older ones.
        """
        if not isinstance(term, int):
            return "unknown"
        homes = [bar for bar in self.m.mbarriers.values() if (bar.address, term) in self.m.tokens]
        behind = (min(phases_behind(bar.state, term), 2) for bar in homes if bar.state is not None)
        return tuple(self.at(bar.address) for bar in homes), tuple(behind), pending_before(term)

    def _tokens(self) -> frozenset[tuple[int, int]]:
        """Return the states that some register still holds that is used otherwise too."""
        held = {
            v
            for a in self.m.agents
            for lane in a.lanes
            for r, v in lane.registers.items()
            if isinstance(v, int) and r not in self.m.setup.facts_of(a.index).state_registers
        }
        return frozenset((self.at(address), token) for address, token in self.m.tokens if token in held)

    # --- memory -----------------------------------------------------------------------------------------------

    def record(self, r: Record) -> Part:
        """Return the form of an access, as far as a later one can distinguish it."""
        found = self.records.get(id(r))
        if found is None:
            e = r.event
            value = e.value[:3] if isinstance(e.value, tuple) and e.value[0] == "rmw" else ()
            found = self.records[id(r)] = (
                self.completed_record(r), self._owners(r.lanes), self.at(e.address), e.size, value,
            )  # fmt: skip
        return found

    def completed_record(self, r: Record) -> Part:
        """An access as far as those can tell who learn of its completion: that it is behind them, wherever it is."""
        e = r.event
        return (
            r.agent, r.write, r.proxy, r.asynchronous, r.cp_async, r.spaces, r.signalled,
            frozenset(self.bars[k] for k in r.mbarrier_clocks), frozenset(k for k, _ in r.waits),
            self.events(r.entries), e.tags,
            e.op.span,
        )  # fmt: skip

    def _owners(self, lanes: Lanes) -> object:
        match lanes:
            case (start, stride):
                return self.at(start), stride
            case LaneOwners(starts, size, numbers):
                return tuple(map(self.at, starts)), size, numbers
        return lanes

    def _history(self, h: History) -> Part:
        """Return the accesses to each byte of an object; equal neighbours are joined."""
        moving = self.addresses.streamed_object_at(h.starts[0])
        if moving is not None:
            cells = zip(h.starts, [*h.starts[1:], h.end], h.cells, strict=True)
            return tuple(
                (low - moving.origin, high - moving.origin, frozenset(map(self.record, cell)))
                for low, high, cell in cells if cell and high > moving.keep_from
            )  # fmt: skip
        out: list[tuple[int, frozenset[Part]]] = []
        for start, cell in self._cells(h):
            records = frozenset(map(self.record, cell))
            if not out or out[-1][1] != records:
                out.append((start, records))
        return tuple(out)

    def _cells(self, h: History) -> Iterable[tuple[int, list[Record]]]:
        """Return the cells of an object in the order of the old names of their bytes, each with its first byte."""
        cells = zip(h.starts, h.cells, strict=True)
        if h.ring is None:
            return cells
        borders = h.ring.block_starts()
        pieces = [
            (at, cell)
            for (start, cell), end in zip(cells, [*h.starts[1:], h.end], strict=True)
            for at in (start, *(b for b in borders if start < b < end))
        ]
        return sorted(((self.at(at), cell) for at, cell in pieces), key=_first)

    def _memory(self) -> Part:
        """Return what is known of the objects whose contents may matter."""
        if not self.contents:
            return ()
        asked = self.whole.find_deciding_objects()
        others = set() if asked is None else {i.base for i in self.m.program.memory.instances if i.base not in asked}
        return self.m.memory.known_contents(self.m.setup.unwritten_objects | others)


def _first(pair: tuple[int, object]) -> int:
    return pair[0]


def _count_completed_wgmma_groups(a: Agent) -> int:
    """Return how many of the agent's groups of wgmma are complete for all."""
    return next((k for k, (records, *_) in enumerate(a.wgmma_groups) if records), len(a.wgmma_groups))


def _demanded_value(term: Term, bits: int, names: dict[object, int]) -> object:
    """Return a value; of a number only the bits that matter."""
    return term & bits if isinstance(term, int) else _term(term, names)


def _term(term: Term, names: dict[object, int]) -> object:
    """Return a value, with unknown values numbered."""
    if isinstance(term, int):
        return term
    if term and term[0] in ("?", "e"):
        return term[0], names.setdefault(term, len(names))
    return tuple(_term(x, names) if isinstance(x, tuple) else x for x in term)
