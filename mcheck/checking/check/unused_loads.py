"""Loads whose value nothing uses, or that an instruction chooses or leaves: a compiler may have made them.

A race with such a load is a race by the text (PTX ISA 8.7.1), and stays one; the finding says what becomes of the
value. Uses are those of the whole function, on whatever path, so that a value that is called unused is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mcheck.base.errors import Span
from mcheck.findings.finding import Access, Finding
from mcheck.frontend.ptx.module import Function, Module, Register, Statement, operand_registers
from mcheck.isa.kinds import Kind

UNUSED, CHOSEN = "unused", "chosen"


def add_value_uses(finding: Finding, module: Module) -> Finding:
    """The finding, its loads with what becomes of their values."""
    if finding.kind != "race" or not any(a.access == "read" and a.span is not None for a in finding.accesses):
        return finding
    return replace(finding, accesses=tuple(_with_use(access, module) for access in finding.accesses))


def _with_use(access: Access, module: Module) -> Access:
    if access.access != "read" or access.asynchronous or access.span is None:
        return access
    return replace(access, value=_use_at(access.span, module))


def _use_at(span: Span, module: Module) -> str:
    """What becomes of the value of a load; empty if it is used, or if this is no load."""
    place = span.line, span.column
    for function in module.functions.values():
        for statement in function.body:
            if (statement.span.line, statement.span.column) == place:
                return _use_of(statement, function) if statement.kind is Kind.LOAD else ""
    return ""


def _use_of(load: Statement, function: Function) -> str:
    loaded = set(load.defs)
    if not loaded & _needed(function):
        return UNUSED
    users = [s for s in function.body if loaded & set(s.uses)]
    return CHOSEN if all(s.kind is Kind.SELECTION and not loaded & _deciding(s) for s in users) else ""


def _deciding(selection: Statement) -> set[Register]:
    """The registers that decide which value a selection takes: the last operand, and the guard."""
    guard = {selection.guard.register} if selection.guard is not None else set()
    return guard | set(operand_registers(selection.operands[-1]))


def _needed(function: Function) -> set[Register]:
    """The registers that some instruction needs that does more than compute."""
    needed: set[Register] = set()
    _add(needed, (s for s in function.body if not s.only_computes))
    computing = [s for s in function.body if s.only_computes]
    while True:
        known = len(needed)
        _add(needed, (s for s in computing if needed & set(s.defs)))
        if len(needed) == known:
            return needed


def _add(needed: set[Register], statements: Iterable[Statement]) -> None:
    for statement in statements:
        needed.update(statement.uses)
