"""Code that only leads to a trap: the failing branch of an assertion.

A trap ends the whole grid, and nothing after it is checked. So where data decides whether a trap is reached, none is,
and the answer says so.
"""

from __future__ import annotations

import numpy as np

from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.lanes import Mask

ASSERT_FAIL = "__assertfail"
"""The function that the system's ``assert`` calls where it does not hold; it does not return."""
PRINTF = "vprintf"
LANE_SPACES = frozenset(("param", "local"))
"""The lane's own memory, which holds the arguments of a call."""
TRAP_PASSED = "the trap is not reached at line {}"


def find_trap(function: ptx.Function, at: int) -> ptx.Statement | None:
    """The trap that control reaches from a place, whatever the data, with nothing done before it except printing."""
    seen: set[int] = set()
    while at < len(function.body) and at not in seen:
        seen.add(at)
        statement = function.body[at]
        kind = statement.kind
        if kind in (Kind.BRANCH, Kind.TRAP, Kind.CALL) and statement.guard is not None:
            return None
        if kind is Kind.TRAP or (kind is Kind.CALL and _calls(statement, ASSERT_FAIL)):
            return statement
        if kind is Kind.BRANCH and isinstance(statement.operands[0], ptx.Label):
            at = function.labels[statement.operands[0].name]
        elif statement.only_computes or _quiet(statement):
            at += 1
        else:
            return None
    return None


def _quiet(statement: ptx.Statement) -> bool:
    if statement.kind is Kind.CALL:
        return _calls(statement, PRINTF)
    return statement.kind in (Kind.LOAD, Kind.STORE) and statement.opcode.space in LANE_SPACES


def _calls(statement: ptx.Statement, function: str) -> bool:
    return any(isinstance(o, ptx.Symbol) and o.name == function for o in statement.operands)


def pass_uncertain_trap(c: Cluster, row: int, mask: Mask, trap: ptx.Statement, *, holds: bool) -> Mask:
    """The lanes for which unknown data decides, by the predicate of this row, whether they trap; they pass the trap,
    which is recorded: the predicate ``holds`` in them, or does not.
    """
    known = c.lanes.quality[row]
    unknown = mask & ((known & np.uint8(taint.UNKNOWN)) != 0) & ((known & np.uint8(taint.MISSING)) == 0)
    found = unknown | (mask & c.path_condition.chosen_lanes(row))
    if found.any():
        c.assume(TRAP_PASSED.format(trap.span.line))
        c.path_condition.choose(row, c.path_condition.unknown_lanes(row, unknown), holds=holds)
    return np.asarray(found)
