"""mbarriers, asynchronous copies and wgmma: their effect on the objects that lanes wait for."""

from __future__ import annotations

import numpy as np

from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.ir import ops
from mcheck.ir.expr import Const, Reg
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import COPIES, MBARRIERS, MULTIMEM, PREFETCHED_COPIES, WARPGROUP, Kind
from mcheck.semantics import mbarrier
from mcheck.semantics.tensor_footprint import box_bytes, extent
from mcheck.semantics.tensor_map_values import decode
from mcheck.semantics.undefined import Misuse
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, compiles
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.strong_writes import written_by_atomic
from mcheck.simt.execution.waits.assumed_failures import FailedPoll
from mcheck.simt.execution.waits.polling_loops import is_spin_loop
from mcheck.simt.instructions.access_operands import Indices, fetch_lanes, note_order, to_generic
from mcheck.simt.instructions.copied_values import copy_bulk_values, copy_values
from mcheck.simt.instructions.matrix_descriptors import described_matrices
from mcheck.simt.instructions.recording import Operands, make_recorder, recording_step

# --- mbarriers ------------------------------------------------------------------------------------------------


@compiles(*MBARRIERS)
def mbarrier_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``mbarrier.*``."""
    op = operation_template(unit.function, statement)
    match op:
        case ops.MbarrierWait():
            return _wait_step(k, unit, statement, at, op)
        case ops.MbarrierArrive():
            return _arrive_step(k, unit, statement, at, op)
        case ops.MbarrierInit() | ops.MbarrierInval() | ops.MbarrierTx():
            return _apply_step(k, unit, statement, at, op)
    return k.forget_results(unit, statement)


def _apply_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int, op: ops.Op) -> Step:
    """Record an operation, and apply it to the mbarriers that the lanes name."""
    record = make_recorder(k, unit, statement, at, op)

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes, found = record(c, mask, {})
        if not found:
            return None
        for j in range(len(lanes)):
            _apply(c, op, int(found["address"][0][j]), found, j)
        return mask

    return run


def _apply(c: Cluster, op: ops.Op, address: int, found: Operands, j: int) -> None:
    match op:
        case ops.MbarrierInit():
            count = int(found["count"][0][j]) & 0xFFFFFFFF
            if 1 <= count <= mbarrier.MAX_COUNT:
                c.mbarriers.states[address] = mbarrier.init(count)[0]
        case ops.MbarrierInval():
            c.mbarriers.states.pop(address, None)
        case ops.MbarrierTx():
            tx = int(found["tx"][0][j]) & 0xFFFFFFFF
            step = mbarrier.expect_tx if op.kind == "expect" else mbarrier.complete_tx
            c.apply_to_mbarrier(address, lambda s: step(s, tx))
        case ops.CpAsyncArrive(noinc=True):
            c.apply_to_mbarrier(address, mbarrier.async_arrive_end)


def _arrive_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int, op: ops.MbarrierArrive) -> Step:
    register = op.state
    row = None
    if register is not None:
        index = next(r.index for r in unit.function.registers if r.name == register.name)
        row = unit.frame + index if unit.frame + index in k.code.needed_rows else None
    op = replace(op, state=None)
    record = make_recorder(k, unit, statement, at, op)
    values, known = k.lanes.values, k.lanes.quality

    def run(c: Cluster, mask: Mask) -> Mask | None:
        token = len(c.tokens)
        more: dict[str, object] = {} if row is None else {"state": Reg(f"state{token}")}
        lanes, found = record(c, mask, more)
        if not found:
            return None
        address = found["address"][0]
        if row is not None:
            first = c.mbarriers.states.get(int(address[0]))
            c.tokens.append(first.phase if first is not None else 0)
            values[row][lanes] = token
            known[row][lanes] = taint.TOKEN
        counts = found["count"][0].tolist() if "count" in found else [1] * len(lanes)
        bytes_ = found["tx"][0].tolist() if "tx" in found else [0] * len(lanes)
        for place in distinct(address).tolist():
            some = np.flatnonzero(address == place).tolist()
            _apply_arrivals(c, op, place, [counts[j] for j in some], [bytes_[j] & 0xFFFFFFFF for j in some])
        return mask

    return run


def _apply_arrivals(c: Cluster, op: ops.MbarrierArrive, place: int, counts: list[int], tx: list[int]) -> None:
    """Apply the arrivals of several lanes, together where they are in one phase."""
    state = c.mbarriers.states.get(place)
    total = sum(counts)
    if state is not None and not op.drop and not op.no_complete and total <= state.pending:
        c.apply_to_mbarrier(place, lambda s: mbarrier.arrive_expect_tx(s, sum(tx), total))
        return
    for count, more in zip(counts, tx, strict=True):
        if op.drop:
            c.apply_to_mbarrier(place, lambda s, n=count, t=more: mbarrier.arrive_drop(s, n, tx=t))  # type: ignore[misc]
        else:
            c.apply_to_mbarrier(place, lambda s, n=count, t=more: mbarrier.arrive_expect_tx(s, t, n))  # type: ignore[misc]


def _wait_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int, op: ops.MbarrierWait) -> Step:
    rows = k.destination_rows(unit, statement.operands[0]) if k.is_needed(unit, statement) else []
    values, known = k.lanes.values, k.lanes.quality
    if not is_spin_loop(unit.function, at - unit.start):
        return _poll_step(k, unit, statement, at, op)
    by_state = op.state is not None
    address_of = k.fetch(unit, statement.place)
    asked_of = k.fetch(unit, statement.operands[2])

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes = np.flatnonzero(mask)
        address, sure = fetch_lanes(address_of, mask, lanes)
        asked, also = fetch_lanes(asked_of, mask, lanes)
        address = to_generic(address)
        bits = int(np.bitwise_or.reduce(sure | also))
        if bits & taint.UNKNOWN or (by_state and not (also == taint.TOKEN).all()):
            c.give_up(mask, "the mbarrier or the phase of a wait depends on data")
            return None
        note_order(c, sure | also, "mbarrier or the phase of a wait")
        for row in rows:
            if row is not None:
                values[row][lanes] = 1
                known[row][lanes] = 0
        c.note_effect(mask)
        go = mask.copy()
        for (waiting, place, what), those in _waits(c, op, lanes, address, asked).items():
            some = np.zeros_like(mask)
            some[those] = True
            end = {"state": Reg(f"state{what}")} if by_state else {"parity": Const(what)}
            made = c.recorded.intern(
                (at, place, what, waiting.sem, waiting.scope),
                lambda waiting=waiting, place=place, end=end: ops.Await(  # type: ignore[misc]
                    inner=replace(waiting, address=Const(place), dst=None, **end),
                    span=waiting.span, text=waiting.text, section=waiting.section,
                ),
            )  # fmt: skip
            c.recorded.append(made, np.array(those))
            phase = c.tokens[what] if by_state else None
            go &= ~some | c.wait_for_phase(some, place, None if by_state else what, phase)
        if (go == mask).all():
            return mask
        c.pc[mask] = c.current_pc + 1
        return None

    return run


def _waits(
    c: Cluster, op: ops.MbarrierWait, lanes: Indices, address: Word, asked: Word
) -> dict[tuple[ops.MbarrierWait, int, int], list[int]]:
    """The waits that lanes execute together: what each orders, for which mbarrier, and for which parity or state."""
    found: dict[tuple[ops.MbarrierWait, int, int], list[int]] = {}
    for lane, place, what in zip(lanes.tolist(), address.tolist(), asked.tolist(), strict=True):
        waiting = op
        if c.assumed_failures.by_lane.get(lane):
            waiting, unsure = c.assumed_failures.wait(c.lanes, lane, place, what, op)
            for reason, span in unsure:
                c.recorded.note_gap(reason, span)
        found.setdefault((waiting, place, what), []).append(lane)
    return found


def _poll_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int, op: ops.MbarrierWait) -> Step:
    """A poll outside a waiting loop is assumed to fail (``mcheck.simt.execution.waits.assumed_failures``). If its
    answer decides nothing there is no wait that it could save: it is recorded by itself, since it has to find an
    mbarrier.
    """
    if op.state is None and not k.is_needed(unit, statement):
        return recording_step(k, unit, statement, at)
    needed = k.is_needed(unit, statement)
    rows = [r for r in k.destination_rows(unit, statement.operands[0]) if r is not None] if needed else []
    by_state = op.state is not None
    address_of = k.fetch(unit, statement.place)
    asked_of = k.fetch(unit, statement.operands[2])
    values, known = k.lanes.values, k.lanes.quality

    def run(c: Cluster, mask: Mask) -> Mask:
        lanes = np.flatnonzero(mask)
        address, sure = fetch_lanes(address_of, mask, lanes)
        asked, also = fetch_lanes(asked_of, mask, lanes)
        address = to_generic(address)
        note_order(c, sure | also, "mbarrier or the phase of a poll")
        for row in rows:
            values[row][lanes] = 0
            known[row][lanes] = taint.POLL | ((sure | also) & taint.UNKNOWN)
        if ((sure | also) & taint.UNKNOWN).any():
            c.recorded.note_gap("the mbarrier or the phase of a poll depends on data", statement.span)
            return mask
        table = zip(lanes.tolist(), address.tolist(), asked.tolist(), (also == taint.TOKEN).tolist(), strict=True)
        for lane, place, what, token in table:

            def make(place: int = place, what: int = what, token: bool = token) -> ops.Op:
                end = {"state": Reg(f"state{what}") if token else Const(what)} if by_state else {"parity": Const(what)}
                return replace(op, address=Const(place), dst=None, **end)

            made = c.recorded.intern((at, place, what, token), make)
            assert isinstance(made, ops.MbarrierWait)
            if needed:
                c.assumed_failures.add(lane, FailedPoll(place, what, made))
            else:
                c.recorded.append(made, [lane])
        return mask

    return run


# --- copies ---------------------------------------------------------------------------------------------------


@compiles(*(COPIES - MULTIMEM), *PREFETCHED_COPIES)
def copy_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``cp.async``, ``cp.async.bulk``, ``cp.reduce.async.bulk``, tensor copies, prefetches, groups."""
    if statement.kind in PREFETCHED_COPIES:
        return recording_step(k, unit, statement, at)
    op = operation_template(unit.function, statement)
    if isinstance(op, ops.BulkCopy | ops.TensorCopy):
        return _bulk_step(k, unit, statement, at, op)
    if isinstance(op, ops.CpAsyncArrive):
        return _apply_step(k, unit, statement, at, op)
    record = make_recorder(k, unit, statement, at, op, spread=op.decisive if isinstance(op, ops.CpAsync) else ())

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes, found = record(c, mask, {})
        if not found and isinstance(op, ops.CpAsync):
            return None
        if isinstance(op, ops.CpAsync) and len(lanes):
            c.tensor.record_stores(found["dst"][0], int(found["size"][0].max()))
        if isinstance(op, ops.CpAsync) and k.code.stores_decide:
            for j in range(len(lanes)):
                copy_values(c, found, j)
        return mask

    return run


def _bulk_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int, op: ops.BulkCopy | ops.TensorCopy) -> Step:
    once = op.mbar is None and op.reduce is None
    spread = ("dst", "src") if isinstance(op, ops.BulkCopy) and op.is_plain else ()
    record = make_recorder(k, unit, statement, at, op, once=once, spread=spread)
    pairs = isinstance(op, ops.TensorCopy) and op.cta_group == 2

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes, found = record(c, mask, {})
        if not found:
            return None
        for j in range(len(lanes)):
            try:
                size = _copy_size(c, op, found, j)
            except Misuse:
                continue  # the engine reports it
            if size is None:
                c.give_up(mask, "the launch does not give the tensor map of the copy")
                return None
            targets = found["dst"][0] if isinstance(op, ops.BulkCopy) else found["shared"][0]
            ranks = _ranks(found, j)
            if op.mbar is None:
                if k.code.stores_decide:
                    _leave_in_global(c, op, found, j, int(lanes[j]), size)
                continue
            for rank in ranks:
                place, to = int(found["mbar"][0][j]), int(targets[j])
                if rank is not None:
                    # of a pair the mbarrier of the even or of the odd CTA, as the operand is (9.7.9.27.1.2)
                    told = rank & ~1 | _rank_of(place) & 1 if pairs else rank
                    place, to = c.lanes.in_rank(place, told), c.lanes.in_rank(to, rank)
                if isinstance(op, ops.BulkCopy):
                    copy_bulk_values(c, op, found, j, int(lanes[j]), to, size)
                else:
                    c.store.forget(to, size)
                c.tensor.record_stores(np.array([to], np.uint64), size)
                c.apply_to_mbarrier(place, lambda s, size=size: mbarrier.complete_tx(s, size))  # type: ignore[misc]
        return mask

    return run


def _leave_in_global(
    c: Cluster, op: ops.BulkCopy | ops.TensorCopy, found: Operands, j: int, lane: int, size: int
) -> None:  # fmt: skip
    """What a copy to global memory leaves there: of a tensor all is unknown."""
    if isinstance(op, ops.BulkCopy):
        copy_bulk_values(c, op, found, j, lane, int(found["dst"][0][j]), size)
        return
    contents = c.store.read_map(int(found["tensor_map"][0][j]))
    if contents is not None and (spec := decode(contents)) is not None and op.kind == "store":
        c.store.forget(*extent(spec))


def _ranks(found: Operands, j: int) -> list[int | None]:
    if "cta_mask" not in found:
        return [None]
    mask = int(found["cta_mask"][0][j])
    return [rank for rank in range(16) if mask >> rank & 1]


def _rank_of(address: int) -> int:
    return (address - SHARED_BASE) // SHARED_WINDOW


def _copy_size(c: Cluster, op: ops.BulkCopy | ops.TensorCopy, found: Operands, j: int) -> int | None:
    """The bytes that a copy moves; ``None`` where its map is not given. Raises ``Misuse`` for an invalid map."""
    if isinstance(op, ops.BulkCopy):
        return int(found["size"][0][j]) & 0xFFFFFFFF
    contents = c.store.read_map(int(found["tensor_map"][0][j]))
    spec = None if contents is None else decode(contents)
    info = tuple(int(x[j]) for x in found.get("im2col_info", []))
    return None if spec is None else box_bytes(spec, op.mode, info)


# --- st.async, red.async ------------------------------------------------------------------------------------------


@compiles(Kind.ASYNC_STORE, Kind.ASYNC_REDUCTION)
def async_store_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``st.async`` and ``red.async``, whose bytes count on an mbarrier."""
    op = operation_template(unit.function, statement)
    assert isinstance(op, ops.AsyncStore)
    size = type_size(op.type) * len(op.srcs)
    op = replace(op, srcs=tuple(Reg("data") for _ in op.srcs))
    record = make_recorder(k, unit, statement, at, op, spread=op.decisive)

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes, found = record(c, mask, {})
        if not found:
            return None
        for j, lane in enumerate(lanes.tolist() if op.mbar is not None else ()):
            address = int(found["address"][0][j])
            c.store.forget(address, size)
            if op.reduce is not None:
                what = written_by_atomic(op.reduce, op.type, c.strong_writes.now)
                c.strong_writes.add_write(lane, address, size, what, completes_later=True)
            c.tensor.record_stores(found["address"][0][j : j + 1], size)
            c.apply_to_mbarrier(int(found["mbar"][0][j]), lambda s: mbarrier.complete_tx(s, size))
        return mask

    return run


# --- wgmma ----------------------------------------------------------------------------------------------------------


@compiles(*WARPGROUP)
def wgmma_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``wgmma.mma_async``, which reads the matrices of its descriptors; fence and groups come from the
    instruction table.
    """
    if statement.kind is not Kind.WGMMA:
        return recording_step(k, unit, statement, at)
    read = described_matrices(statement)
    fetches = [(k.fetch(unit, operand), matrix) for operand, matrix in read]
    common = {"span": statement.span, "text": statement.text, "section": "9.7.15.5.2"}
    name = k.forget_results(unit, statement) if k.code.stores_named else None

    def run(c: Cluster, mask: Mask) -> Mask | None:
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        lanes: Indices = np.flatnonzero(mask)
        table = []
        for fetch, _ in fetches:
            value, sure = fetch_lanes(fetch, mask, lanes)
            if (sure & taint.UNKNOWN).any():
                c.give_up(mask, "the descriptor of a matrix depends on data")
                return None
            note_order(c, sure, "descriptor of a matrix")
            table.append(value)
        table.append(c.lanes.cta[lanes].astype(np.uint64))
        rows, back = np.unique(np.stack(table), axis=1, return_inverse=True)
        for column in range(rows.shape[1]):
            *descriptors, cta = rows[:, column].tolist()

            def make(descriptors: list[int] = descriptors, cta: int = cta) -> ops.Op:
                window = SHARED_BASE + cta * SHARED_WINDOW
                reads = []
                for descriptor, (_, matrix) in zip(descriptors, fetches, strict=True):
                    reads += [(Const(window + at), Const(size)) for at, size in matrix.ranges(descriptor)]
                return ops.Wgmma(reads=tuple(reads), **common)  # type: ignore[arg-type]

            c.recorded.append(c.recorded.intern((at, *descriptors, cta), make), lanes[back.reshape(-1) == column])
        return mask if name is None else name(c, mask)

    return run
