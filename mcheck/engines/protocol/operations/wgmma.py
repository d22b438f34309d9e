"""wgmma: warps execute its instructions together, and its groups belong to the warpgroup (PTX ISA 9.0 section 9.7.15,
Q21).

The instructions are ``.sync.aligned``: the lanes of a warp wait for each other, which orders time and none of their
accesses. What precedes the ``wgmma.fence`` of any lane of the warp precedes the warp's reads. A ``wait_group`` of any
warp waits until all warps of the warpgroup have committed as many groups, and covers the reads of all of them.
"""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.executors import Blocked, executes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.operations.aligned_instructions import (
    add_awaited,
    awaited_events,
    check_wgmma,
    synchronise_warp,
    warp_agents,
)
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import BarrierState, SyncOperation
from mcheck.engines.protocol.state.vector_clocks import join_clocks
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.semantics.warp_collectives import result


def fence_key(m: Machine, agent: Agent) -> object:
    """The warp whose wgmma.fence orders what precedes the wgmma of an agent."""
    return m.warp_of(agent)


def find_fences(m: Machine, agent: Agent, lane: int) -> int:
    """The fences that order the wgmma reads of a lane: the wgmma.fence of its warp, its own fence.proxy.async."""
    return m.fences.get(fence_key(m, agent), 0) | m.fences.get(("proxy", agent.representatives[lane]), 0)


def warpgroup(m: Machine, agent: Agent) -> list[Agent]:
    """The agents of the four warps that execute a wgmma together, as far as they are declared and use it."""
    return [m.agents[k] for k in m.setup.warpgroup_of(agent.index)]


@executes(ops.Collective)
def execute_collective(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``elect.sync``, ``shfl.sync`` and similar: the lanes of the mask synchronise, which orders no memory
    (Q23).
    """
    assert isinstance(op, ops.Collective)
    if not evaluate_guard(m, agent, op):
        return
    m.known_value(agent, op.mask)
    each = range(len(agent.lanes))
    operands = [m.evaluate(agent, k, op.srcs[0]) if op.srcs else 0 for k in each]  # before the destination is set
    lane_operands = [tuple(m.evaluate(agent, k, x) for x in op.srcs[1:]) for k in each]
    mask = m.known_value(agent, op.mask) or 0
    lanes = [m.program.threads[t].place.lane for t in agent.threads]
    inside = [bool(mask >> lane & 1) for lane in lanes]
    if any(inside) and not all(inside):
        groups = (tuple(t for t, i in zip(agent.threads, inside, strict=True) if i is want) for want in (True, False))
        raise Split(list(groups))
    alike = op.dsts == (None, None) and all(inside)  # one lane represents all
    for lane in each[:1] if alike else each:
        m.emit(agent, lane, m.program.threads[agent.threads[lane]].code[agent.pc])
    key = ("lanes", *m.warp_of(agent), mask, op.op, op.type)
    barrier = m.barriers.get(key)
    if barrier is None:
        members = {
            k for k in warp_agents(m, agent) for t in m.agents[k].threads if mask >> m.program.threads[t].place.lane & 1
        }
        barrier = m.barriers[key] = BarrierState(key, frozenset(members))
    agent.effect_count += 1
    m.trace[-1].note = "arrives"
    barrier.arrived[agent.index] = SyncOperation(
        agent.index, agent.step, len(m.trace) - 1, agent.current_time(), m.make_plain_event(agent, op), "arrive", 0
    )
    event = Event((agent.threads[0], 0), op, frozenset((Tag.MEET,)), 0, agent.step, agent.placement[2])
    barrier.arrivals |= to_mask(m.add_event(agent, event))
    barrier.time = join_clocks(barrier.time, agent.current_time()) if barrier.time else agent.current_time()
    barrier.votes[agent.index] = [v if isinstance(v, int) else None for v in operands]
    barrier.lane_operands[agent.index] = lane_operands
    agent.status, agent.blocked_on = "standing", barrier
    complete_collective(m, barrier)


def complete_collective(m: Machine, barrier: BarrierState) -> None:
    """Give the lanes of a mask their results once all that have not exited have arrived."""
    if not barrier.arrived or any(k not in barrier.arrived and m.agents[k].status != "done" for k in barrier.members):
        return
    threads = m.program.threads
    values = {
        threads[t].place.lane: v
        for k in barrier.arrived
        for t, v in zip(m.agents[k].threads, barrier.votes[k], strict=True)
    }
    for k in barrier.arrived:
        agent = m.agents[k]
        op = agent.code[agent.pc]
        assert isinstance(op, ops.Collective)
        event = Event((agent.threads[0], 0), op, frozenset((Tag.MET,)), 0, agent.step, agent.placement[2])
        entries = m.add_event(agent, event, part=1, common={"meet": barrier.arrivals})
        m.add_dependency(agent, entries)
        for lane, thread in enumerate(agent.threads):
            own = barrier.lane_operands[k][lane]
            known = {at: v for at, v in values.items() if v is not None}
            found: tuple[int | None, int | None] = (None, None)
            if op.op == "elect":
                continue  # the elected lane does not depend on this point: it was set as the lanes arrived
            if len(known) == len(values) and all(isinstance(x, int) for x in own):
                place = threads[thread].place
                mask = int(str(barrier.key[3]))
                found = result(op.op, op.type, mask, place.lane, known, tuple(x for x in own if isinstance(x, int)))
            for register, value, type_name in zip(op.dsts, found, (op.type, "pred"), strict=True):
                if register is not None:
                    m.set_register(agent, lane, register.name, type_name, value)
        agent.time = join_clocks(agent.time, barrier.time)
        agent.status, agent.blocked_on = "run", None
        agent.pc += 1
    barrier.arrived, barrier.time, barrier.arrivals, barrier.votes, barrier.lane_operands = {}, [], 0, {}, {}


def commit_group(m: Machine, agent: Agent) -> None:
    """Close the agent's group, and wake those that wait for all warps to have committed it."""
    agent.wgmma_groups.append((agent.open_wgmma, agent.current_time(), awaited_events(m, agent)))
    agent.open_wgmma = []
    m.wake(GROUPS)


GROUPS = "warpgroup"
"""What a wait_group blocks on while another warp of the warpgroup has not committed as many groups."""


def await_commits(m: Machine, agent: Agent, number: int) -> None:
    """Block until all remaining warps of the warpgroup have committed so many groups."""
    group = warpgroup(m, agent)
    for other in group:
        if len(other.wgmma_groups) < number and other.status != "done":
            agent.warp_synchronised = len(warp_agents(m, agent)) > 1
            raise Blocked(GROUPS)
    before = awaited_events(m, agent)
    for other in group:
        if 0 < number <= len(other.wgmma_groups):
            _, time, theirs = other.wgmma_groups[number - 1]
            agent.time = join_clocks(agent.time, time)
            before |= theirs
    add_awaited(m, agent, before)


@executes(ops.WgmmaFence)
def execute_wgmma_fence(m: Machine, agent: Agent, op: Op) -> None:
    """Execute wgmma.fence: what precedes it in any lane of the warp is ordered before the reads of later wgmma."""
    if not evaluate_guard(m, agent, op):
        return
    if not agent.warp_synchronised:  # the fences of all lanes are entered before any lane continues
        event = Event((agent.threads[0], 0), op, frozenset((Tag.WGFENCE,)), 0, agent.step, agent.placement[2])
        key = fence_key(m, agent)
        check_wgmma(m, agent, op)
        for entry in m.add_event(agent, event):
            m.fences[key] = m.fences.get(key, 0) | entry.bit
    agent.wgmma_fenced = True
    if synchronise_warp(m, agent, op):
        agent.pc += 1


def complete_groups(m: Machine, agent: Agent, number: int) -> int:
    """Complete the reads of so many groups of all warps of the warpgroup, and return their events."""
    out = 0
    group = warpgroup(m, agent)
    waiting = {a.index for a in group}
    are_issued = all(number <= len(a.wgmma_groups) for a in group)
    for mate in group:
        is_over = are_issued
        for records, *_ in mate.wgmma_groups[:number]:
            for record in records:
                out |= record.event_set
                waited = {a for a, _ in record.waits}
                if agent.index not in waited:
                    record.waits.append((agent.index, agent.step))
                    waited.add(agent.index)
                is_over = is_over and waiting <= waited
        if is_over:
            for k in range(number):
                mate.wgmma_groups[k] = ([], *mate.wgmma_groups[k][1:])
    return out
