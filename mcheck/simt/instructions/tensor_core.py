"""tcgen05.mma, cp, shift and commit: the memory that they access, and their signals (PTX ISA 9.7.16)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

import numpy as np

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW, TENSOR_LANES
from mcheck.isa.decode import ILLEGAL
from mcheck.isa.kinds import Kind
from mcheck.semantics import mbarrier
from mcheck.semantics.collectors import Collector, collector_use
from mcheck.semantics.tensor_rules import Fault, wrong_collector
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch, compiles
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.tensor_memory import COLUMN, COLUMN_BITS, WHOLE, Range, Rectangle
from mcheck.simt.instructions.access_operands import Indices, to_generic
from mcheck.simt.instructions.instruction_descriptors import Shape, copy_footprint, product_footprint
from mcheck.simt.instructions.matrix_descriptors import Matrix, descriptor_problem
from mcheck.simt.instructions.tensor_operands import (
    SECTION,
    check_cta_group,
    const_ranges,
    group_lanes,
    make_core_op,
    participating_ctas,
    read_operands,
    record_misuse,
)

SHIFTED_COLUMNS = 8
"""The 32 bytes of a lane that ``shift`` moves."""


def _issue(c: Cluster, at: int, key: tuple[object, ...], op: ops.TensorCore, lanes: Indices) -> None:
    """Append an operation; consecutive operations that a lane issues to its pipe become one."""
    op = c.recorded.intern((at, *key), lambda: op)  # type: ignore[assignment]
    for lane in lanes.tolist():
        code = c.recorded.code[lane]
        last = code[-1] if code else None
        if isinstance(last, ops.TensorCore) and last.kind == op.kind == "mma" and last.wrong is None:
            code[-1] = c.recorded.intern(("joined", id(last), id(op)), lambda last=last: _join_operations(last, op))  # type: ignore[misc]
        else:
            c.recorded.append(op, [lane])


def _join_operations(first: ops.TensorCore, then: ops.TensorCore) -> ops.TensorCore:
    def both(name: str) -> tuple[tuple[Const, Const], ...]:
        pairs = [(at.value, size.value) for at, size in (*getattr(first, name), *getattr(then, name))]
        return const_ranges(pairs)

    return replace(first, reads=both("reads"), writes=both("writes"))


@dataclass(slots=True)
class _Accesses:
    """What an instruction accesses in the CTAs that take part, and what is wrong with its operands."""

    c: Cluster
    lanes: Indices
    """Those that issue the instruction."""
    ctas: list[int]
    """Those that take part."""
    problems: list[Fault] = field(default_factory=list)
    reads: list[Range] = field(default_factory=list)
    writes: list[Range] = field(default_factory=list)
    unknown: str | None = None
    """Why it cannot be followed."""

    def read_matrix(self, matrix: Matrix, descriptor: int) -> tuple[Range, ...]:
        """Returns what is read, in the shared memory of all CTAs."""
        found = matrix.ranges(descriptor)
        read = tuple((SHARED_BASE + cta * SHARED_WINDOW + x, size) for cta in self.ctas for x, size in found)
        self.reads += read
        return read

    def read_cells(self, address: int, cells: Rectangle) -> None:
        self.reads += self._cells(address, cells)

    def write_cells(self, address: int, cells: Rectangle) -> None:
        self.writes += self._cells(address, cells)

    def _cells(self, address: int, cells: Rectangle) -> Iterator[Range]:
        for cta in self.ctas:
            fault = self.c.tensor.use_fault(cta, address & COLUMN, cells.columns)
            if fault is not None:
                self.problems.append(fault)
            yield from self.c.tensor.rectangle_cells(cta, address, cells)

    def misuse(self, said: str | None) -> None:
        """An operand that the instruction must not have."""
        if said is not None:
            self.problems.append(("UB109", said))


# --- products -------------------------------------------------------------------------------------------------

SUBCOLUMNS = 0x3FFFFFFF
"""The upper bits of the address of scales or of metadata are not part of it: CUTLASS keeps in them which sub-column of
the cells is meant, and the instruction descriptor says so.
"""

SPARSE = 1 << 2
"""The bit of the instruction descriptor that says that A is sparse (9.7.16.4.2)."""


IN_TENSOR_MEMORY = {"d": True, "a": None, "b": False, "meta": True, "idesc": False, "scale_a": True, "scale_b": True}
"""The operands of a product in the order of the ISA (9.7.16.10.9), and whether each is an address, in brackets."""
OPTIONAL = {"meta": "sp", "scale_a": "block_scale", "scale_b": "block_scale"}
"""The qualifiers with which operands are there."""


def _product_operands(statement: ptx.Statement) -> dict[str, ptx.Operand]:
    """The operands whose values are needed, by name. Behind them stand what enables the input D and, with ``.ws``, the
    zero-column ``mask``.
    """
    opcode = statement.opcode
    names = [name for name in IN_TENSOR_MEMORY if name not in OPTIONAL or opcode.has(OPTIONAL[name])]
    found = dict(zip(names, statement.operands, strict=False))
    wrong = len(found) < len(names) or any(
        IN_TENSOR_MEMORY[name] not in (None, isinstance(operand, ptx.Address)) for name, operand in found.items()
    )
    if wrong:
        message = f"the operands of '{opcode.text}' are not those of the instruction"
        raise InputError(message, statement.span, code=ILLEGAL)
    if opcode.has("ashift") and not isinstance(found["a"], ptx.Address):
        message = f"'.ashift' of '{opcode.text}' needs a first matrix in tensor memory"
        raise InputError(message, statement.span, code=ILLEGAL)
    behind = statement.operands[len(names) + 1 :]
    return {**found, "mask": behind[0]} if opcode.has("ws") and behind else found


@compiles(Kind.TMEM_PRODUCT)
def _mma_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``mma``: reads matrices in shared or tensor memory, accumulates in tensor memory (9.7.16.10)."""
    opcode, product = statement.opcode, _product_operands(statement)
    fetches = [k.fetch(unit, operand) for operand in product.values()]
    a_in_tensor = isinstance(product["a"], ptx.Address)

    def access(accesses: _Accesses, found: list[int]) -> None:
        value = dict(zip(product, found, strict=True))
        d, a, b, idesc = (value[name] for name in ("d", "a", "b", "idesc"))
        shape = Shape.decode(opcode, idesc)
        problem = shape.problem()
        accesses.misuse(problem)
        if problem is not None:
            return
        if bool(idesc & SPARSE) != shape.sparse:
            accesses.unknown = "instruction and instruction descriptor differ in whether the first matrix is sparse"
            return
        meta = value["meta"] & SUBCOLUMNS if "meta" in value else None
        scales = [value[name] & SUBCOLUMNS for name in ("scale_a", "scale_b") if name in value]
        rows = product_footprint(shape, column_shift=value.get("mask", 0) >> 56 & 63)
        halved = [d, *([a] if a_in_tensor else []), *([] if meta is None else [meta])]
        accesses.misuse(shape.lane_problem([address >> COLUMN_BITS for address in halved]))
        for descriptor in (b,) if a_in_tensor else (a, b):
            accesses.misuse(descriptor_problem(descriptor))
        a_from: tuple[Range, ...] = ()
        if a_in_tensor:
            accesses.read_cells(a, rows.a_cells)
        else:
            a_from = accesses.read_matrix(rows.a, a)
        b_from = accesses.read_matrix(rows.b, b)
        if meta is not None:
            accesses.read_cells(meta, rows.meta)
        for address, cells in zip(scales, rows.scales, strict=False):
            accesses.read_cells(address, cells)
        accesses.write_cells(d, rows.d)
        _use_collector(accesses, statement, *((b, b_from) if shape.stationary else (a, a_from)))

    return _piped_step(statement, at, fetches, access, "operand of the product")


def _use_collector(accesses: _Accesses, statement: ptx.Statement, operand: int, loaded_from: tuple[Range, ...]) -> None:
    """Follow what a product does with a collector; ``loaded_from`` is where the matrix that it may keep lies in shared
    memory.
    """
    opcode = statement.opcode
    name, use = collector_use(opcode.prefixed("collector::"), stationary=opcode.has("ws"))
    collector = accesses.c.tensor.collectors.setdefault((min(accesses.ctas), name), Collector())
    problem = collector.apply(use, operand, loaded_from, accesses.lanes.tolist())
    if problem is not None:
        accesses.problems.append(wrong_collector(name, problem))
    if collector.depends_on_order:
        said = f"several threads issue products that use collector {name}, whose contents depend on their order"
        accesses.c.recorded.note_gap(said, statement.span)


# --- copies and shifts ------------------------------------------------------------------------------------------


@compiles(Kind.TMEM_COPY)
def _copy_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``cp``: from shared to tensor memory (9.7.16.9.2)."""
    fetches = [k.fetch(unit, operand) for operand in statement.operands[:2]]
    cells, matrix = copy_footprint(statement)
    scattered = statement.opcode.has("4x256b")

    def access(accesses: _Accesses, found: list[int]) -> None:
        accesses.misuse(descriptor_problem(found[1]))
        accesses.read_matrix(matrix, found[1])
        accesses.write_cells(found[0], cells.within(found[0] >> COLUMN_BITS) if scattered else cells)

    return _piped_step(statement, at, fetches, access, "operand of the copy")


@compiles(Kind.TMEM_SHIFT)
def _shift_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``shift``: 32 bytes of each lane move to the lane below (9.7.16.9.3)."""
    fetches = [k.fetch(unit, statement.operands[0])]

    def access(accesses: _Accesses, found: list[int]) -> None:
        lane = found[0] >> COLUMN_BITS
        if lane % WARP:
            accesses.misuse(f"begins at lane {lane} of tensor memory, not at a multiple of {WARP}")
        accesses.write_cells(found[0], Rectangle(WHOLE, SHIFTED_COLUMNS).within(min(lane, TENSOR_LANES - 1)))

    return _piped_step(statement, at, fetches, access, "address in tensor memory")


Access = Callable[[_Accesses, list[int]], None]
"""Notes what an instruction accesses, given its operands."""


def _piped_step(statement: ptx.Statement, at: int, fetches: list[Fetch], access: Access, what: str) -> Step:
    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = read_operands(c, fetches, mask, what)
        if found is None:
            return None
        for values, cta, lanes in group_lanes(*found, c.lanes.cta):
            check_cta_group(c, statement, lanes)
            accesses = _Accesses(c, lanes, participating_ctas(c, statement, cta))
            access(accesses, values)
            if accesses.unknown is not None:
                c.give_up(mask, accesses.unknown)
                return None
            for fault in dict.fromkeys(accesses.problems):
                record_misuse(c, fault, statement, lanes[:1])
            op = make_core_op(statement.opcode.mode, accesses.reads, accesses.writes, statement)
            if op.reads or op.writes:
                _issue(c, at, (*values, cta), op, lanes)
        return mask

    return run


@compiles(Kind.TMEM_COMMIT)
def _commit_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``commit``: an arrival on the mbarrier, or on those at its offset in each CTA of a mask (9.7.16.12)."""
    fetches = [k.fetch(unit, operand) for operand in statement.operands[:2]]

    def run(c: Cluster, mask: Mask) -> Mask | None:
        found = read_operands(c, fetches, mask, "mbarrier of the commit")
        if found is None:
            return None
        for values, cta, lanes in group_lanes(*found, c.lanes.cta):
            check_cta_group(c, statement, lanes)
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
            ranks = [None] if targets is None else [r for r in range(c.lanes.cluster_size) if targets >> r & 1]
            for rank in ranks:
                here = place if rank is None else c.lanes.in_rank(place, rank)
                for _ in range(len(lanes)):
                    c.apply_to_mbarrier(here, mbarrier.async_arrive_end)
        return mask

    return run
