"""Barriers of the CTA and the cluster, and the collective instructions of a warp."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, to_signed
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.isa.kinds import BARRIERS, CLUSTER_BARRIERS, COLLECTIVES, Kind
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import AT_BARRIER, AT_CLUSTER_BARRIER, Cluster, Step
from mcheck.simt.execution.compiler import SURE, Compiler, Fetch, compiles
from mcheck.simt.execution.lanes import WARP, Mask, Quality, leader_lanes
from mcheck.simt.execution.waits.assumed_failures import detach
from mcheck.simt.instructions.recording import make_recorder

FULL = 0xFFFFFFFF


# --- barriers -------------------------------------------------------------------------------------------------


@compiles(*BARRIERS)
def barrier_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``bar``, ``barrier``, ``bar.warp.sync`` and ``barrier.cluster``."""
    if statement.kind in CLUSTER_BARRIERS:
        return _cluster_step(k, unit, statement, at)
    if statement.kind is Kind.WARP_BARRIER:
        return _warp_sync_step(k, unit, statement, at)
    op = operation_template(unit.function, statement)
    assert isinstance(op, ops.Barrier)
    reduces = op.kind == "red"
    wanted = reduces and k.is_needed(unit, statement)
    rows = k.destination_rows(unit, statement.operands[0]) if wanted else []
    given = k.fetch(unit, statement.operands[-1]) if wanted else None
    record = make_recorder(k, unit, statement, at, replace(op, dst=None, src=Const(0) if reduces else None))

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes, found = record(c, mask, {})
        if not found:
            return None
        number = np.zeros(mask.shape, np.int64)
        number[lanes] = found["barrier"][0].astype(np.int64)
        count = int(found["count"][0][0]) if "count" in found else None
        stands = op.kind != "arrive"
        c.pc[mask] = c.current_pc + 1
        if given is not None:
            choose_vote(c, k, unit, statement.operands[-1], mask, at, statement)
            for cta in distinct(c.lanes.cta[mask]).tolist():
                mine = mask & (c.lanes.cta == cta)
                votes = c.votes.setdefault((cta, int(number[mine][0])), [])
                brought = given()
                value, sure = (
                    np.broadcast_to(brought[0], mask.shape).copy(),
                    np.broadcast_to(brought[1], mask.shape).copy(),
                )
                votes.append((mine, value, sure, [r for r in rows if r is not None], op.red_op or "popc"))
        for cta in distinct(c.lanes.cta[mask]).tolist():
            mine = mask & (c.lanes.cta == cta)
            for one in distinct(number[mine]).tolist():
                c.arrive_at_barrier(mine & (number == one), cta, one, count, stands=stands)
        return None if (mask & (c.status == AT_BARRIER)).any() else mask

    return run


def _cluster_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    op = operation_template(unit.function, statement)
    assert isinstance(op, ops.ClusterBarrier)
    record = make_recorder(k, unit, statement, at, op)
    arrives = op.kind == "arrive"

    def run(c: Cluster, mask: Mask) -> Mask | None:
        record(c, mask, {})
        if arrives:
            c.arrived |= mask
            if op.sem != "relaxed":
                c.strong_writes.add_arrival(mask)
            c.complete_cluster_barrier()
            return mask
        through = mask & c.standing
        c.standing[through] = False
        wait = mask & ~through
        if not wait.any():
            return mask
        c.pc[mask] = c.current_pc + 1
        c.status[wait] = AT_CLUSTER_BARRIER
        return None

    return run


# --- warps ------------------------------------------------------------------------------------------------------


def _member_masks(fetch: Fetch, mask: Mask) -> Word:
    return np.broadcast_to(fetch()[0], mask.shape) & np.uint64(FULL)


def _warp_sync_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    op = operation_template(unit.function, statement)
    fetch = k.fetch(unit, statement.operands[-1])
    record = make_recorder(k, unit, statement, at, op)

    def run(c: Cluster, mask: Mask) -> Mask | None:
        record(c, mask, {})
        return c.converge(mask, _member_masks(fetch, mask), "sync", _only_synchronise)

    return run


def choose_vote(c: Cluster, k: Compiler, unit: Unit, vote: ptx.Operand, mask: Mask, at: int, by: ptx.Statement) -> None:
    """Choose the unknown predicates of a vote before it is cast: control that depends on its result depends on the same
    data.
    """
    for register in operand_registers(vote):
        row = unit.frame + register.index
        known = k.lanes.quality[row]
        c.choose_predicate(row, mask & ((known & np.uint8(taint.MISSING)) == 0), at, by.span, voted=True)


def _only_synchronise(_: Cluster, __: Mask) -> None:
    """The action of lanes that only synchronise."""


@compiles(*COLLECTIVES)
def collective_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of an instruction at which the lanes of a mask converge and exchange values (9.7.9.6, 9.7.13.9 to
    9.7.13.14).
    """
    op = operation_template(unit.function, statement) if statement.opcode.is_modelled else None
    if not isinstance(op, ops.Collective):
        return k.forget_results(unit, statement)
    mask_of = k.fetch(unit, statement.operands[-1])
    bare = replace(op, dsts=(None, None), srcs=tuple(Const(0) for _ in op.srcs))
    record = make_recorder(k, unit, statement, at, bare)
    wanted = k.is_needed(unit, statement)
    rows = k.destination_rows(unit, statement.operands[0]) if wanted else []
    sources = [k.fetch(unit, o) for o in statement.operands[1:-1]] if wanted else []
    kind = statement.kind
    mode = op.op.partition(".")[2]
    values, known = k.lanes.values, k.lanes.quality

    def exchange(c: Cluster, mask: Mask) -> None:
        if c.meetings.waiting:
            c.confirm_meetings(mask, shuffle=at)
        if not wanted:
            return
        members = _member_masks(mask_of, mask)
        if kind is Kind.VOTE:
            choose_vote(c, k, unit, statement.operands[1], mask, at, statement)
        given = [
            (np.broadcast_to(v, mask.shape), detach(np.broadcast_to(q, mask.shape))) for v, q in (s() for s in sources)
        ]
        made: tuple[Word, ...]
        match kind:
            case Kind.ELECTION:
                made, sure = _elect(c, mask, members)
            case Kind.SHUFFLE:
                made, sure = _shuffle(mode, mask, given)
            case Kind.VOTE:
                made, sure = _vote(mode, mask, members, given[0])
            case Kind.MATCH:
                made, sure = _match(mode, mask, members, given[0])
            case _:
                made, sure = _reduce(mode, op.type, mask, members, given[0])
        for row, result in zip(rows, made, strict=False):
            if row is not None:
                np.copyto(values[row], result, where=mask)
                np.copyto(known[row], sure, where=mask)
        if kind is Kind.SHUFFLE and len(rows) == 2 and rows[1] is not None:  # being in range does not depend on data
            np.copyto(known[rows[1]], given[1][1] | given[2][1], where=mask)

    def run(c: Cluster, mask: Mask) -> Mask | None:
        record(c, mask, {})
        return c.converge(mask, _member_masks(mask_of, mask), statement.opcode.text, exchange)

    return run


def _by_warp(values: Word | Mask | Quality) -> Word:
    return values.reshape(-1, WARP)  # type: ignore[return-value]


def _present_lanes(mask: Mask, members: Word) -> Mask:
    """By lane, the lanes of its warp that are in its mask and present: a row of 32 each."""
    here = np.repeat(mask.reshape(-1, WARP), WARP, axis=0)
    bits = (members[:, None] >> np.arange(WARP, dtype=np.uint64) & np.uint64(1)) != 0
    return np.asarray(here & bits)


def _elect(c: Cluster, mask: Mask, members: Word) -> tuple[tuple[Word, ...], Quality]:
    """Elect a leader, one of all lanes that have met with these members, at whatever instructions (9.7.13.14). Which
    one is not specified; here it is the lowest lane, or the highest in a run for that choice.
    """
    present = _present_lanes(mask if c.met is None else c.met, members)
    leader = leader_lanes(present, last=c.last_lane_leads)
    if (present.sum(axis=1) > 1).any():
        c.has_elected = True
    lane = np.arange(len(mask)) % WARP
    return (leader.astype(np.uint64), (leader == lane).astype(np.uint64)), SURE


SHUFFLES = ("up", "down", "bfly", "idx")


def shuffle_sources(mode: str, mask: Mask, b: Word, c: Word) -> tuple[NDArray[np.int64], Mask]:
    """By lane, the lane whose value it gets by ``shfl`` with the operands ``b`` and ``c``, and whether that is in range
    (9.7.9.6).
    """
    lane = np.arange(len(mask)) % WARP
    by, clamp, segment = ((x & np.uint64(31)).astype(np.int64) for x in (b, c, c >> np.uint64(8)))
    least = lane & segment
    most = least | clamp & ~segment & 31
    match mode:
        case "up":
            source, inside = lane - by, lane - by >= most
        case "down":
            source, inside = lane + by, lane + by <= most
        case "bfly":
            source, inside = lane ^ by, (lane ^ by) <= most
        case _:
            source = least | by & ~segment & 31
            inside = source <= most
    source = np.where(inside, source, lane)
    return np.arange(len(mask)) // WARP * WARP + np.clip(source, 0, WARP - 1), inside


def _shuffle(mode: str, mask: Mask, given: list[tuple[Word, Quality]]) -> tuple[tuple[Word, ...], Quality]:
    (value, q), (b, qb), (c, qc) = given
    index, inside = shuffle_sources(mode, mask, b, c)
    sure = q[index] | qb | qc
    sure = np.where(mask[index], sure, sure | np.uint8(taint.UNKNOWN_NAMELESS))
    return (value[index], inside.astype(np.uint64)), sure


def _join_quality(present: Mask, q: Quality) -> Quality:
    """Join the quality of all present lanes: a combined result is known as far as each operand is."""
    rows = np.repeat(q.reshape(-1, WARP), WARP, axis=0)
    out: Quality = np.bitwise_or.reduce(np.where(present, rows, np.uint8(0)), axis=1)
    return out


def _vote(mode: str, mask: Mask, members: Word, given: tuple[Word, Quality]) -> tuple[tuple[Word, ...], Quality]:
    present = _present_lanes(mask, members)
    yes = present & np.repeat(_by_warp(given[0]) != 0, WARP, axis=0)
    sure = _join_quality(present, given[1])
    bits = np.uint64(1) << np.arange(WARP, dtype=np.uint64)
    match mode:
        case "ballot":
            out = np.bitwise_or.reduce(np.where(yes, bits, np.uint64(0)), axis=1)
        case "any":
            out = yes.any(axis=1).astype(np.uint64)
        case "all":
            out = (yes == present).all(axis=1).astype(np.uint64)
        case _:
            out = ((yes == present).all(axis=1) | ~yes.any(axis=1)).astype(np.uint64)
    return (out,), sure


def _match(mode: str, mask: Mask, members: Word, given: tuple[Word, Quality]) -> tuple[tuple[Word, ...], Quality]:
    present = _present_lanes(mask, members)
    same = present & (np.repeat(_by_warp(given[0]), WARP, axis=0) == given[0][:, None])
    sure = _join_quality(present, given[1])
    bits = np.uint64(1) << np.arange(WARP, dtype=np.uint64)
    found = np.bitwise_or.reduce(np.where(same, bits, np.uint64(0)), axis=1)
    if mode == "any":
        return (found,), sure
    every = (same == present).all(axis=1)
    return (np.where(every, found, np.uint64(0)), every.astype(np.uint64)), sure


def _reduce(
    mode: str, kind: str, mask: Mask, members: Word, given: tuple[Word, Quality]
) -> tuple[tuple[Word, ...], Quality]:
    present = _present_lanes(mask, members)
    rows = np.repeat(_by_warp(given[0]), WARP, axis=0)
    sure = _join_quality(present, given[1])
    low = np.uint64(FULL)
    match mode:
        case "add":
            out = np.where(present, rows, np.uint64(0)).sum(axis=1, dtype=np.uint64) & low
        case "or":
            out = np.bitwise_or.reduce(np.where(present, rows, np.uint64(0)), axis=1)
        case "and":
            out = np.bitwise_and.reduce(np.where(present, rows, low), axis=1)
        case "xor":
            out = np.bitwise_xor.reduce(np.where(present, rows, np.uint64(0)), axis=1)
        case _ if kind[0] in "us":
            numbers = to_signed(rows, 32) if kind[0] == "s" else rows.astype(np.int64)
            far = np.iinfo(np.int64).max if mode == "min" else np.iinfo(np.int64).min
            chosen = np.where(present, numbers, far)
            out = (chosen.min(axis=1) if mode == "min" else chosen.max(axis=1)).astype(np.uint64) & low
        case _:
            return (rows[:, 0],), sure | np.uint8(taint.UNKNOWN_NAMELESS)
    return (out,), sure
