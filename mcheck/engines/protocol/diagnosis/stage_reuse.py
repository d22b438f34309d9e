"""Classification of a read that conflicts with a copy: the copy meant for it, or the next fill of the stage."""

from __future__ import annotations

from bisect import bisect_right

from mcheck.answers.async_waits import ReadPhase
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import Record


def classify_stage_read(m: Machine, old: Record, new: Record, low: int) -> ReadPhase:
    """Classify the read ``new`` of the byte ``low`` while the copy ``old`` is in flight."""
    if not old.asynchronous or old.mbarrier_clocks or not old.write or new.write or old.proxy != new.proxy:
        return ReadPhase.OWN
    if m.agents[new.agent].time[old.agent] >= old.step:
        return ReadPhase.OWN  # the read comes behind the issue of the copy
    _, history = m.history_at(low)
    cell = history.cells[bisect_right(history.starts, low) - 1]
    fills = [r.position for r in cell if r is not old and r.write and _is_complete_before(m, r, new)]
    if not fills:
        return ReadPhase.OWN
    issued = m.trace[old.position].time
    read = any(
        not r.write
        and r.agent == new.agent
        and r.event.op.span == new.event.op.span
        and max(fills) < r.position
        and r.step <= issued[r.agent]
        for r in cell
    )
    return ReadPhase.EITHER if read else ReadPhase.NEXT


def _is_complete_before(m: Machine, fill: Record, read: Record) -> bool:
    """Return whether a write is complete before a read."""
    time = m.agents[read.agent].time
    if fill.asynchronous:
        return any(step <= time[agent] for agent, step in fill.waits)
    return fill.step <= time[fill.agent]
