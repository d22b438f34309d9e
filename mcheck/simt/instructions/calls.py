"""Calls (PTX ISA 9.7.12.5): of functions of the module, whose arguments and results are copied, and of external
ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit, call_parts, possible_callees, resolve_function
from mcheck.isa.kinds import Kind
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch, compiles
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.traps import ASSERT_FAIL, PRINTF

CopyValues = Callable[[Cluster, Mask], None]
"""Copies arguments or results, for the lanes of the mask."""
Spot = tuple[Unit, ptx.Operand | ptx.Parameter]
"""A source or target of a copy, and the function it belongs to."""
HARMLESS = frozenset((PRINTF, "malloc", "free"))
"""System functions without effects except their results."""


@compiles(Kind.CALL)
def call_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``call``: arguments are copied into the formal parameters, and results back when the function
    returns.
    """
    result, target, given = call_parts(statement)
    k.block_starts.add(at + 1)
    if isinstance(target, ptx.Symbol) and resolve_function(k.module, target.name) is None:
        return k.with_guard(unit, statement, _external_step(k, unit, target.name, result))
    found = possible_callees(k.module, k.code.units, statement)
    fetch = None if isinstance(target, ptx.Symbol) else k.fetch(unit, target)
    ways = {k.places.symbols["", u.function.name]: _enter_step(k, unit, u, result, given, at) for _, u, _ in found}

    def run(c: Cluster, mask: Mask) -> None:
        if fetch is None:
            next(iter(ways.values()))(c, mask)
            return
        value, known = (np.broadcast_to(x, mask.shape) for x in fetch())
        for address in distinct(value[mask]).tolist():
            some = mask & (value == address)
            if known[some].any() or address not in ways:
                c.give_up(some, f"'{statement.text}' calls a function that depends on data")
            else:
                ways[address](c, some)

    return k.with_guard(unit, statement, run)


def _enter_step(
    k: Compiler, unit: Unit, callee: Unit, result: tuple[ptx.Operand, ...], given: tuple[ptx.Operand, ...], at: int
) -> CopyValues:
    """Enter a function: copy the arguments, and arrange for the results to be copied when it returns."""
    function = callee.function
    into = [_copy_argument(k, (unit, a), (callee, f)) for a, f in zip(given, function.parameters, strict=False)]
    back = [_copy_argument(k, (callee, f), (unit, a)) for a, f in zip(result, function.returns, strict=False)]

    def carry(c: Cluster, mask: Mask) -> None:
        for copy in back:
            copy(c, mask)

    def enter(c: Cluster, mask: Mask) -> None:
        for copy in into:
            copy(c, mask)
        for lane in np.flatnonzero(mask).tolist():
            if any(place == at + 1 for place, _ in c.return_stacks[lane]):
                c.give_up(mask, f"{function.name} calls itself")
                return
            c.return_stacks[lane].append((at + 1, carry))
        c.pc[mask] = callee.start

    return enter


def _copy_argument(k: Compiler, source: Spot, target: Spot) -> CopyValues:
    """Copy an argument: a register, an immediate or a variable of the lane's own."""
    size = next((x.size or 0 for _, x in (source, target) if isinstance(x, ptx.Parameter)), 0)
    here, there = (_resolve_spot(k, *x) for x in (source, target))
    values, known = k.lanes.values, k.lanes.quality

    def copy(c: Cluster, mask: Mask) -> None:
        lanes = np.flatnonzero(mask)
        for offset in range(0, max(size, 1), 8):
            length = min(8, size - offset) or 8
            if isinstance(here, int):
                at = np.full(len(lanes), here + offset, np.uint64)
                value, sure = c.store.load(at, length, lanes)
            else:
                given = here()
                value, sure = np.broadcast_to(given[0], mask.shape)[lanes], np.broadcast_to(given[1], mask.shape)[lanes]
            if isinstance(there, int):
                c.store.save(np.full(len(lanes), there + offset, np.uint64), length, lanes, value, sure)
            else:
                assert isinstance(target[1], ptx.Register | ptx.Parameter)
                row = _spot_row(target)
                k.path_condition.forget((row,), mask, made=True)
                values[row][lanes], known[row][lanes] = value, sure

    return copy


def _spot_row(spot: Spot) -> int:
    unit, what = spot
    name = what.name  # type: ignore[union-attr]
    return unit.frame + next(r.index for r in unit.function.registers if r.name == name)


def _resolve_spot(k: Compiler, unit: Unit, what: ptx.Operand | ptx.Parameter) -> int | Fetch:
    """The location of an argument: an address in the lane's own memory, or a function that fetches it."""
    if isinstance(what, ptx.Symbol | ptx.Parameter):
        if isinstance(what, ptx.Parameter) and what.space == "reg":
            found = next((r for r in unit.function.registers if r.name == what.name), None)
            return k.fetch(unit, found if found is not None else ptx.Immediate(0))
        offset = what.offset if isinstance(what, ptx.Symbol) else 0
        return int(k.symbol_address(unit, what.name)[0]) + offset
    return k.fetch(unit, what)


def _external_step(k: Compiler, unit: Unit, name: str, result: tuple[ptx.Operand, ...]) -> Step:
    """Call a function that the module does not define: a system function, or one that is linked later."""
    if name == ASSERT_FAIL:
        return lambda c, mask: c.give_up(mask, "an assertion fails")
    spots = [_resolve_spot(k, unit, x) for x in result]

    def run(c: Cluster, mask: Mask) -> Mask:
        if name not in HARMLESS:
            c.recorded.note_gap(f"{name} is not in the module", c.span)
        lanes = np.flatnonzero(mask)
        for spot in spots:
            if isinstance(spot, int):
                unknown = np.full(len(lanes), taint.UNKNOWN_NAMELESS, np.uint8)
                at = np.full(len(lanes), spot, np.uint64)
                c.store.save(at, 8, lanes, np.zeros(len(lanes), np.uint64), unknown)
        return mask

    return run
