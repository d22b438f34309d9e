"""The registers whose values can depend on the coordinates of the cluster, whatever the launch: only instructions that
involve them are watched while a cluster is executed.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Code, Unit, collect_code, possible_callees
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import operand_registers
from mcheck.isa.kinds import CANCELS, COPIES, MAP_EDITS, REDUCTIONS, STORES, Kind

COORDINATES = frozenset(f"{name}.{axis}" for name in ("ctaid", "clusterid") for axis in "xyz")
"""Responses about other clusters of the grid depend on which cluster asks."""


def special_registers(statement: ptx.Statement) -> Iterator[str]:
    """The predefined registers that an instruction reads."""
    todo = list(statement.operands)
    while todo:
        match todo.pop():
            case ptx.Special(name):
                yield name
            case ptx.Address(base, _, rest):
                todo += [*rest, *([base] if isinstance(base, ptx.Special) else [])]
            case ptx.Vector(items) | ptx.Arguments(items):
                todo += items
            case ptx.Pair(first, second):
                todo += [first, second]


LOADING = frozenset((Kind.LOAD, Kind.MATRIX_LOAD, Kind.ATOMIC, Kind.MULTIMEM))
STORING = STORES | REDUCTIONS | {Kind.MATRIX_STORE, Kind.ATOMIC, Kind.MULTIMEM}
WRITING = MAP_EDITS | {Kind.CALL, Kind.DISCARD, Kind.SURFACE_STORE, Kind.SURFACE_REDUCTION}
"""They may write to global memory, whatever their operands."""


def tainted_rows(module: ptx.Module, code: Code, varying: frozenset[int] = frozenset()) -> frozenset[int]:
    """The rows of the registers that can depend on the coordinates, or on those that are ``varying``."""
    found = set(varying)
    memory = False
    changed = True
    while changed:
        before = len(found), memory
        for unit in code.units:
            for statement in unit.function.body:
                memory |= _taint_statement(module, code, unit, statement, found, memory=memory)
        changed = before != (len(found), memory)
    return frozenset(found)


def _taint_statement(
    module: ptx.Module, code: Code, unit: Unit, statement: ptx.Statement, found: set[int], *, memory: bool
) -> bool:
    """Add the registers that an instruction taints; returns whether it passes taint on through memory."""
    kind = statement.kind

    def rows(given: Iterator[ptx.Register] | tuple[ptx.Register, ...]) -> set[int]:
        return {unit.frame + r.index for r in given}

    told = not COORDINATES.isdisjoint(special_registers(statement)) or kind in CANCELS
    used = rows(statement.uses)
    depends = told or not found.isdisjoint(used)
    if kind is Kind.CALL:
        for result, callee, given in possible_callees(module, code.units, statement):
            _taint_call(unit, callee, result, given, found)
        return False
    loads = kind in LOADING and not _loads_parameter(unit, statement)
    if depends or (loads and memory):
        found |= rows(statement.defs)
    return depends and kind in STORING and _stores_taint(unit, statement, found)


def _loads_parameter(unit: Unit, statement: ptx.Statement) -> bool:
    """Whether an instruction loads a parameter of the kernel by its name: nothing writes these."""
    if "param::entry" in statement.opcode.spaces:
        return True
    base = statement.place.base if statement.kind is Kind.LOAD and "param" in statement.opcode.spaces else None
    return unit.function.entry and isinstance(base, ptx.Symbol) and base.name in {
        p.name for p in unit.function.parameters
    }  # fmt: skip


def _stores_taint(unit: Unit, statement: ptx.Statement, found: set[int]) -> bool:
    """Whether a store, of an instruction that depends on the coordinates, may leave other bytes in other clusters. One
    to global memory at another place does not: another cluster's bytes there are a conflict.
    """
    if statement.guard is not None or "global" not in statement.opcode.spaces:
        return True
    values = [o for o in statement.operands[-2:] if not isinstance(o, ptx.Address)]
    given = {unit.frame + r.index for o in values for r in operand_registers(o)}
    return not found.isdisjoint(given) or not COORDINATES.isdisjoint(special_registers(statement))


def _taint_call(
    unit: Unit, callee: Unit, result: tuple[ptx.Operand, ...], given: tuple[ptx.Operand, ...], found: set[int]
) -> None:
    names = {r.name: callee.frame + r.index for r in callee.function.registers}
    for formal, actual in zip(callee.function.parameters, given, strict=False):
        if formal.name in names:
            hands = {unit.frame + r.index for r in operand_registers(actual)}
            if not found.isdisjoint(hands) or (isinstance(actual, ptx.Special) and actual.name in COORDINATES):
                found.add(names[formal.name])
    for formal, actual in zip(callee.function.returns, result, strict=False):
        if names.get(formal.name) in found:
            found |= {unit.frame + r.index for r in operand_registers(actual)}


def only_reads(module: ptx.Module, entry: str) -> bool:
    """Whether all clusters of a grid do the same and change nothing that others see: no instruction reads coordinates,
    and none can write to global memory.
    """
    statements = [s for unit in collect_code(module, entry).units for s in unit.function.body]
    return not any(_is_cancel(s) or _may_write(s) for s in statements)


def _is_cancel(statement: ptx.Statement) -> bool:
    return not COORDINATES.isdisjoint(special_registers(statement)) or statement.kind in CANCELS


_ELSEWHERE = ("shared", "local", "param")


def _may_write(statement: ptx.Statement) -> bool:
    kind, opcode = statement.kind, statement.opcode
    if kind in COPIES:
        return opcode.space == "global"
    if kind is Kind.FRAGMENT_STORE or kind in STORING - {Kind.MATRIX_STORE}:
        return opcode.space not in _ELSEWHERE
    return kind in WRITING


def reads_coordinates(module: ptx.Module, launch: Launch) -> bool:
    """Whether clusters may differ otherwise than by the numbers that they draw."""
    return any(
        not COORDINATES.isdisjoint(special_registers(statement))
        for unit in collect_code(module, launch.entry).units
        for statement in unit.function.body
    )
