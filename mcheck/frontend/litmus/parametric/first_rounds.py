"""The value of an expression in the first iterations of a loop, by evaluation, where its form does not tell: products,
and sums, quotients and remainders of them (``k*k == 998001``).
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.records import dataclass
from mcheck.frontend.litmus.parametric.quasi_affine import QuasiAffine
from mcheck.ir.expr import Expr, Name, Special
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.ir.resolve import Undefined, compile_expression, fold_expression

ITERATION = Special("iteration")
"""The number of the iteration, in expressions that depend on nothing else."""
MOST = 1 << 17
"""The number of iterations in which expressions are evaluated: programs with as many are not checked by themselves."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name stands for: a quasi-affine function, or why it is none; ``term``: as an expression in ``ITERATION``
    alone, if it is one.
    """

    function: QuasiAffine | Aperiodic
    term: Expr | None = None


Names = dict[str, Meaning]


def in_iterations(expr: Expr, names: Names) -> Expr | None:
    """An expression with what its names stand for; ``None`` if it depends on more than the iteration."""

    def term(name: Name | Special) -> Expr:
        found = names.get(name.name) if isinstance(name, Name) else None
        if found is None or found.term is None:
            raise Undefined
        return found.term

    try:
        return fold_expression(expr, term)
    except Undefined:
        return None


def find_first_change(term: Expr, first: int) -> tuple[int, int] | None:
    """The value of a term from iteration ``first`` on, and the next iteration with another value, or ``MOST``; ``None``
    if it has no value.
    """
    try:
        value = compile_expression(term, _iteration)
        given = value(first)
        return given, next((k for k in range(first + 1, MOST) if value(k) != given), MOST)
    except Undefined:
        return None


def _iteration(name: Name | Special) -> Callable[[int], int]:
    """The iteration, which is all that a term depends on."""
    if name != ITERATION:
        raise Undefined(f"{name} is not the iteration")
    return lambda k: k
