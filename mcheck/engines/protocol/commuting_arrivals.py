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
  movable arrivals, neither in time nor by the model: what is ordered in U is ordered in every Y. Arrivals of two phases
  that U does not order are movable, and U is run until no more are found. So the others are in the same phases in Y as
  in X.
* Every arrival of a phase *knows* what those of the previous phase knew: observing it tells a waiter everything that
  observing those does, except that those arrivals themselves took place. This is checked in the window, by adding a
  wait as a trial, and in the vector clocks. By transitivity so does every arrival of any later phase. In Y a wait may
  miss an arrival that it observes in X; then, by number, it has observed another one, which comes later in X. By
  induction along Y every event other than the movable arrivals knows in Y what it knows in X. (The models order by
  closures, into which a phase enters as an edge from a release to an acquire: being released by the later arrival leads
  from everything before the earlier one to everything after the wait.)
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

from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.analysis.model_equivalence import is_equivalent
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import NewMbarrier, NewOrder, NewWord, Setup
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.operations.scheduler import execute
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Mbarrier, SyncOperation
from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.events.event import Event
from mcheck.ir import ops

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
    followed = (
        not (m.tracked_words or m.agents_to_split or m.guess_count or m.bound or m.reordering) and m.outcome == "end"
    )
    one_way = m.not_followed is None and m.broken_axiom is None and not any(entry.choices for entry in m.trace)
    return followed and one_way and bool(m.phase_reversals) and len(m.phase_reversals) == len(m.reversals)


def _count_confirming_runs(setup: Setup, first: Machine) -> int | None:
    """Find the movable arrivals and check the argument; the number of executions that this took."""
    movable = {arrival for _, *pair in first.phase_reversals for arrival in pair}
    objects = {address for address, *_ in first.phase_reversals}
    for k in range(MAX_RUNS):
        hidden = ArrivalObserver(frozenset(movable), frozenset(objects), hides_movable=True)
        m = execute(setup, observer=hidden)
        if not (movable >= hidden.unordered_arrivals and objects >= hidden.unordered_objects):
            movable |= hidden.unordered_arrivals
            objects |= hidden.unordered_objects
            continue
        if (
            not _runs_to_end(m)
            or hidden.inapplicable
            or not _keep_one_lifetime(m, objects)
            or _has_finding_on_movable(m, hidden)
        ):
            return None
        observed = ArrivalObserver(frozenset(movable), frozenset(objects), hides_movable=False, waits=hidden.waits)
        m = execute(setup, observer=observed)
        same = all(address in objects and movable.issuperset(pair) for address, *pair in m.phase_reversals)
        fine = same and _runs_to_end(m) and _has_only_phase_reversals(m) and not _has_findings(m)
        return (
            k + 2
            if fine and not observed.inapplicable and not observed.loses_knowledge and _keep_one_lifetime(m, objects)
            else None
        )
    return None


def _runs_to_end(m: Machine) -> bool:
    """Whether every thread ends, with nothing left open."""
    done = m.outcome == "end" and all(a.status == "done" for a in m.agents)
    followed = not (m.tracked_words or m.guess_count or m.bound or m.reordering)
    known = m.not_followed is None and m.broken_axiom is None
    return done and followed and known and not any(entry.choices for entry in m.trace)


def _keep_one_lifetime(m: Machine, objects: set[int]) -> bool:
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
        """Check whether an arrival in the window knows what those of the previous phase knew."""
        if self.hides_movable or self.loses_knowledge or bar.address not in self.objects or not bar.previous_operations:
            return
        self.loses_knowledge = not all(self._covers_in_time(m, other, done) for other in bar.previous_operations)
        previous = to_mask(e for other in bar.previous_operations for e in other.entries)
        for thread, event in self.waits.get(bar.address, {}).values():
            if self.loses_knowledge:
                return
            known, member_sets = _find_knowledge(m, thread, event, previous)
            also_known, also_sets = _find_knowledge(m, thread, event, to_mask(entries))
            excepted = previous | self._movable_events(m)
            self.loses_knowledge = member_sets != also_sets or any(
                events & ~also_known.get(n, 0) & ~excepted for n, events in known.items()
            )

    def _movable_events(self, m: Machine) -> int:
        """The movable arrivals in the present and previous phases of the objects, as a set of the window."""
        operations = (
            d for k in self.objects for d in (*m.mbarriers[k].current_operations, *m.mbarriers[k].previous_operations)
        )
        return to_mask(e for d in operations if (d.agent, d.step) in self.movable for e in d.entries)

    def _covers_in_time(self, m: Machine, other: SyncOperation, done: SyncOperation) -> bool:
        """Whether an operation follows everything that another one follows in time, except movable arrivals."""
        agents = len(m.agents)
        if any(a > b for a, b in zip(other.time[agents:], done.time[agents:], strict=True)):
            return False
        missing = ((k, step) for k in range(agents) for step in range(done.time[k] + 1, other.time[k] + 1))
        return all(step in self.movable for step in missing)


def _is_plain_arrival(m: Machine, done: SyncOperation) -> bool:
    """Whether an operation is an arrival of one by a single thread, and nothing else."""
    step, op = done.event.mbarrier, ops.performed_operation(done.event.op)
    if step is None or not isinstance(op, ops.MbarrierArrive) or done.signal >= 0 or done.kind != "arrive":
        return False
    plain = step.kind == "arrive" and step.count == 1 and not step.tx and op.state is None
    return plain and m.agents[done.agent].is_single_thread


def _find_knowledge(m: Machine, thread: int, event: Event, seen: int) -> Knowledge:
    """What a wait of a thread would know that had observed some arrivals, and nothing else."""
    saved = m.save()
    entry = m.window.entry(event, thread, edges={"phase": seen})
    m.window.add(entry)
    known = {n: column[entry.slot] for n, column in m.window.cols.items()}
    member_sets = {n: members >> entry.slot & 1 for n, members in m.window.masks.items()}
    m.restore(saved)
    return known, member_sets
