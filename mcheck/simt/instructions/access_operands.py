"""Operands of accesses in all lanes: their values, as addresses, and which of the accesses other lanes can observe."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Unsupported
from mcheck.frontend.ptx import lane_arithmetic, taint
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.memory_layout import FUNCTION_BASE, GAP, LOCAL_BASE, PARAM_BASE
from mcheck.ir.expr import Binary, Const, Expr, Name, Reg, Special, Unary
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.simt.execution.cluster import Cluster, MissingParameter
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import Mask, Quality
from mcheck.simt.execution.waits.assumed_failures import POLL_DECIDES

Indices = NDArray[np.int64]


def to_generic(address: Word) -> Word:
    """Convert shared addresses to generic ones by adding their base."""
    return np.where(address < GLOBAL_BASE, address + np.uint64(SHARED_BASE), address)


def fetch_lanes(fetch: Fetch, mask: Mask, lanes: Indices) -> tuple[Word, Quality]:
    """The values of an operand in some lanes."""
    value, known = fetch()
    return np.broadcast_to(value, mask.shape)[lanes], np.broadcast_to(known, mask.shape)[lanes]


def visible_accesses(
    c: Cluster, statement: ptx.Statement, address: Word, known: Quality, lanes: Indices
) -> tuple[Word, Indices]:
    """The accesses that other lanes can observe, or that are in no object: at known places that are not the lane's
    own. One behind all windows is what an address below them all wraps to.
    """
    found = int(np.bitwise_or.reduce(known)) if len(known) else 0
    local = (address >= LOCAL_BASE) & (address < FUNCTION_BASE)
    keep = ~local & ~((address >= PARAM_BASE) & (address < PARAM_BASE + GAP))
    if found:
        missing = ((known & taint.MISSING) != 0) & (
            ((known & taint.UNKNOWN) != 0) | (address < GLOBAL_BASE) | (address >= SHARED_BASE)
        )
        if missing.any() and statement.opcode.space == "shared":
            raise MissingParameter(
                f"the address of '{statement.text}' depends on a parameter that the launch does not give",
                statement.span, hint=c.explain_missing(statement),
            )  # fmt: skip
        unknown = (known & taint.UNKNOWN) != 0
        if unknown.any():
            c.recorded.note_gap("the address depends on data and was not followed", statement.span)
            keep &= ~unknown
        if found & taint.POLL:
            c.recorded.note_gap(POLL_DECIDES, statement.span)
        if found & (taint.ORDER | taint.CONVERGED):
            c.recorded.note_order_dependence("an address depends on other threads", statement.span)
            c.counters.decides_address = c.counters.decides_address or bool(found & taint.COUNTED)
    return address[keep], lanes[keep]


def note_order(c: Cluster, known: Quality, what: str) -> None:
    """Note where an operand depends on the order of threads: its values on other paths are for others to follow."""
    if (known & np.uint8(taint.POLL)).any():
        c.recorded.note_gap(POLL_DECIDES, c.span)
    if (known & np.uint8(taint.ORDER | taint.CONVERGED)).any():
        c.recorded.note_order_dependence(f"the {what} depends on the order of threads", c.span)


def fetch_expression(expr: Expr, k: Compiler, unit: Unit) -> Fetch:
    """A function that reads an expression of the instruction table."""
    match expr:
        case Const(value):
            return k.fetch(unit, ptx.Immediate(value))
        case Reg(name):
            return k.fetch(unit, next(r for r in unit.function.registers if r.name == name))
        case Name(name):
            return k.fetch(unit, ptx.Symbol(name))
        case Special(name):
            return k.fetch(unit, ptx.Special(name))
        case Unary("!", inner):
            found = fetch_expression(inner, k, unit)
            return lambda: (np.uint64(1) - found()[0], found()[1])
        case Unary("-", Const(value)):
            return k.fetch(unit, ptx.Immediate(-value))
        case Binary("+", left, Const(value)):
            base, more = fetch_expression(left, k, unit), np.uint64(value & (1 << 64) - 1)
            size = 32 if isinstance(left, Reg) and _is_narrow(unit, left.name) else 64
            return lambda: (lane_arithmetic.truncate(base()[0] + more, size), base()[1])
    raise Unsupported("an operand of this kind is not followed")


def _is_narrow(unit: Unit, name: str) -> bool:
    found = next(r for r in unit.function.registers if r.name == name)
    return found.type.endswith("32")


def first_of_each(key: list[Word]) -> Indices:
    """The first index of each distinct row of a table, given by columns."""
    found: Indices = np.unique(np.stack(key), axis=1, return_index=True)[1]
    return np.sort(found)


def quote_statement(statement: ptx.Statement) -> str:
    """The text of a statement with its line, for an assumption."""
    return f"'{statement.text}' (line {statement.span.line})"
