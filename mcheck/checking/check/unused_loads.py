"""Loads whose value nothing uses, or that an instruction chooses or leaves: a compiler may have made them.

A race with such a load is a race by the text (PTX ISA 8.7.1), and stays one; the finding says what becomes of the
value. Uses are those of the whole function, on whatever path, so that a value that is called unused is. Only stores may
use a value that one thread leaves: a scalar of Triton is loaded by every thread, and one of them stores.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from mcheck.base.errors import Span
from mcheck.base.records import replace
from mcheck.findings.finding import Access, Finding
from mcheck.frontend.ptx.module import Function, Module, Register, Statement, operand_registers
from mcheck.ir.program import Program, Thread
from mcheck.isa.kinds import Kind

UNUSED, CHOSEN, LEFT = "unused", "chosen", "left"
_THREADS = re.compile(r"(?P<role>.*)\[(?P<numbers>[^\]]*)\]")


def add_value_uses(finding: Finding, module: Module) -> Finding:
    """The finding, its loads with what becomes of their values."""
    if finding.kind != "race" or not any(a.access == "read" and a.span is not None for a in finding.accesses):
        return finding
    return replace(finding, accesses=tuple(_with_use(access, module) for access in finding.accesses))


def _with_use(access: Access, module: Module) -> Access:
    if access.access != "read" or access.asynchronous or access.span is None:
        return access
    found = _load_at(access.span, module)
    return replace(access, value=_use_of(*found) or access.value) if found is not None else access


def add_left_values(finding: Finding, module: Module, program: Program, joint: Collection[Span]) -> Finding:
    """The finding, its loads with whether the thread of ``program`` leaves the value that it reads; of ``joint`` stores
    it has one for several threads.
    """
    if finding.kind != "race":
        return finding
    known = {_place(span) for span in joint}
    return replace(finding, accesses=tuple(_with_left(access, module, program, known) for access in finding.accesses))


def _with_left(access: Access, module: Module, program: Program, joint: set[tuple[int, int]]) -> Access:
    found = _load_at(access.span, module) if access.access == "read" and access.span is not None else None
    stores = _stores_of(*found) if found is not None else None
    executed = executed_by(access.thread, program)
    if access.asynchronous or stores is None or not executed:
        return access
    return access if (executed | joint) & stores else replace(access, value=LEFT)


def executed_by(name: str, program: Program) -> set[tuple[int, int]]:
    """The lines and columns of what a thread, or one of several lanes, executes; empty if the program has no such."""
    threads = _threads_of(name, program)
    return {_place(op.span) for thread in threads for op in thread.code if op.span is not None}


def _place(span: Span) -> tuple[int, int]:
    return span.line, span.column


def _threads_of(name: str, program: Program) -> Iterator[Thread]:
    found = _THREADS.fullmatch(name)
    if found is None:
        return
    ends = [part.split("..") for part in found["numbers"].split(", ")]
    if not all(end.isdigit() for part in ends for end in part):
        return
    for thread in program.threads:
        if thread.role == found["role"] and any(int(part[0]) <= thread.number <= int(part[-1]) for part in ends):
            yield thread


def _load_at(span: Span, module: Module) -> tuple[Statement, Function] | None:
    for function in module.functions.values():
        for statement in function.body:
            if _place(statement.span) == _place(span):
                return (statement, function) if statement.kind is Kind.LOAD else None
    return None


def _stores_of(load: Statement, function: Function) -> set[tuple[int, int]] | None:
    """The stores of what is computed from the value of a load; ``None`` if it has another use, an address too."""
    known = set(load.defs)
    stores: set[tuple[int, int]] = set()
    while True:
        size = len(known)
        for statement in function.body:
            if statement is load or not known & set(statement.uses):
                continue
            if statement.only_computes:
                known.update(statement.defs)
            elif statement.kind is Kind.STORE and not known & _steering(statement):
                stores.add(_place(statement.span))
            else:
                return None
        if len(known) == size:
            return stores


def _steering(store: Statement) -> set[Register]:
    """The registers that decide whether, and where, a store is made."""
    guard = {store.guard.register} if store.guard is not None else set()
    return guard | set(operand_registers(store.place))


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
