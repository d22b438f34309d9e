"""Awaited reads that never return the awaited value: they are executed all the same, and may race."""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations.earlier_reads import check_earlier_read
from mcheck.engines.protocol.operations.tracked_locations import enter_access, word_at
from mcheck.engines.protocol.state.agent import Agent
from mcheck.ir import ops
from mcheck.ir.def_use import registers_of


def enter_failed_reads(m: Machine, agent: Agent) -> None:
    """Enter the reads of an agent that waits forever for a value: they return writes that nothing overwrites.

    For an atomic this is the read alone: an atomic that stores whatever it reads is not modelled while it waits.
    """
    inner = ops.performed_operation(agent.code[agent.pc])
    if isinstance(inner, ops.Load):
        events = m.emit(agent, 0, inner)
    elif isinstance(inner, ops.Atomic):
        events = m.emit(agent, 0, inner)[:1]
    else:
        return
    agent.step += 1
    address = m.find_sources(agent, 0, registers_of(inner.address))
    for event in events:
        word = word_at(m, event.address, event.size)
        check_earlier_read(m, agent, event, {"addr": address}, [w.event_set for w in word.writes])
        enter_access(m, agent, event, {"addr": address, "rf": word.writes[-1].event_set})
