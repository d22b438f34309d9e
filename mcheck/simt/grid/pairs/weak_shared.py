"""Volatile and relaxed accesses of shared memory as weak ones, in arguments about a grid.

*Why a proof about weak ones holds.* Take an execution with the strong accesses. It is one with weak ones, too: these
have to fulfil less, and order less. If there is no race in it then, all accesses of common bytes are ordered, and what
orders them does so with strong accesses as well. So there is none, and each load has returned what it does in both.
Threads that wait do so by other loads: one that is repeated until it returns something else stays as it is.

*What is found with weak ones* need not be so. But races of global memory are, where none of shared memory is found
beside them. A strong access hands over what a fence before it has released only to one that reads it, and that one
comes after it by causality already, or the two would race: through barriers of their threads, which order what is
before the one and behind the other as well (8.9.5). So the strong accesses order nothing else, and loads return the
same.

Sums that are added up in ``volatile`` shared memory are written so, with barriers in between. Then nothing depends on
the accesses being strong, and threads that differ in their addresses alone need not be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.base.records import replace
from mcheck.findings.finding import Finding
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.memory_layout import short_name
from mcheck.frontend.ptx.module_copies import written_name
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.waits.polling_loops import PollingLoop

STRONG = frozenset(("volatile", "relaxed"))
SCOPES = ("cta", "cluster", "gpu", "sys")


def with_weak_shared(module: ptx.Module) -> ptx.Module:
    """The module with weak accesses in the places of strong ones of shared memory that do not wait, acquire or release;
    the module itself if it has none.
    """
    functions = {name: _with_weak(function) for name, function in module.functions.items()}
    if all(functions[name] is function for name, function in module.functions.items()):
        return module
    return replace(module, functions=functions)


def shows_races(findings: Sequence[Finding], module: ptx.Module, launch: Launch) -> bool:
    """Whether what is found with weak accesses is so: races, of global memory all of them. What has the name of a
    shared variable, too, may be that one.
    """
    variables = [item for _, item in module.all_variables]
    shared = {short_name(written_name(item.name)) for item in variables if item.space == "shared"}
    places = {buffer.name for buffer in launch.buffers} | {item.name for item in variables if item.space == "global"}
    return bool(findings) and all(
        found.kind == "race" and {access.object for access in found.accesses} <= places - shared for found in findings
    )


def _with_weak(function: ptx.Function) -> ptx.Function:
    found = {k: _weak(s) for k, s in enumerate(function.body) if _is_data(function, k)}
    if not found:
        return function
    return replace(function, body=tuple(found.get(k, s) for k, s in enumerate(function.body)))


def _is_data(function: ptx.Function, at: int) -> bool:
    statement = function.body[at]
    opcode = statement.opcode
    if (
        statement.kind not in (Kind.LOAD, Kind.STORE)
        or opcode.space != "shared"
        or not STRONG.issuperset(opcode.orders)
    ):
        return False
    return opcode.is_strong and not (statement.kind is Kind.LOAD and PollingLoop(function, at).may_return({}))


def _weak(statement: ptx.Statement) -> ptx.Statement:
    return replace(statement, opcode=statement.opcode.without(*STRONG, *SCOPES))
