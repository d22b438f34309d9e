"""Literals: what a predicate says of the registers that it is computed from, so that equal and opposite predicates are
recognised: comparisons of a register (9.7.7.2), and combinations of predicates (9.7.8).
"""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.lane_arithmetic import is_floating, type_bits
from mcheck.frontend.ptx.module import Immediate, Negated, Operand, Register, Statement
from mcheck.ir.alu import wrap
from mcheck.isa.kinds import Kind
from mcheck.isa.opcode import Opcode

SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
"""The test with its operands exchanged."""
OPPOSITE = {
    "eq": "neu", "neu": "eq", "ne": "equ", "equ": "ne", "lt": "geu", "geu": "lt", "le": "gtu", "gtu": "le", "gt": "leu",
    "leu": "gt", "ge": "ltu", "ltu": "ge", "num": "nan", "nan": "num",
}  # fmt: skip
"""For floats: the test that holds where another one does not (9.3.1)."""
NOT = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}
"""For integers."""
PLAIN = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "num"))
FAR = (1 << 62) - 1
"""Numbers from here on are compared by name only."""
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@dataclass(frozen=True, slots=True)
class Bound:
    """An integer register, as a number of ``kind``, is at least ``least``, or ``equal`` to it; ``negated``: is not."""

    register: Register
    kind: str
    least: int
    equal: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class Related:
    """``test`` holds between a register and another operand, by a comparison of these qualifiers; ``negated``: does
    not.
    """

    registers: tuple[Register, ...]
    test: str
    other: Operand
    qualifiers: tuple[str, ...]
    negated: bool

    @property
    def key(self) -> tuple[object, ...]:
        """The part that a test and its negation share."""
        return self.registers, self.test, self.other, self.qualifiers


@dataclass(frozen=True, slots=True)
class Mixed:
    """A combination of predicates, each with whether it is negated: all of them hold, or ``some``."""

    parts: tuple[tuple[Register, bool], ...]
    some: bool


Literal = Bound | Related | Mixed


def literal_registers(literal: Literal) -> tuple[Register, ...]:
    """The registers that a literal is about."""
    match literal:
        case Bound():
            return (literal.register,)
        case Related():
            return literal.registers
        case Mixed():
            return tuple(r for r, _ in literal.parts)


def extract_literal(statement: Statement) -> Literal | None:
    """The literal of the first predicate that a statement writes; ``None`` if it has no such form."""
    name, opcode = statement.opcode.name, statement.opcode
    if statement.kind is Kind.COMPARISON:
        return _compared(opcode, *statement.operands[1:]) if len(statement.operands) == 3 else None
    if opcode.type != "pred" or name not in ("and", "or", "not", "mov"):
        return None
    parts = []
    for operand in statement.operands[1:]:
        if not isinstance(operand, Register | Negated):
            return None
        register = operand.register if isinstance(operand, Negated) else operand
        parts.append((register, isinstance(operand, Negated) ^ (name == "not")))
    return Mixed(tuple(parts), name == "or")


def _compared(opcode: Opcode, left: Operand, right: Operand) -> Bound | Related | None:
    test, kind, qualifiers = opcode.mode, opcode.type, opcode.parts[2:]
    if isinstance(left, Immediate) and isinstance(right, Register) and test not in UNSIGNED:
        left, right, test = right, left, SWAPPED.get(test, test)
    if not isinstance(left, Register) or not isinstance(right, Register | Immediate) or left == right:
        return None
    if is_floating(kind):
        return _related(left, right, test, OPPOSITE.get(test), qualifiers)
    if kind[0] not in "bsu" or kind.endswith("x2") or not type_bits(kind):
        return None
    if test in UNSIGNED:
        test, kind = UNSIGNED[test], "u" + kind[1:]
    if kind[0] == "b":
        kind = "u" + kind[1:]
    if isinstance(right, Register) or abs(wrap(kind, right.value)) >= FAR:
        return _related(left, right, test, NOT.get(test), (kind,))
    number = wrap(kind, right.value)
    if test in ("le", "gt"):  # at least the next number, which may be beyond the type: then it always holds, or never
        return Bound(left, kind, number + 1, equal=False, negated=test == "le")
    if test in ("eq", "ne", "ge", "lt"):
        return Bound(left, kind, number, equal=test in ("eq", "ne"), negated=test in ("ne", "lt"))
    return None


def _related(
    left: Register, right: Register | Immediate, test: str, opposite: str | None, qualifiers: tuple[str, ...]
) -> Related | None:
    if opposite is None:
        return None
    if isinstance(right, Register) and (right.index, right.name) < (left.index, left.name):
        turned, back = _turned(test), _turned(opposite)
        left, right, test, opposite = right, left, turned, back
    negated = test not in PLAIN or (opposite in PLAIN and opposite < test)
    registers = (left, right) if isinstance(right, Register) else (left,)
    return Related(registers, opposite if negated else test, right, qualifiers, negated)


def _turned(test: str) -> str:
    loose = test.endswith("u")
    plain = test[:-1] if loose else test
    return SWAPPED.get(plain, plain) + ("u" if loose else "")
