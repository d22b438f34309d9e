"""tcgen05.ld and st, their waits, and the fences of tensor memory (PTX ISA 9.7.16.8 and 9.7.16.11).

The rows of tensor memory that a warp can access are assumed to be its lanes': lane k accesses row k of the warp's
quarter, whatever register the shape of a ``ld`` or ``st`` assigns to it (open question Q28).
"""

from __future__ import annotations

import numpy as np

from mcheck.base.errors import InputError, Unsupported
from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import CELL
from mcheck.isa.decode import ILLEGAL
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, compiles
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.tensor_memory import COLUMN
from mcheck.simt.instructions.access_operands import Indices
from mcheck.simt.instructions.tensor_operands import (
    SECTION,
    differing,
    group_lanes,
    lanes_that_differ,
    read_operands,
    record_misuse,
)

_REGISTERS = {"32x32b": 1, "16x32bx2": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}
_COLUMNS = {"32x32b": 1, "16x32bx2": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8}
"""By shape, registers and columns for each repetition."""
_NUMBERS = {f"x{1 << k}": 1 << k for k in range(8)}
ROWS = 16
"""The rows of the shapes that do not have 32."""


@compiles(Kind.TMEM_LOAD, Kind.TMEM_STORE)
def _move_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``ld`` and ``st``: a warp accesses rows of its quarter."""
    loads = statement.kind is Kind.TMEM_LOAD
    shape, number = statement.opcode.choice(_COLUMNS), statement.opcode.choice(_NUMBERS)
    place = statement.address
    if shape is None or number is None or place is None:
        raise Unsupported(f"'{statement.text}' is not followed", statement.span)
    _check_registers(statement, _NUMBERS[number] * _REGISTERS[shape])
    columns = _NUMBERS[number] * _COLUMNS[shape]
    if statement.opcode.has("pack::16b", "unpack::16b"):
        columns *= 2
    offsets = (0,) if shape != "16x32bx2" else (0, _split_distance(statement))
    fetch = k.fetch(unit, place)
    opaque = k.forget_results(unit, statement) if loads and k.is_needed(unit, statement) else None
    op = ops.TensorMove(
        family="tcgen05.ld" if loads else "tcgen05.st", address=Const(0), size=CELL * columns,
        span=statement.span, text=statement.text, section=SECTION,
    )  # fmt: skip

    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = read_operands(c, [fetch], mask, "address in tensor memory")
        if found is None:
            return None
        warps = np.arange(c.lanes.count) // WARP
        groups = group_lanes(*found, warps)
        for apart in lanes_that_differ(groups):
            record_misuse(c, differing("addresses"), statement, apart[:1])
        for (base,), _, lanes in groups:
            for offset in offsets:
                column = (base & COLUMN) + offset
                owners = lanes if shape == "32x32b" else _owners(lanes, base >> 16)
                _check_use(c, statement, int(lanes[0]), column, columns)
                where = np.array([_cells(c, lane, base >> 16, column, columns) for lane in owners.tolist()], np.uint64)
                c.recorded.record((at, offset), [where], owners, lambda v: replace(op, address=v[0]), spread=True)
        if opaque is not None:
            opaque(c, mask)
        return mask

    return run


def _owners(lanes: Indices, first: int) -> Indices:
    """The lanes of a warp whose rows an access to 16 rows is to."""
    return np.asarray(lanes[(lanes - first) % WARP < ROWS])


def _cells(c: Cluster, lane: int, first: int, column: int, columns: int) -> int:
    """The address of the cells of a lane's row, one that stands for them if the warp cannot access it (9.7.16.8)."""
    row = first + (lane - first) % WARP
    mine = row // WARP == lane % c.lanes.width // WARP % 4
    return c.tensor.lane_cells(int(c.lanes.cta[lane]), row, column, columns, barred=not mine)[0]


def _check_use(c: Cluster, statement: ptx.Statement, lane: int, column: int, columns: int) -> None:
    fault = c.tensor.use_fault(int(c.lanes.cta[lane]), column, columns)
    if fault is not None:
        record_misuse(c, fault, statement, np.array([lane]))


def _check_registers(statement: ptx.Statement, wanted: int) -> None:
    """The vector has as many registers as shape and number say."""
    held = next((o for o in statement.operands if isinstance(o, ptx.Vector)), None)
    given = 1 if held is None else len(held.items)
    if given != wanted:
        message = f"'{statement.opcode.text}' takes a vector of {wanted} registers, {given} given"
        raise InputError(message, statement.span, code=ILLEGAL)


def _split_distance(statement: ptx.Statement) -> int:
    """Columns between the two accesses of the shape of two halves, both to the same 16 rows."""
    found = [o.value for o in statement.operands if isinstance(o, ptx.Immediate)]
    if not found:
        raise InputError(f"'{statement.opcode.text}' lacks the distance of the halves", statement.span, code=ILLEGAL)
    return found[0]


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
    """A release or an acquire of tensor memory (9.7.16.11)."""
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
