"""Combined accesses: those of all lanes of an instruction as one event and one record, with the bytes of each lane.

This is for constant addresses that differ by lane (``mcheck.ir.expr.Lanes``), as compiled kernels have them. Where a
lane's access would be invalid, or touches an object that is tracked byte by byte, the lanes are executed one by one.
"""

from __future__ import annotations

from mcheck.effects.site import widened
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.access_history import LaneOwners
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.footprints import CombinedAccess, LaneBytes
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.expr import Lanes as PerLane
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.copy_bytes import CHUNK


def lanes_share_operation(m: Machine, agent: Agent) -> bool:
    """Whether all lanes of an agent have the same operation object."""
    op = agent.code[agent.pc]
    return all(op is m.program.threads[t].code[agent.pc] for t in agent.threads)


def coalesce_copy(m: Machine, agent: Agent, op: ops.CpAsync | ops.BulkCopy) -> tuple[LaneBytes, LaneBytes] | None:
    """The bytes that the lanes of a copy read and write, if both can be one access: all copy equally many, and tell one
    mbarrier, or none.
    """
    if not isinstance(op.size, Const) or not _copies_in_full(op) or not lanes_share_operation(m, agent):
        return None
    key = agent.index, id(op)
    known = m.setup.copy_accesses.get(key)
    if known is None:
        size = op.size.value
        align = CHUNK if isinstance(op, ops.BulkCopy) else size
        read = find_lane_bytes(m, agent, op.src, size, align, write=False)
        write = find_lane_bytes(m, agent, op.dst, size, align, write=True)
        both = None if read is None or write is None else (read, write)
        known = m.setup.copy_accesses[key] = (both, op)
    if known[0] is None or any(m.setup.touches_word(b.ranges) for b in known[0]):
        return None
    return known[0]


def _copies_in_full(op: ops.CpAsync | ops.BulkCopy) -> bool:
    """Whether a copy writes all that it reads, and nothing else, in every lane."""
    if isinstance(op, ops.CpAsync):
        return op.src_size in (None, op.size) and op.ignore_src is None
    one_object = op.mbar is None or isinstance(op.mbar, Const)
    return one_object and op.is_plain and op.byte_mask is None and op.size != Const(0)


def coalesce_tensor_move(m: Machine, agent: Agent, op: ops.TensorMove) -> tuple[LaneBytes, LaneBytes] | None:
    """The bytes that the lanes of a ``tcgen05.ld`` or ``st`` access, if they can be one access."""
    if not lanes_share_operation(m, agent):
        return None
    key = agent.index, id(op)
    known = m.setup.copy_accesses.get(key)
    if known is None:
        found = find_lane_bytes(m, agent, op.address, op.size, 1, write=op.family == "tcgen05.st")
        known = m.setup.copy_accesses[key] = (None if found is None else (found, found), op)
    return known[0]


def find_lane_bytes(m: Machine, agent: Agent, expr: Expr, size: int, align: int, *, write: bool) -> LaneBytes | None:
    """The bytes that the lanes of an agent access, each ``size`` of them at the value of ``expr``.

    ``None`` if they do not lie in one object, are misaligned, touch an mbarrier or a tensor map, or if lanes overlap
    partly or write the same bytes.
    """
    if Pass.COMBINED_ACCESSES not in m.setup.passes:
        return None
    if isinstance(expr, Const):
        addresses = [widened(expr.value)]
    elif isinstance(expr, PerLane):
        threads = m.program.threads
        addresses = [widened(expr.values[threads[t].place.lane]) for t in agent.threads]
    else:
        return None
    several = len(agent.threads) > 1 and len(addresses) == 1
    order = sorted(range(len(addresses)), key=addresses.__getitem__)
    starts: list[int] = []
    lanes: list[int] = []
    ranges: list[tuple[int, int]] = []
    for k in order:
        at = addresses[k]
        if starts and at < starts[-1] + size:
            if at != starts[-1]:
                return None
            lanes[-1] = -1
            continue
        starts.append(at)
        lanes.append(k)
        if ranges and ranges[-1][1] == at:
            ranges[-1] = ranges[-1][0], at + size
        else:
            ranges.append((at, at + size))
    if write and (several or -1 in lanes):
        return None
    low, high = ranges[0][0], ranges[-1][1]
    instance = agent.emitters[0].site.at(low)
    if instance is None or high > instance.base + instance.object.size or instance.base != instance.physical:
        return None
    if any(at % align for at in starts):
        return None
    found = LaneBytes(tuple(ranges), None)
    if any(found.overlaps(at, at + 8) for at in m.mbarrier_places) or any(
        found.overlaps(*span) for span in m.setup.tensor_maps
    ):
        return None
    if len(addresses) == 1:
        return found
    return LaneBytes(found.ranges, LaneOwners(tuple(starts), size, tuple(lanes)))


def find_combined_access(m: Machine, agent: Agent, op: ops.Load | ops.Store) -> CombinedAccess | None:
    """The combined access of a weak load or store of all lanes, if there is one; computed once per program."""
    if op.sem != "weak" or op.volatile or op.matrix_rows:
        return None
    key = agent.index, id(op)
    known = m.setup.combined_accesses.get(key)
    if known is None:
        known = m.setup.combined_accesses[key] = (_combine_lanes(m, agent, op), op)
    found = known[0]
    if found is not None and m.setup.touches_word(found.bytes.ranges):
        return None
    return found


def _combine_lanes(m: Machine, agent: Agent, op: ops.Load | ops.Store) -> CombinedAccess | None:
    """Combine the accesses of all lanes, if they can be one access."""
    if isinstance(op, ops.Load) and any(reg is not None for reg in op.dsts):
        return None
    count = len(op.dsts) if isinstance(op, ops.Load) else len(op.srcs)
    size = type_size(op.type) * count
    found = find_lane_bytes(m, agent, op.address, size, size, write=isinstance(op, ops.Store))
    if found is None or not lanes_share_operation(m, agent):
        return None
    events = m.emit(agent, 0, op)
    return CombinedAccess(events[0], found) if events else None
