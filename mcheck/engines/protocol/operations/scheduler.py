"""One execution from its beginning: forced steps first, then signals, then whoever ran last."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.budget import TimeOut
from mcheck.base.errors import Unsupported
from mcheck.cat.tags import Tag
from mcheck.effects.registry import PLANS
from mcheck.engines.protocol.execution.machine import DOERS, Blocked, Doer, Machine, Undefined, Watch
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.execution.unrolling_limit import longest_loop
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
from mcheck.engines.protocol.operations.execution_barriers import complete_late
from mcheck.engines.protocol.operations.mbarrier_updates import deliver_signal
from mcheck.engines.protocol.operations.races import objects_flagged
from mcheck.engines.protocol.operations.termination import finish, leave_barriers, stop_thread
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.trace import Entry, Forced
from mcheck.events.emit import Stop
from mcheck.events.event import Event
from mcheck.ir.ops import Exit, Op

MODULES = (
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
ROUNDS = 64
"""So many rounds of loops an agent makes before it is another one's turn: it may wait for that without blocking."""

Pick = Callable[[Machine], Agent | None]
"""Who goes next, if anybody can: up to the state alone."""


def first_runnable(m: Machine) -> Agent | None:
    """The first agent that can go."""
    return next((a for a in m.agents if a.status == "run"), None)


def execute(
    setup: Setup,
    forced: Forced = (),
    before: Callable[[Machine, Agent], None] | None = None,
    watch: Watch | None = None,
    pick: Pick | None = None,
) -> Machine:
    """The execution with these steps first, to its end, to a deadlock or to undefined behaviour.

    ``before`` is shown the machine, between two steps, and the agent that is to make the next one; ``watch`` the
    operations on mbarriers. An agent goes on as long as it can, unless there is a ``pick``.
    """
    m = Machine(setup, forced, objects_flagged)
    m.watch = watch
    try:
        _run(m, before, pick)
    except TimeOut:
        raise TimeOut(longest_loop(m)) from None
    return m


def _run(m: Machine, before: Callable[[Machine, Agent], None] | None, pick: Pick | None) -> None:
    if m.program.clustered:
        for agent in m.agents:
            agent.step += 1  # the beginning of a thread is known to those who know anything of it
            op = agent.code[0] if agent.code else Exit()
            m.put(agent, Event((agent.threads[0], 0), op, frozenset((Tag.START,)), 0, 0, agent.place[2]))
    _go_on(m, _replay(m), before, pick)


def run_to_end(m: Machine) -> None:
    """Goes on from between two steps, the first agent that can go always going."""
    try:
        _go_on(m, 0, None, first_runnable)
    except TimeOut:
        raise TimeOut(longest_loop(m)) from None


def _go_on(
    m: Machine, current: int, before: Callable[[Machine, Agent], None] | None, pick: Pick | None
) -> None:  # fmt: skip
    step = turn = 0
    while m.impossible is None:
        step += 1
        if step % 64 == 0:
            m.setup.deadline()
        if step > MAX_STEPS:
            m.up_to(f"{MAX_STEPS} steps")
            m.ended = "cut"
            break
        if m.queue:
            key = m.queue.popleft()
            if key in m.signals:
                _deliver(m, key, ())
            continue
        agent = pick(m) if pick is not None else _going_on(m, current, turn)
        if agent is None:
            if m.ended == "end" and complete_late(m):
                continue
            finish(m)
            break
        if current != agent.index or not turn:
            current, turn = agent.index, _rounds(agent) + ROUNDS
        if before is not None:
            before(m, agent)
        _step(m, agent, ())


def _going_on(m: Machine, current: int, turn: int) -> Agent | None:
    """The agent that went last, if it can still go and has not been through more rounds than its ``turn`` lasts to;
    otherwise the next one that can.
    """
    last = m.agents[current]
    if last.status == "run" and (not turn or _rounds(last) <= turn):
        return last
    count = len(m.agents)
    others = (a for k in range(1, count) if (a := m.agents[(current + k) % count]).status == "run")
    return next(others, last if last.status == "run" else None)


def _rounds(agent: Agent) -> int:
    """How often the heads of loops were come to, waits aside."""
    return sum(agent.rounds.values()) if agent.rounds else 0


def _replay(m: Machine) -> int:
    """The forced steps; the agent that made the last one."""
    current = 0
    for who, choices in m.forced:
        for agent in m.agents:  # those that have nothing left to do exit: no step of the trace says when they did
            if agent.status == "run" and agent.pc in m.setup.tails[agent.index]:
                _step(m, agent, ())
        if isinstance(who, tuple):
            if who in m.signals:
                _deliver(m, who, choices)
        elif isinstance(who, int) and m.agents[who].status == "run":
            _step(m, m.agents[who], choices)
            current = who
    return current


def doer_of(op: Op) -> Doer:
    """Who executes an operation; one that its plan says all of is what its events are."""
    doer = DOERS.get(type(op)) or (async_operations.issue_operation if type(op) in PLANS else None)
    if doer is None:
        raise Unsupported(f"{type(op).__name__} is not followed by the protocol engine")
    return doer


def _step(m: Machine, agent: Agent, choices: tuple[int, ...]) -> None:
    """The next operation of an agent; blocks it where it cannot be done now."""
    try:
        op = run_local(m, agent)
        if op is not None:
            agent.step += 1
            entry = Entry(
                agent.index, agent.index, agent.step, agent.time, op, [(c, -1) for c in choices], place=agent.pc
            )
            m.begin(entry)
            doer_of(op)(m, agent, op)
            entry.time = agent.time
    except Blocked as blocked:
        m.tried_in_vain()
        agent.step -= 1
        agent.status, agent.where = "blocked", blocked.where
    except Stop as stop:  # the emitters' word for undefined behaviour
        m.problem(stop.misstep.code, stop.misstep.message, agent, stop.misstep.op)
        agent.status = "undefined"
    except Undefined:
        agent.status = "undefined"  # it goes no further; the others may
    if agent.status == "leaving":
        agent.status = "done"
        leave_barriers(m, agent)
    elif agent.status == "undefined":
        stop_thread(m)


def _deliver(m: Machine, key: tuple[int, int, int], choices: tuple[int, ...]) -> None:
    signal = m.signals.pop(key)
    entry = Entry(key, signal.agent, signal.step, signal.time, signal.event.op, [(c, -1) for c in choices])
    entry.note = "completes"
    m.begin(entry)
    try:
        deliver_signal(m, signal, entry)
    except Blocked:
        m.tried_in_vain()
        m.signals[key] = signal
    except Undefined:
        m.ended = "undefined"
