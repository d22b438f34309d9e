"""Deep copies of a machine: a second machine in the same state, which may continue independently.

Mutable objects are copied, each once, so that aliases remain aliases. Everything immutable is shared: events,
operations, vector clocks, the steps of the trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import Masks
from mcheck.engines.protocol.incremental.window import Window
from mcheck.engines.protocol.state.access_history import History, Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import BarrierState, Mbarrier, Signal, SyncOperation, Word, Write


def copy_machine(m: Machine) -> Machine:
    """Return a copy of a machine between two steps, without its watcher."""
    return _Copies().machine(m)


SHALLOW = (
    "program_order", "control_sources", "polls", "exits", "fences", "blocked_steps", "unordered_finds", "reported",
    "agents_to_split", "tokens", "guessed_truths", "branch_values",
)  # fmt: skip
"""Sets and mappings of a machine that are copied shallowly."""


class _Copies:
    """The copies made so far, by the identity of the original, which lives on meanwhile."""

    def __init__(self) -> None:
        self.made: dict[int, object] = {}

    def machine(self, m: Machine) -> Machine:
        """Copy a machine with everything that it holds."""
        out = Machine.__new__(Machine)
        vars(out).update(vars(m))
        out.window = self.window(m.window)
        out.memory = m.memory.copy()
        for name in SHALLOW:
            setattr(out, name, getattr(m, name).copy())
        for name in (
            "trace", "failed_steps", "problems", "reversals", "phase_reversals", "decisions", "mbarrier_places",
            "completed_barriers",
        ):  # fmt: skip
            setattr(out, name, list(getattr(m, name)))
        out.queue = deque(m.queue)
        out.aligned_statements = {warp: list(done) for warp, done in m.aligned_statements.items()}
        out.mbarriers = {address: self.mbarrier(bar) for address, bar in m.mbarriers.items()}
        out.barriers = {key: self.meeting(x) for key, x in m.barriers.items()}
        out.tracked_words = {address: self.word(word) for address, word in m.tracked_words.items()}
        out.signals = {key: self.signal(s) for key, s in m.signals.items()}
        out.histories = {base: self.history(h) for base, h in m.histories.items()}
        out.sc_fences = [(scope, self.done(d), self.lives(es)) for scope, d, es in m.sc_fences]
        out.agents = [self.agent(a) for a in m.agents]
        out.observer = out.waits = out.causality = None
        for agent in out.agents:
            agent.emitters = out.make_emitters(agent.threads)
        return out

    # --- events -----------------------------------------------------------------------------------------------

    def live(self, e: Live) -> Live:
        """Copy an event of the window; one that was merged, with the event that represents it."""
        found = self.made.get(id(e))
        if found is None:
            last = e.stand_in
            while last is not None and last.stand_in is not None:
                last = last.stand_in
            stand_in = None if last is None else self.live(last)
            found = self.made[id(e)] = Live(
                e.event, e.thread, e.sets, e.exact, dict(e.edges), dict(e.back), e.sort, e.instruction, e.slot, e.time,
                stand_in,
            )  # fmt: skip
        assert isinstance(found, Live)
        return found

    def lives(self, entries: Iterable[Live]) -> tuple[Live, ...]:
        return tuple(map(self.live, entries))

    def window(self, w: Window) -> Window:
        out = Window.__new__(Window)
        vars(out).update(vars(w))
        out.entries = [None if e is None else self.live(e) for e in w.entries]
        out.newest = None if w.newest is None else self.live(w.newest)
        out.cols = {n: list(column) for n, column in w.cols.items()}
        out.free, out.ends = list(w.free), list(w.ends)
        for name in ("relations", "filled", "masks", "latest", "recent", "memo", "domains"):
            setattr(out, name, dict(getattr(w, name)))
        out.keyed = {}
        for key, masks in w.keyed.items():
            out.keyed[key] = Masks()
            out.keyed[key].by_key = dict(masks.by_key)
        return out

    # --- accesses ---------------------------------------------------------------------------------------------

    def record(self, r: Record) -> Record:
        found = self.made.get(id(r))
        if found is None:
            found = self.made[id(r)] = Record(
                r.agent, r.step, r.lanes, r.event, r.write, r.proxy, r.asynchronous, r.cp_async, r.spaces,
                r.mbarrier_clocks, list(r.waits), r.signalled, r.position, self.lives(r.entries),
            )  # fmt: skip
        assert isinstance(found, Record)
        return found

    def records(self, some: Iterable[Record]) -> list[Record]:
        return list(map(self.record, some))

    def history(self, h: History) -> History:
        return History(list(h.starts), [self.records(cell) for cell in h.cells], h.end, h.ring, h.splits_ring_block)

    # --- objects ----------------------------------------------------------------------------------------------

    def done(self, d: SyncOperation) -> SyncOperation:
        found = self.made.get(id(d))
        if found is None:
            loose = tuple(map(self.done, d.reorderable))
            found = self.made[id(d)] = replace(d, entries=self.lives(d.entries), reorderable=loose)
        assert isinstance(found, SyncOperation)
        return found

    def dones(self, some: Iterable[SyncOperation]) -> list[SyncOperation]:
        return list(map(self.done, some))

    def mbarrier(self, bar: Mbarrier) -> Mbarrier:
        out = self.made[id(bar)] = replace(
            bar,
            initialisation=None if bar.initialisation is None else self.done(bar.initialisation),
            invalidation=None if bar.invalidation is None else self.done(bar.invalidation),
            lifetime_changes=self.dones(bar.lifetime_changes),
            current_operations=self.dones(bar.current_operations),
            previous_operations=self.dones(bar.previous_operations),
            older_operations={phase: self.dones(dones) for phase, dones in bar.older_operations.items()},
            waits=self.dones(bar.waits),
            failed_operations=self.dones(bar.failed_operations),
            phases={when: replace(acts) for when, acts in bar.phases.items()},
            completion_times=dict(bar.completion_times),
            waited_phases=set(bar.waited_phases),
            delayed_waited_phases=set(bar.delayed_waited_phases),
            first_arrivals=dict(bar.first_arrivals),
            unannounced_bytes=list(bar.unannounced_bytes),
            last_phase_seen=dict(bar.last_phase_seen),
        )
        return out

    def meeting(self, x: BarrierState) -> BarrierState:
        found = self.made.get(id(x))
        if found is None:
            found = self.made[id(x)] = replace(
                x,
                arrived={k: self.done(d) for k, d in x.arrived.items()},
                repeated_arrivals={k: self.dones(dones) for k, dones in x.repeated_arrivals.items()},
                arrival_events=dict(x.arrival_events),
                kinds=set(x.kinds),
                previous_arrivals=self.dones(x.previous_arrivals),
                failed_arrivals=self.dones(x.failed_arrivals),
                votes={k: list(votes) for k, votes in x.votes.items()},
                lane_operands={k: list(own) for k, own in x.lane_operands.items()},
                warps={warp: set(inside) for warp, inside in x.warps.items()},
            )
        assert isinstance(found, BarrierState)
        return found

    def word(self, word: Word) -> Word:
        out = self.made[id(word)] = replace(
            word, writes=[self.written(w) for w in word.writes], operations=self.dones(word.operations)
        )
        return out

    def written(self, w: Write) -> Write:
        found = self.made.get(id(w))
        if found is None:
            found = self.made[id(w)] = replace(w, entries=self.lives(w.entries))
        assert isinstance(found, Write)
        return found

    def signal(self, s: Signal) -> Signal:
        return replace(s, records=self.records(s.records), issues=self.lives(s.issues))

    # --- agents -----------------------------------------------------------------------------------------------

    def agent(self, a: Agent) -> Agent:
        """Copy an agent except for its emitters."""
        return replace(
            a,
            lanes=[lane.fork() for lane in a.lanes],
            blocked_on=self.where(a.blocked_on),
            records_by_event={key: self.record(r) for key, r in a.records_by_event.items()},
            tracked_counts=list(a.tracked_counts),
            completed_counts=list(a.completed_counts),
            open_wgmma=self.records(a.open_wgmma),
            wgmma_groups=[(self.records(records), time, before) for records, time, before in a.wgmma_groups],
            pipe_records=self.records(a.pipe_records),
            last_read=dict(a.last_read),
            cluster_arrival=None if a.cluster_arrival is None else self.meeting(a.cluster_arrival),
            last_barrier_arrivals=dict(a.last_barrier_arrivals),
            loop_visits=dict(a.loop_visits),
            loop_iterations=dict(a.loop_iterations),
            polled_versions=dict(a.polled_versions),
            sources=[dict(lane) for lane in a.sources],
        )

    def where(self, where: object) -> object:
        """Copy what an agent waits for: an object of the machine, or the name of one."""
        match where:
            case Mbarrier() | Word():
                return self.made[id(where)]
            case BarrierState():
                return self.meeting(where)
        return list(where) if isinstance(where, list) else where
