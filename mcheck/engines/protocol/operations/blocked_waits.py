"""Waits for words that are blocked when another thread has come to code that is not known.

How that thread goes on is open, and so is whether it ends these waits. Yet in another order of the steps it may not get
there at all: where two threads take two locks in different orders, one of them has both and comes to an end that is not
known, but each may also have one of them and wait for the other.
"""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations.tracked_locations import ends_before
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Word
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.ir import ops


def note_other_orders(m: Machine) -> None:
    """Note the atomics that could come after a wait that is blocked now, and that would end before them."""
    if not any(
        isinstance(agent.code[agent.pc], ops.UnknownContinuation) for agent in m.agents if agent.status == "cut"
    ):
        return
    for agent in m.agents:
        if agent.status == "blocked" and isinstance(agent.blocked_on, Word):
            _note_orders_of_wait(m, agent, agent.blocked_on)


def _note_orders_of_wait(m: Machine, agent: Agent, word: Word) -> None:
    op = agent.code[agent.pc]
    inner = ops.performed_operation(op)
    if not isinstance(op, ops.Await) or op.compare is None or not isinstance(inner, ops.Load | ops.Atomic):
        return
    right = m.known_value(agent, op.compare[1])
    time = agent.current_time()
    wait = TraceEntry(agent.index, agent.step + 1, time, op, agent.pc, actor=agent.index)
    for other in word.operations:
        movable = other.agent != agent.index and other.kind not in ("read", "write") and not other.is_before(time)
        if movable and right is not None and ends_before(word, other, inner.type, op.compare[0], right):
            m.reversals.append((other.position, (wait,), len(m.trace)))
