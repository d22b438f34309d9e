"""The registers that a statement reads and writes, whatever it does (PTX ISA 9): all that is known of opaque
instructions.

The first operand is written, unless it is an address or the instruction has no result.
"""

from __future__ import annotations

from collections.abc import Iterator

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

_NO_RESULT = (
    "bar", "barrier", "bra", "brkpt", "brx", "cp", "cta", "exit", "fence", "griddepcontrol", "membar", "nanosleep",
    "pmevent", "ret", "setmaxnreg", "stackrestore", "trap",
)  # fmt: skip
"""Instructions whose first operand, if they have one, is read."""

_NO_RESULT_FORMS = (
    ("tcgen05", "dealloc"), ("wgmma", "wait_group"), ("wgmma", "commit_group"), ("wgmma", "fence"),
    ("tcgen05", "relinquish_alloc_permit"), ("tcgen05", "wait"), ("tcgen05", "fence"),
)  # fmt: skip
_ACCUMULATES = (("wgmma", "mma_async"),)
"""Instructions whose first operand is read as well."""


def operand_registers(operand: Operand) -> Iterator[Register]:
    """The registers that occur in an operand."""
    match operand:
        case Register():
            yield operand
        case Part() | Negated():
            yield operand.register
        case Address():
            if isinstance(operand.base, Register):
                yield operand.base
            for item in operand.rest:
                yield from operand_registers(item)
        case Vector() | Arguments():
            for item in operand.items:
                yield from operand_registers(item)
        case Pair():
            yield from operand_registers(operand.first)
            yield from operand_registers(operand.second)
        case Special() | Immediate() | Symbol() | Label() | Sink():
            pass


def _has_result(statement: Statement) -> bool:
    opcode, operands = statement.opcode, statement.operands
    if not operands or isinstance(operands[0], Address):
        return False
    if opcode[0] == "call":
        return isinstance(operands[0], Arguments) and len(operands) > 1
    if opcode[0] in ("bar", "barrier") and "red" in opcode:
        return True
    return opcode[0] not in _NO_RESULT and opcode[:2] not in _NO_RESULT_FORMS


def written_registers(statement: Statement) -> tuple[Register, ...]:
    """The registers that the statement writes."""
    return tuple(operand_registers(statement.operands[0])) if _has_result(statement) else ()


def read_registers(statement: Statement) -> tuple[Register, ...]:
    """The registers that the statement reads, its guard included; one may occur twice."""
    read = statement.operands
    if _has_result(statement) and statement.opcode[:2] not in _ACCUMULATES:
        read = read[isinstance(read[0], Part) ^ 1 :]  # writing a part keeps the rest of the register
    found = [register for operand in read for register in operand_registers(operand)]
    if statement.guard is not None:
        found.append(statement.guard.register)
    return tuple(found)
