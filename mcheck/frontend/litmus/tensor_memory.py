"""Tensor memory in sketches (PTX ISA 9.7.16.1): objects that are declared, and what an allocation makes of them.

``.tensor .b32 acc[2][128][64];`` is 64 columns of all 128 lanes, twice, in every CTA. All tensor objects of a CTA are
what its ``tcgen05.alloc`` allocates: it writes them, as ``tcgen05.dealloc`` does, so that uses that are not ordered
with the two are races. Of a ``ld`` or ``st`` a lane of the warp accesses its own row: lane k of the warp's quarter that
one, whatever the shape (open question Q28); of the shapes with 16 rows the first 16 lanes do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mcheck.base.errors import Span, Unsupported
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.statements import Body, If, Statement, Step
from mcheck.ir.expr import Binary, Const, Expr, Name, Special
from mcheck.ir.memory import CELL, TENSOR_COLUMNS, TENSOR_LANES, Instance, MemObject, MemoryMap
from mcheck.ir.ops import Alu, Op, TensorCore, TensorMove
from mcheck.ir.program import Thread

MIN_COLUMNS = 32
WARP = 32
QUARTERS = 4
HALF = 16
"""The rows of the narrow shapes of ``ld`` and ``st``."""


def is_tensor_memory(op: Op) -> bool:
    """Whether something is to be said of an operation beside what the instruction table says."""
    return isinstance(op, TensorMove) or (isinstance(op, TensorCore) and op.kind in ("alloc", "dealloc"))


def place_accesses(step: Step, scope: Scope) -> tuple[Statement, ...]:
    """The statements of an access of rows, an allocation, or its end."""
    op = step.op
    if isinstance(op, TensorMove):
        return _rows(op, scope)
    assert isinstance(op, TensorCore)
    objects = [item for item in scope.objects.values() if item.space == "tensor"]
    if op.kind == "alloc":
        return (Step(replace(op, writes=(*op.writes, *((Name(i.name), Const(i.size)) for i in objects)))),)
    return (Step(replace(op, writes=tuple(r for item in objects for r in _lane_rows(item)))),)


def _rows(op: TensorMove, scope: Scope) -> tuple[Statement, ...]:
    item = _object_of(op.address, scope)
    if item is None:
        raise Unsupported("an address of tensor memory is the name of a .tensor object here, plus bytes", op.span)
    row = Binary("+", Binary("*", Binary("%", Special("warpid"), Const(4)), Const(32)), Special("laneid"))
    place = Binary("+", op.address, Binary("*", row, Const(_row_bytes(item))))
    places = (place,) if op.apart is None else (place, Binary("+", place, op.apart))
    moved = tuple(Step(replace(op, address=address, apart=None)) for address in places)
    if ".32x32b" in op.text:
        return moved
    assert op.span is not None
    return (If(Binary("<", Special("laneid"), Const(HALF)), Body(moved), Body(()), op.span, op.text),)


def _object_of(address: Expr, scope: Scope) -> MemObject | None:
    while isinstance(address, Binary):
        address = address.left
    item = scope.objects.get(address.name) if isinstance(address, Name) else None
    return item if item is not None and item.space == "tensor" else None


def _row_bytes(item: MemObject) -> int:
    return item.dims[-1] * CELL


def _lane_rows(item: MemObject) -> Iterable[tuple[Expr, Expr]]:
    """The rows of a lane: one in each quarter of every part of an object."""
    row = _row_bytes(item)
    for part in range(item.size // (TENSOR_LANES * row)):
        for quarter in range(QUARTERS):
            first = Const((part * TENSOR_LANES + quarter * TENSOR_LANES // QUARTERS) * row)
            own = Binary("+", first, Binary("*", Special("laneid"), Const(row)))
            yield Binary("+", Name(item.name), own), Const(row)


def columns_of(objects: Iterable[MemObject]) -> int:
    """The columns of the tensor memory that these objects take."""
    return sum(item.size for item in objects if item.space == "tensor") // (CELL * TENSOR_LANES)


# --- what depends on who is there -----------------------------------------------------------------------


def settle_allocations(threads: tuple[Thread, ...], memory: MemoryMap) -> tuple[Thread, ...]:
    """The threads, with each allocation made by one lane of its warp, and with what is wrong with allocations."""
    executing: dict[tuple[int, int, Span | None], list[int]] = defaultdict(list)
    kinds: dict[int, set[str]] = defaultdict(set)
    for thread in threads:
        for op in {op.span: op for op in thread.code if is_allocation(op)}.values():
            executing[*thread.place.own_warp, op.span].append(thread.place.lane)
            kinds[thread.place.cta.number].add(op.kind)  # type: ignore[attr-defined]
    return tuple(_settle(thread, memory, executing, kinds[thread.place.cta.number]) for thread in threads)


Executing = Mapping[tuple[int, int, Span | None], list[int]]
"""By warp and statement, the lanes that execute it."""


def _settle(thread: Thread, memory: MemoryMap, executing: Executing, kinds: set[str]) -> Thread:
    held = [i for i in memory.instances if i.object.space == "tensor" and i.cta == thread.place.cta]
    code = [
        _settled(op, thread, held, executing, kinds) if isinstance(op, TensorCore) and is_allocation(op) else op
        for op in thread.code
    ]
    last = next((op for op in reversed(code) if isinstance(op, TensorCore) and op.kind == "alloc"), None)
    if last is not None and "dealloc" not in kinds:
        wrong = "UB601", "ends with tensor memory still allocated: no thread of its CTA frees it"
        text = "the end of the thread"
        code.append(TensorCore(kind="end", reads=(), writes=(), wrong=wrong, span=last.span, text=text))
    return replace(thread, code=tuple(code))


def _settled(op: TensorCore, thread: Thread, held: list[Instance], executing: Executing, kinds: set[str]) -> Op:
    """What a thread does of an allocation, or of its end: one lane of the warp does it, or each lane for its rows."""
    lanes = executing[*thread.place.own_warp, op.span]
    by_rows = op.kind == "dealloc" and len(lanes) == WARP
    if not by_rows and thread.place.lane != min(lanes):
        return Alu(op="nop", type="b32", dsts=(), srcs=(), span=op.span, text=op.text, section=op.section)
    if op.kind == "dealloc" and not by_rows:
        op = replace(op, writes=tuple((Const(i.base), Const(i.object.size)) for i in held))
    return replace(op, wrong=_misuse(op, columns_of(i.object for i in held), kinds))


def is_allocation(op: Op) -> bool:
    """Whether an operation takes tensor memory, or gives it back."""
    return isinstance(op, TensorCore) and op.kind in ("alloc", "dealloc")


def _misuse(op: TensorCore, taken: int, kinds: set[str]) -> tuple[str, str] | None:
    """What is wrong with an allocation, or with its end (9.7.16.7.1)."""
    columns = op.columns.value if isinstance(op.columns, Const) else taken
    if op.kind == "dealloc":
        freed = f"frees {columns} columns of tensor memory, which is not an allocation"
        return ("UB603", freed) if "alloc" not in kinds or columns < taken else None
    if columns < MIN_COLUMNS or columns > TENSOR_COLUMNS or columns & columns - 1:
        allowed = f"a power of two from {MIN_COLUMNS} to {TENSOR_COLUMNS}"
        return "UB602", f"allocates {columns} columns of tensor memory, not {allowed}"
    if columns < taken:
        return "UB602", f"allocates {columns} columns of tensor memory; the .tensor objects take {taken}"
    return None
