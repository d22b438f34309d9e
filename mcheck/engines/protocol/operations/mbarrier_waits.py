"""Waits on mbarriers: which phases they find, and what they return (PTX ISA 9.0 section 9.7.13.15.16).

A wait may find an earlier phase than the current one where the model allows it: it is stale. That may depend on which
operation of the phase came last (``mcheck.engines.protocol.operations.last_of_phase``).
"""

from __future__ import annotations

from mcheck.base.phrase import say
from mcheck.engines.protocol.analysis.polling import is_redundant_poll
from mcheck.engines.protocol.execution.executors import Blocked, executes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.unrolling_limit import format_line
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.operations import last_of_phase, mbarrier_reordering
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.operations.mbarrier_updates import (
    check_init_order,
    check_publication,
    mbarrier_at,
    record_failed,
    stop_with_misuse,
)
from mcheck.engines.protocol.operations.phase_deferral import follows_in_time
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Mbarrier, SyncOperation
from mcheck.engines.protocol.state.vector_clocks import join_clocks, raise_clock
from mcheck.events.event import Event, MbarrierStep
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.semantics import mbarrier as machine
from mcheck.semantics.undefined import Misuse

STALE_OBJECT = "after a barrier that did not wait for an exited thread, a wait may find the previous object"
"""An exit orders time and no memory (9.7.13.1)."""
CURRENT_PHASE = -1
"""The choice of a wait that finds the current phase."""
MAX_STALE_PHASES = 4
"""The number of earlier phases tested for a wait; more are tested only if the model allows none of these."""


def _evaluate_wait(
    m: Machine, agent: Agent, op: ops.MbarrierWait, bar: Mbarrier, state: machine.State, step: MbarrierStep
) -> bool | Misuse:
    """What a wait that finds the object in this state returns, or its misuse."""
    try:
        if step.parity is not None:
            return machine.wait_parity(state, step.parity)
        token = m.uniform_value(agent, op.state) if op.state is not None else None
        if not isinstance(token, int) or (bar.address, token) not in m.tokens:
            return Misuse("UB210", "the state operand was not returned by an arrive on this mbarrier", "")
        return machine.wait_state(state, token, bar.address)
    except Misuse as wrong:
        return wrong


def _enter_wait(
    m: Machine, agent: Agent, bar: Mbarrier, event: Event, phase: int, done: bool, *, ended: bool = True
) -> tuple[Live, ...]:  # fmt: skip
    """Enter the wait, finding the object in a phase, with edges to and from the operations on the object. Unless
    ``ended``, it may come after the operation that completed the phase.
    """
    every, own = bar.earlier_operations(phase)
    common = {"phase-order": every.operations}
    if done:
        common["phase"] = own.signals
        common["complete"] = own.copies
    back = bar.operations_of(phase).completing if ended else 0
    for (life, number), acts in bar.phases.items():
        if (life, number) > (bar.lifetime, phase):
            back |= acts.operations
    entries = m.add_event(agent, event, common=common, back={"phase-fr": back} if back else None)
    bar.operations_of(phase).waits |= to_mask(entries)
    return entries


def enter_endless_wait(m: Machine, agent: Agent, bar: Mbarrier) -> None:
    """Enter a wait that never ends: it is executed all the same, so its flags count."""
    assert bar.state is not None
    event = m.emit(agent, 0, ops.performed_operation(agent.code[agent.pc]))[0]
    agent.step += 1
    _enter_wait(m, agent, bar, event, bar.state.phase, False)


def _find_stale_phases(m: Machine, agent: Agent, bar: Mbarrier, event: Event, answers: dict[int, bool]) -> list[int]:
    """The earlier phases that the model allows a wait to find, latest first."""
    out: list[int] = []
    for phase in sorted(answers, reverse=True):
        if len(answers) > MAX_STALE_PHASES and phase < sorted(answers)[-MAX_STALE_PHASES]:
            if out:
                m.note_bound(
                    f"the latest {MAX_STALE_PHASES} phases of {m.thing_at(bar.address)}{format_line(event.op.span)}"
                )
            break
        saved = m.save(bar)
        _enter_wait(m, agent, bar, event, phase, answers[phase])
        possible = m.broken_axiom is None
        m.restore(saved, bar)
        if possible:
            out.append(phase)
        else:
            _note_other_completion(m, agent, bar, event, phase, answers[phase])
    return out


def _note_other_completion(m: Machine, agent: Agent, bar: Mbarrier, event: Event, phase: int, done: bool) -> None:
    """Note a phase that the model would allow the wait to find if another of its operations had come last. Time may
    order that operation before the wait where no axiom does.
    """
    assert bar.state is not None
    time = agent.known_time()
    may_end = last_of_phase.may_come_last(bar.completed_operations(phase), follows_in_time)
    if not may_end or (phase == bar.state.phase - 1 and last_of_phase.may_precede_some(bar.previous_operations, time)):
        return  # the order with the wait first is run anyway
    saved = m.save(bar)
    _enter_wait(m, agent, bar, event, phase, done, ended=False)
    free = mbarrier_reordering.find_unordered_by_axioms(m, may_end) if m.broken_axiom is None else ()
    m.restore(saved, bar)
    last_of_phase.note_other_completions(m, agent, bar.completed_operations(phase), free, follows_in_time)


def wait_on_mbarrier(
    m: Machine, agent: Agent, op: ops.MbarrierWait, *, blocking: bool, explores: bool = True, used: bool = True
) -> bool:  # fmt: skip
    """Execute test_wait or try_wait; with ``blocking`` the agent blocks until the result is true.

    Unless ``explores``, only one result is explored; ``used``: whether anything depends on the result.
    """
    for expr in (op.address, op.parity):
        if expr is not None:
            m.known_value(agent, expr)
    event = m.emit(agent, 0, op)[0]
    step = event.mbarrier
    assert step is not None
    bar = mbarrier_at(m, step.address)
    check_init_order(m, agent, op, bar, event)
    state = bar.state
    assert state is not None
    if m.exit_passed_barrier and explores and bar.lifetime > 1:
        m.not_followed = STALE_OBJECT
    time = agent.known_time()
    result = _evaluate_wait(m, agent, op, bar, state, step)
    ends = result is True and blocking and Pass.BLOCKED_EXECUTIONS in m.setup.passes
    if not ends and (explores or isinstance(result, Misuse)):
        for other in bar.previous_operations:  # it could have preceded the completion of the last phase
            m.note_reversal(other, agent.index, time, agent.is_single_thread)
    phase = state.phase
    if explores and not m.brief:
        phase = _choose_phase(m, agent, op, bar, state, step, event, result, blocking, used)
        result = _evaluate_wait(m, agent, op, bar, _state_in_phase(state, phase), step)
    if isinstance(result, Misuse):  # later operations could precede it, above all an invalidation
        record_failed(m, agent, bar, event, time, phase)
        check_publication(m, agent, bar, event)
        if (agent.threads[0], agent.pc) in m.setup.delayed_waits:
            mbarrier_reordering.note_delayed_wait(m, op)
        raise stop_with_misuse(m, agent, op, result.code, say("{}: {}", m.thing_at(bar.address), result.message), event)
    if blocking and not result:
        raise Blocked(bar)
    if m.observer is not None:
        m.observer.on_wait(bar, agent, event, awaited=blocking and step.parity is not None)
    agent.polled_versions["mbarrier", bar.address] = state.phase if phase == state.phase else -1
    kind = "wait" if result else "miss"
    wait = SyncOperation(agent.index, agent.step, len(m.trace) - 1, agent.current_time(), event, kind, phase)
    if result or explores:
        bar.waits.append(wait)
    m.decisions.append((agent.index, agent.step, kind, bar.address, bar.lifetime, phase))
    entries = wait.entries = _enter_wait(m, agent, bar, event, phase, result)
    mbarrier_reordering.note_after_init(m, bar, wait, time)
    if blocking:
        m.add_dependency(agent, entries)
    else:
        m.note_poll(agent, entries)
    if not blocking and op.dst is not None:
        for lane, entry in enumerate(entries):
            agent.sources[lane][op.dst.name] = entry.bit
    if result or not op.blocking or op.parity is None:  # no later wait of the thread finds an earlier phase (Q29)
        bar.last_phase_seen[agent.index] = phase - 1
    if result:
        delayed = not blocking and (agent.threads[0], agent.pc) in m.setup.delayed_waits
        (bar.delayed_waited_phases if delayed else bar.waited_phases).add((bar.lifetime, phase - 1))
        if phase:  # nothing precedes the first phase
            agent.time = raise_clock(
                join_clocks(agent.time, bar.completion_times.get(phase, bar.time)),
                bar.clock_index,
                bar.clock_value(phase),
            )
    return result


def _state_in_phase(state: machine.State, phase: int) -> machine.State:
    """The state of the object as a wait finds it that is stale by whole phases."""
    return state if phase == state.phase else machine.State(phase, state.expected, state.expected, 0)


def _choose_phase(
    m: Machine, agent: Agent, op: ops.MbarrierWait, bar: Mbarrier, state: machine.State, step: MbarrierStep,
    event: Event, done: bool | Misuse, must: bool, used: bool,
) -> int:  # fmt: skip
    """The phase that the wait finds: the current one or an earlier one that the model allows; all are explored. The
    earlier one comes first where the thread would wait forever otherwise, or continues as if it had waited whatever the
    result is.

    A misuse in an earlier phase only is a state operand of a later phase, which its own thread has from there.
    """
    seen = bar.last_phase_seen.get(agent.index, -1) if Pass.SEEN_PHASES in m.setup.passes else -1
    first = max(0, bar.merged_phase + 1, seen + 1)
    every = {p: _evaluate_wait(m, agent, op, bar, _state_in_phase(state, p), step) for p in range(first, state.phase)}
    answers = {p: a for p, a in every.items() if not isinstance(a, Misuse) and (a or not must)}
    if not answers:
        return state.phase
    found = _find_stale_phases(m, agent, bar, event, answers)
    if not found:
        return state.phase
    taken = m.choose_option((*found, CURRENT_PHASE) if (must and not done) or not used else (CURRENT_PHASE, *found))
    return state.phase if taken == CURRENT_PHASE else taken


@executes(ops.MbarrierWait)
def execute_mbarrier_wait(m: Machine, agent: Agent, op: Op) -> None:
    """Execute a wait that returns its result in a register."""
    assert isinstance(op, ops.MbarrierWait)
    if not evaluate_guard(m, agent, op):
        return
    labels = m.program.threads[agent.threads[0]].labels
    if op.dst is not None and m.setup.is_spin_wait(agent.index, agent.pc):
        wait_on_mbarrier(m, agent, op, blocking=True)
        for lane in range(len(agent.lanes)):
            m.set_register(agent, lane, op.dst.name, "pred", 1)
        agent.pc += 1
        return
    wanted = op.dst is not None and op.dst.name in m.setup.needed_registers[agent.threads[0]]
    if not wanted:
        wait_on_mbarrier(m, agent, op, blocking=False, used=False)
        if op.dst is not None:
            for lane in range(len(agent.lanes)):
                m.set_register(agent, lane, op.dst.name, "pred", None)
        agent.pc += 1
        return
    asked = op.dst is not None and op.dst.name in m.setup.observed_registers_of(agent.index)
    redundant = Pass.REDUNDANT_POLLS in m.setup.passes and is_redundant_poll(agent.code, labels, agent.pc)
    matters = asked or not redundant
    result = wait_on_mbarrier(m, agent, op, blocking=False, explores=matters)
    if op.dst is not None:
        for lane in range(len(agent.lanes)):
            source = agent.sources[lane].get(op.dst.name, 0)
            m.set_register(agent, lane, op.dst.name, "pred", int(result))
            agent.sources[lane][op.dst.name] = source
    agent.pc += 1


@executes(ops.MbarrierPending)
def read_pending_count(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``mbarrier.pending_count``."""
    assert isinstance(op, ops.MbarrierPending)
    if not evaluate_guard(m, agent, op):
        return
    token = m.uniform_value(agent, op.state)
    try:
        returned = isinstance(token, int) and any(token == given for _, given in m.tokens)
        value = machine.pending_count(token if isinstance(token, int) and returned else 0)
    except Misuse as wrong:
        raise stop_with_misuse(m, agent, op, wrong.code, str(wrong), None) from None
    m.set_register(agent, 0, op.dst.name, "u32", value)
    agent.pc += 1
