"""Conversion of a statement to the form that the instruction table takes (``mcheck.isa``)."""

from __future__ import annotations

from mcheck.base.errors import InternalError, Span
from mcheck.frontend.ptx.module import (
    Address,
    Arguments,
    Immediate,
    Label,
    Negated,
    Operand,
    Pair,
    Part,
    Register,
    Sink,
    Special,
    Statement,
    Symbol,
    Vector,
)
from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Expr, Name, Reg
from mcheck.ir.expr import Special as SpecialExpr
from mcheck.isa import instruction as isa


def to_table_form(statement: Statement) -> isa.Instruction:
    """The statement for ``mcheck.isa.decode``. Registers and names are spelled as in the function, with ``%``; floats
    are their bits; ``[reg + 16]`` is a sum. Calls have no such form.
    """
    span, guard = statement.span, statement.guard
    return isa.Instruction(
        opcode=statement.opcode.parts,
        operands=tuple(_operand(operand, span) for operand in statement.operands),
        guard=None if guard is None else ops.Guard(Reg(guard.register.name), guard.negated),
        text=statement.text,
        span=span,
        spans=statement.parts(),
    )


def _operand(operand: Operand, span: Span) -> isa.Operand:
    match operand:
        case Register() | Immediate() | Symbol() | Special() | Label():
            return isa.Value(_value(operand), span=span)
        case Negated():
            return isa.Value(Reg(operand.register.name), negated=True, span=span)
        case Sink():
            return isa.Sink(span)
        case Vector():
            return isa.Vector(tuple(_operand(item, span) for item in operand.items), span)
        case Pair():
            return isa.Pair(_operand(operand.first, span), _operand(operand.second, span), span)
        case Address():
            first = isa.Value(_address(operand), span=span)
            return isa.Memory((first, *(_operand(item, span) for item in operand.rest)), span)
        case Part():
            return isa.Value(Reg(f"{operand.register.name}.{operand.selector}"), span=span)
        case Arguments():
            raise InternalError("a call is no instruction of the table")


def _value(operand: Register | Immediate | Symbol | Special | Label) -> Expr:
    match operand:
        case Register():
            return Reg(operand.name)
        case Immediate():
            return Const(operand.value)
        case Symbol():
            return _plus(Name(operand.name), operand.offset)
        case Special():
            return SpecialExpr(operand.name)
        case Label():
            return Name(operand.name)


def _address(address: Address) -> Expr:
    return Const(address.offset) if address.base is None else _plus(_value(address.base), address.offset)


def _plus(base: Expr, offset: int) -> Expr:
    return base if offset == 0 else Binary("+", base, Const(offset))
