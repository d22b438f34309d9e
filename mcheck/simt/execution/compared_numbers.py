"""Numbers that atomics return and that only comparisons read, as the text of a function shows, and for which numbers a
comparison has the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcheck.frontend.ptx.lane_arithmetic import type_bits
from mcheck.frontend.ptx.module import Function, Immediate, Register, Statement
from mcheck.ir.ops import Ranges
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.waits.value_tests import ValueTest, is_plain_test

SWAPS = ("cas", "exch")


def find_compared(function: Function) -> frozenset[Register]:
    """The registers of results of atomics that have no other definition, and that nothing reads but comparisons with
    what the thread has computed. Swaps are left out: loops around them are recognised by what they return.
    """
    made: dict[Register, list[Statement]] = {}
    reads: dict[Register, list[Statement]] = {}
    for statement in function.body:
        for register in statement.defs:
            made.setdefault(register, []).append(statement)
        for register in statement.uses:
            reads.setdefault(register, []).append(statement)
    drawn = (r for r, those in made.items() if len(those) == 1 and _draws(those[0], r))
    return frozenset(r for r in drawn if all(_compares(s, r, made) for s in reads.get(r, ())))


def _draws(statement: Statement, result: Register) -> bool:
    """Whether a statement is an atomic that returns a number as wide as its register."""
    opcode = statement.opcode
    if statement.kind is not Kind.ATOMIC or statement.operands[0] != result or opcode.choice(SWAPS):
        return False
    return opcode.type[0] in "bsu" and 8 * type_size(opcode.type) == type_bits(result.type)


def _compares(statement: Statement, number: Register, made: Mapping[Register, list[Statement]]) -> bool:
    """Whether a statement compares a number with one that the thread has computed, and does nothing else."""
    if not is_plain_test(statement) or list(statement.uses).count(number) != 1:
        return False
    left, right = statement.operands[1:3]
    if number not in (left, right) or type_bits(statement.opcode.type) != type_bits(number.type):
        return False
    other = right if left == number else left
    return isinstance(other, Immediate) or (isinstance(other, Register) and all(map(_is_computed, made.get(other, ()))))


def _is_computed(statement: Statement) -> bool:
    return statement.only_computes or (statement.kind is Kind.LOAD and statement.opcode.space == "param")


def alike_values(test: ValueTest, *, holds: bool) -> Ranges:
    """The numbers, as bits, for which a comparison has this result."""
    bits, right = type_bits(test.type), test.right
    least = -(1 << bits - 1) if test.type[0] == "s" else 0
    most = least + (1 << bits) - 1
    below, above, equal = (least, right - 1), (right + 1, most), (right, right)
    parts = {
        "==": (equal,), "!=": (below, above), "<": (below,), "<=": (below, equal), ">": (above,), ">=": (equal, above),
    }  # fmt: skip
    found = parts[test.operator]
    return _as_bits(found if holds else (p for p in (below, equal, above) if p not in found), bits)


def _as_bits(parts: Iterable[tuple[int, int]], bits: int) -> Ranges:
    """Ranges of numbers, which may be negative, as ranges of unsigned ones."""
    top = 1 << bits
    split = [part for low, high in parts for part in ((low + top, min(high, -1) + top), (max(low, 0), high))]
    return tuple(sorted((low, high) for low, high in split if low <= high < top))
