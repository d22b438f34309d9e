"""Which code may order accesses of different clusters."""

from __future__ import annotations

from mcheck.frontend.ptx import module as ptx
from mcheck.ir.scopes import NARROW_SCOPES
from mcheck.isa.kinds import FENCES, MULTIMEM, REDUCTIONS, STORES, Kind
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.loop_visits import statements

SIGNALLING = MULTIMEM | {Kind.CALL, Kind.TRAP}
"""They may signal to other clusters, whatever their operands."""
HANDING_ON = frozenset(("acquire", "release", "acq_rel", "sc"))
"""The orders of accesses that hand on what is before them, or take it over."""


def hands_on(statement: ptx.Statement) -> bool:
    """Whether an instruction may hand on what is before it, or take over what was handed on: without one, signals order
    nothing else (8.8).
    """
    return statement.kind in FENCES | SIGNALLING or not HANDING_ON.isdisjoint(statement.opcode.orders)


def may_signal(statement: ptx.Statement) -> bool:
    """Whether an instruction may signal to other clusters."""
    kind, outside = statement.kind, statement.opcode.space != "shared"
    if kind is Kind.LOAD or kind in STORES:
        return outside and statement.opcode.is_strong
    return kind in SIGNALLING or (outside and (kind is Kind.ATOMIC or kind in REDUCTIONS))


def may_order(compiler: Compiler) -> bool:
    """Whether code may order accesses of different clusters, or let one make some only because of what others do.

    If not, two clusters that are executed one after the other do what each does alone, up to a load of what the first
    one has stored, which is a race itself. A strong access that is no race may return which cluster came first: a
    number that only one of them draws.
    """
    found = [(unit, s) for _, s, unit in statements(compiler)]
    decides = any(may_signal(s) and s.opcode.scope not in NARROW_SCOPES and compiler.is_needed(u, s) for u, s in found)
    return decides or (any(may_signal(s) for _, s in found) and any(hands_on(s) for _, s in found))
