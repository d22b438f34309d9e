"""Fences: what they order is for the model; here they enter the window (PTX ISA 9.0 sections 8.8 and 9.7.13.4)."""

from __future__ import annotations

from mcheck.graph.event import Event
from mcheck.graph.tags import Tag
from mcheck.kernel import overtaking
from mcheck.kernel.clocks import joined, mutual
from mcheck.kernel.control import runs
from mcheck.kernel.machine import Agent, Machine, does
from mcheck.kernel.objects import Done
from mcheck.program import ops
from mcheck.program.ops import Op
from mcheck.views.entries import sum_of


@does(ops.Fence)
def fence(m: Machine, agent: Agent, op: Op) -> None:
    """``fence``, ``membar``, ``fence.mbarrier_init`` and the fences restricted to a space."""
    assert isinstance(op, ops.Fence)
    if not runs(m, agent, op):
        return
    event = m.emit(agent, 0, op)[0]
    if Tag.SC in event.tags:
        _sequential(m, agent, event, event.scope or "sys")
    else:
        m.put(agent, event)
    agent.pc += 1


def _sequential(m: Machine, agent: Agent, event: Event, scope: str) -> None:
    """fence.sc: those whose scopes include each other are in one order (8.10.2): that of the steps, and where nothing
    fixes it and it decides anything, the other one as well.
    """
    time = agent.now()
    done = Done(agent.index, agent.step, len(m.trace) - 1, time, event, "sc", 0)
    earlier = 0
    fixed = _fixed(m, agent, event)
    for their_scope, other, entries in m.sc_fences:
        if not mutual(their_scope, m.agents[other.agent].place, scope, agent.place):
            continue
        known = other.agent == agent.index or time[other.agent] >= other.step
        loose = known and bool(sum_of(entries) & ~fixed)
        if loose and m.setup.sequential:
            overtaking.tell(m, other, event)
        if (loose or not known) and not m.setup.sequential:
            continue  # an order of the two could only hide what the other order shows
        earlier |= sum_of(entries)
        if known:
            continue
        m.reverse(other, agent.index, time, agent.single)
        agent.time = joined(agent.time, other.time)
        m.assigned.append((agent.index, agent.step, "sc", other.agent, other.step))
    entries = m.put(agent, event, common={"sync_fence": earlier} if earlier else None)
    m.sc_fences.append((scope, done, entries))


def _fixed(m: Machine, agent: Agent, event: Event) -> int:
    """The fences that this one has to come after: not all that come before it in the order of the steps, for an exit
    that lets a barrier go, or a relaxed operation, orders no fences (8.9.3, 8.9.5).
    """
    if all(other.agent == agent.index for _, other, _ in m.sc_fences):
        return -1
    saved = m.save()
    m.put(agent, event)
    fixed = m.window.fences_ahead()
    m.restore(saved)
    return fixed


@does(ops.ProxyFence)
def proxy_fence(m: Machine, agent: Agent, op: Op) -> None:
    """``fence.proxy``: what comes before it, in causality, is carried over to the other proxy behind it."""
    if not runs(m, agent, op):
        return
    m.put(agent, m.emit(agent, 0, op)[0])
    agent.pc += 1
