"""Fences enter the window; the model decides what they order (PTX ISA 9.0 sections 8.8 and 9.7.13.4)."""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.execution.executors import executes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.operations import mbarrier_reordering
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import SyncOperation
from mcheck.engines.protocol.state.vector_clocks import join_clocks
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.scopes import scopes_are_mutual


@executes(ops.Fence)
def execute_fence(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``fence``, ``membar``, ``fence.mbarrier_init`` or a fence restricted to a state space."""
    assert isinstance(op, ops.Fence)
    if not evaluate_guard(m, agent, op):
        return
    event = m.emit(agent, 0, op)[0]
    if m.causality is not None:
        m.causality.add_fence(agent, event)
    if Tag.SC in event.tags:
        _enter_sc_fence(m, agent, event, event.scope or "sys")
    else:
        m.add_event(agent, event)
    agent.pc += 1


def _enter_sc_fence(m: Machine, agent: Agent, event: Event, scope: str) -> None:
    """Enter a fence.sc. Those whose scopes include each other are in one order (8.10.2): that of the steps, and also
    the other one where nothing fixes it and it decides anything.
    """
    time = agent.current_time()
    done = SyncOperation(agent.index, agent.step, len(m.trace) - 1, time, event, "sc", 0)
    earlier = 0
    for their_scope, other, entries in m.sc_fences:
        if not scopes_are_mutual(their_scope, m.agents[other.agent].placement, scope, agent.placement):
            continue
        own = other.agent == agent.index
        known = own or time[other.agent] >= other.step
        reorderable = known and not own and _may_come_before(m, agent, event, entries)
        if reorderable and m.setup.sc_order_matters:
            mbarrier_reordering.note_reordering(m, other.event, event)
        if (reorderable or not known) and not m.setup.sc_order_matters:
            continue  # an order of the two could only hide what the other order shows
        earlier |= to_mask(entries)
        if known:
            continue
        m.note_reversal(other, agent.index, time, agent.is_single_thread)
        agent.time = join_clocks(agent.time, other.time)
        m.decisions.append((agent.index, agent.step, "sc", other.agent, other.step))
    entries = m.add_event(agent, event, common={"sync_fence": earlier} if earlier else None)
    m.sc_fences.append((scope, done, entries))


def _may_come_before(m: Machine, agent: Agent, event: Event, entries: tuple[Live, ...]) -> bool:
    """Whether this fence may precede one that precedes it in the order of the steps. What is observed on the way orders
    the two, but neither an exit that completes a barrier nor a relaxed arrive does (8.9.3, 9.7.13.3).
    """
    if not m.exit_passed_barrier and not m.setup.relaxed_barriers:
        return False
    saved = m.save()
    m.add_event(agent, event, back={"sync_fence": to_mask(entries)})
    allowed = m.broken_axiom is None
    m.restore(saved)
    return allowed


@executes(ops.GridWait)
def execute_grid_wait(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``griddepcontrol.wait``: the grids in front end some time, so it blocks nobody."""
    if not evaluate_guard(m, agent, op):
        return
    m.add_event(agent, m.emit(agent, 0, op)[0])
    agent.pc += 1


@executes(ops.ProxyFence)
def execute_proxy_fence(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``fence.proxy``: what precedes it in causality is carried over to the other proxy after it."""
    if not evaluate_guard(m, agent, op):
        return
    event = m.emit(agent, 0, op)[0]
    entries = m.add_event(agent, event)
    if Tag.WGFENCE in event.tags and agent.wgmma_fenced:
        for thread, entry in zip(agent.representatives, entries, strict=True):
            m.fences["proxy", thread] = entry.bit  # the latest suffices: it follows the earlier ones
    agent.pc += 1
