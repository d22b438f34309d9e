"""How large a program is, judged by its text alone, and which engine suits it.

The explicit engine is quickest while what it has to combine (whom each read reads from, the orders of writes and of
fences) stays small; Z3 pays a price for every state that it lists, and next to none for what the verdict does not need.
"""

from __future__ import annotations

from math import lgamma, log, log2

from mcheck.ir.ops import Atomic, Await, Fence, Load, Store
from mcheck.ir.program import Program

VERDICT_LIMIT = 48.0
STATES_LIMIT = 64.0
"""Beyond so many combinations (as powers of two), Z3: for a verdict, and for all states."""
CLASSIC_LIMIT = 34.0
"""The same for the verdict of a classic test, whose orders of writes and fences Z3 is quick with."""


def combinations(program: Program) -> float:
    """The logarithm (base 2) of how many executions there may be, roughly: every access counted in every place."""
    reads = writes = fences = 0
    places: set[object] = set()
    for thread in program.threads:
        for op in thread.code:
            if isinstance(op, Await):
                op = op.inner
            if isinstance(op, Load | Atomic):
                reads += 1
            if isinstance(op, Store | Atomic):
                writes += 1
                places.add(getattr(op, "address", None))
            if isinstance(op, Fence) and getattr(op, "sem", "") == "sc":
                fences += 1
    each = writes / max(1, len(places))
    orders = max(1, len(places)) * _factorial(each) + _factorial(fences)
    return reads * log2(each + 1) + orders


def _factorial(n: float) -> float:
    return lgamma(n + 1) / log(2)


def choose(program: Program, *, verdict_only: bool, classic: bool = False) -> str:
    """``explicit`` or ``z3``; ``classic``: the program loads, stores and fences, and nothing else."""
    limit = STATES_LIMIT if not verdict_only else CLASSIC_LIMIT if classic else VERDICT_LIMIT
    return "z3" if combinations(program) > limit else "explicit"
