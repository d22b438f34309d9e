"""wgmma: its instructions are executed by warps together, its groups are those of the warpgroup (PTX ISA 9.0 section
9.7.15, Q21).

They are ``.sync.aligned``: the lanes of a warp wait for each other, which is an order in time and none of their
accesses. What precedes the ``wgmma.fence`` of any lane of the warp comes before the warp's reads. A ``wait_group`` of
any warp waits until all warps of the warpgroup have committed as many groups, and covers the reads of all of them.
"""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.machine import Blocked, Machine, executes
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.operations.aligned_instructions import (
    add_awaited,
    awaited_events,
    check_wgmma,
    meet_warp,
    warp_agents,
)
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Done, Rendezvous
from mcheck.engines.protocol.state.vector_clocks import join_clocks
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.semantics.warp_collectives import result


def group_of(m: Machine, agent: Agent) -> object:
    """The warp whose wgmma.fence orders what comes before the wgmma of an agent."""
    return m.warp_of(agent)


def order_of_fences(m: Machine, agent: Agent, lane: int) -> int:
    """What orders the reads of wgmma of a lane of an agent: the wgmma.fence of its warp, its own fence.proxy.async."""
    return m.fences.get(group_of(m, agent), 0) | m.fences.get(("proxy", agent.shown[lane]), 0)


def warpgroup(m: Machine, agent: Agent) -> list[Agent]:
    """The agents of the four warps that execute a wgmma together, as far as they are declared and use it."""
    mine = m.program.threads[agent.threads[0]].place.warpgroup
    return [
        other
        for other in m.agents
        if m.program.threads[other.threads[0]].place.warpgroup == mine and m.setup.commits(other.index)
    ]


@executes(ops.Collective)
def collective(m: Machine, agent: Agent, op: Op) -> None:
    """``elect.sync``, ``shfl.sync`` and their like: the lanes of the mask meet, which orders no memory (Q23)."""
    assert isinstance(op, ops.Collective)
    if not evaluate_guard(m, agent, op):
        return
    m.known(agent, op.mask)
    each = range(len(agent.lanes))
    brought = [m.term(agent, k, op.srcs[0]) if op.srcs else 0 for k in each]  # before the destination is set
    own = [tuple(m.term(agent, k, x) for x in op.srcs[1:]) for k in each]
    mask = m.known(agent, op.mask) or 0
    lanes = [m.program.threads[t].place.lane for t in agent.threads]
    inside = [bool(mask >> lane & 1) for lane in lanes]
    if any(inside) and not all(inside):
        groups = (tuple(t for t, i in zip(agent.threads, inside, strict=True) if i is want) for want in (True, False))
        raise Split(list(groups))
    alike = op.dsts == (None, None) and all(inside)  # one stands for all
    for lane in each[:1] if alike else each:
        m.emit(agent, lane, m.program.threads[agent.threads[lane]].code[agent.pc])
    key = ("lanes", *m.warp_of(agent), mask, op.op, op.type)
    meeting = m.meetings.get(key)
    if meeting is None:
        members = {
            k for k in warp_agents(m, agent) for t in m.agents[k].threads if mask >> m.program.threads[t].place.lane & 1
        }
        meeting = m.meetings[key] = Rendezvous(key, frozenset(members))
    agent.effects += 1
    m.trace[-1].note = "arrives"
    meeting.here[agent.index] = Done(
        agent.index, agent.step, len(m.trace) - 1, agent.now(), m.emit_nothing(agent, op), "arrive", 0
    )
    event = Event((agent.threads[0], 0), op, frozenset((Tag.MEET,)), 0, agent.step, agent.place[2])
    meeting.arrivals |= to_mask(m.put(agent, event))
    meeting.time = join_clocks(meeting.time, agent.now()) if meeting.time else agent.now()
    meeting.votes[agent.index] = [v if isinstance(v, int) else None for v in brought]
    meeting.own[agent.index] = own
    agent.status, agent.where = "standing", meeting
    exchange(m, meeting)


def exchange(m: Machine, meeting: Rendezvous) -> None:
    """Gives the lanes of a mask their results once all that have not exited are there."""
    if not meeting.here or any(k not in meeting.here and m.agents[k].status != "done" for k in meeting.members):
        return
    threads = m.program.threads
    values = {
        threads[t].place.lane: v
        for k in meeting.here
        for t, v in zip(m.agents[k].threads, meeting.votes[k], strict=True)
    }
    for k in meeting.here:
        agent = m.agents[k]
        op = agent.code[agent.pc]
        assert isinstance(op, ops.Collective)
        event = Event((agent.threads[0], 0), op, frozenset((Tag.MET,)), 0, agent.step, agent.place[2])
        met = m.put(agent, event, part=1, common={"meet": meeting.arrivals})
        m.depend(agent, met)
        for lane, thread in enumerate(agent.threads):
            own = meeting.own[k][lane]
            known = {at: v for at, v in values.items() if v is not None}
            found: tuple[int | None, int | None] = (None, None)
            if op.op == "elect":
                continue  # the same lane whenever it is, of those that are declared: it was told as they arrived
            if len(known) == len(values) and all(isinstance(x, int) for x in own):
                place = threads[thread].place
                mask = int(str(meeting.key[3]))
                found = result(op.op, op.type, mask, place.lane, known, tuple(x for x in own if isinstance(x, int)))
            for register, value, type_name in zip(op.dsts, found, (op.type, "pred"), strict=True):
                if register is not None:
                    m.set(agent, lane, register.name, type_name, value)
        agent.time = join_clocks(agent.time, meeting.time)
        agent.status, agent.where = "run", None
        agent.pc += 1
    meeting.here, meeting.time, meeting.arrivals, meeting.votes, meeting.own = {}, [], 0, {}, {}


def commit(m: Machine, agent: Agent) -> None:
    """Closes the agent's group; those who wait for all warps to have committed it may go on."""
    agent.wgmma_groups.append((agent.wgmma_open, agent.now(), awaited_events(m, agent)))
    agent.wgmma_open = []
    m.wake(GROUPS)


GROUPS = "warpgroup"
"""What a wait_group stands at while another warp of the warpgroup has not committed as many groups."""


def await_commits(m: Machine, agent: Agent, number: int) -> None:
    """Blocks until all warps of the warpgroup that are still there have committed so many groups."""
    group = warpgroup(m, agent)
    for other in group:
        if len(other.wgmma_groups) < number and other.status != "done":
            agent.met = len(warp_agents(m, agent)) > 1
            raise Blocked(GROUPS)
    before = awaited_events(m, agent)
    for other in group:
        if 0 < number <= len(other.wgmma_groups):
            _, time, theirs = other.wgmma_groups[number - 1]
            agent.time = join_clocks(agent.time, time)
            before |= theirs
    add_awaited(m, agent, before)


@executes(ops.WgmmaFence)
def wgmma_fence(m: Machine, agent: Agent, op: Op) -> None:
    """What precedes it in any lane of the warp is ordered before the reads of the wgmma that follow."""
    if not evaluate_guard(m, agent, op):
        return
    if not agent.met:  # the fences of all lanes are there before any of them goes on
        event = Event((agent.threads[0], 0), op, frozenset((Tag.WGFENCE,)), 0, agent.step, agent.place[2])
        key = group_of(m, agent)
        check_wgmma(m, agent, op)
        for entry in m.put(agent, event):
            m.fences[key] = m.fences.get(key, 0) | entry.bit
    agent.fenced = True
    if meet_warp(m, agent, op):
        agent.pc += 1


def complete_groups(m: Machine, agent: Agent, number: int) -> int:
    """The reads of so many groups are over, for all warps of the warpgroup: their events."""
    out = 0
    group = warpgroup(m, agent)
    for mate in group:
        for records, *_ in mate.wgmma_groups[:number]:
            for record in records:
                out |= record.bits
                if not any(a == agent.index for a, _ in record.done):
                    record.done.append((agent.index, agent.step))
        if all(number <= len(a.wgmma_groups) and all(_seen(r, a) for rs, *_ in mate.wgmma_groups[:number] for r in rs)
               for a in group):  # fmt: skip
            for k in range(number):
                mate.wgmma_groups[k] = ([], *mate.wgmma_groups[k][1:])
    return out


def _seen(record: Record, agent: Agent) -> bool:
    return any(a == agent.index for a, _ in record.done)
