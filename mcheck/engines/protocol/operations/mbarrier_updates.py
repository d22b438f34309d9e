"""Operations on mbarriers: the state machine of ``mcheck.semantics.mbarrier``, and the phases they fall into.

Two operations on one object commute if they fall into the same phase. One that falls into the phase after another,
without following it in time, could have come first: that order is run too. So are those in which an expect-tx comes
only when the phase is over, with all that follows it (``mcheck.engines.protocol.operations.phase_deferral``), and those
in which a wait comes only after the phase that it found (``mcheck.engines.protocol.operations.mbarrier_waits``).
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import Phrase, Site, join, say
from mcheck.base.records import replace
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.diagnosis.mbarrier_lifetime import suggest_single_init
from mcheck.engines.protocol.diagnosis.transaction_bytes import describe_bytes, suggest_byte_count
from mcheck.engines.protocol.execution.executors import Blocked, Undefined, executes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import NewMbarrier
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.operations import mbarrier_reordering
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.operations.phase_deferral import note_deferrable
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.sync_objects import MAX_PHASES, Mbarrier, Signal, SyncOperation
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.engines.protocol.state.vector_clocks import join_clocks, raise_clock
from mcheck.events.choices.mbarrier_phases import apply_step
from mcheck.events.choices.phase_assignment import SIGNALS
from mcheck.events.event import Event, MbarrierStep
from mcheck.findings import catalogue
from mcheck.findings.fix import Fix, Fixes, Note, advise
from mcheck.findings.undefined_effects import REPORTED_BESIDE_MISUSE, continues_after
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.semantics import mbarrier as machine
from mcheck.semantics.undefined import Misuse

ARRIVALS = frozenset(("arrive", "drop", "async-arrive"))
REINITIALISED = "init again"
"""The kind of an operation that is undefined as long as the object exists."""


def mbarrier_at(m: Machine, address: int) -> Mbarrier:
    """The mbarrier at an address; raises ``NewMbarrier`` if it has no clock component."""
    found = m.mbarriers.get(address)
    if found is None:
        raise NewMbarrier(address)
    return found


def stop_with_misuse(
    m: Machine, agent: Agent | None, op: Op, code: str, text: str | Phrase, event: Event | None, fixes: Fixes = ()
) -> Undefined:
    """Report a misuse, and return the exception that ends the execution."""
    m.report_problem(code, text, agent, op, event, fixes)
    if agent is not None:
        m.decisions.append((agent.index, agent.step, "misuses", code))
    return Undefined()


# --- the object's events in the window --------------------------------------------------------------------------


def enter_phase(
    m: Machine, agent: Agent, bar: Mbarrier, event: Event, phase: int, *, ends: bool = False, part: int = 0,
    edges: list[dict[str, int]] | None = None,
) -> tuple[Live, ...]:  # fmt: skip
    """Enter an operation other than a wait in a phase of the present object; ``ends``: it completes the phase, or
    invalidates the object.
    """
    acts, waits = bar.operations_before(phase)
    here = bar.operations_of(phase)
    if m.observer is not None and m.observer.hides(agent):
        return m.add_event(agent, event, part=part, edges=edges)
    if event.mbarrier is not None and event.mbarrier.kind == "inval":
        acts |= here.operations  # its thread's next operations come after these
    common = {"phase-order": acts, "phase-fr": waits | (here.waits if ends else 0)}
    entries = m.add_event(agent, event, part=part, common=common, edges=edges)
    bits = to_mask(entries)
    here.operations |= bits
    if event.mbarrier is not None and event.mbarrier.kind in SIGNALS:
        here.signals |= bits
    if ends:
        here.completing |= bits
    return entries


# --- operations that are done at once -----------------------------------------------------------------------------


@executes(ops.MbarrierInit, ops.MbarrierInval, ops.MbarrierTx, ops.MbarrierArrive)
def update_mbarrier(m: Machine, agent: Agent, op: Op) -> None:
    """Execute an operation that takes effect at once."""
    if not evaluate_guard(m, agent, op):
        return
    for name in ("address", "count", "tx"):
        expr = getattr(op, name, None)
        if expr is not None:
            m.known_value(agent, expr)
    agent.effect_count += 1
    event = m.emit(agent, 0, op)[0]
    step = event.mbarrier
    assert step is not None
    bar = mbarrier_at(m, step.address)
    if step.kind == "init":
        _initialise(m, agent, op, bar, step, event)
    elif step.kind == "inval":
        _invalidate(m, agent, op, bar, event)
    else:
        check_init_order(m, agent, op, bar, event)
        _update(m, agent, op, bar, step, event)
    agent.pc += 1


def _initialise(m: Machine, agent: Agent, op: Op, bar: Mbarrier, step: MbarrierStep, event: Event) -> None:
    """Execute mbarrier.init."""
    if bar.state is not None or len(agent.lanes) > 1:
        text = say("mbarrier.init of {}, which holds a valid mbarrier object", m.thing_at(bar.address))
        check_publication(m, agent, bar, event)
        if bar.state is not None:
            assert bar.initialisation is not None
            # In the other order that one is undefined.
            m.note_reversal(bar.initialisation, agent.index, agent.current_time(), agent.is_single_thread)
            record_failed(m, agent, bar, event, agent.current_time(), bar.state.phase, REINITIALISED)
        raise stop_with_misuse(m, agent, op, "UB202", text, event, suggest_single_init(bar, op))
    try:
        state = machine.init(step.count)[0]
    except Misuse as wrong:
        check_publication(m, agent, bar, event)
        record_failed(m, agent, bar, event, agent.current_time(), -1)
        raise stop_with_misuse(m, agent, op, wrong.code, str(wrong), event) from None
    if bar.invalidation is not None and not _is_after(agent, bar.invalidation):
        m.note_reversal(bar.invalidation, agent.index, agent.current_time(), agent.is_single_thread)
    for missed in bar.failed_operations:
        if missed.phase < 0:  # it found no object, but could have found this one
            m.note_reversal(missed, agent.index, agent.current_time(), agent.is_single_thread)
    bar.state = state
    bar.lifetime += 1
    bar.current_operations, bar.previous_operations, bar.waits, bar.failed_operations = [], [], [], []
    bar.last_phase_seen.clear()
    bar.older_operations.clear()
    bar.merged_phase = -1
    bar.completion_times = {}
    began = SyncOperation(agent.index, agent.step, len(m.trace) - 1, agent.current_time(), event, "init", 0)
    bar.time = bar.pending_time = m.zero_clock
    bar.expected_bytes = bar.received_bytes = 0
    entries = enter_phase(m, agent, bar, event, -1)
    mbarrier_reordering.note_invalidation(m, bar, began, entries, agent.current_time())
    if bar.invalidation is not None:
        bar.lifetime_changes += (bar.invalidation, began)
    bar.initialisation, bar.invalidation = began, None
    m.queue.extend(key for key, signal in m.signals.items() if signal.address == bar.address and key not in m.queue)
    m.wake(bar)


def _is_after(agent: Agent, done: SyncOperation) -> bool:
    return done.agent == agent.index or agent.time[done.agent] >= done.step


def _invalidate(m: Machine, agent: Agent, op: Op, bar: Mbarrier, event: Event) -> None:
    """Execute mbarrier.inval."""
    check_init_order(m, agent, op, bar, event)
    time = agent.known_time()
    for other in bar.current_operations + bar.previous_operations + bar.waits + bar.failed_operations:
        m.note_reversal(other, agent.index, time, agent.is_single_thread)
    assert bar.state is not None
    bar.unannounced_bytes += find_unannounced_bytes(m, bar)
    note_deferrable(m, bar, ended=True)  # as at the end of the execution, the phase is over
    entries = enter_phase(m, agent, bar, event, bar.state.phase, ends=True)
    ended = SyncOperation(agent.index, agent.step, len(m.trace) - 1, agent.current_time(), event, "inval", 0)
    mbarrier_reordering.note_invalidation(m, bar, ended, entries, time)
    bar.state, bar.invalidation = None, ended
    m.wake(bar)  # those that try again find no object


def find_unannounced_bytes(m: Machine, bar: Mbarrier) -> list[Problem]:
    """Problems with bytes that completed without being announced (UB216)."""
    if bar.state is None or bar.state.tx >= 0:
        return []
    completions = [d for d in bar.current_operations if d.kind == "complete"]
    if not completions:
        return []
    phase = say("phase {} of {}", str(bar.state.phase), m.thing_at(bar.address))
    text = say("{} bytes completed in {} that nobody announced", str(-bar.state.tx), phase)
    last, fixes = completions[-1], (_describe_received_bytes(bar, completions),)
    problem = m.make_problem("UB216", text, m.agents[last.agent], last.event.op, last.event, fixes)
    announced = next((d for d in bar.current_operations if d.kind != "complete" and d.effect[1]), None)
    if announced is None:
        return [problem]
    other = m.make_problem("UB216", "", m.agents[announced.agent], announced.event.op, announced.event)
    return [replace(problem, accesses=problem.accesses + other.accesses)]


def _describe_received_bytes(bar: Mbarrier, completions: list[SyncOperation]) -> Fix:
    """The fix for unannounced bytes: the number to announce, or the bytes that completed in a phase, by source line."""
    sizes: dict[Site, int] = {}
    for done in completions:
        site = site_of(done.event.op)
        sizes[site] = sizes.get(site, 0) - done.effect[1]
    came = join([say("{} by {}", str(size), site) for site, size in sizes.items()], ", ", ", ")
    boxes = any(isinstance(d.event.op, ops.TensorCopy) for d in completions)
    box = "a tensor copy completes its whole box, including the part filled outside the tensor"
    if (count := suggest_byte_count(bar)) is not None:
        return count.noted(Note((box.capitalize(),)) if boxes else None)
    if told := describe_bytes(bar):
        return advise("{}: announce as many as complete, {}", told, _IN_TIME)
    whole = f"; {box}" if boxes else ""
    return catalogue.get("UB216").fix.noted(Note(say("Bytes that completed in this phase: {}{}", came, whole)))


_IN_TIME = "before an arrival that the phase still needs or in one instruction with it"


def check_init_order(m: Machine, agent: Agent, op: Op, bar: Mbarrier, event: Event) -> None:
    """Check that the object exists; whether its initialisation precedes this operation is a flag of the model
    (9.7.13.15.3).
    """
    time = agent.known_time()
    if bar.state is not None:
        for other in bar.lifetime_changes:  # it could have found the earlier object, or none
            m.note_reversal(other, agent.index, time, agent.is_single_thread)
        if (
            bar.initialisation is not None
            and bar.initialisation.agent != agent.index
            and not bar.initialisation.is_before(time)
        ):
            m.unordered_finds.setdefault(
                (agent.index, bar.address, bar.initialisation.agent, bar.initialisation.step), agent.step
            )
        return
    if bar.invalidation is None:
        raise Blocked(bar)  # in another order the object exists
    m.note_reversal(bar.invalidation, agent.index, time, agent.is_single_thread)
    mbarrier_reordering.note_refused(m, agent, bar, event, [bar.invalidation], time)
    record_failed(m, agent, bar, event, time, -1)
    raise stop_with_misuse(m, agent, op, "UB201", say("{} holds no mbarrier", m.thing_at(bar.address)), event)


def record_failed(
    m: Machine, agent: Agent, bar: Mbarrier, event: Event, time: list[int], phase: int, kind: str = "failed"
) -> None:  # fmt: skip
    """Record an operation that is undefined where it came, and the state that it found."""
    bar.failed_operations.append(SyncOperation(agent.index, agent.step, len(m.trace) - 1, time, event, kind, phase))
    m.decisions.append((agent.index, agent.step, "refused", bar.lifetime, bar.state))


def _misused(m: Machine, bar: Mbarrier, wrong: Misuse) -> Phrase:
    return say("{}: {}", m.thing_at(bar.address), wrong.message)


# --- arrivals, expectations, completions ------------------------------------------------------------------------


def _update(m: Machine, agent: Agent, op: Op, bar: Mbarrier, step: MbarrierStep, event: Event) -> None:
    """Execute an arrive, expect-tx or complete-tx of a thread, or of all lanes of an agent."""
    assert bar.state is not None
    before = bar.state
    lanes = len(agent.lanes)
    now = agent.current_time()
    time = now if agent.is_single_thread else agent.time
    try:
        after, completed = _apply(step, before, lanes)
    except Misuse as wrong:
        if lanes > 1:
            raise Split([(t,) for t in agent.threads]) from None
        _note_failed_update(m, agent, bar, event, time)
        if continues_after(m.program, wrong.code, op):  # the object stays unchanged
            m.report_problem(wrong.code, _misused(m, bar, wrong), agent, op, event)
            enter_phase(m, agent, bar, event, before.phase)
            return
        check_publication(m, agent, bar, event)
        raise stop_with_misuse(m, agent, op, wrong.code, _misused(m, bar, wrong), event) from None
    kind = "arrive" if step.kind in ARRIVALS else step.kind
    if step.no_complete:
        kind = "nocomplete"
    done = SyncOperation(agent.index, agent.step, len(m.trace) - 1, now, event, kind, before.phase)
    done.effect = _effect(step, lanes)
    if isinstance(op, ops.MbarrierArrive) and op.state is not None:
        token = machine.state_token(before, bar.address, no_complete=step.no_complete)
        for lane in range(lanes):  # for several lanes only the phase is read
            m.set_register(agent, lane, op.state.name, "b64", token)
        m.tokens.add((bar.address, token))
    bar.expected_bytes += (step.tx or 0) * lanes if kind != "complete" else 0
    bar.received_bytes += (step.tx or 0) * lanes if kind == "complete" else 0
    _count_in_phase(m, bar, done, time, agent.index, agent.is_single_thread)
    entries = enter_phase(m, agent, bar, event, before.phase, ends=completed)
    mbarrier_reordering.note_operation(m, bar, done, entries, time)
    if m.observer is not None:
        m.observer.on_arrival(m, bar, done, entries)
    if m.observer is None or not m.observer.hides(agent):
        bar.pending_time = join_clocks(bar.pending_time, now)
    bar.state = after
    m.decisions.append((agent.index, agent.step, "phase", bar.address, bar.lifetime, before.phase))
    if step.kind in ARRIVALS:
        bar.first_arrivals.setdefault((bar.lifetime, before.phase), event)
    if completed:
        _complete_phase(m, bar)


def _note_failed_update(m: Machine, agent: Agent, bar: Mbarrier, event: Event, time: list[int]) -> None:
    """Note the reversals of an operation that is undefined where it came."""
    assert bar.state is not None
    for other in bar.current_operations + bar.previous_operations + bar.waits:
        m.note_reversal(other, agent.index, time, agent.is_single_thread)
    mbarrier_reordering.note_refused(
        m, agent, bar, event, bar.current_operations + bar.previous_operations + bar.waits, time
    )
    record_failed(m, agent, bar, event, time, bar.state.phase)


def check_publication(
    m: Machine, agent: Agent, bar: Mbarrier, event: Event, edges: list[dict[str, int]] | None = None
) -> None:
    """Report what the flags say of an operation that is undefined for another reason (see
    ``REPORTED_BESIDE_MISUSE``). It
    enters no phase, so it is in the window for this alone.
    """
    saved, known = m.save(bar), len(m.problems)
    m.add_event(agent, event, edges=edges)
    new = [p for p in m.problems[known:] if p.code in REPORTED_BESIDE_MISUSE]
    m.restore(saved, bar)
    m.problems += new
    m.reported |= {(p.code, event.op.span) for p in new}


def _apply(step: MbarrierStep, state: machine.State, lanes: int) -> machine.Step:
    """Apply an operation of several lanes to the state of the object."""
    if lanes > 1 and step.kind == "arrive" and step.tx is None and step.count * lanes <= state.pending:
        return machine.arrive(state, step.count * lanes, no_complete=step.no_complete)
    result: machine.Step = (state, False)
    for k in range(lanes):
        result = apply_step(step, result[0])
        if result[1] and k < lanes - 1:
            raise Misuse("UB205", "lanes fall into different phases", "")
    return result


def _count_in_phase(m: Machine, bar: Mbarrier, done: SyncOperation, time: list[int], agent: int, single: bool) -> None:
    """Count an operation in the current phase, and note whether it could have counted in the previous one."""
    for other in bar.previous_operations:
        if m.note_reversal(other, agent, time, single):
            m.phase_reversals.append((bar.address, (other.agent, other.step), (done.agent, done.step)))
    for other in bar.failed_operations:
        if other.kind != REINITIALISED:
            m.note_reversal(other, agent, time, single)
    if m.observer is not None:
        m.observer.on_operation(m, bar, done, time)
    bar.current_operations.append(done)


def _complete_phase(m: Machine, bar: Mbarrier) -> None:
    """Complete the phase and wake those that wait for it."""
    _note_movable_waits(m, bar)
    note_deferrable(m, bar)
    assert bar.state is not None
    bar.time = raise_clock(join_clocks(bar.time, bar.pending_time), bar.clock_index, bar.clock_value(bar.state.phase))
    bar.completion_times[bar.state.phase] = bar.time
    bar.completion_times.pop(bar.merged_phase - 1, None)
    if bar.state.phase > 1:
        bar.older_operations[bar.state.phase - 2] = bar.previous_operations
    bar.previous_operations, bar.current_operations, bar.waits = bar.current_operations, [], []
    bar.expected_bytes = bar.received_bytes = 0
    m.wake(bar)


def _note_movable_waits(m: Machine, bar: Mbarrier) -> None:
    """Note waits of this phase that could come when it is over, because none of its operations follows them."""
    for wait in bar.waits:
        followers = [d for d in bar.current_operations if d.time[wait.agent] >= wait.step]
        if followers:
            mbarrier_reordering.note_movable_wait(m, wait, followers)
            continue
        m.note_postponement(wait.position, tuple(d.position for d in bar.current_operations))
        if not m.agents[wait.agent].is_single_thread:
            m.agents_to_split.add(wait.agent)


def _effect(step: MbarrierStep, count: int) -> tuple[int, int]:
    """What so many operations add to the pending arrivals and to the tx-count."""
    arrivals = step.count if step.kind in ARRIVALS else 0
    bytes_ = step.tx or 0
    return -arrivals * count, (-bytes_ if step.kind == "complete" else bytes_) * count


def add_pending_arrival(m: Machine, agent: Agent, op: Op, events: list[Event]) -> None:
    """Execute the immediate effect of cp.async.mbarrier.arrive: one more pending arrival (9.7.13.15.15)."""
    step = events[0].mbarrier
    assert step is not None
    bar = mbarrier_at(m, step.address)
    check_init_order(m, agent, op, bar, events[0])
    assert bar.state is not None
    for _ in events:
        try:
            bar.state, _ = machine.async_arrive_begin(bar.state)
        except Misuse as wrong:
            check_publication(m, agent, bar, events[0])
            raise stop_with_misuse(m, agent, op, wrong.code, _misused(m, bar, wrong), events[0]) from None
    time = agent.known_time()
    done = SyncOperation(
        agent.index, agent.step, len(m.trace) - 1, agent.current_time(), events[0], "expect", bar.state.phase
    )
    done.effect = len(events), 0
    _count_in_phase(m, bar, done, time, agent.index, agent.is_single_thread)
    entries = enter_phase(m, agent, bar, events[0], bar.state.phase)
    mbarrier_reordering.note_operation(m, bar, done, entries, time)


def deliver_signal(m: Machine, signal: Signal, entry: TraceEntry) -> None:
    """Deliver a completion signal to its mbarrier."""
    bar = mbarrier_at(m, signal.address)
    agent = m.agents[signal.agent]
    step = signal.event.mbarrier
    assert step is not None
    if bar.state is None and bar.invalidation is None:
        raise Blocked(bar)  # it arrives once there is an object: see finish_execution
    if bar.state is None:
        assert bar.invalidation is not None
        _miss_invalidated(m, agent, bar, signal, bar.invalidation)
        raise Undefined
    if not _is_next_commit(m, agent, signal):
        raise Blocked(bar)
    phase = bar.state.phase
    entry.signal, entry.phase, entry.clock_bound = bar.clock_index, phase, bar.clock_value(phase)
    done = SyncOperation(
        agent.index, signal.step, len(m.trace) - 1, signal.time, signal.event, "complete", phase, bar.clock_index,
        entry.clock_bound
    )  # fmt: skip
    done.effect = _effect(step, signal.count)
    for other in bar.lifetime_changes:
        m.note_reversal(other, -1, signal.time, True)
    _require_order_of_lanes(agent, signal, (*bar.lifetime_changes, *bar.previous_operations, *bar.failed_operations))
    if signal.kind == "async-arrive":
        done.kind = "arrive"
    try:
        after, completed = _count_signal(bar.state, agent, signal)
    except Misuse as wrong:
        _refuse(m, agent, bar, signal, done)
        raise stop_with_misuse(m, agent, signal.event.op, wrong.code, _misused(m, bar, wrong), signal.event) from None
    bar.received_bytes += signal.tx * signal.count
    _count_in_phase(m, bar, done, signal.time, -1, True)
    edges = [mbarrier_reordering.issue_edges(e) for e in signal.issues]
    entries = enter_phase(m, agent, bar, signal.event, phase, ends=completed, edges=edges)
    mbarrier_reordering.note_operation(m, bar, done, entries, signal.time)
    for record in signal.records:
        record.signalled = True
        bar.operations_of(phase).copies |= record.event_set
    bar.pending_time = join_clocks(bar.pending_time, signal.time)
    bar.state = after
    m.decisions.append((signal.key, "phase", bar.address, bar.lifetime, phase))
    if done.kind == "arrive":
        bar.first_arrivals.setdefault((bar.lifetime, phase), signal.event)
    if completed:
        _complete_phase(m, bar)
    if isinstance(signal.event.op, ops.TensorCommit):
        agent.commit_time = join_clocks(signal.time, bar.time) if completed else signal.time
        m.queue.extend(key for key, s in m.signals.items() if _is_commit_of(s, agent) and key not in m.queue)


def _count_signal(state: machine.State, agent: Agent, signal: Signal) -> tuple[machine.State, bool]:
    """The state of an mbarrier after a signal, which may stand for several, and whether it completes the phase. Lanes
    of which some signal the next phase are told apart; so are those of which one may not signal.
    """
    after, completed = state, False
    try:
        for k in range(signal.count):
            if signal.kind == "complete":
                after, completed = machine.complete_tx(after, signal.tx)
            else:
                after, completed = machine.async_arrive_end(after)
            if completed and k < signal.count - 1:
                raise Split([(t,) for t in agent.threads])
    except Misuse:
        if len(agent.lanes) > 1:
            raise Split([(t,) for t in agent.threads]) from None
        raise
    return after, completed


def _require_order_of_lanes(agent: Agent, signal: Signal, earlier: Iterable[SyncOperation]) -> None:
    """Tell the lanes of an agent apart if the signal of one could come before what another had done with the object
    when it was sent.
    """
    known = signal.known_time[agent.index]
    for other in earlier:
        if other.signal < 0 and other.agent == agent.index and known < other.step < signal.step:
            raise Split([(t,) for t in agent.threads])


def _miss_invalidated(m: Machine, agent: Agent, bar: Mbarrier, signal: Signal, end: SyncOperation) -> None:
    """Report a signal of an object that has been invalidated."""
    _require_order_of_lanes(agent, signal, (end,))
    m.note_reversal(end, -1, signal.time, True)
    missed = SyncOperation(
        agent.index, signal.step, len(m.trace) - 1, signal.time, signal.event, "failed", -1, bar.clock_index,
        bar.clock_value(MAX_PHASES),
    )  # fmt: skip
    _record_missed_signal(m, bar, signal, missed)
    text = say("{} is invalidated before this operation signals it", m.thing_at(bar.address))
    problem = m.make_problem("UB215", text, agent, signal.event.op, signal.event)
    ends = m.make_problem("UB215", text, m.agents[end.agent], end.event.op, end.event)
    m.problems.append(replace(problem, accesses=problem.accesses + ends.accesses))


def _refuse(m: Machine, agent: Agent, bar: Mbarrier, signal: Signal, done: SyncOperation) -> None:
    """Record a signal that misuses its object: it may have come before any operation of this phase or the last one."""
    earlier = bar.current_operations + bar.previous_operations + bar.waits
    _require_order_of_lanes(agent, signal, earlier)
    for other in earlier:
        m.note_reversal(other, -1, signal.time, True)
    mbarrier_reordering.note_refused(m, agent, bar, signal.event, earlier, signal.time, issues=signal.issues)
    done.kind = "failed"
    _record_missed_signal(m, bar, signal, done)
    check_publication(m, agent, bar, signal.event, [mbarrier_reordering.issue_edges(e) for e in signal.issues])


def _record_missed_signal(m: Machine, bar: Mbarrier, signal: Signal, done: SyncOperation) -> None:
    """Record a signal that is undefined where it came, and the state that it found."""
    bar.failed_operations.append(done)
    m.decisions.append((signal.key, "refused", bar.lifetime, bar.state))


def _is_next_commit(m: Machine, agent: Agent, signal: Signal) -> bool:
    """Whether a signal may arrive now: those of a thread's commits arrive in order (open question Q26), and whoever
    learns of one knows of those before it.
    """
    if not isinstance(signal.event.op, ops.TensorCommit):
        return True
    if any(_is_commit_of(s, agent) and s.step < signal.step for s in m.signals.values()):
        return False
    if agent.commit_time is not None:
        signal.time = join_clocks(signal.time, agent.commit_time)
        signal.known_time = join_clocks(signal.known_time, agent.commit_time)
    return True


def _is_commit_of(signal: Signal, agent: Agent) -> bool:
    return signal.agent == agent.index and isinstance(signal.event.op, ops.TensorCommit)


def check_target(m: Machine, agent: Agent, address: int, event: Event) -> bool:
    """Whether there is an object for an operation to signal when it is issued."""
    if m.mbarriers.get(address) is None:
        stop_with_misuse(m, agent, event.op, "UB201", say("{} holds no mbarrier", m.thing_at(address)), event)
        m.outcome = "undefined"
        return False
    return True
