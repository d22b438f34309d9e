"""Reachable statements: those that control may reach, whatever the data and the launch."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mcheck.frontend.ptx.code import Code, Unit, possible_callees
from mcheck.frontend.ptx.module import Label, Module
from mcheck.isa.kinds import BRANCHES, JUMPS, Kind


def reachable_places(module: Module, code: Code, opaque: Collection[int] = ()) -> set[int]:
    """The places in the code reachable from the beginnings of the entries. Statements at ``opaque`` places are assumed
    to fall through.
    """
    owners = [(unit.start, unit) for unit in code.units]
    found: set[int] = set()
    todo = [unit.start for unit in code.units if unit.function.entry]
    while todo:
        at = todo.pop()
        if at in found:
            continue
        found.add(at)
        unit = next(unit for start, unit in reversed(owners) if start <= at)
        if at - unit.start < len(unit.function.body):
            todo += [at + 1] if at in opaque else _successors(module, code, unit, at)
    return found


def _successors(module: Module, code: Code, unit: Unit, at: int) -> Iterator[int]:
    statement = unit.function.body[at - unit.start]
    kind = statement.kind
    if statement.guard is not None or kind not in JUMPS:
        yield at + 1
    if kind is Kind.CALL:
        yield from (callee.start for _, callee, _ in possible_callees(module, code.units, statement))
    if kind in BRANCHES:
        label = statement.operands[-1]
        if isinstance(label, Label):
            lists = unit.function.branch_targets
            yield from (unit.start + unit.function.labels[k] for k in lists.get(label.name, (label.name,)))
