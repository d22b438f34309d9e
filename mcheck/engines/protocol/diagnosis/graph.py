"""The execution graph of a machine at two accesses that race, for ``mcheck.answers.advice``."""

from __future__ import annotations

from bisect import bisect_right

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, GraphAgent, Signal
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.sync_objects import Mbarrier
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.ir import ops


def graph_of(m: Machine, old: Record, new: Record, low: int) -> ExecutionGraph:
    """The graph in which ``new``, the present step's access, races with ``old`` at the byte ``low``."""
    _, history = m.history_at(low)
    cell = history.cells[bisect_right(history.starts, low) - 1]
    agents = (
        GraphAgent(a.index, a.threads, a.code, a.status == "done", a.code[a.pc] if a.status == "blocked" else None)
        for a in m.agents
    )
    others = (r for r in cell if r is not old)
    return ExecutionGraph(
        m.program, tuple(agents), m.trace, _access(m, old), _access(m, new), [_access(m, r) for r in others],
        numbered=True,
    )  # fmt: skip


def _access(m: Machine, record: Record) -> GraphAccess:
    time = m.agents[record.agent].time
    return GraphAccess(
        record.agent, record.step, record.position, record.event, time, tuple(record.waits), _signals(m, record),
        _arrivals(m, record),
    )  # fmt: skip


def _signals(m: Machine, record: Record) -> tuple[Signal, ...]:
    """The signals of an operation to mbarriers: the phase of the first one, or the present phase if it is to come."""
    if not record.mbarrier_clocks:
        return ()
    first: dict[int, TraceEntry] = {}
    for entry in m.trace[record.position :]:
        if entry.signal >= 0 and entry.agent == record.agent and entry.op is record.event.op:
            first.setdefault(entry.signal, entry)
    out = []
    for bar in m.mbarriers.values():
        if bar.clock_index in record.mbarrier_clocks:
            out.append(_signal(m, bar, first.get(bar.clock_index)))
    return tuple(out)


def _arrivals(m: Machine, record: Record) -> tuple[Signal, ...]:
    """The signal of the next ``cp.async.mbarrier.arrive`` of the thread, which covers a ``cp.async`` (9.7.13.15.17), if
    it has been made.
    """
    if not record.cp_async:
        return ()
    arrives = (e for e in m.trace[record.position :] if e.agent == record.agent and e.signal >= 0)
    came = next((e for e in arrives if isinstance(e.op, ops.CpAsyncArrive)), None)
    bars = () if came is None else (bar for bar in m.mbarriers.values() if bar.clock_index == came.signal)
    return tuple(_signal(m, bar, came) for bar in bars)


def _signal(m: Machine, bar: Mbarrier, came: TraceEntry | None) -> Signal:
    instance = m.program.memory.find(bar.address)
    cta = instance.cta if instance is not None else None
    now = bar.state.phase if bar.state is not None else 0
    phase, bound = (now, None) if came is None else (came.phase, came.clock_bound)
    return Signal(m.thing_at(bar.address), cta, phase, bar.clock_index, bound)
