"""An estimate of a program's number of executions, from its text alone, and which enumerating engine suits it.

The explicit engine is fastest while the number of combinations (rf, co, the order of fences) is small; Z3 pays for
every state that it lists, and little for what does not matter to the verdict.
"""

from __future__ import annotations

from math import lgamma, log, log2

from mcheck.ir.ops import Await, Fence, ScalarRead, ScalarWrite
from mcheck.ir.program import Program

VERDICT_LIMIT = 48.0
STATES_LIMIT = 64.0
"""The numbers of combinations (as powers of two) above which Z3 is used: for a verdict, and for all states."""
CLASSIC_LIMIT = 34.0
"""The limit for the verdict of a classic test, whose coherence and fence orders Z3 solves fast."""


def estimate_combinations(program: Program) -> float:
    """A rough estimate of log2 of the number of executions."""
    reads = writes = fences = 0
    places: set[object] = set()
    for thread in program.threads:
        for op in thread.code:
            if isinstance(op, Await):
                op = op.inner
            if isinstance(op, ScalarRead):
                reads += 1
            if isinstance(op, ScalarWrite):
                writes += 1
                places.add(op.address)
            if isinstance(op, Fence) and getattr(op, "sem", "") == "sc":
                fences += 1
    each = writes / max(1, len(places))
    orders = max(1, len(places)) * _factorial(each) + _factorial(fences)
    return reads * log2(each + 1) + orders


def _factorial(n: float) -> float:
    return lgamma(n + 1) / log(2)


def choose_enumerator(program: Program, *, verdict_only: bool, classic: bool = False) -> str:
    """``explicit`` or ``z3``; ``classic``: the program only loads, stores and fences."""
    limit = STATES_LIMIT if not verdict_only else CLASSIC_LIMIT if classic else VERDICT_LIMIT
    return "z3" if estimate_combinations(program) > limit else "explicit"
