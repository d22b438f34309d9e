"""Copies of a kernel in its module, for launches on several GPUs: each has variables of its own, as each GPU has.

A copy is an entry, the functions that it can call and all variables, under names that end in ``@gpu1``, which no name
of PTX can. Bodies keep their text and their locations.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcheck.base.records import replace
from mcheck.frontend.ptx.code import collect_code
from mcheck.frontend.ptx.module import (
    Address,
    Arguments,
    Function,
    Immediate,
    Module,
    Operand,
    Pair,
    Statement,
    Symbol,
    Variable,
    Vector,
)

MARK = "@"


def copy_name(name: str, gpu: int) -> str:
    """The name of the copy for a GPU."""
    return f"{name}{MARK}gpu{gpu}"


def owner_of(name: str) -> str:
    """Which copy a name belongs to: ``gpu1``; empty for names of the module itself."""
    return name.partition(MARK)[2]


def written_name(name: str) -> str:
    """The name as it is written in the module."""
    return name.partition(MARK)[0]


def with_copy(module: Module, entry: str, gpu: int) -> Module:
    """The module with a copy of an entry for a GPU."""
    reached = [unit.function for unit in collect_code(module, entry).units]
    globals_ = [name for name in module.variables if not owner_of(name)]
    callees = {f.name for f in reached}
    aliases = {a: f for a, f in module.aliases.items() if f in callees}
    renamed = {name: copy_name(name, gpu) for name in (*globals_, *callees, *aliases)}
    variables = {renamed[name]: _copy_variable(module.variables[name], renamed) for name in globals_}
    return replace(
        module,
        variables={**module.variables, **variables},
        functions={**module.functions, **{renamed[f.name]: _copy_function(f, renamed) for f in reached}},
        aliases={**module.aliases, **{renamed[a]: renamed[f] for a, f in aliases.items()}},
    )


def _copy_variable(variable: Variable, renamed: Mapping[str, str]) -> Variable:
    if variable.initial is None:
        return variable
    values: list[tuple[int, int, Immediate | Symbol]] = []
    for offset, size, value in variable.initial:
        if isinstance(value, Symbol) and value.name in renamed:
            value = replace(value, name=renamed[value.name])
        values.append((offset, size, value))
    return replace(variable, initial=tuple(values))


def _copy_function(function: Function, renamed: Mapping[str, str]) -> Function:
    own = {*function.variables, *(p.name for p in (*function.parameters, *function.returns))}
    outer = {name: new for name, new in renamed.items() if name not in own}
    return replace(
        function,
        name=renamed[function.name],
        call_targets={k: tuple(outer.get(n, n) for n in names) for k, names in function.call_targets.items()},
        body=tuple(_copy_statement(s, outer) for s in function.body),
    )


def _copy_statement(statement: Statement, renamed: Mapping[str, str]) -> Statement:
    return replace(statement, operands=tuple(_copy_operand(o, renamed) for o in statement.operands))


def _copy_operand(operand: Operand, renamed: Mapping[str, str]) -> Operand:
    match operand:
        case Symbol(name):
            return replace(operand, name=renamed[name]) if name in renamed else operand
        case Address(base, _, rest):
            place = _copy_operand(base, renamed) if isinstance(base, Symbol) else base
            return replace(operand, base=place, rest=tuple(_copy_operand(o, renamed) for o in rest))
        case Vector(items):
            return Vector(tuple(_copy_operand(o, renamed) for o in items))
        case Arguments(items):
            return Arguments(tuple(_copy_operand(o, renamed) for o in items))
        case Pair(first, second):
            return Pair(_copy_operand(first, renamed), _copy_operand(second, renamed))
    return operand
