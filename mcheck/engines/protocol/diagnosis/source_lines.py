"""Source lines of operations and steps."""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.ir.ops import Op


def line_of(op: Op) -> int:
    """Return the line of an instruction."""
    return op.span.line if op.span is not None else 0


def entry_at_step(m: Machine, agent: Agent, step: int) -> TraceEntry | None:
    """Return what an agent did at a step."""
    if step <= 0:
        return None
    found = (e for e in reversed(m.trace) if e.agent == agent.index and e.signal < 0 and e.step == step)
    return next(found, None)
