"""Instructions on multimem addresses: accesses of all copies of the bytes (PTX ISA 9.7.9.14, 9.7.9.25.4.4).

The launch says of which buffers an address is the multicast mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir import ops
from mcheck.ir.expr import Expr, Reg
from mcheck.ir.multimem import Part, find_copies, split_accesses, with_address
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, compiles
from mcheck.simt.execution.lanes import Mask, Quality
from mcheck.simt.execution.recorded_operations import decisive_operands, fill_operands
from mcheck.simt.execution.strong_writes import STORE, written_by_atomic
from mcheck.simt.instructions.access_operands import (
    Indices,
    fetch_expression,
    fetch_lanes,
    note_order,
    to_generic,
    visible_accesses,
)
from mcheck.simt.instructions.atomics import updated_value


@dataclass(frozen=True, slots=True)
class Mapping:
    """The multicast mapping of some buffers: its addresses, and how far from them those of the copies are."""

    low: int
    high: int
    distances: tuple[int, ...]


def find_mappings(k: Compiler) -> list[Mapping]:
    """The multicast mappings that the launch declares."""
    memory = k.places.memory
    return [
        Mapping(i.base, i.base + i.object.size, find_copies(memory, i)) for i in memory.instances if i.object.copies
    ]


def by_mapping(
    c: Cluster, mask: Mask, statement: ptx.Statement, mappings: Sequence[Mapping], address: Word
) -> list[tuple[Mapping, Indices]] | None:
    """The mappings that addresses are in, each with the indices of its addresses; ``None``, and the lanes are not
    followed, if the launch does not give a mapping for some address.
    """
    found: list[tuple[Mapping, Indices]] = []
    count = 0
    for mapping in mappings:
        some = np.flatnonzero((address >= mapping.low) & (address < mapping.high))
        if len(some):
            found.append((mapping, some))
            count += len(some)
    if count < len(address):
        c.give_up(
            mask,
            f"'{statement.text}' needs a multicast mapping, which the launch does not give: a buffer with"
            ' {"multicast": [...]} in the launch file',
        )
        return None
    return found


@compiles(Kind.MULTIMEM)
def multimem_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``multimem.ld_reduce``, ``multimem.st`` and ``multimem.red``. What a load returns is unknown; a
    strong one whose value decides something may be a wait, which is not followed.
    """
    op = operation_template(unit.function, statement)
    assert isinstance(op, ops.Load | ops.Store | ops.Atomic)
    form = ops.multimem_of(op)
    assert form is not None
    place = statement.place
    fetch = k.fetch(unit, place)
    mappings = find_mappings(k)
    loads = isinstance(op, ops.Load)
    rows = k.destination_rows(unit, statement.operands[0]) if loads and k.is_needed(unit, statement) else []
    waits = loads and op.sem != "weak" and decides(unit, statement)
    known = k.lanes.quality
    given = () if isinstance(op, ops.Load) else op.srcs
    follows = k.code.stores_decide and len(given) == 1 and form.packed == 1 and op.type[0] in "bus"
    sources = [fetch_expression(src, k, unit) for src in given] if follows else []
    if isinstance(op, ops.Load):
        op = replace(op, dsts=(None,) * len(op.dsts))
    parts = {mapping: split_accesses(op, mapping.distances) for mapping in mappings}

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes = np.flatnonzero(mask)
        address, sure = fetch_lanes(fetch, mask, lanes)
        data = [fetch_lanes(source, mask, lanes) for source in sources]
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        address = to_generic(address)
        found, those = visible_accesses(c, statement, address, sure, lanes)
        placed = by_mapping(c, mask, statement, mappings, found)
        if placed is None:
            return None
        exact = bool(data) and len(those) == len(lanes) and not any(q.any() for _, q in data)
        for mapping, some in placed:
            values = [v[some] for v, _ in data] if exact else []
            for part in parts[mapping]:
                emit_part(c, at, part, mapping, found[some], values, those[some])
            if k.code.stores_decide and not isinstance(op, ops.Load):
                change(c, op, mapping, found[some], [(v[some], q[some]) for v, q in data], those[some], exact)
        if waits:
            c.give_up(mask, f"what '{statement.text}' returns decides something, and is not followed")
            return None
        for row in rows:
            if row is not None:
                known[row][lanes] = taint.UNKNOWN_NAMELESS
        return mask

    return run


def decides(unit: Unit, statement: ptx.Statement) -> bool:
    """Whether a guard or an address may depend on the result of an instruction."""
    known: set[ptx.Register] = set()
    todo = list(statement.defs)
    while todo:
        register = todo.pop()
        if register in known:
            continue
        known.add(register)
        for other in unit.function.body:
            if other.only_computes and register in other.uses:
                todo += other.defs
            guarded = other.guard is not None and other.guard.register == register and not other.only_computes
            passed = other.kind is Kind.CALL and register in other.uses
            places = [o for o in other.operands if isinstance(o, ptx.Address)]
            if guarded or passed or any(register in operand_registers(o) for o in places):
                return True
    return False


def emit_part(
    c: Cluster, at: int, part: Part, mapping: Mapping, address: Word, values: list[Word], lanes: Indices
) -> None:
    """Record one of the accesses of an instruction."""

    def made(v: Sequence[Expr]) -> ops.Op:
        one = with_address(part.op, v[0])
        if isinstance(one, ops.Store | ops.Atomic):
            return replace(one, srcs=tuple(v[1:]) or tuple(Reg("data") for _ in one.srcs))
        return one

    weak = isinstance(part.op, ops.Load | ops.Store) and part.op.sem == "weak"
    c.recorded.record((at, mapping.low, part), [address + _word(part.offset), *values], lanes, made, spread=weak)


def _word(offset: int) -> np.uint64:
    return np.uint64(offset & (1 << 64) - 1)


def change(
    c: Cluster, op: ops.Store | ops.Atomic, mapping: Mapping, address: Word, data: list[tuple[Word, Quality]],
    lanes: Indices, exact: bool,
) -> None:  # fmt: skip
    """Change what the copies hold in the order of this run."""
    size = type_size(op.type)
    for distance in mapping.distances:
        there = address + _word(distance)
        if not exact:
            whole = max(size, 1) * _count(op)
            for lane, place in zip(lanes.tolist(), there.tolist(), strict=True):
                c.store.forget(place, whole)
                _note_write(c, op, lane, place, whole)
            if isinstance(op, ops.Atomic):
                c.recorded.unknown_atomics.update(there.tolist())
            continue
        for j in range(len(lanes)):
            where, one, (value, quality) = there[j : j + 1], lanes[j : j + 1], data[0]
            known = int(value[j]) if isinstance(op, ops.Store) else None
            _note_write(c, op, int(lanes[j]), int(there[j]), size, known)
            if isinstance(op, ops.Store):
                c.store.save(where, size, one, value[j : j + 1], quality[j : j + 1])
                continue
            old, state = c.store.load(where, size, one)
            new, lost = updated_value(op, int(old[0]), [int(value[j])])
            state = state | np.uint8(taint.UNKNOWN_NAMELESS if lost else 0)
            if state.any():
                c.recorded.unknown_atomics.add(int(where[0]))
            c.store.save(where, size, one, np.array([new], np.uint64), state)


def _note_write(
    c: Cluster, op: ops.Store | ops.Atomic, lane: int, address: int, size: int, stored: int | None = None
) -> None:  # fmt: skip
    """Note what an access writes to one of the copies, if it is a strong one; ``stored`` is a known value."""
    if op.sem == "weak":
        c.strong_writes.add_weak([address], size)
        return
    told = (STORE, stored) if stored is not None else None
    name = op.op if isinstance(op, ops.Atomic) else STORE
    c.strong_writes.add_write(lane, address, size, told or written_by_atomic(name, op.type, c.strong_writes.now))


def _count(op: ops.Store | ops.Atomic) -> int:
    form = ops.multimem_of(op)
    return len(op.srcs) * (form.packed if form is not None and isinstance(op, ops.Atomic) else 1)


@compiles(Kind.MULTIMEM_COPY)
def multimem_copy_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``multimem.cp.async.bulk`` and ``multimem.cp.reduce.async.bulk``."""
    op = operation_template(unit.function, statement)
    assert isinstance(op, ops.BulkCopy)
    leaves = decisive_operands(op)
    names = [name for name, _ in leaves]
    fetches: list[Callable[[], tuple[Word, Quality]]] = [fetch_expression(expr, k, unit) for _, expr in leaves]
    mappings = find_mappings(k)
    to = names.index("dst")
    parts = {mapping: split_accesses(op, mapping.distances) for mapping in mappings}

    def run(c: Cluster, mask: Mask) -> Mask | None:
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        lanes = np.flatnonzero(mask)
        flat: list[Word] = []
        for name, fetch in zip(names, fetches, strict=True):
            value, sure = fetch_lanes(fetch, mask, lanes)
            if (sure & taint.UNKNOWN).any():
                c.give_up(mask, f"the {name.replace('_', ' ')} depends on data")
                return None
            note_order(c, sure, name.replace("_", " "))
            flat.append(to_generic(value) if name in ("dst", "src") else value)
        placed = by_mapping(c, mask, statement, mappings, flat[to])
        if placed is None:
            return None
        for mapping, some in placed:
            for part in parts[mapping]:
                moved = [v[some] + _word(part.offset) if n == to else v[some] for n, v in enumerate(flat)]
                c.recorded.record(
                    (at, mapping.low, part), moved, lanes[some], lambda v, one=part.op: fill_operands(one, v),  # type: ignore[misc]
                    spread=False,
                )  # fmt: skip
            if k.code.stores_decide:
                size = flat[names.index("size")]
                for distance in mapping.distances:
                    for j in some.tolist():
                        c.store.forget(int(flat[to][j]) + distance, int(size[j]) & 0xFFFFFFFF)
        return mask

    return run
