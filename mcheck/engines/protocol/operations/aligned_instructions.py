"""Aligned instructions: all threads of a warp must execute the same ones in the same order; anything else is undefined
(PTX ISA 9.0 sections 9.7.13.1 and 9.7.15). Undeclared threads do whatever the declared ones do.
"""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import BarrierState, SyncOperation
from mcheck.engines.protocol.state.vector_clocks import join_clocks
from mcheck.ir.aligned_operations import Statement, aligned_statement, explain_divergent_wgmma, is_wgmma
from mcheck.ir.ops import Op


def warp_agents(m: Machine, agent: Agent) -> tuple[int, ...]:
    """The agents of a warp, the given one included."""
    return m.setup.warp_mates[agent.index]


# --- divergence -------------------------------------------------------------------------------------------------


def find_divergence(m: Machine, agent: Agent, op: Op) -> int | None:
    """The step at which another lane of the warp executed another aligned barrier instead of the one that this agent
    executes; ``None`` if none has.
    """
    other = _find_mismatch(m, agent, op)
    if other is None:
        return None
    if not other[-1]:
        _report_for_mate(m, agent, other, aligned_statement(op))
        return None
    lanes = [k for k in warp_agents(m, agent) if k != agent.index]
    return next(k for k, e in enumerate(m.trace) if e.agent in lanes and aligned_statement(e.op) == other)


def check_wgmma(m: Machine, agent: Agent, op: Op) -> None:
    """Report a wgmma instruction of an agent if other lanes of the warp execute something else, or have exited."""
    lanes = [m.agents[k] for k in warp_agents(m, agent)]
    if len(lanes) == 1:
        return
    other = _find_mismatch(m, agent, op)
    if other is not None or any(mate.status == "done" and mate.aligned_count < agent.aligned_count for mate in lanes):
        _report(m, agent, op, other)


def check_exit(m: Machine, agent: Agent) -> None:
    """Report the first wgmma instruction that another lane has executed and an exiting agent has not."""
    missing = m.aligned_statements.get(m.warp_of(agent), [])[agent.aligned_count :]
    first = next((statement for statement in missing if not statement[-1]), None)
    if first is not None:
        _report_for_mate(m, agent, first, None)


def _find_mismatch(m: Machine, agent: Agent, op: Op) -> Statement | None:
    """The different statement that another lane of the warp has executed at this position of the aligned sequence."""
    done = m.aligned_statements.setdefault(m.warp_of(agent), [])
    statement = aligned_statement(op)
    agent.aligned_count += 1
    if agent.aligned_count > len(done):
        done.append(statement)
        return None
    found = done[agent.aligned_count - 1]
    return None if found == statement or _is_divergence_reported(m, agent) else found


def _is_divergence_reported(m: Machine, agent: Agent) -> bool:
    """Whether the divergence of a warp has been reported."""
    return ("parted", m.warp_of(agent)) in m.reported


def _report(m: Machine, agent: Agent, op: Op, instead: Statement | None) -> None:
    """Report the divergence once for each warp: later instructions diverge as well, and nobody waits for missing
    lanes.
    """
    if not _is_divergence_reported(m, agent):
        m.reported.add(("parted", m.warp_of(agent)))
        m.report_problem("UB307", explain_divergent_wgmma(instead), agent, op)
        barrier = m.barriers.get(_key(m, agent))
        if barrier is not None:
            _release_lanes(m, barrier)


def _report_for_mate(m: Machine, agent: Agent, statement: Statement, instead: Statement | None) -> None:
    """Report a wgmma instruction that another lane than the agent's has executed."""
    for mate in [m.agents[k] for k in warp_agents(m, agent) if k != agent.index]:
        op = next((op for op in mate.code if is_wgmma(op) and aligned_statement(op) == statement), None)
        if op is not None and (instead is not None or mate.aligned_count > agent.aligned_count):
            _report(m, mate, op, instead)


# --- synchronisation -------------------------------------------------------------------------------------------------


def synchronise_warp(m: Machine, agent: Agent, op: Op) -> bool:
    """Whether all lanes of the warp have arrived; if not, the agent waits."""
    warp = warp_agents(m, agent)
    if agent.warp_synchronised or len(warp) == 1 or _is_divergence_reported(m, agent):
        agent.warp_synchronised = False
        return True
    key = _key(m, agent)
    barrier = m.barriers.get(key)
    if barrier is None:
        barrier = m.barriers[key] = BarrierState(key, frozenset(warp))
    m.trace[-1].note = "arrives"
    event = m.make_plain_event(agent, op)
    barrier.arrived[agent.index] = SyncOperation(
        agent.index, agent.step, len(m.trace) - 1, agent.current_time(), event, "arrive", 0
    )
    barrier.time = join_clocks(barrier.time, agent.current_time()) if barrier.time else agent.current_time()
    agent.status, agent.blocked_on = "standing", barrier
    complete_warp(m, barrier)
    return False


def complete_warp(m: Machine, barrier: BarrierState) -> None:
    """Release the lanes once all that have not exited have arrived."""
    if all(k in barrier.arrived or m.agents[k].status == "done" for k in barrier.members):
        _release_lanes(m, barrier)


def _key(m: Machine, agent: Agent) -> tuple[object, ...]:
    return ("warp", *m.warp_of(agent), "aligned")


def _release_lanes(m: Machine, barrier: BarrierState) -> None:
    """Release the lanes that have arrived; what one of them had awaited, all have."""
    lanes = [m.agents[k] for k in barrier.arrived]
    before = 0
    for agent in lanes:
        before |= awaited_events(m, agent)
    for agent in lanes:
        add_awaited(m, agent, before)
        agent.warp_synchronised = True
        agent.time = join_clocks(agent.time, barrier.time)
        agent.status, agent.blocked_on = "run", None
    barrier.arrived, barrier.time = {}, []


def awaited_events(m: Machine, agent: Agent) -> int:
    """The events that the threads of an agent have awaited."""
    out = 0
    for thread in agent.representatives:
        out |= m.control_sources.get(thread, 0)
    return out


def add_awaited(m: Machine, agent: Agent, before: int) -> None:
    """Note that the threads of an agent have awaited these events."""
    for thread in agent.representatives if before else ():
        m.control_sources[thread] = before
