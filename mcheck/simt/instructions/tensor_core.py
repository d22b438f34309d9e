"""tcgen05: the shared and tensor memory that its instructions access, and their signals (PTX ISA 9.7.16).

The rows of tensor memory that a warp can access are assumed to be its lanes': lane k accesses row k of the warp's
quarter, whatever register the shape of a ``ld`` or ``st`` assigns to it (open question Q27).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from mcheck.base.errors import Unsupported
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import CELL, SHARED_BASE, SHARED_WINDOW, TENSOR_LANES
from mcheck.isa.kinds import Kind
from mcheck.semantics import mbarrier
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch, compiles
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.tensor_memory import COLUMN, Range, Rectangle
from mcheck.simt.instructions.access_operands import Indices, fetch_lanes, to_generic
from mcheck.simt.instructions.instruction_descriptors import Shape, copy_footprint, product_footprint

SECTION = "9.7.16"


Values = list[Word]
"""The operands of the lanes that execute an instruction."""


def _operands(c: Cluster, fetches: list[Fetch], mask: Mask, what: str) -> tuple[Indices, Values] | None:
    """The lanes and the values of their operands; ``None``, with the lanes given up, where one of them is unknown."""
    c.check_assumed_failures(mask)
    c.note_effect(mask)
    lanes: Indices = np.flatnonzero(mask)
    values = []
    for fetch in fetches:
        value, sure = fetch_lanes(fetch, mask, lanes)
        if (sure & taint.UNKNOWN).any():
            c.give_up(mask, f"the {what} depends on data")
            return None
        values.append(value)
    return lanes, values


def _group_lanes(c: Cluster, lanes: Indices, values: Values) -> list[tuple[list[int], int, Indices]]:
    """The lanes grouped by operands and CTA."""
    table = np.stack([*values, c.lanes.cta[lanes].astype(np.uint64)])
    rows, back = np.unique(table, axis=1, return_inverse=True)
    back = back.reshape(-1)
    out = []
    for column in range(rows.shape[1]):
        *found, cta = rows[:, column].tolist()
        out.append((found, cta, lanes[back == column]))
    return out


def _core_op(kind: str, reads: list[Range], writes: list[Range], statement: ptx.Statement) -> ops.TensorCore:
    return ops.TensorCore(
        kind=kind, reads=_ranges(reads), writes=_ranges(writes),
        span=statement.span, text=statement.text, section=SECTION,
    )  # fmt: skip


def _ranges(found: Iterable[Range]) -> tuple[tuple[Const, Const], ...]:
    return tuple((Const(at), Const(size)) for at, size in dict.fromkeys(found))


def _active_ctas(statement: ptx.Statement, cta: int) -> list[int]:
    """The participating CTAs: with ``cta_group::2`` the pair whose ranks differ in the last bit (9.7.16.5)."""
    return [cta, cta ^ 1] if statement.opcode.has("cta_group::2") else [cta]


# --- allocation -----------------------------------------------------------------------------------------------


@compiles(Kind.TMEM_ALLOCATION)
def _alloc_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``alloc``: a lane of the warp writes the address to shared memory (9.7.16.7.1)."""
    fetches = [k.fetch(unit, operand) for operand in statement.operands[:2]]

    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = _operands(c, fetches, mask, "size of the allocation")
        if found is None:
            return None
        for (place, columns), cta, lanes in _group_lanes(c, found[0], found[1]):
            one = lanes[:1]
            problem = c.tensor.allocation_error(cta, columns)
            if problem is not None:
                _record_misuse(c, "UB602", problem, statement, one)
            first = None if problem else c.tensor.allocate(cta, columns, int(one[0]), statement)
            if first is None:
                c.give_up(mask, problem or f"no {columns} columns of tensor memory are left to allocate")
                return None
            address = to_generic(np.array([place], np.uint64))
            op = _core_op("alloc", [], [(int(address[0]), 4)], statement)
            c.recorded.append(c.recorded.intern((at, place), lambda op=op: op), one)  # type: ignore[misc]
            c.tensor.result_words.add(int(address[0]))
            c.store.save(address, 4, one, np.array([first], np.uint64), np.zeros(1, np.uint8))
        return mask

    return run


def _record_misuse(c: Cluster, code: str, problem: str, statement: ptx.Statement, lanes: Indices) -> None:
    """Record a violation in the order that is followed, if threads can have that order."""
    if c.recorded.order_is_possible:
        op = replace(_core_op(statement.opcode.mode, [], [], statement), wrong=(code, problem))
        c.recorded.append(op, lanes)


def check_freed(c: Cluster) -> None:
    """All tensor memory must be freed when the kernel ends (9.7.16.1.2): the finding is at the lane that
    allocated it.
    """
    for held in c.tensor.live_allocations():
        said = f"ends with {held.columns} columns of tensor memory still allocated"
        if not c.recorded.order_is_possible:
            c.recorded.note_gap(said, held.statement.span)
            continue
        op = replace(_core_op("end", [], [], held.statement), wrong=("UB601", said), text="the end of the thread")
        c.recorded.append(op, [held.lane])


@compiles(Kind.TMEM_RELEASE)
def _dealloc_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``dealloc``: nothing may use the columns any more; modelled as a write to them (9.7.16.7.1)."""
    fetches = [k.fetch(unit, operand) for operand in statement.operands[:2]]

    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = _operands(c, fetches, mask, "allocation")
        if found is None:
            return None
        for (address, columns), cta, lanes in _group_lanes(c, found[0], found[1]):
            if not c.tensor.deallocate(cta, address & COLUMN, columns):
                freed = f"frees {columns} columns of tensor memory from column {address & COLUMN} on"
                said = f"{freed}, which is not an allocation"
                _record_misuse(c, "UB603", said, statement, lanes[:1])
                c.give_up(mask, said)
                return None
            for lane in lanes.tolist():
                rows = tuple((q + lane % WARP, q + lane % WARP + 1) for q in range(0, TENSOR_LANES, WARP))
                writes = c.tensor.rectangle_cells(cta, address & COLUMN, Rectangle(rows, columns))
                op = _core_op("dealloc", [], writes, statement)
                c.recorded.append(c.recorded.intern((at, op.writes), lambda op=op: op), [lane])  # type: ignore[misc]
        return mask

    return run


@compiles(Kind.TMEM_PERMIT)
def _relinquish_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:  # noqa: ARG001 - one signature
    def run(c: Cluster, mask: Mask) -> Mask:
        for cta in np.unique(c.lanes.cta[mask]).tolist():
            c.tensor.relinquished.setdefault(cta, statement)
        return mask

    return run


# --- ld and st ------------------------------------------------------------------------------------------------

_CELLS = {"32x32b": 1, "16x32bx2": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8}
"""By shape, columns for each repetition."""


@compiles(Kind.TMEM_LOAD, Kind.TMEM_STORE)
def _move_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``ld`` and ``st``: a warp accesses rows of its quarter (9.7.16.8)."""
    loads = statement.kind is Kind.TMEM_LOAD
    shape = statement.opcode.choice(_CELLS)
    count = next((int(p[1:]) for p in statement.opcode.parts if p[:1] == "x" and p[1:].isdigit()), None)
    place = statement.address
    if shape is None or count is None or place is None:
        raise Unsupported(f"'{statement.text}' is not followed", statement.span)
    columns = count * _CELLS[shape]
    if statement.opcode.has("pack::16b", "unpack::16b"):
        columns *= 2
    split = _split_distance(statement) if shape == "16x32bx2" else None
    fetch = k.fetch(unit, place)
    opaque = k.forget_results(unit, statement) if loads and k.is_needed(unit, statement) else None
    op = ops.TensorMove(
        family="tcgen05.ld" if loads else "tcgen05.st", address=Const(0), size=CELL * columns,
        span=statement.span, text=statement.text, section=SECTION,
    )  # fmt: skip

    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = _operands(c, [fetch], mask, "address in tensor memory")
        if found is None:
            return None
        lanes, (address,) = found
        if shape != "32x32b" and split is None:  # half of the lanes stand for the 16 rows
            half = lanes % WARP < WARP // 2
            lanes, address = lanes[half], address[half]
        where = []
        for lane, base in zip(lanes.tolist(), address.tolist(), strict=True):
            number = lane % WARP
            second, number = divmod(number, WARP // 2) if split is not None else (0, number)
            column = (base & COLUMN) + second * (split or 0)
            row, quarter = (base >> 16) + number, lane % c.lanes.width // WARP % 4
            mine = row // WARP == quarter
            where.append(c.tensor.lane_cells(int(c.lanes.cta[lane]), row if mine else TENSOR_LANES, column, columns)[0])
        c.recorded.record(at, [np.array(where, np.uint64)], lanes, lambda v: replace(op, address=v[0]), spread=True)
        if opaque is not None:
            opaque(c, mask)
        return mask

    return run


def _split_distance(statement: ptx.Statement) -> int:
    """Columns between the accesses of the two halves of a warp, both in the same 16 rows (9.7.16.8)."""
    found = [o.value for o in statement.operands if isinstance(o, ptx.Immediate)]
    return found[0] if found else 0


@compiles(Kind.TMEM_LOAD_WAIT, Kind.TMEM_STORE_WAIT)
def _wait_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:  # noqa: ARG001 - one signature
    family = "tcgen05.ld" if statement.kind is Kind.TMEM_LOAD_WAIT else "tcgen05.st"
    return _plain_step(
        ops.WaitGroup(
            family=family, pending=Const(0), commits=True, span=statement.span, text=statement.text, section=SECTION
        ),
        at,
    )


@compiles(Kind.TMEM_FENCE)
def _fence_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:  # noqa: ARG001 - one signature
    """A release or an acquire of tensor memory (9.7.16.9)."""
    sem = "release" if statement.opcode.has("fence::before_thread_sync") else "acquire"
    return _plain_step(
        ops.Fence(
            sem=sem, scope="cluster", restrict="tensor", span=statement.span, text=statement.text, section=SECTION
        ),
        at,
    )


def _plain_step(op: ops.Op, at: int) -> Step:
    def run(c: Cluster, mask: Mask) -> Mask:
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        c.recorded.append(c.recorded.intern((at,), lambda: op), np.flatnonzero(mask))
        return mask

    return run


# --- the pipe ---------------------------------------------------------------------------------------------------


def _issue(c: Cluster, at: int, key: tuple[object, ...], op: ops.TensorCore, lanes: Indices) -> None:
    """Append an operation; consecutive operations that a lane issues to its pipe become one."""
    op = c.recorded.intern((at, *key), lambda: op)  # type: ignore[assignment]
    for lane in lanes.tolist():
        code = c.recorded.code[lane]
        last = code[-1] if code else None
        if isinstance(last, ops.TensorCore) and last.kind == op.kind == "mma":
            code[-1] = c.recorded.intern(("joined", id(last), id(op)), lambda last=last: _join_operations(last, op))  # type: ignore[misc]
        else:
            c.recorded.append(op, [lane])


def _join_operations(first: ops.TensorCore, then: ops.TensorCore) -> ops.TensorCore:
    def both(name: str) -> tuple[tuple[Const, Const], ...]:
        pairs = [(at.value, size.value) for at, size in (*getattr(first, name), *getattr(then, name))]
        return _ranges(pairs)

    return replace(first, reads=both("reads"), writes=both("writes"))


@compiles(Kind.TMEM_PRODUCT)
def _mma_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``mma``: reads matrices in shared or tensor memory, accumulates in tensor memory (9.7.16.10)."""
    operands, opcode = list(statement.operands), statement.opcode
    d, a, b = operands[:3]
    rest = operands[3:]
    meta = rest.pop(0) if opcode.has("sp") and rest and isinstance(rest[0], ptx.Address) else None
    if not isinstance(d, ptx.Address) or not rest:
        raise Unsupported(f"'{statement.text}' is not followed", statement.span)
    scales = [o for o in rest[1:3] if isinstance(o, ptx.Address)]
    used = [d, a, b, rest[0], *([] if meta is None else [meta]), *scales]
    fetches = [k.fetch(unit, operand) for operand in used]
    a_in_tensor = isinstance(a, ptx.Address)

    def made(c: Cluster, found: list[int], cta: int) -> ops.TensorCore:
        shape = Shape.decode(opcode, found[3])
        rows = product_footprint(shape)
        reads: list[Range] = []
        writes: list[Range] = []
        for other in _active_ctas(statement, cta):
            window = SHARED_BASE + other * SHARED_WINDOW
            if a_in_tensor:
                reads += c.tensor.rectangle_cells(other, found[1], rows.a_cells)
            else:
                reads += [(window + x, size) for x, size in rows.a.ranges(found[1])]
            reads += [(window + x, size) for x, size in rows.b.ranges(found[2])]
            more = found[4:]
            if meta is not None:
                reads += c.tensor.rectangle_cells(other, more.pop(0), rows.meta)
            for address, cells in zip(more, rows.scales, strict=False):
                reads += c.tensor.rectangle_cells(other, address & 0x3FFFFFFF, cells)
            writes += c.tensor.rectangle_cells(other, found[0], rows.d)
        return _core_op("mma", reads, writes, statement)

    return _piped_step(k, statement, at, fetches, made, "operand of the product")


@compiles(Kind.TMEM_COPY)
def _copy_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``cp``: from shared to tensor memory (9.7.16.8.2)."""
    fetches = [k.fetch(unit, operand) for operand in statement.operands[:2]]
    cells, matrix = copy_footprint(statement)

    def made(c: Cluster, found: list[int], cta: int) -> ops.TensorCore:
        reads: list[Range] = []
        writes: list[Range] = []
        for other in _active_ctas(statement, cta):
            window = SHARED_BASE + other * SHARED_WINDOW
            reads += [(window + x, size) for x, size in matrix.ranges(found[1])]
            writes += c.tensor.rectangle_cells(other, found[0], cells)
        return _core_op("cp", reads, writes, statement)

    return _piped_step(k, statement, at, fetches, made, "operand of the copy")


@compiles(Kind.TMEM_SHIFT)
def _shift_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``shift``: 32 bytes of each lane move to the lane below (9.7.16.8.3)."""
    fetches = [k.fetch(unit, statement.operands[0])]

    def made(c: Cluster, found: list[int], cta: int) -> ops.TensorCore:
        lane = found[0] >> 16
        cells = Rectangle(((0, max(TENSOR_LANES - lane, 1)),), 8)
        writes = [x for other in _active_ctas(statement, cta) for x in c.tensor.rectangle_cells(other, found[0], cells)]
        return _core_op("shift", [], writes, statement)

    return _piped_step(k, statement, at, fetches, made, "address in tensor memory")


MakeOp = Callable[[Cluster, list[int], int], ops.TensorCore]


def _piped_step(k: Compiler, statement: ptx.Statement, at: int, fetches: list[Fetch], made: MakeOp, what: str) -> Step:
    del k, statement

    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = _operands(c, fetches, mask, what)
        if found is None:
            return None
        for values, cta, lanes in _group_lanes(c, found[0], found[1]):
            _issue(c, at, (*values, cta), made(c, values, cta), lanes)
        return mask

    return run


@compiles(Kind.TMEM_COMMIT)
def _commit_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``commit``: an arrival on the mbarrier, or on those at its offset in each CTA of a mask (9.7.16.11)."""
    fetches = [k.fetch(unit, operand) for operand in statement.operands[:2]]

    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = _operands(c, fetches, mask, "mbarrier of the commit")
        if found is None:
            return None
        for values, cta, lanes in _group_lanes(c, found[0], found[1]):
            place = int(to_generic(np.array([values[0]], np.uint64))[0])
            targets = values[1] if len(values) > 1 else None
            op = ops.TensorCommit(
                address=Const(place),
                cta_mask=None if targets is None else Const(targets & 0xFFFF),
                span=statement.span,
                text=statement.text,
                section=SECTION,
            )
            c.recorded.append(c.recorded.intern((at, *values, cta), lambda op=op: op), lanes)  # type: ignore[misc]
            ranks = [None] if targets is None else [r for r in range(16) if targets >> r & 1]
            for rank in ranks:
                here = place if rank is None else c.lanes.in_rank(place, rank)
                for _ in range(len(lanes)):
                    c.apply_to_mbarrier(here, mbarrier.async_arrive_end)
        return mask

    return run
