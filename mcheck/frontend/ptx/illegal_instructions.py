"""Illegal instructions of a module that has other errors: reported with them, so that all can be fixed at once.

In a module without other errors an illegal instruction is an error only where it is executed
(``mcheck.simt.instructions.dispatch``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcheck.base.errors import InputError, Unsupported
from mcheck.frontend.ptx.instruction_forms import TABLES_VERSION, WORDS, find_fault
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.module import Function, Statement, parse_version
from mcheck.isa.kinds import JUMPS, Kind


def find_illegal(functions: Iterable[Function], version: str) -> Iterator[InputError]:
    """The errors of statements that are not instructions, except those after a branch that nothing reaches. In a module
    of a later PTX version than the instruction tables, such a statement may be a newer instruction.
    """
    if parse_version(version) <= TABLES_VERSION:
        for function in functions:
            yield from _function_errors(function)


def _function_errors(function: Function) -> Iterator[InputError]:
    entered = frozenset(function.labels.values())
    dead = False
    for at, statement in enumerate(function.body):
        dead = dead and at not in entered
        if not dead and (wrong := _statement_error(function, statement)) is not None:
            yield wrong
        dead = dead or (statement.guard is None and statement.kind in JUMPS)


def _statement_error(function: Function, statement: Statement) -> InputError | None:
    wrong = find_fault(statement)
    if wrong is not None:
        return wrong.to_error(statement)
    control = statement.kind in JUMPS or statement.kind is Kind.CALL
    if control or statement.opcode.parts[:2] in WORDS or statement.only_computes:
        return None
    try:
        operation_template(function, statement)
    except InputError as error:
        error.span = error.span or statement.span
        return error
    except Unsupported:
        pass
    return None
