"""Recording of instructions whose results do not matter: whatever the table has an operation for, fences, and
instructions without effect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.memory_layout import GAP, PARAM_BASE
from mcheck.ir import ops
from mcheck.ir.expr import Reg
from mcheck.isa.kinds import FENCES, GRID_DEPENDENCIES, Kind
from mcheck.semantics.tensor_map_values import decode
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster, MissingParameter, Step
from mcheck.simt.execution.compiler import Compiler, compiles, no_effect
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.recorded_operations import decisive_operands, fill_operands
from mcheck.simt.execution.waits.assumed_failures import POLL_DECIDES
from mcheck.simt.instructions.access_operands import (
    Indices,
    fetch_expression,
    fetch_lanes,
    first_of_each,
    quote_statement,
    to_generic,
)
from mcheck.simt.traces.dependent_grids import record_early_accesses


def recording_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of an instruction without a needed result: record its operation with the values of its operands."""
    op = operation_template(unit.function, statement)
    record = make_recorder(k, unit, statement, at, op)

    def run(c: Cluster, mask: Mask) -> Mask:
        record(c, mask, {})
        return mask

    return run


Operands = dict[str, list[Word]]
"""The values of the operands that matter, by field; empty if nothing was recorded."""
UNKNOWN_SIZE = "unknown size"
"""Beside them where it depends on data how much ``cp.async`` reads: as if it read nothing."""


def make_recorder(
    k: Compiler,
    unit: Unit,
    statement: ptx.Statement,
    at: int,
    op: ops.Op,
    *,
    spread: Collection[str] = (),
    once: bool = False,
) -> Callable[[Cluster, Mask, dict[str, object]], tuple[Indices, Operands]]:
    """A function that records an operation of some lanes, with other fields set, and returns the lanes and their
    operands.

    ``spread``: the operands in which lanes of a warp may differ that share the operation, if there are any.
    ``once``: lanes of a warp with equal operands do it once. It is a copy from shared memory, where several have the
    effect of one: CUTLASS lets a whole warp issue its tensor stores.
    """
    leaves = decisive_operands(op)
    names = [name for name, _ in leaves]
    fetches = [fetch_expression(expr, k, unit) for _, expr in leaves]
    op = without_values(op)

    def record(c: Cluster, mask: Mask, more: dict[str, object]) -> tuple[Indices, Operands]:
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        lanes = np.flatnonzero(mask)
        found: Operands = {}
        flat: list[Word] = []
        unplaced = False
        for name, fetch in zip(names, fetches, strict=True):
            value, sure = fetch_lanes(fetch, mask, lanes)
            doubt = int(np.bitwise_or.reduce(sure))
            if doubt & taint.POLL:
                c.recorded.note_gap(POLL_DECIDES, statement.span)
            if doubt & taint.UNKNOWN:
                if doubt & taint.MISSING:
                    raise MissingParameter(
                        f"'{statement.text}' depends on a parameter that the launch does not give",
                        statement.span, hint=c.explain_missing(statement),
                    )  # fmt: skip
                if name == "coords":
                    unplaced = True
                elif _is_global_operand(op, name):
                    c.recorded.note_gap(
                        "the address in global memory depends on data and was not followed", statement.span
                    )
                    value = np.where(sure & taint.UNKNOWN, c.unknown_addresses(name, len(value)), value)
                elif isinstance(op, ops.CpAsync) and name in _NOTHING_READ:  # what is not read is zero: all is written
                    c.recorded.note_gap(
                        "the size of the copy depends on data: its reads were not followed", statement.span
                    )
                    value = np.full_like(value, _NOTHING_READ[name])
                    found[UNKNOWN_SIZE] = [value]
                else:
                    c.give_up(mask, f"the {name.replace('_', ' ')} depends on data")
                    return lanes, {}
            elif doubt & (taint.ORDER | taint.CONVERGED):
                what = f"the {name.replace('_', ' ')} depends on the order of threads"
                c.recorded.note_order_dependence(what, c.span)
            if name in ADDRESSES:
                value = to_generic(value)
            found.setdefault(name, []).append(value)
            flat.append(value)
        if unplaced:  # the image in shared memory is that of the tile at the origin
            c.recorded.note_gap(
                "the coordinates depend on data: accesses of the tensor were not followed", statement.span
            )
            more = {**more, "unplaced": True}
            flat = [np.zeros_like(v) if name == "coords" else v for name, v in zip(names, flat, strict=True)]
            found["coords"] = [np.zeros_like(v) for v in found["coords"]]
        if once and len(lanes) > 1:
            first = first_of_each([(lanes // WARP).astype(np.uint64), *flat])
            if len(first) < len(lanes):
                said = f"lanes of a warp that issue one copy count as one copy: {quote_statement(statement)}"
                c.recorded.assumptions[said] = None
                lanes, flat = lanes[first], [value[first] for value in flat]
                found = {name: [value[first] for value in given] for name, given in found.items()}
        if isinstance(op, ops.TensorCopy) and not _has_tensor_map(c, statement, mask, found["tensor_map"][0]):
            return lanes, {}
        shared = bool(spread) and all(name in spread or (v == v[:1]).all() for name, v in zip(names, flat, strict=True))
        c.recorded.record((at, *more.values()), flat, lanes, lambda v: fill_operands(op, v, **more), spread=shared)
        return lanes, found

    return record


def _has_tensor_map(c: Cluster, statement: ptx.Statement, mask: Mask, places: Word) -> bool:
    """Whether a tensor copy can be followed as far as its map is concerned: a map that is a parameter must be given by
    the launch.
    """
    for place in distinct(places).tolist():
        if not PARAM_BASE <= place < PARAM_BASE + GAP:
            continue
        contents = c.store.read_map(place)
        if contents is None:
            text = f"'{statement.text}' needs a tensor map that the launch does not give"
            raise MissingParameter(text, statement.span, hint=c.explain_missing(statement))
        if decode(contents) is None:
            c.give_up(mask, "the launch gives the tensor map of the copy as bytes, not by its fields")
            return False
    return True


_NOTHING_READ = {"src_size": 0, "ignore_src": 1}
"""The operands of ``cp.async`` with which it reads nothing."""


def _is_global_operand(op: ops.Op, name: str) -> bool:
    """Whether an operand of a copy without a tensor map is an address in global memory."""
    match op:
        case ops.CpAsync():
            return name == "src"
        case ops.BulkCopy():
            return (op.src_space if name == "src" else op.dst_space if name == "dst" else "") == "global"
    return False


ADDRESSES = frozenset(("address", "dst", "src", "mbar", "shared"))
"""Operands that may be addresses in a shared window."""


def without_values(op: ops.Op) -> ops.Op:
    """The operation with unspecified stored or returned values."""
    match op:
        case ops.AsyncStore():
            return replace(op, srcs=tuple(Reg("data") for _ in op.srcs))
    return op


@compiles(*FENCES)
def fence_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of fences."""
    return recording_step(k, unit, statement, at)


OTHER_GRIDS = "only one grid is executed: the results of the preceding grid (griddepcontrol) are assumed to be there"


@compiles(*GRID_DEPENDENCIES)
def other_grids_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:  # noqa: ARG001 - one signature
    """The step of ``griddepcontrol``, which waits for or releases another grid, which is not followed."""
    waits = statement.kind is Kind.GRID_WAIT

    def step(c: Cluster, mask: Mask) -> Mask:
        c.recorded.assumptions[OTHER_GRIDS] = None
        if waits:
            record_early_accesses(c, mask, statement)
        return mask

    return step


NO_EFFECT = frozenset((
    Kind.SLEEP, Kind.REGISTER_COUNT, Kind.PREFETCH, Kind.EVENT, Kind.BREAKPOINT, Kind.CACHE_PRIORITY,
))  # fmt: skip


@compiles(*NO_EFFECT)
def no_effect_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:  # noqa: ARG001 - one signature
    """The step of an instruction without effect on memory or control."""
    return no_effect


@compiles(Kind.DISCARD)
def discard_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:  # noqa: ARG001 - one signature
    """The step of ``discard``, which leaves bytes without a value; accesses to them are not compared with it."""

    def step(c: Cluster, mask: Mask) -> Mask:
        c.recorded.note_gap("the bytes that 'discard' destroys were not followed", statement.span)
        return mask

    return step
