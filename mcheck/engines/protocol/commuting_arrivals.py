"""Commuting arrivals: arrivals on an mbarrier that may be exchanged between phases without adding any behaviour.

The consumers of a cluster release the stages of several CTAs, one CTA after the other. A fast consumer may arrive for
its next round before a slow one has arrived for this round: two arrivals of the fast one then make up a phase, and
every round doubles the executions. But a thread that arrives for the next round knows everything that the slow one did
before its arrival (else it would not have got so far), and so do those that its arrival releases. Such executions need
not be run: one represents all.

Let X be the execution in the usual order, all of whose reversals are of two arrivals in different phases of one object,
and Y any other one. What is checked of X, and shown of Y:

* The objects concerned count arrivals and do nothing else: each has one initialisation, arrivals of count one by single
  threads, and waits for a parity that are awaited. So the number of arrivals alone decides which waits are released.
* *Movable* are the arrivals whose phase may be another. They are found in an execution U in which nobody learns of
  movable arrivals, neither in time nor by the model, except by a wait for the last phase of an object all of whose
  arrivals count in some phase: whenever that wait ends, all have come. So what is ordered in U is ordered in every Y.
  Arrivals of two phases that U does not order are movable, and U is run until no more are found. So the others are in
  the same phases in Y as in X.
* Every arrival of a phase *knows* what those of the previous phase knew: observing it tells a waiter everything that
  observing those does, except that movable arrivals took place, and that threads have left barriers. This is checked in
  the window, by adding a wait as a trial, and in the vector clocks. By transitivity so does every arrival of any later
  phase. In Y a wait may miss an arrival that it observes in X; then, by number, it has observed another one, which
  comes later in X. By induction along Y every event other than the movable arrivals knows in Y what it knows in X. (The
  models order by closures, into which a phase enters as an edge from a release to an acquire: being released by the
  later arrival leads from everything before the earlier one to everything after the wait. That a thread has left a
  barrier at which it had arrived decides nothing for others, in time or by the model, where waiting is no access and no
  operation on an object: no check is about it, and what led to it, the arrivals, is known as well.)
* So what time or the model orders in X is ordered in Y, except a movable arrival before others. More order means no
  more findings: if X has none, Y has none about other events. Two kinds of severity review (``REVIEW_CODES``) may be in
  X: they concern the fences by which an order came about, and what is ordered this way in Y only is a race in X. No
  other step can come elsewhere, and no wait misses its phase, for what prevents it in X prevents it in Y as well.
* Every wait of Y is released: of the steps that Y lacks at its end, the first one in the order of X would be a wait for
  a phase all of whose arrivals have come.
* What follows a movable arrival is ordered this way in Y if it is in U: there no finding may be about one. And no wait
  may be stale in U.

The third and the fourth point are arguments about the shipped models; for other models this is not done.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.analysis.model_equivalence import is_equivalent
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import NewMbarrier, NewOrder, NewWord, Setup
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import to_mask, union
from mcheck.engines.protocol.operations.scheduler import execute
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Mbarrier, SyncOperation
from mcheck.engines.protocol.state.vector_clocks import Vector, join_clocks
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.semantics.mbarrier import State

Arrival = tuple[int, int]
"""An agent and the number of its step."""
Knowledge = tuple[dict[int, int], dict[int, int]]
"""What a wait would know: by node of the model the events that are related to it, and the sets that it would be in."""

REVIEW_CODES = frozenset(("RACE005", "RACE008"))
MAX_RUNS = 6
"""Maximum executions to find the movable arrivals."""


def prove_commuting(setup: Setup, first: Machine) -> int | None:
    """Prove that the first execution of a program represents all: the number of further executions that the proof took,
    or ``None`` if there is no proof.
    """
    if Pass.COMMUTING_ARRIVALS not in setup.passes:
        return None
    if not _has_only_phase_reversals(first) or _has_findings(first) or not is_equivalent(setup.tape):
        return None
    thorough, setup.thorough = setup.thorough, True  # stale waits are sought whatever is found
    try:
        return _count_confirming_runs(setup, first)
    except (Split, NewMbarrier, NewOrder, NewWord):
        return None
    finally:
        setup.thorough = thorough


def _has_findings(m: Machine) -> bool:
    """Whether an execution has findings other than ``REVIEW_CODES``."""
    return any(p.code not in REVIEW_CODES for p in m.problems)


def _has_only_phase_reversals(m: Machine) -> bool:
    """Whether all reversals of an execution exchange arrivals between phases, and nothing else was left open."""
    followed = not (m.tracked_words or m.agents_to_split or m.guess_count or m.bound) and m.outcome == "end"
    one_way = m.not_followed is None and m.broken_axiom is None and not any(entry.choices for entry in m.trace)
    return followed and one_way and bool(m.phase_reversals) and len(m.phase_reversals) == len(m.reversals)


def _count_confirming_runs(setup: Setup, first: Machine) -> int | None:
    """Find the movable arrivals and check the argument; the number of executions that this took."""
    first.window.forget_relations()
    movable = {arrival for _, *pair in first.phase_reversals for arrival in pair}
    objects = {address for address, *_ in first.phase_reversals}
    counts = {k: bar.state.phase for k, bar in first.mbarriers.items() if bar.state and _has_counted_all(bar.state)}
    for k in range(MAX_RUNS):
        hidden = ArrivalObserver(frozenset(movable), frozenset(objects), hides_movable=True, phase_counts=counts)
        fine = _run_hidden(setup, hidden, reorders=first.reordering is not None)
        if not (movable >= hidden.unordered_arrivals and objects >= hidden.unordered_objects):
            movable |= hidden.unordered_arrivals
            objects |= hidden.unordered_objects
            continue
        if not fine:
            return None
        observed = ArrivalObserver(hidden.movable, hidden.objects, hides_movable=False, waits=hidden.waits)
        return k + 2 if _run_observed(setup, observed) else None
    return None


def _run_hidden(setup: Setup, hidden: ArrivalObserver, *, reorders: bool) -> bool:
    """Run the execution in which nobody learns of the movable arrivals; return whether it is as the argument says."""
    m = execute(setup, observer=hidden)
    return (
        _runs_to_end(m)
        and (reorders or not m.reordering)
        and not hidden.inapplicable
        and _keep_one_lifetime(m, hidden.objects)
        and not _has_finding_on_movable(m, hidden)
    )


def _run_observed(setup: Setup, observed: ArrivalObserver) -> bool:
    """Run the usual execution; return whether every arrival knows what those of the phase before knew."""
    m = execute(setup, observer=observed)
    same = all(
        address in observed.objects and observed.movable.issuperset(pair) for address, *pair in m.phase_reversals
    )
    fine = same and _runs_to_end(m) and _has_only_phase_reversals(m) and not _has_findings(m)
    return (
        fine and not observed.inapplicable and not observed.loses_knowledge and _keep_one_lifetime(m, observed.objects)
    )


def _runs_to_end(m: Machine) -> bool:
    """Whether every thread ends, with nothing left open."""
    done = m.outcome == "end" and all(a.status == "done" for a in m.agents)
    followed = not (m.tracked_words or m.guess_count or m.bound)
    known = m.not_followed is None and m.broken_axiom is None
    return done and followed and known and not any(entry.choices for entry in m.trace)


def _keep_one_lifetime(m: Machine, objects: Iterable[int]) -> bool:
    """Whether each object was initialised once and never invalidated."""
    return all(m.mbarriers[k].lifetime == 1 and m.mbarriers[k].state is not None for k in objects)


def _has_finding_on_movable(m: Machine, watch: ArrivalObserver) -> bool:
    """Whether a finding may be about a movable arrival."""
    arrivals = (d for found in watch.arrivals.values() for d in found)
    spans = {d.event.op.span for d in arrivals if (d.agent, d.step) in watch.movable}
    return any(not p.accesses or any(a.span in spans for a in p.accesses) for p in m.problems)


@dataclass(slots=True)
class ArrivalObserver:
    """The observer of an execution. With ``hides_movable``, nobody learns of the movable arrivals, and it collects
    those that are not ordered (``unordered_arrivals``, at ``unordered_objects``). Otherwise it checks whether the
    arrivals of each phase of the ``objects`` know what those of the previous phase knew.
    """

    movable: frozenset[Arrival]
    objects: frozenset[int]
    hides_movable: bool
    waits: dict[int, dict[object, tuple[int, Event]]] = field(default_factory=dict)
    """By object, and for each statement of an agent, a thread that waits at it, and its event."""
    unordered_arrivals: set[Arrival] = field(default_factory=set)
    unordered_objects: set[int] = field(default_factory=set)
    arrivals: dict[int, list[SyncOperation]] = field(default_factory=dict)
    inapplicable: bool = False
    """Whether one of the objects does anything other than count arrivals of one, or some phase may be kept open."""
    loses_knowledge: bool = False
    phase_counts: dict[int, int] = field(default_factory=dict)
    """By object, how many phases there are if every arrival counts in one of them."""
    barrier_waits: set[tuple[int, int]] = field(default_factory=set)
    """The steps that wait at a barrier of the cluster."""
    seen_steps: int = 0
    """The steps of the trace in which they have been looked for."""

    def hides(self, agent: Agent) -> bool:
        """Whether the present step of an agent is hidden from all others."""
        return self.hides_movable and (agent.index, agent.step) in self.movable

    def on_wait(self, bar: Mbarrier, agent: Agent, event: Event, *, awaited: bool) -> None:
        """Record a wait at an object."""
        self.waits.setdefault(bar.address, {})[agent.index, event.op.span] = agent.threads[0], event
        self.inapplicable |= bar.address in self.objects and not awaited

    def on_operation(self, m: Machine, bar: Mbarrier, done: SyncOperation, time: Vector) -> None:
        """Record an operation or signal that counts in the present phase."""
        if done.effect[0] > 0:  # operations after such an increment may be deferred with it
            self.inapplicable = True
        if not _is_plain_arrival(m, done):
            self.inapplicable |= bar.address in self.objects
            return
        mine = self.arrivals.setdefault(bar.address, [])
        if self.hides_movable:
            for other in mine:
                if other.phase < done.phase and other.agent != done.agent and time[other.agent] < other.step:
                    self.unordered_arrivals |= {(other.agent, other.step), (done.agent, done.step)}
                    self.unordered_objects.add(bar.address)
        mine.append(done)

    def on_arrival(self, m: Machine, bar: Mbarrier, done: SyncOperation, entries: tuple[Live, ...]) -> None:
        """Check whether an arrival in the window knows what those of the previous phase knew; show the hidden ones to
        those that wait for the last phase.
        """
        if self.hides_movable and self._ends_last_phase(bar, done):
            self._show_all(bar)
        if self.hides_movable or self.loses_knowledge or bar.address not in self.objects or not bar.previous_operations:
            return
        self.loses_knowledge = not all(self._covers_in_time(m, other, done) for other in bar.previous_operations)
        previous = to_mask(e for other in bar.previous_operations for e in other.entries)
        for thread, event in self.waits.get(bar.address, {}).values():
            if self.loses_knowledge:
                return
            known, member_sets = _find_knowledge(m, thread, event, previous)
            also_known, also_sets = _find_knowledge(m, thread, event, to_mask(entries))
            lost = union(events & ~also_known.get(n, 0) for n, events in known.items()) & ~previous
            self.loses_knowledge = member_sets != also_sets or bool(
                lost and lost & ~(self._movable_events() | _barrier_wait_events(m))
            )

    def _ends_last_phase(self, bar: Mbarrier, done: SyncOperation) -> bool:
        """Whether an arrival completes the last phase of an object."""
        return self.phase_counts.get(bar.address) == done.phase + 1 and bar.state is not None and bar.state.pending == 1

    def _show_all(self, bar: Mbarrier) -> None:
        """Let those that wait for the present phase of an object learn of all arrivals at it."""
        here = bar.operations_of(-1 if bar.state is None else bar.state.phase)
        for done in self.arrivals.get(bar.address, ()):
            if (done.agent, done.step) in self.movable:
                here.operations |= to_mask(done.entries)
                here.signals |= to_mask(done.entries)
                bar.pending_time = join_clocks(bar.pending_time, done.time)

    def _movable_events(self) -> int:
        """The movable arrivals, as a set of the window, without those that stand for others as well."""
        movable = fixed = 0
        for k in self.objects:
            for done in self.arrivals.get(k, ()):
                if (done.agent, done.step) in self.movable:
                    movable |= to_mask(done.entries)
                else:
                    fixed |= to_mask(done.entries)
        return movable & ~fixed

    def _covers_in_time(self, m: Machine, other: SyncOperation, done: SyncOperation) -> bool:
        """Whether an operation follows everything that another one follows in time, except movable arrivals."""
        agents = len(m.agents)
        if any(a > b for a, b in zip(other.time[agents:], done.time[agents:], strict=True)):
            return False
        missing = [(k, step) for k in range(agents) for step in range(done.time[k] + 1, other.time[k] + 1)]
        if self.movable.issuperset(missing):
            return True
        self._note_barrier_waits(m)
        return all(step in self.movable or step in self.barrier_waits for step in missing)

    def _note_barrier_waits(self, m: Machine) -> None:
        """Extend ``barrier_waits`` by those in the trace; a step that had to wait is the same once it is made."""
        self.barrier_waits.update((e.agent, e.step) for e in m.trace[self.seen_steps :] if _is_barrier_wait(e.op))
        self.seen_steps = max(len(m.trace) - 1, 0)


def _is_plain_arrival(m: Machine, done: SyncOperation) -> bool:
    """Whether an operation is an arrival of one by a single thread, and nothing else."""
    step, op = done.event.mbarrier, ops.performed_operation(done.event.op)
    if step is None or not isinstance(op, ops.MbarrierArrive) or done.signal >= 0 or done.kind != "arrive":
        return False
    plain = step.kind == "arrive" and step.count == 1 and not step.tx and op.state is None
    return plain and m.agents[done.agent].is_single_thread


def _has_counted_all(state: State) -> bool:
    """Whether every arrival at an object has counted in a phase that is over."""
    return state.pending == state.expected


def _is_barrier_wait(op: ops.Op) -> bool:
    """Whether an operation only waits at a barrier at which its thread has arrived before."""
    return isinstance(op, ops.ClusterBarrier) and op.kind == "wait"


def _barrier_wait_events(m: Machine) -> int:
    """The live events that only wait at a barrier, as a set of the window."""
    names = m.window.sorts.names
    out = 0
    for sort, events in m.window.keyed["sort"].by_key.items():
        if isinstance(sort, int) and Tag.BWAIT in names[sort] and Tag.BARRIVE not in names[sort]:
            out |= events
    return out


def _find_knowledge(m: Machine, thread: int, event: Event, seen: int) -> Knowledge:
    """What a wait of a thread would know that had observed some arrivals, and nothing else."""
    return m.window.find_relations_of(m.window.entry(event, thread, edges={"phase": seen}))
