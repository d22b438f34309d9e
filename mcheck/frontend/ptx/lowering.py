"""Lowering of a statement to the operation of the instruction table, with registers by their names."""

from __future__ import annotations

from mcheck.base.records import replace
from mcheck.frontend.ptx.module import Function, Sink, Statement
from mcheck.ir.expr import Reg
from mcheck.ir.ops import Guard, Op
from mcheck.isa.decode import decode
from mcheck.isa.instruction import Instruction, Operand, Vector
from mcheck.isa.kinds import Kind
from mcheck.isa.opcode import Opcode


def to_instruction(statement: Statement) -> Instruction:
    """The statement for ``mcheck.isa.decode``. Calls are not in the instruction table."""
    guard = statement.guard
    return Instruction(
        opcode=statement.opcode.parts,
        operands=statement.operands,
        guard=None if guard is None else Guard(Reg(guard.register.name), guard.negated),
        text=statement.text,
        span=statement.span,
        spans=statement.parts(),
    )


def operation_template(function: Function, statement: Statement, opcode: Opcode | None = None) -> Op:
    """The operation of a statement, without its guard; its expressions name registers and symbols as the function does.

    Raises ``InputError`` and ``Unsupported`` as ``mcheck.isa.decode`` does.
    """
    given = replace(to_instruction(statement), guard=None)
    if statement.kind in (Kind.LOAD, Kind.STORE):  # a vector of one element is a scalar
        given = replace(given, operands=tuple(map(_scalar, given.operands)))
    if opcode is not None:
        given = replace(given, opcode=opcode.parts)
    predicates = {r.name for r in function.registers if r.type == "pred"}
    sunk = bool(statement.operands) and isinstance(statement.operands[0], Sink)
    return decode(given, dialect=False, awaited=sunk, register_type=lambda name: "pred" if name in predicates else None)


def _scalar(operand: Operand) -> Operand:
    return operand.items[0] if isinstance(operand, Vector) and len(operand.items) == 1 else operand
