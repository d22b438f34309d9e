"""Tensor memory in sketches (PTX ISA 9.7.16.1): objects that are declared, and what an allocation makes of them.

``.tensor .b32 acc[2][128][64];`` is 64 columns of all 128 lanes, twice, in every CTA. All tensor objects of a CTA are
what its ``tcgen05.alloc`` allocates: it writes them, as ``tcgen05.dealloc`` does, so that uses that are not ordered
with the two are races. Of a ``ld`` or ``st`` a lane of the warp accesses its own row: lane k of the warp's quarter that
one, whatever the shape (open question Q28); of the shapes with 16 rows the first 16 lanes do.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.base.errors import Unsupported
from mcheck.base.records import replace
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.statements import Body, If, Statement, Step
from mcheck.ir.expr import Binary, Const, Expr, Name, Special
from mcheck.ir.memory import CELL, TENSOR_LANES, MemObject
from mcheck.ir.ops import Op, TensorCommit, TensorCore, TensorMove

QUARTERS = 4
HALF = 16
"""The rows of the narrow shapes of ``ld`` and ``st``."""


def is_tensor_memory(op: Op) -> bool:
    """Whether something is to be said of an operation beside what the instruction table says."""
    return isinstance(op, TensorMove) or (isinstance(op, TensorCore) and op.kind in ("alloc", "dealloc"))


def uses_tensor_core(op: Op) -> bool:
    """Whether the tensor core carries an operation out."""
    return isinstance(op, TensorCore | TensorCommit)


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
