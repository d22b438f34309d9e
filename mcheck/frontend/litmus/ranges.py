"""Range check of conditions: constants that a register or location of its type cannot hold."""

from __future__ import annotations

from collections.abc import Collection

from mcheck.ir.alu import bounds
from mcheck.ir.condition import ConstTerm, MemTerm, RegTerm, Term
from mcheck.ir.def_use import written_registers
from mcheck.ir.program import Thread


def register_types(thread: Thread, name: str) -> frozenset[str]:
    """The types of a register's possible final values: of its declaration and of all instructions that write it."""
    given = {kind for op in thread.code for reg, kind in written_registers(op) if reg == name}
    declared = thread.types.get(name)
    return frozenset(given | {declared} if declared is not None else given)


def explain_misfit(constant: Term, other: Term, types: Collection[str]) -> str | None:
    """A warning if ``other``, whose values have these types, is compared with a constant out of their range."""
    if not isinstance(constant, ConstTerm) or not isinstance(other, RegTerm | MemTerm) or not types:
        return None
    ranges = [bounds(kind) for kind in types]
    low, high = min(least for least, _ in ranges), max(most for _, most in ranges)
    if low <= constant.value <= high:
        return None
    kinds = " or ".join(f".{kind}" for kind in sorted(types))
    return f"{other.label} is {kinds} and ranges from {low} to {high}: it is never {constant.value}"
