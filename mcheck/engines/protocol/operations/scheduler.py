"""The scheduler of one execution: forced steps first, then signals, then the agent that ran last."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.budget import TimeOut
from mcheck.base.errors import Unsupported
from mcheck.base.progress import Level, note
from mcheck.cat.tags import Tag
from mcheck.effects.registry import EFFECTS
from mcheck.engines.protocol.execution.checkpoints import Checkpoints
from mcheck.engines.protocol.execution.executors import EXECUTORS, Blocked, Executor, Undefined
from mcheck.engines.protocol.execution.machine import Machine, MbarrierObserver, WaitObserver
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.execution.unrolling_limit import describe_longest_loop
from mcheck.engines.protocol.operations import (
    async_operations,
    atomics,
    execution_barriers,
    fences,
    mbarrier_updates,
    mbarrier_waits,
    memory_accesses,
    wgmma,
)
from mcheck.engines.protocol.operations.control_flow import run_local
from mcheck.engines.protocol.operations.execution_barriers import complete_stuck_barriers
from mcheck.engines.protocol.operations.mbarrier_updates import deliver_signal
from mcheck.engines.protocol.operations.races import drop_findings_left_open, report_object_flags
from mcheck.engines.protocol.operations.termination import complete_counted_barriers, finish_execution, leave_barriers
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.trace import Prefix, TraceEntry
from mcheck.events.emit import Stop
from mcheck.events.event import Event
from mcheck.ir.ops import Exit, Op

REGISTERING_MODULES = (
    memory_accesses,
    async_operations,
    atomics,
    execution_barriers,
    fences,
    mbarrier_waits,
    mbarrier_updates,
    wgmma,
)
"""Imported for the operations that they register."""

MAX_STEPS = 3_000_000
NOTED_STEPS = 4_096
"""Steps after which it is noted how far the loops have come."""
MAX_TURN_ITERATIONS = 64
"""The number of loop iterations an agent makes before another one's turn: it may wait for that one without blocking."""

ChooseAgent = Callable[[Machine], Agent | None]
"""The agent to run next, if any can run; it depends on the state alone."""


def first_runnable(m: Machine) -> Agent | None:
    """The first agent that can run."""
    return next((a for a in m.agents if a.status == "run"), None)


def execute(
    setup: Setup,
    prefix: Prefix = (),
    before_step: Callable[[Machine, Agent], None] | None = None,
    observer: MbarrierObserver | None = None,
    choose_agent: ChooseAgent | None = None,
    waits: WaitObserver | None = None,
    checkpoints: Checkpoints | None = None,
) -> Machine:
    """Run an execution with these steps first, to its end, a deadlock or undefined behaviour.

    ``before_step`` is called between two steps with the machine and the agent that makes the next one, ``observer``
    with the operations on mbarriers, ``waits`` with the waits for words. An agent runs as long as it can, unless
    ``choose_agent`` is given. With ``checkpoints`` of executions with the same agents, it continues from one.
    """
    known = None if checkpoints is None else checkpoints.restore(prefix)
    m = Machine(setup, prefix, report_object_flags) if known is None else known.machine
    m.observer, m.waits = observer, waits
    begun, current = (0, 0) if known is None else (known.length, known.agent)
    try:
        if known is None:
            _enter_starts(m)
        current = _replay(m, begun, current, checkpoints)
        _run_schedule(m, current, before_step, choose_agent)
    except TimeOut:
        raise TimeOut(describe_longest_loop(m)) from None
    drop_findings_left_open(m)
    return m


def _enter_starts(m: Machine) -> None:
    """Enter the starts of threads."""
    if m.program.clustered:
        for agent in m.agents:
            agent.step += 1  # whoever knows of any step of a thread knows of its start
            op = agent.code[0] if agent.code else Exit()
            m.add_event(agent, Event((agent.threads[0], 0), op, frozenset((Tag.START,)), 0, 0, agent.placement[2]))


def run_to_end(m: Machine) -> None:
    """Continue an execution between two steps, always with the first agent that can run."""
    try:
        _run_schedule(m, 0, None, first_runnable)
    except TimeOut:
        raise TimeOut(describe_longest_loop(m)) from None
    drop_findings_left_open(m)


def _run_schedule(
    m: Machine, current: int, before_step: Callable[[Machine, Agent], None] | None, choose_agent: ChooseAgent | None
) -> None:  # fmt: skip
    """Run steps until no agent can continue, or the execution is cut."""
    step = turn = 0
    while m.broken_axiom is None:
        step += 1
        if step % 64 == 0:
            m.setup.check_deadline()
            if step % NOTED_STEPS == 0 and (longest := describe_longest_loop(m)):
                note(Level.LOOP, longest)
        if step > MAX_STEPS:
            m.note_bound(f"{MAX_STEPS} steps")
            m.outcome = "cut"
            break
        if m.queue:
            key = m.queue.popleft()
            if key in m.signals:
                _deliver(m, key, ())
            continue
        agent = choose_agent(m) if choose_agent is not None else _choose_next(m, current, turn)
        if agent is None:
            if m.outcome == "end" and complete_stuck_barriers(m):
                continue
            finish_execution(m)
            break
        if current != agent.index or not turn:
            current, turn = agent.index, _count_iterations(agent) + MAX_TURN_ITERATIONS
        if before_step is not None:
            before_step(m, agent)
        _step(m, agent, ())


def _choose_next(m: Machine, current: int, turn: int) -> Agent | None:
    """The agent that ran last, if it can still run and its ``turn`` is not over; otherwise the next one that can."""
    last = m.agents[current]
    if last.status == "run" and (not turn or _count_iterations(last) <= turn):
        return last
    count = len(m.agents)
    others = (a for k in range(1, count) if (a := m.agents[(current + k) % count]).status == "run")
    return next(others, last if last.status == "run" else None)


def _count_iterations(agent: Agent) -> int:
    """The loop iterations of an agent, without waits."""
    return sum(agent.loop_iterations.values()) if agent.loop_iterations else 0


def _replay(m: Machine, begun: int, current: int, checkpoints: Checkpoints | None) -> int:
    """Replay the forced steps but the first ``begun``, the last of which ``current`` made; return the agent that made
    the last one of all.
    """
    for k in range(begun, len(m.prefix)):
        if checkpoints is not None:
            checkpoints.offer(k, current, m)
        who, choices = m.prefix[k]
        for agent in m.agents:  # agents with nothing left to do exit: the trace has no steps for that
            if agent.status == "run" and agent.pc in m.setup.tail_places[agent.index]:
                _step(m, agent, ())
        if isinstance(who, tuple):
            if who in m.signals:
                _deliver(m, who, choices)
        elif isinstance(who, int) and m.agents[who].status == "run":
            _step(m, m.agents[who], choices)
            current = who
    return current


def executor_of(op: Op) -> Executor:
    """The function that executes an operation: its own, or else the one that issues asynchronous copies, if it has an
    effect (``EFFECTS``).
    """
    doer = EXECUTORS.get(type(op)) or (async_operations.issue_operation if type(op) in EFFECTS else None)
    if doer is None:
        raise Unsupported(f"the protocol engine does not support {type(op).__name__}")
    return doer


def _step(m: Machine, agent: Agent, choices: tuple[int, ...]) -> None:
    """Execute the next operation of an agent; block the agent if the operation cannot be executed now."""
    try:
        op = run_local(m, agent)
        if op is not None:
            agent.step += 1
            entry = TraceEntry(
                agent.index, agent.step, agent.time, op, agent.pc, actor=agent.index, choices=[(c, -1) for c in choices]
            )
            m.begin_step(entry)
            executor_of(op)(m, agent, op)
            entry.time = agent.time
    except Blocked as blocked:
        m.undo_blocked_step()
        agent.step -= 1
        agent.status, agent.blocked_on = "blocked", blocked.blocked_on
    except Stop as stop:  # undefined behaviour found by an emitter
        m.report_problem(stop.misstep.code, stop.misstep.message, agent, stop.misstep.op)
        agent.status = "undefined"
    except Undefined:
        agent.status = "undefined"  # the agent stops; the others may continue
    if agent.status == "leaving":
        agent.status = "done"
        leave_barriers(m, agent)
    elif agent.status == "undefined":
        complete_counted_barriers(m)


def _deliver(m: Machine, key: tuple[int, int, int], choices: tuple[int, ...]) -> None:
    """Deliver a signal in flight, or put it back if it cannot arrive yet."""
    signal = m.signals.pop(key)
    entry = TraceEntry(
        signal.agent, signal.step, signal.time, signal.event.op, actor=key, choices=[(c, -1) for c in choices],
        note="completes",
    )  # fmt: skip
    m.begin_step(entry)
    try:
        deliver_signal(m, signal, entry)
    except Blocked:
        m.undo_blocked_step()
        m.signals[key] = signal
    except Undefined:
        m.outcome = "undefined"
