"""From statements to the steps of ``mcheck.simt.execution.cluster``: each is handed to who makes its step."""

from __future__ import annotations

import numpy as np

from mcheck.base.errors import InputError, Unsupported
from mcheck.frontend.litmus.error_recovery import MAX_MISTAKES, position_of
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit, computes
from mcheck.frontend.ptx.instruction_forms import KNOWN, fault
from mcheck.frontend.ptx.lowering import template
from mcheck.frontend.ptx.reachability import reachable
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import MAKERS, Compiler, unfollowed
from mcheck.simt.execution.end_checks import with_end_checks
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.instructions import (
    async_operations,
    atomics,
    barriers,
    calls,
    control_flow,
    launch_control,
    memory_accesses,
    tensor_core,
    tensor_maps,
    wmma,
)
from mcheck.simt.instructions.computation import computation

MODULES = (
    memory_accesses,
    async_operations,
    atomics,
    calls,
    control_flow,
    wmma,
    launch_control,
    barriers,
    tensor_core,
    tensor_maps,
)
"""Imported for the instructions that they register."""

OWN_GUARD = frozenset(("bra", "brx", "ret", "exit", "call", "trap"))
"""Instructions whose makers look at the guard themselves."""


def steps_of(k: Compiler) -> list[Step]:
    """The code; each function ends with a return."""
    out: list[Step] = []
    for unit in k.code.units:
        k.heads |= {unit.start + at for at in unit.function.labels.values()} | {unit.start}
        for at, statement in enumerate(unit.function.body):
            out.append(_deciding(k, unit, statement, unit.start + at))
        out.append(control_flow.leave)
    return out


def _deciding(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of a statement, after which nothing is thought of what its registers held before."""
    made, decided = step(k, unit, statement, at), k.decided
    rows = decided.touched(unit.frame, statement)
    if not rows:
        return made
    target = rows[0] if at in decided.literals else None
    known = k.lanes.quality

    def run(c: Cluster, mask: Mask) -> Mask | None:
        if not decided.idle:
            decided.forget(rows, mask, made=True)
        rest = made(c, mask)
        if not decided.idle:  # what the guard was chosen to be says something of the registers before
            decided.forget(rows, mask, made=False)
        if target is not None:
            unknown = mask & ((known[target] & np.uint8(taint.UNKNOWN)) != 0)
            if unknown.any():
                decided.note(at, unknown)
        return rest

    return run


def step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of a statement, whatever it is: what cannot be followed says so where it is executed."""
    wrong = fault(statement)
    if wrong is not None:
        return _mistaken(k, unit, statement, at, wrong.error(statement))
    name = statement.opcode[0]
    if computes(statement):
        return computation(k, unit, statement, at)
    maker = MAKERS.get(".".join(statement.opcode[:2])) or MAKERS.get(name)
    try:
        if maker is None:
            template(unit.function, statement)  # raises if it is no instruction at all
            return unfollowed(statement, f"'{statement.text}' is not followed")
        made = maker(k, unit, statement, at)
    except InputError as error:
        return _mistaken(k, unit, statement, at, error)
    except Unsupported as error:
        return unfollowed(statement, error.message)
    if name in OWN_GUARD:
        return made
    return k.guarded(unit, statement, with_end_checks(made, unit, statement, at, k.flying))


def _mistaken(k: Compiler, unit: Unit, statement: ptx.Statement, at: int, error: InputError) -> Step:
    """What is no instruction: a mistake where it is executed, told with the others that control may come to. In a
    module of a later PTX than the tables are of it may be one that came since, so it is not followed.
    """
    if k.module.ptx > KNOWN:
        known, written = ".".join(map(str, KNOWN)), k.module.version
        return unfollowed(statement, f"{error.message} (up to PTX {known}; the module is of {written})")
    if error.span is None:
        error.span = statement.span
    k.mistakes[at] = error

    def run(_c: Cluster, _mask: Mask) -> None:
        live = reachable(k.module, k.code, k.mistakes) | {at}
        first, *others = sorted((k.mistakes[place] for place in live & set(k.mistakes)), key=position_of)[:MAX_MISTAKES]
        first.others = tuple(others)
        raise first

    return k.guarded(unit, statement, run)
