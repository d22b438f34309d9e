"""Expressions of a sketch as linear forms of the number of a CTA, the number of CTAs, and what loops count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.ir.cta_family import CTA, NUMBER, Linear, Variable, variable
from mcheck.ir.expr import Binary, Const, Expr, Name, Special, Unary, apply_binary, apply_unary


@dataclass(slots=True)
class LinearForms:
    """Linear forms of expressions of one thread."""

    specials: Mapping[str, Linear]
    first: int
    least: int
    variables: dict[str, Variable] = field(default_factory=dict)
    """Those of loops and remainders, by name."""

    def linear(self, expr: Expr, names: Mapping[str, Linear]) -> Linear | None:
        """An expression as a linear form; ``None`` if it is none, or reads registers."""
        match expr:
            case Const(value):
                return Linear(value)
            case Special(name):
                return self.specials.get(name)
            case Name(name, (), None):
                return names.get(name)
            case Unary(op, operand):
                inner = self.linear(operand, names)
                if inner is None or (inner.terms and op not in "+-"):
                    return None
                return (
                    Linear(apply_unary(op, inner.constant)) if not inner.terms else inner.times(-1 if op == "-" else 1)
                )
            case Binary(op, left, right):
                a, b = self.linear(left, names), self.linear(right, names)
                return None if a is None or b is None else self._binary(op, a, b)
        return None

    def _binary(self, op: str, a: Linear, b: Linear) -> Linear | None:
        if not a.terms and not b.terms:
            try:
                return Linear(apply_binary(op, a.constant, b.constant))
            except (ArithmeticError, ValueError):
                return None
        match op:
            case "+":
                return a.plus(b)
            case "-":
                return a.plus(b, -1)
            case "*" if not b.terms:
                return a.times(b.constant)
            case "*" if not a.terms:
                return b.times(a.constant)
            case "<<" if not b.terms and 0 <= b.constant < 64:
                return a.times(1 << b.constant)
            case "%":
                return self._remainder(a, b)
        return None

    def _remainder(self, a: Linear, b: Linear) -> Linear | None:
        low, divisor = self.lower_bound(a), self.lower_bound(b)
        if low is None or low < 0 or divisor is None or divisor < 1:  # C's remainder has the sign of the dividend
            return None
        return self.add_variable("%remainder", Linear(), b, a)

    def add_variable(self, name: str, low: Linear, high: Linear, dividend: Linear | None = None) -> Linear:
        """A new variable, as a form."""
        name = f"{name}.{len(self.variables)}"
        self.variables[name] = Variable(name, low, high, dividend)
        return variable(name)

    def lower_bound(self, form: Linear) -> int | None:
        """A number that a form does not fall below, if its coefficients are at least zero."""
        total = form.constant
        for name, factor in form.terms:
            if name in (CTA, NUMBER):
                low: int | None = self.first if name == CTA else self.least
            else:
                low = self.lower_bound(self.variables[name].low)
            if factor < 0 or low is None:
                return None
            total += factor * low
        return total

    def variables_of(self, *forms: Linear) -> tuple[Variable, ...]:
        """The variables in forms and in their bounds, each after those."""
        out: dict[str, Variable] = {}
        for name in (name for form in forms for name, _ in form.terms):
            if name not in (CTA, NUMBER):
                found = self.variables[name]
                for one in self.variables_of(found.low, found.high, found.dividend or Linear()):
                    out.setdefault(one.name, one)
                out[name] = found
        return tuple(out.values())
