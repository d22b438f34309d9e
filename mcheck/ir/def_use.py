"""Definitions and uses of registers by an operation, with the types that the operation gives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from mcheck.ir.alu import width
from mcheck.ir.expr import Binary, Const, Expr, Lanes, Name, Reg, Special, Unary
from mcheck.ir.ops import (
    Alu,
    Atomic,
    Await,
    Barrier,
    Collective,
    Load,
    MbarrierArrive,
    MbarrierPending,
    MbarrierWait,
    Op,
    Store,
)
from mcheck.ir.resolve import expressions

_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_ADDRESSES = frozenset(("address", "dst", "src", "mbar", "tensor_map", "shared", "reads"))


def written_registers(op: Op) -> list[tuple[str, str]]:
    """The registers that ``op`` writes, with their types."""
    match op:
        case Alu():
            return [(reg.name, kind) for reg, kind in zip(op.dsts, _results(op), strict=False) if reg is not None]
        case Collective():
            kinds = (op.type if op.op.partition(".")[0] in ("vote", "redux") else "b32", "pred")
            return [(reg.name, kind) for reg, kind in zip(op.dsts, kinds, strict=True) if reg is not None]
        case Load():
            return [(reg.name, op.type) for reg in op.dsts if reg is not None]
        case Atomic():
            return [(op.dst.name, op.type)] if op.dst is not None else []
        case MbarrierArrive():
            return [(op.state.name, "b64")] if op.state is not None else []
        case MbarrierWait():
            return [(op.dst.name, "pred")] if op.dst is not None else []
        case MbarrierPending():
            return [(op.dst.name, "u32")]
        case Barrier():
            return [(op.dst.name, "u32" if op.red_op == "popc" else "pred")] if op.dst is not None else []
        case Await():
            return written_registers(op.inner)
    return []


def read_registers(op: Op) -> list[tuple[str, str]]:
    """The registers that ``op`` reads, with the types of the operands."""
    found: list[tuple[str, str]] = []
    if op.guard is not None:
        found.append((op.guard.reg.name, "pred"))
    match op:
        case Alu():
            for source, kind in zip(op.srcs, _sources(op), strict=False):
                _registers(source, kind, found)
            return found
        case Collective():
            kinds = ("pred" if op.op.startswith("vote") else op.type, "u32", "u32")
            for source, kind in zip(op.srcs, kinds, strict=False):
                _registers(source, kind, found)
            _registers(op.mask, "u32", found)
            return found
        case Store():
            for source in op.srcs:
                _registers(source, op.type, found)
            _registers(op.address, "u64", found)
            return found
        case Atomic():
            for source in op.srcs:
                _registers(source, op.type, found)
            _registers(op.address, "u64", found)
            return found
        case Barrier() if op.src is not None:
            _registers(op.src, "pred", found)
        case Await():
            found.extend(read_registers(op.inner))
            if op.compare is not None:
                types = written_registers(op.inner)
                _registers(op.compare[1], types[0][1] if types else "u32", found)
            return found
    for field, expr in expressions(op):
        kind = "u64" if field in _ADDRESSES else "b64" if field == "state" else "u32"
        _registers(expr, kind, found)
    return found


def registers_of(expr: Expr | None) -> list[str]:
    """The registers in an operand."""
    match expr:
        case Reg(name):
            return [name]
        case Unary(_, a):
            return registers_of(a)
        case Binary(_, a, b):
            return registers_of(a) + registers_of(b)
        case Name():
            return [name for index in expr.indices for name in registers_of(index)]
    return []


def registers_in(value: object) -> Iterator[str]:
    """The registers in an operand."""
    match value:
        case tuple():
            for item in value:
                yield from registers_in(item)
        case Const() | Lanes() | Reg() | Special() | Name() | Unary() | Binary():
            yield from registers_of(value)


def numbers_in(value: object) -> Iterator[int]:
    """The numbers in an operation: the bases of all pointers."""
    match value:
        case Const(number):
            yield number
        case Lanes(numbers):
            yield from numbers
        case tuple():
            for item in value:
                yield from numbers_in(item)
        case Unary() | Binary() | Op():
            for f in fields(value):
                yield from numbers_in(getattr(value, f.name))


def _registers(expr: Expr, kind: str, found: list[tuple[str, str]]) -> None:
    match expr:
        case Reg():
            found.append((expr.name, kind))
        case Unary():
            _registers(expr.operand, kind, found)
        case Binary():
            _registers(expr.left, kind, found)
            _registers(expr.right, kind, found)
        case Name():
            for index in expr.indices:
                _registers(index, "u32", found)


def _results(op: Alu) -> tuple[str, ...]:
    head = op.op
    if head.startswith("setp"):
        return ("pred", "pred")
    if head.endswith(".wide"):
        return (_WIDE.get(op.type, op.type),)
    if head == "unpack":
        return (_element(op.type, len(op.dsts)),) * len(op.dsts)
    return (op.type,) * len(op.dsts)


def _element(type_name: str, count: int) -> str:
    """The type of one of the ``count`` elements of a packed value."""
    return f"b{width(type_name) // count}"


def _sources(op: Alu) -> tuple[str, ...]:
    head = op.op
    source = op.src_type or op.type
    if head == "selp":
        return (op.type, op.type, "pred")
    if head == "mad.wide":
        return (source, source, _WIDE.get(op.type, op.type))
    if head in ("shl", "shr"):
        return (source, "u32")
    if head == "mapa":
        return (source, "u32")
    if head == "pack":
        return (_element(op.type, len(op.srcs)),) * len(op.srcs)
    return (source,) * len(op.srcs)
