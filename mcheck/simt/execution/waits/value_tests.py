"""Comparisons of what a load, or an atomic, has returned, close behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lane_arithmetic import type_bits
from mcheck.ir.alu import wrap
from mcheck.ir.expr import apply_binary
from mcheck.ir.spin_loops import COMPARISONS, NEGATED, SWAPPED
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.register_reads import reads_only_at
from mcheck.simt.execution.waits.polling_loops import LOOKAHEAD


@dataclass(frozen=True, slots=True)
class ValueTest:
    """A comparison of what a load, or an atomic, has returned with ``right``, both of the integer type ``type``."""

    operator: str
    right: int
    type: str

    @property
    def examples(self) -> list[int]:
        """Values, as bits, that show which ones end a loop: those around ``right`` and the least and greatest ones."""
        top = (1 << type_bits(self.type)) - 1
        return sorted({(self.right + d) & top for d in (-1, 0, 1)} | {0, 1, top})

    def holds(self, value: int) -> bool:
        """Whether the comparison holds for this value."""
        return bool(apply_binary(self.operator, as_number(value, self.type), self.right))

    def ending_result(self, back: Mapping[int, bool]) -> bool | None:
        """The result of the comparison that ends the loop, given which examples lead back; ``None`` if that is not what
        decides.
        """
        if len(set(back.values())) < 2:
            return None
        ends = {self.holds(v) is not again for v, again in back.items()}
        return ends.pop() if len(ends) == 1 else None

    def until(self, *, ends: bool, alone: bool) -> AwaitedValue:
        """The condition of a loop that this result of the comparison ends. ``alone``: nothing else reads the value."""
        operator = self.operator if ends else NEGATED[self.operator]
        return AwaitedValue(operator, self.right, self.type, condition_only=alone or operator == "==")


@dataclass(frozen=True, slots=True)
class AwaitedValue(ValueTest):
    """The comparison until which a load, or an atomic, is repeated. ``condition_only``: the thread learns nothing else
    of the value.
    """

    condition_only: bool


def read_test(
    statement: ptx.Statement, target: ptx.Operand, value: Callable[[ptx.Operand], int | None]
) -> ValueTest | None:
    """What a comparison of ``target`` tests, if ``value`` knows the other operand."""
    left, right = statement.operands[1:3]
    other, kind = value(right if left == target else left), statement.opcode.type
    operator = COMPARISONS.get(statement.opcode.mode)
    if other is None or operator is None or kind[0] not in "bsu":
        return None
    return ValueTest(operator if left == target else SWAPPED[operator], as_number(other, kind), kind)


def find_tests(function: ptx.Function, at: int) -> list[int]:
    """The places, close after the load at ``at``, where its value is compared."""
    statement = function.body[at]
    target = statement.operands[0]
    if statement.guard is not None or not isinstance(target, ptx.Register):
        return []
    return [
        k
        for k in range(at + 1, min(at + LOOKAHEAD, len(function.body)))
        if is_plain_test(s := function.body[k]) and target in s.operands[1:]
    ]


def is_plain_test(statement: ptx.Statement) -> bool:
    """Whether a statement compares two operands, and does nothing else with the result than to write it."""
    plain = statement.kind is Kind.COMPARISON and len(statement.opcode.parts) == 3
    return plain and find_fault(statement) is None


SIGN_TESTS = frozenset((("gt", -1), ("ge", 0), ("lt", 0), ("le", -1)))
"""Comparisons that test the sign of a number."""


def find_sign_tests(function: ptx.Function, at: int) -> dict[int, ptx.Operand]:
    """The operands with which the sign bit of what the load at ``at`` returns is compared, by place, where nothing else
    reads it: by an exclusive or, and a comparison of the result with 0, as in the grid barrier of cooperative groups.
    """
    target = function.body[at].operands[0]
    if function.body[at].guard is not None or not isinstance(target, ptx.Register):
        return {}
    found: dict[int, ptx.Operand] = {}
    end = min(at + LOOKAHEAD, len(function.body))
    for k in range(at + 1, end):
        made = function.body[k]
        if made.opcode.parts != ("xor", "b32") or made.guard is not None or find_fault(made):
            continue
        result, left, right = made.operands
        if target not in (left, right) or left == right or not isinstance(result, ptx.Register):
            continue
        for j in range(k + 1, end):
            test = function.body[j]
            if test.kind is not Kind.COMPARISON or test.opcode.parts[2:] != ("s32",) or find_fault(test):
                continue
            if test.operands[1] != result or (test.opcode.mode, _signed(test.operands[2])) not in SIGN_TESTS:
                continue
            if reads_only_at(function, target, k, at) and reads_only_at(function, result, j, k):
                found[k] = right if left == target else left
    return found


def find_sign_draws(function: ptx.Function) -> set[int]:
    """The places of atomics of whose results only the sign bits are read: strong loads are compared with them."""
    tests = [
        test
        for at, load in enumerate(function.body)
        if load.kind is Kind.LOAD and load.opcode.is_strong
        for test in find_sign_tests(function, at).items()
    ]
    return {
        at
        for at, atomic in enumerate(function.body)
        for place, operand in (tests if atomic.kind is Kind.ATOMIC else ())
        if atomic.operands[0] == operand
        and isinstance(operand, ptx.Register)
        and reads_only_at(function, operand, place, at)
    }


def _signed(operand: ptx.Operand) -> int:
    return as_number(operand.value, "s32") if isinstance(operand, ptx.Immediate) else 1


def as_number(value: int, kind: str) -> int:
    """The number that these bits are in a type."""
    return wrap(kind, value)
