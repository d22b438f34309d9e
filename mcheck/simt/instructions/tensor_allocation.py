"""tcgen05.alloc, dealloc and relinquish_alloc_permit (PTX ISA 9.7.16.7.1)."""

from __future__ import annotations

import numpy as np

from mcheck.base.phrase import plain
from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.ir.memory import TENSOR_LANES
from mcheck.isa.kinds import Kind
from mcheck.semantics.tensor_rules import no_allocation, other_columns, still_allocated
from mcheck.simt.execution.cluster import AT_PEER, RUNNABLE, Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch, compiles
from mcheck.simt.execution.cta_pairs import Waiting, peer_cta
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.tensor_memory import COLUMN, RESULT_SIZE, Rectangle
from mcheck.simt.instructions.access_operands import Indices, to_generic
from mcheck.simt.instructions.tensor_operands import (
    PAIR,
    Group,
    check_cta_group,
    differing,
    group_lanes,
    lanes_that_differ,
    make_core_op,
    read_operands,
    record_misuse,
)


def _read_by_warp(c: Cluster, fetches: list[Fetch], mask: Mask, statement: ptx.Statement) -> list[Group] | None:
    """The operands of each warp, which all of its lanes have to share (9.7.16.7.1), with the CTA."""
    found = read_operands(c, fetches, mask, "operand of the allocation")
    if found is None:
        return None
    out: list[Group] = []
    groups = group_lanes(*found, np.arange(c.lanes.count) // WARP)
    apart = lanes_that_differ(groups)
    if apart:
        fault = differing("operands")
        record_misuse(c, fault, statement, apart[0][:1])
        c.give_up(mask, plain(fault[1]))
        return None
    for values, _, lanes in groups:
        check_cta_group(c, statement, lanes)
        out.append((values, int(c.lanes.cta[lanes[0]]), lanes))
    return out


@compiles(Kind.TMEM_ALLOCATION)
def _alloc_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``alloc``: a lane of the warp writes the address to shared memory."""
    fetches = [k.fetch(unit, operand) for operand in statement.operands[:2]]

    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = _read_by_warp(c, fetches, mask, statement)
        if found is None:
            return None
        for (place, columns), cta, lanes in found:
            one = lanes[:1]
            fault = c.tensor.permit(cta).fault(columns)
            if fault is not None:
                record_misuse(c, fault, statement, one)
            first = None if fault else c.tensor.allocate(cta, columns, int(one[0]), statement)
            if first is None:
                c.give_up(
                    mask, plain(fault[1]) if fault else f"no {columns} columns of tensor memory are left to allocate"
                )
                return None
            address = to_generic(np.array([place], np.uint64))
            op = make_core_op("alloc", [], [(int(address[0]), RESULT_SIZE)], statement)
            c.recorded.append(c.recorded.intern((at, place), lambda op=op: op), one)  # type: ignore[misc]
            c.tensor.record_result(address)
            c.store.save(address, RESULT_SIZE, one, np.array([first], np.uint64), np.zeros(1, np.uint8))
        return _meet_peers(c, mask, statement, [(cta, lanes, values[1]) for values, cta, lanes in found])

    return run


def check_freed(c: Cluster) -> None:
    """All tensor memory must be freed when the kernel ends (9.7.16.1.2): the finding is at the lane that
    allocated it.
    """
    for held in c.tensor.live_allocations():
        fault = still_allocated(held.columns)
        if not c.recorded.order_is_possible:
            c.recorded.note_gap(plain(fault[1]), held.statement.span)
            continue
        op = replace(make_core_op("end", [], [], held.statement), wrong=fault, text="the end of the thread")
        c.recorded.append(op, [held.lane])


@compiles(Kind.TMEM_RELEASE)
def _dealloc_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``dealloc``: nothing may use the columns any more; modelled as a write to them."""
    fetches = [k.fetch(unit, operand) for operand in statement.operands[:2]]

    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = _read_by_warp(c, fetches, mask, statement)
        if found is None:
            return None
        for (address, columns), cta, lanes in found:
            if not c.tensor.deallocate(cta, address & COLUMN, columns):
                fault = no_allocation(columns, address & COLUMN)
                record_misuse(c, fault, statement, lanes[:1])
                c.give_up(mask, plain(fault[1]))
                return None
            for lane in lanes.tolist():
                rows = tuple((q + lane % WARP, q + lane % WARP + 1) for q in range(0, TENSOR_LANES, WARP))
                writes = c.tensor.rectangle_cells(cta, address & COLUMN, Rectangle(rows, columns))
                op = make_core_op("dealloc", [], writes, statement)
                c.recorded.append(c.recorded.intern((at, op.writes), lambda op=op: op), [lane])  # type: ignore[misc]
        return _meet_peers(c, mask, statement, [(cta, lanes, values[1]) for values, cta, lanes in found])

    return run


@compiles(Kind.TMEM_PERMIT)
def _relinquish_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:  # noqa: ARG001 - one signature
    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = _read_by_warp(c, [], mask, statement)
        assert found is not None  # there are no operands
        for _, cta, _ in found:
            c.tensor.permit(cta).relinquish(statement.span.line)
        return _meet_peers(c, mask, statement, [(cta, lanes, None) for _, cta, lanes in found])

    return run


def _meet_peers(
    c: Cluster, mask: Mask, statement: ptx.Statement, groups: list[tuple[int, Indices, int | None]]
) -> Mask | None:
    """Execute the operation of a pair, which a warp of each of its CTAs has to execute; returns the lanes that continue
    at once, if all do.
    """
    if not statement.opcode.has(PAIR):
        return mask
    what = statement.opcode.mode
    for cta, lanes, columns in groups:
        peer = peer_cta(c.lanes, cta)
        if peer is None:
            continue
        met, theirs = c.pairs.arrive(cta, peer, what, columns)
        if not met:
            own = np.zeros_like(mask)
            own[lanes] = True
            c.status[own] = AT_PEER
            c.pairs.waiting.append(Waiting(cta, own, statement))
        elif theirs != columns:
            c.give_up(mask, other_columns(what, columns, theirs))
            return None
        else:
            for one in c.pairs.release(peer, what):
                c.status[one.mask] = RUNNABLE
    if not (mask & (c.status == AT_PEER)).any():
        return mask
    c.pc[mask] = c.current_pc + 1
    return None
