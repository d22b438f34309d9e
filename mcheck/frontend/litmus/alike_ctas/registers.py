"""What the registers of a CTA of a sketch hold, any number of CTAs: the same in all, a number drawn, a linear form.

Registers are *varying* if they may hold what differs between CTAs, depends on how many there are, or was read from
memory that other CTAs write. The number that a CTA draws from the counter is varying, but whether it is the last one is
not: of both answers all executions are followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.frontend.litmus.alike_ctas.forms import LinearForms
from mcheck.frontend.litmus.alike_ctas.places import FamilyThread
from mcheck.ir import ops
from mcheck.ir.cta_family import Linear, variable
from mcheck.ir.def_use import written_registers
from mcheck.ir.expr import Binary, Expr, Reg, Unary
from mcheck.ir.ops import Op
from mcheck.ir.spin_loops import COMPARISONS
from mcheck.ir.type_sizes import type_size

COUNTED_TYPES = ("u32", "s32", "b32", "u64", "s64", "b64")
SMALL = 1 << 30
"""What a counter starts from, and what is added to its last number, is smaller: so sums fit into a register."""
TICKET = "%ticket"
"""The variable for the number that a CTA has drawn from the counter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The surroundings of a statement: its thread; what names mean; the variables of the ``loops`` around it whose
    rounds depend on the number of CTAs; whether it is executed under a condition, or by the CTA alone that has drawn
    the last number.
    """

    thread: FamilyThread
    forms: LinearForms
    names: Mapping[str, Linear]
    loops: tuple[Linear, ...] = ()
    conditional: bool = False
    last: bool = False

    @property
    def looped(self) -> bool:
        """Whether it is in a loop whose rounds depend on the number of CTAs."""
        return bool(self.loops)

    def linear(self, expr: Expr) -> Linear | None:
        """An expression as a linear form; ``None`` if it is none, or reads registers."""
        return self.forms.linear(expr, self.names)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The register with the number that a thread draws, the last such number, and the size of the word."""

    register: str
    last: Linear
    size: int


@dataclass(slots=True)
class Registers:
    """What is known of the registers of all threads; each is named by its thread and its name."""

    varying: set[tuple[int, str]] = field(default_factory=set)
    drawn: dict[int, Drawn] = field(default_factory=dict)
    written: dict[tuple[int, str], int] = field(default_factory=dict)
    """How many statements write a register."""
    numbers: dict[tuple[int, str], Linear] = field(default_factory=dict)
    """Registers whose values are linear in the number of the CTA, or in its ticket."""
    asked: bool = False
    """Whether something depends on which CTA has drawn the last number."""

    def is_fixed(self, expr: Expr, where: Surroundings) -> bool:
        """Whether an expression has one value in all CTAs, however many there are."""
        match expr:
            case Reg(name):
                return (where.thread.number, name) not in self.varying
            case Unary(_, operand):
                return self.is_fixed(operand, where)
            case Binary(_, left, right):
                return all(self.is_fixed(part, where) for part in (left, right))
        found = where.linear(expr)
        return found is not None and not found.terms

    def vary(self, op: Op, where: Surroundings) -> None:
        """What an operation writes into registers varies."""
        self.varying.update((where.thread.number, name) for name, _ in written_registers(op))

    def count_writes(self, op: Op, where: Surroundings) -> None:
        """Count the registers that a statement writes."""
        for name, _ in written_registers(op):
            key = where.thread.number, name
            self.written[key] = self.written.get(key, 0) + 1

    def compute(self, op: ops.Alu, where: Surroundings) -> None:
        """What arithmetic writes varies, unless its operands do not, or it asks for the last number alone."""
        if not where.looped:
            if all(self.is_fixed(e, where) for e in op.srcs):
                return
            head, _, mode = op.op.partition(".")
            test = COMPARISONS.get(mode)
            found = self.drawn.get(where.thread.number)
            if head == "setp" and test and found and op.type in COUNTED_TYPES and type_size(op.type) == found.size:
                one, other = op.srcs
                if self.is_last(Binary(test, one, other), where)[0] is not None:
                    return
        self.vary(op, where)

    # --- the number drawn -----------------------------------------------------------------------------------------

    def is_last(self, expr: Expr, where: Surroundings) -> tuple[bool | None, bool | None]:
        """For a comparison of the number drawn that all but the last number answer alike: whether only the last one
        makes it true, and whether only the last one makes it false. Else ``None``.
        """
        match expr:
            case Unary("!", inner):
                yes, no = self.is_last(inner, where)
                return no, yes
            case Binary(op, Reg(name), right):
                return self._compares(op, name, right, where)
        return None, None

    def _compares(
        self, op: str, register: str, right: Expr, where: Surroundings
    ) -> tuple[bool | None, bool | None]:  # fmt: skip
        found, bound = self.drawn.get(where.thread.number), where.linear(right)
        if found is None or found.register != register or bound is None:
            return None, None
        behind = bound.plus(found.last, -1)
        if behind.terms or behind.constant >= SMALL:  # `setp` takes what is left of a larger one modulo 2^32
            return None, None
        self.asked = True
        match op:
            case "==" | ">=" if behind.constant >= 0:
                return behind.constant == 0, False
            case "!=" | "<" if behind.constant >= 0:
                return False, behind.constant == 0
            case ">" if behind.constant >= -1:
                return behind.constant == -1, False
            case "<=" if behind.constant >= -1:
                return False, behind.constant == -1
        return None, None

    # --- linear forms ---------------------------------------------------------------------------------------------

    def number(self, expr: Expr, where: Surroundings) -> Linear | None:
        """A value that is linear in the number of a CTA, or in its ticket."""
        match expr:
            case Reg(name):
                return self.numbers.get((where.thread.number, name))
            case Binary("+" | "-" as op, left, right):
                one, other = (self.number(e, where) for e in (left, right))
                return None if one is None or other is None else one.plus(other, 1 if op == "+" else -1)
        return where.linear(expr)

    def keep_number(self, op: Op, where: Surroundings) -> None:
        """What a register holds behind an operation, if it is linear in the number of the CTA."""
        found: Linear | None = None
        match op:
            case ops.Alu(op="mov", srcs=(value,)) if op.type in COUNTED_TYPES:
                found = self.number(value, where)
            case ops.Alu(op="add" | "sub", srcs=(one, other)) if op.type in COUNTED_TYPES:
                found = self.number(Binary("+" if op.op == "add" else "-", one, other), where)
            case ops.Atomic(dst=Reg(name)):
                drawn = self.drawn.get(where.thread.number)
                found = variable(TICKET) if drawn is not None and drawn.register == name else None
        for name, _ in written_registers(op):
            self.numbers.pop((where.thread.number, name), None)
            if found is not None and not where.conditional and not where.looped:
                self.numbers[where.thread.number, name] = found
