"""Loads and stores, and what accesses of all instructions have in common."""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.effects.site import widened
from mcheck.engines.protocol.analysis.polling import find_awaited_value
from mcheck.engines.protocol.execution.executors import executes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Footprint
from mcheck.engines.protocol.operations import tracked_locations
from mcheck.engines.protocol.operations.access_records import make_record
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.operations.lane_accesses import find_combined_access
from mcheck.engines.protocol.operations.lane_races import report_lane_conflict
from mcheck.engines.protocol.operations.races import enter_accesses
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.footprints import LaneBytes as SpreadBytes
from mcheck.engines.protocol.state.footprints import coalesce
from mcheck.engines.protocol.state.memory_values import Bytes, evaluate_bytes
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.alu import wrap
from mcheck.ir.def_use import registers_of
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.terms import Uid


def operation_of_lane(m: Machine, agent: Agent, lane: int) -> Op:
    """The present operation of one lane."""
    return m.program.threads[agent.threads[lane]].code[agent.pc]


# --- records ----------------------------------------------------------------------------------------------


def enter_footprints(
    m: Machine, agent: Agent, found: list[Footprint], edges: list[dict[str, int]], *, part: int = 0
) -> list[Record]:
    """Enter the accesses of one instruction; those that differ in their bytes only are one event."""
    groups: dict[tuple[object, ...], list[tuple[Record, int, int]]] = {}
    for event, low, high, lanes in found:
        record = make_record(m, agent, event, lanes)
        key = (event.tags, event.block, m.tracked_address(event, exact=False))
        groups.setdefault(key, []).append((record, low, high))
    for ranges in groups.values():
        if any(high > low for _, low, high in ranges):
            enter_accesses(m, agent, ranges, [dict(e) for e in edges], part=part)
    return [record for ranges in groups.values() for record, _, _ in ranges]


def address_dependencies(agent: Agent, names: list[str]) -> list[dict[str, int]]:
    """The address dependencies of each representative on the reads that these registers come from."""
    out = []
    for lane in range(len(agent.representatives)):
        origin = agent.sources[lane]
        mask = 0
        for name in names if origin else ():
            mask |= origin.get(name, 0)
        out.append({"addr": mask} if mask else {})
    return out


# --- ld and st ----------------------------------------------------------------------------------------------


def _find_footprints(m: Machine, agent: Agent, op: Op) -> list[Footprint]:
    """The footprints of a weak load or store; those of constant addresses are computed once per program."""
    key = (agent.index, agent.pc)
    known = m.setup.footprints.get(key, ())
    if known is None:
        return _find_lane_footprints(m, agent)
    if known != ():
        return known  # type: ignore[return-value]
    lanes = range(len(agent.lanes))
    constant = all(isinstance(operation_of_lane(m, agent, k).address, Const) for k in lanes)  # type: ignore[attr-defined]
    found = (_find_adjacent_footprint(m, agent, op) if constant else None) or _find_lane_footprints(m, agent)
    m.setup.footprints[key] = found if constant else None
    return found


def _find_lane_footprints(m: Machine, agent: Agent) -> list[Footprint]:
    """The footprints of the lanes, each decoded separately."""
    lanes = range(len(agent.lanes))
    events = [(e, e.address, e.size, k) for k in lanes for e in m.emit(agent, k, operation_of_lane(m, agent, k))]
    op = operation_of_lane(m, agent, 0)
    if isinstance(op, ops.Load | ops.Store) and op.matrix_rows:
        width = len(op.dsts) if isinstance(op, ops.Load) else len(op.srcs)
        return _split_by_scalar(events, len(events) // width) if events else []
    return _split_by_scalar(events, len(lanes))


def _find_adjacent_footprint(m: Machine, agent: Agent, op: Op) -> list[Footprint] | None:
    """The range of lanes that access the same place, or adjacent places, in one object. What is valid for the first of
    them is valid for all.
    """
    assert isinstance(op, ops.Load | ops.Store)
    lanes = len(agent.lanes)
    width = len(op.dsts) if isinstance(op, ops.Load) else len(op.srcs)
    size = type_size(op.type) * width
    places = [operation_of_lane(m, agent, k).address for k in range(lanes)]  # type: ignore[attr-defined]
    first, last = widened(places[0].value), widened(places[-1].value)
    step = size if last != first else 0
    if any(p.value != places[0].value + k * step for k, p in enumerate(places)):
        return None
    site = agent.emitters[0].site
    instance = site.at(first)
    if instance is None or instance is not site.at(last) or (width > 1 and (lanes == 1 or not step)):
        return None
    if op.matrix_rows or last + size > instance.base + instance.object.size or first % size:
        return None
    event = m.emit(agent, 0, op)[0]
    low = event.address
    return [(event, low, low + size * (lanes if step else 1), (low, size) if step else None)]


def _split_by_scalar(events: list[tuple[Event, int, int, int]], lanes: int) -> list[Footprint]:
    """One footprint per scalar of a vector, or one for all where the lanes' vectors are adjacent."""
    width = len(events) // lanes
    if width == 1:
        return coalesce(events)
    whole = [(events[k * width][0], events[k * width][1], width * events[k * width][2], k) for k in range(lanes)]
    if all(events[k * width + j][1] == whole[k][1] + j * whole[k][0].size for k in range(lanes) for j in range(width)):
        merged = coalesce(whole)
        if len(merged) == 1 and lanes > 1:
            return merged
    out: list[Footprint] = []
    for j in range(width):
        out += coalesce([events[k * width + j] for k in range(lanes)])
    return out


def check_lane_races(m: Machine, agent: Agent, found: list[Footprint], op: Op, records: list[Record]) -> None:
    """Report races between lanes of one instruction that write common bytes."""
    if agent.is_single_thread:
        return
    report_lane_conflict(m, agent, found, op, records)


@executes(ops.Load)
def execute_load(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``ld``: weak loads return the latest value, strong ones any write that the model allows."""
    assert isinstance(op, ops.Load)
    if not evaluate_guard(m, agent, op):
        return
    if op.sem != "weak":
        tracked_locations.load_word(m, agent, op, _find_awaited_value(m, agent, op))
        agent.pc += 1
        return
    if _enter_combined_access(m, agent, op):
        agent.pc += 1
        return
    found = _find_footprints(m, agent, op)
    if not tracked_locations.load_if_tracked(m, agent, op, found):
        enter_footprints(m, agent, found, address_dependencies(agent, registers_of(op.address)))
        _set_results(m, agent, op)
    agent.pc += 1


def _find_awaited_value(m: Machine, agent: Agent, op: ops.Load) -> tuple[str, int] | None:
    """What a loop around a load waits for, as an operator and a number."""
    if Pass.SPIN_LOOPS not in m.setup.passes:
        return None
    labels = m.program.threads[agent.threads[0]].labels
    spun = find_awaited_value(agent.code, labels, agent.pc) if op.guard is None else None
    value = m.known_value(agent, spun[1]) if spun is not None else None
    if spun is None or value is None:
        return None
    operator, _, kind = spun
    return operator, value if kind is None else wrap(kind, value)


def _enter_combined_access(m: Machine, agent: Agent, op: ops.Load | ops.Store) -> bool:
    """Enter a load or store of all lanes as one access, where possible
    (``mcheck.engines.protocol.operations.lane_accesses``).
    """
    found = find_combined_access(m, agent, op)
    if found is None:
        return False
    if id(op) in m.setup.unshared_accesses or reads_unwritten(m, agent, found.event):
        return True
    record = make_record(m, agent, found.event, found.bytes.lanes)
    enter_accesses(
        m, agent, [(record, low, high) for low, high in found.bytes.ranges], [{} for _ in agent.representatives]
    )
    if isinstance(op, ops.Store):
        _store_lane_values(m, agent, op, found.bytes)
    return True


def reads_unwritten(m: Machine, agent: Agent, event: Event) -> bool:
    """Whether an access reads an object that nothing writes."""
    if Tag.W in event.tags or not m.setup.unrecorded_objects:
        return False
    instance = agent.emitters[0].site.at(event.address)
    return instance is not None and instance.base in m.setup.unrecorded_objects


def _store_lane_values(m: Machine, agent: Agent, op: ops.Store, where: SpreadBytes) -> None:
    """Store the values of all lanes."""
    size = type_size(op.type)
    if all(isinstance(m.evaluate(agent, 0, src), tuple) for src in op.srcs):  # unknown data
        for low, high in where.ranges:
            m.memory.write(low, bytes(high - low), bytes(high - low))
        return
    for lane in range(len(agent.lanes)):
        address = m.evaluate(agent, lane, op.address)
        assert isinstance(address, int)
        for k, src in enumerate(op.srcs):
            value = m.evaluate(agent, lane, src)
            m.memory.store(widened(address) + k * size, size, value if isinstance(value, int) else None)


def _set_results(m: Machine, agent: Agent, op: ops.Load) -> None:
    """Set the destination registers of a weak load."""
    wanted = m.setup.needed_registers[agent.threads[0]]
    names = [(k, reg.name) for k, reg in enumerate(op.dsts) if reg is not None]
    for k, name in names:
        for lane in range(len(agent.lanes)):
            raw: int | None = None
            if name in wanted:
                lane_load = operation_of_lane(m, agent, lane)
                assert isinstance(lane_load, ops.Load)
                address = m.evaluate(agent, lane, lane_load.address)
                size = type_size(op.type)
                if isinstance(address, int) and not op.matrix_rows:
                    raw = m.memory.load(widened(address) + k * size, size)
            m.set_register(agent, lane, name, op.type, raw)


@executes(ops.Store)
def execute_store(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``st``."""
    assert isinstance(op, ops.Store)
    if not evaluate_guard(m, agent, op):
        return
    agent.effect_count += 1
    if op.sem != "weak":
        tracked_locations.store_word(m, agent, op)
        agent.pc += 1
        return
    if _enter_combined_access(m, agent, op):
        agent.pc += 1
        return
    found = _find_footprints(m, agent, op)
    if tracked_locations.store_if_tracked(m, agent, op, found):
        agent.pc += 1
        return
    records = enter_footprints(m, agent, found, address_dependencies(agent, registers_of(op.address)))
    check_lane_races(m, agent, found, op, records)
    size = type_size(op.type)
    for lane in range(len(agent.lanes)):
        mine = operation_of_lane(m, agent, lane)
        assert isinstance(mine, ops.Store)
        address = m.evaluate(agent, lane, mine.address)
        assert isinstance(address, int)
        lane_number = m.program.threads[agent.threads[lane]].place.lane
        for k, src in enumerate(mine.srcs if not 0 < op.matrix_rows <= lane_number else ()):
            value = None if op.matrix_rows else m.evaluate(agent, lane, src)
            place = widened(address) + k * size
            m.memory.store(place, size, value if isinstance(value, int) else None)
            tracked_locations.record_partial_write(m, agent, place, size)
    agent.pc += 1


@executes(ops.Fill)
def execute_fill(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``st.bulk``: a weak write of zeros."""
    if not evaluate_guard(m, agent, op):
        return
    agent.effect_count += 1
    events = m.emit(agent, 0, op)
    found: list[Footprint] = [(e, e.address, e.address + e.size, None) for e in events if e.size]
    enter_footprints(m, agent, found, [{} for _ in agent.representatives])
    move_data(m, [events])
    agent.pc += 1


def move_data(m: Machine, emitted: list[list[Event]]) -> None:
    """Move the data as if the operation completed at once; only a race could tell."""
    for events in emitted:
        read: dict[Uid, Bytes] = {}
        for event in events:
            if not event.size:
                continue
            if "R" in event.tags:
                read[event.uid] = m.memory.read(event.address, event.size)
            elif "W" in event.tags and not tracked_locations.set_value_between(m, event):
                m.memory.write(event.address, *evaluate_bytes(event.value, event.size, read))
                tracked_locations.record_async_write(m, event)
