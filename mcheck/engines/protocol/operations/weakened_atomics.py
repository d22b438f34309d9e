"""Atomics that are followed as weak accesses (``mcheck.engines.protocol.analysis.weakened_accesses``)."""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Footprint
from mcheck.engines.protocol.operations.memory_accesses import (
    address_dependencies,
    enter_footprints,
    operation_of_lane,
)
from mcheck.engines.protocol.operations.weakened_accesses import FOLLOWED
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.footprints import coalesce
from mcheck.ir import ops
from mcheck.ir.def_use import registers_of


def enter_weakened_atomic(m: Machine, agent: Agent, op: ops.Atomic) -> None:
    """Enter the atomics of all lanes as weak reads and writes, which leave unknown values."""
    emitted = [m.emit(agent, lane, operation_of_lane(m, agent, lane))[:2] for lane in range(len(agent.lanes))]
    agent.effect_count += 1
    edges = address_dependencies(agent, registers_of(op.address))
    for part in range(2):
        events = [pair[part] for pair in emitted]
        found: list[Footprint] = coalesce([(e, e.address, e.size, lane) for lane, e in enumerate(events)])
        if m.setup.touches_word((low, high) for _, low, high, _ in found):
            m.not_followed = FOLLOWED
        enter_footprints(m, agent, found, edges, part=part)
    for _, write in emitted:
        m.memory.store(write.address, write.size, None)
    for lane in range(len(agent.lanes) if op.dst is not None else 0):
        m.set_register(agent, lane, op.dst.name, op.type, None)  # type: ignore[union-attr]
