"""Calls of Z3: satisfiable, unsatisfiable, or an exception with the reason why it has no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcheck.base.budget import TimeOut
from mcheck.base.errors import OutOfMemory, Unsupported

if TYPE_CHECKING:
    import z3


def satisfiable(solver: z3.Solver, given: Sequence[z3.BoolRef] = (), seconds: float | None = None) -> bool:
    """Whether the solver's formulas and ``given`` are satisfiable together; ``TimeOut`` after ``seconds``."""
    import z3

    if seconds is not None:
        solver.set("timeout", max(1, int(seconds * 1000)))
    result = solver.check(*given)
    if result != z3.unknown:
        return bool(result == z3.sat)
    why = solver.reason_unknown()
    if why == "interrupted from keyboard":  # Z3 takes the signal that Python would have raised this for
        raise KeyboardInterrupt
    if seconds is not None and why in ("timeout", "canceled"):
        raise TimeOut
    if "memory" in why:  # "out of memory", "max. memory exceeded", as it was the allocator or Z3 itself that refused
        raise OutOfMemory("out of memory")
    raise Unsupported(f"Z3 has no answer: {why}")
