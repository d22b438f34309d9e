"""Compilation of statements to the steps of ``mcheck.simt.execution.cluster``, by the maker registered for each."""

from __future__ import annotations

import numpy as np

from mcheck.base.errors import InputError, Unsupported
from mcheck.frontend.litmus.error_recovery import MAX_MISTAKES, position_of
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.instruction_forms import TABLES_VERSION, check_modelled, find_fault
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.reachability import reachable_places
from mcheck.isa.kinds import JUMPS, Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import STEP_MAKERS, Compiler, unsupported_step
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
    multimem,
    recording,
    tensor_allocation,
    tensor_core,
    tensor_maps,
    tensor_moves,
    wmma,
    zero_fills,
)
from mcheck.simt.instructions.computation import computation_step

REGISTERING_MODULES = (
    memory_accesses,
    multimem,
    recording,
    async_operations,
    atomics,
    calls,
    control_flow,
    wmma,
    launch_control,
    barriers,
    tensor_allocation,
    tensor_moves,
    tensor_core,
    tensor_maps,
    zero_fills,
)
"""Imported for the makers that they register."""

OWN_GUARD = JUMPS | {Kind.CALL}
"""Instructions whose makers handle the guard themselves."""


def compile_steps(k: Compiler) -> list[Step]:
    """Compile the code; each function ends with a return."""
    out: list[Step] = []
    for unit in k.code.units:
        k.block_starts |= {unit.start + at for at in unit.function.labels.values()} | {unit.start}
        for at, statement in enumerate(unit.function.body):
            out.append(_invalidating_step(k, unit, statement, unit.start + at))
        out.append(control_flow.return_or_exit)
    return out


def _invalidating_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of a statement, after which choices about overwritten registers are dropped."""
    made, decided = compile_statement(k, unit, statement, at), k.path_condition
    rows = decided.invalidated_rows(unit.frame, statement)
    if not rows:
        return made
    target = rows[0] if at in decided.literals else None
    known = k.lanes.quality

    def run(c: Cluster, mask: Mask) -> Mask | None:
        if not decided.is_empty:
            decided.forget(rows, mask, made=True)
        rest = made(c, mask)
        if not decided.is_empty:  # the choice of the guard is about the registers before the write
            decided.forget(rows, mask, made=False)
        if target is not None:
            unknown = mask & ((known[target] & np.uint8(taint.UNKNOWN)) != 0)
            if unknown.any():
                decided.record_definition(at, unknown)
        return rest

    return run


def compile_statement(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of any statement; a statement that cannot be followed says so where it is executed."""
    wrong = find_fault(statement)
    if wrong is not None:
        return _illegal_step(k, unit, statement, at, wrong.to_error(statement))
    if statement.only_computes:
        return computation_step(k, unit, statement, at)
    maker = STEP_MAKERS.get(statement.kind)
    try:
        check_modelled(statement)
        if maker is None:
            operation_template(unit.function, statement)  # raises if it is not an instruction at all
            raise Unsupported(f"'{statement.text}' is not followed")
        made = maker(k, unit, statement, at)
    except InputError as error:
        return _illegal_step(k, unit, statement, at, error)
    except Unsupported as error:
        k.not_followed.add(at)
        return unsupported_step(statement, error.message)
    if statement.kind in OWN_GUARD:
        return made
    return k.with_guard(unit, statement, with_end_checks(made, unit, statement, at, k.in_flight))


def _illegal_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int, error: InputError) -> Step:
    """The step of a statement that is not an instruction: an error where it is executed, reported with other reachable
    ones. In a module of a later PTX version than the tables, it may be a newer instruction, so it is not followed.
    """
    k.not_followed.add(at)
    if k.module.ptx > TABLES_VERSION:
        known, written = ".".join(map(str, TABLES_VERSION)), k.module.version
        return unsupported_step(statement, f"{error.message} (up to PTX {known}; the module is of {written})")
    if error.span is None:
        error.span = statement.span
    k.mistakes[at] = error

    def run(_c: Cluster, _mask: Mask) -> None:
        live = reachable_places(k.module, k.code, k.mistakes) | {at}
        first, *others = sorted((k.mistakes[place] for place in live & set(k.mistakes)), key=position_of)[:MAX_MISTAKES]
        first.others = tuple(others)
        raise first

    return k.with_guard(unit, statement, run)
