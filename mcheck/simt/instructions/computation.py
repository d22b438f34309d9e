"""Instructions that only compute: arithmetic (``mcheck.frontend.ptx.lane_arithmetic``), moves, conversions between
address spaces, ``activemask``.

Results that nothing depends on are not computed, and results of an instruction whose guard depends on data are unknown
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcheck.base.errors import Unsupported
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, divides_by_zero, lane_function, low_mask, truncate, type_bits
from mcheck.frontend.ptx.memory_layout import FUNCTION_BASE, LOCAL_BASE, PARAM_BASE
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW
from mcheck.isa.kinds import ADDRESS_FUNCTIONS, Kind
from mcheck.isa.opcode import Opcode
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compared_numbers import alike_values
from mcheck.simt.execution.compiler import SURE, Compiler, no_effect
from mcheck.simt.execution.end_checks import with_end_checks
from mcheck.simt.execution.lanes import WARP, Lanes, Mask, Quality
from mcheck.simt.execution.launch_answers import query_function
from mcheck.simt.execution.waits.value_tests import read_test

MOVES = frozenset(("mov", "cvta", "prmt"))
"""Instructions that move numbers and names alike."""


def computation_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of an instruction that only affects registers, with its guard and the records of its operands."""
    made = with_end_checks(_unguarded_step(k, unit, statement), unit, statement, at, k.in_flight)
    return made if statement.guard is None or made is no_effect else _guarded_step(k, unit, statement, made)


def _unguarded_step(k: Compiler, unit: Unit, statement: ptx.Statement) -> Step:
    if not k.is_needed(unit, statement):
        return no_effect
    try:
        made = _arithmetic_step(k, unit, statement)
    except Unsupported:
        made = None
    if made is None:
        return k.forget_results(unit, statement)
    drawn = k.compared_registers(unit).intersection(statement.uses) if statement.kind is Kind.COMPARISON else ()
    for number in drawn:
        made = _telling_step(k, unit, statement, number, made)
    return made


def _telling_step(k: Compiler, unit: Unit, statement: ptx.Statement, number: ptx.Register, made: Step) -> Step:
    """A comparison of a number that an atomic has returned, with a note of which numbers it tells apart."""
    row, values = unit.frame + number.index, k.lanes.values
    left, right = statement.operands[1:3]
    operand = right if left == number else left
    fetch = k.fetch(unit, operand)

    def run(c: Cluster, mask: Mask) -> Mask | None:
        told = c.recorded.told_apart
        if told.held:
            other, known = (np.broadcast_to(part, mask.shape) for part in fetch())
            for lane in np.flatnonzero(mask).tolist():
                value, right = int(values[row][lane]), int(other[lane])
                is_sure = not known[lane] & ~np.uint8(taint.CONVERGED)  # which lanes converge, a path decides
                test = read_test(statement, number, {operand: right}.get) if is_sure else None
                shown = ((value, value),) if test is None else alike_values(test, holds=test.holds(value))
                told.compare(row, lane, shown)
        return made(c, mask)

    return run


def _guarded_step(k: Compiler, unit: Unit, statement: ptx.Statement, made: Step) -> Step:
    """A guarded computation: where data decides the guard, the results are unknown afterwards, and nothing else depends
    on the guard.
    """
    assert statement.guard is not None
    known = k.lanes.quality
    guard, rows = unit.frame + statement.guard.register.index, k.register_rows(unit, statement.defs)
    plain = k.with_guard(unit, statement, made)

    def run(c: Cluster, mask: Mask) -> Mask:
        doubt = mask & (known[guard] & np.uint8(taint.UNKNOWN) != 0)
        if not doubt.any():
            plain(c, mask)
            return mask
        if not np.array_equal(doubt, mask):
            plain(c, mask & ~doubt)
        for row in rows:
            known[row][doubt] = taint.UNKNOWN_NAMELESS
        return mask

    return run


def _arithmetic_step(k: Compiler, unit: Unit, statement: ptx.Statement) -> Step | None:
    kind, opcode, operands = statement.kind, statement.opcode, statement.operands
    if kind is Kind.MOVE:
        return _move_step(k, unit, statement)
    if kind is Kind.ACTIVE_MASK:
        return _activemask_step(k, unit, statement)
    if kind in ADDRESS_FUNCTIONS:
        function = _address_function(opcode, k.lanes)
    elif kind is Kind.CANCEL_QUERY:
        function = query_function(opcode)
    else:
        function = lane_function(opcode)
    if function is None:
        return None
    targets = k.destination_rows(unit, operands[0])
    sources = [k.fetch(unit, o) for o in operands[1:]]
    mixes, divides = kind is Kind.SELECTION, opcode.name in ("div", "rem")
    integers = kind is Kind.COMPARISON and opcode.type[0] in "bus"
    compared = type_bits(opcode.type) if integers and len(sources) == 2 else 0
    named = k.forget_results(unit, statement) if k.code.stores_named and opcode.name not in MOVES else None
    values, known = k.lanes.values, k.lanes.quality

    def run(c: Cluster, mask: Mask) -> Mask:
        given = [s() for s in sources]
        results = function(*[pair[0] for pair in given])
        sure = given[0][1]
        for pair in given[1:]:
            sure = sure | pair[1]
        if sure.any():
            if compared and (sure & taint.COUNTED).any():
                c.counters.record_comparison(opcode.mode, compared, given, mask)
            sure = _refine_quality(opcode, given, sure)
        for row, result in zip(targets, results, strict=False):
            if row is not None:
                np.copyto(values[row], result, where=mask)
                np.copyto(known[row], sure, where=mask)
        if named is not None:
            unknown = mask & ((given[2][1] if mixes else sure) & np.uint8(taint.UNKNOWN) != 0)
            if unknown.any():
                named(c, unknown)
        if divides:
            unspecified = divides_by_zero(opcode, [pair[0] for pair in given])
            unspecified = mask & unspecified & (given[1][1] & np.uint8(taint.UNKNOWN) == 0)
            for row in targets:
                if row is not None:
                    known[row][unspecified] |= np.uint8(taint.UNKNOWN_NAMELESS)
        return mask

    return run


def _move_step(k: Compiler, unit: Unit, statement: ptx.Statement) -> Step | None:
    target, source = statement.operands
    bits = type_bits(statement.opcode.type)
    values, known = k.lanes.values, k.lanes.quality
    if bits == 128:
        return _move_wide(k, unit, target, source)
    if bits > 64 or bits == 0:
        return None
    if isinstance(source, ptx.Vector) and not isinstance(target, ptx.Vector):
        parts = [k.fetch(unit, o) for o in source.items]
        size = bits // len(parts)
        (row,) = k.destination_rows(unit, target)
        assert row is not None

        def pack(_: Cluster, mask: Mask) -> Mask:
            whole, sure = np.zeros(1, np.uint64), SURE
            for j, part in enumerate(parts):
                value, q = part()
                whole = whole | truncate(value, size) << np.uint64(j * size)
                sure = sure | q
            np.copyto(values[row], whole, where=mask)
            np.copyto(known[row], sure, where=mask)
            return mask

        return pack
    if isinstance(source, ptx.Vector):
        return None
    rows, fetch = k.destination_rows(unit, target), k.fetch(unit, source)
    size = bits // len(rows)

    def move(_: Cluster, mask: Mask) -> Mask:
        value, sure = fetch()
        for j, row in enumerate(rows):
            if row is not None:
                part = truncate(value >> np.uint64(j * size), size) if len(rows) > 1 else truncate(value, bits)
                np.copyto(values[row], part, where=mask)
                np.copyto(known[row], sure, where=mask)
        return mask

    return move


def _move_wide(k: Compiler, unit: Unit, target: ptx.Operand, source: ptx.Operand) -> Step | None:
    """``mov.b128``: only the lower half is tracked."""
    first = source.items[0] if isinstance(source, ptx.Vector) else source
    rest = source.items[1:] if isinstance(source, ptx.Vector) else ()
    fetches = [k.fetch(unit, o) for o in (first, *rest)]
    low, *high = k.destination_rows(unit, target)
    values, known = k.lanes.values, k.lanes.quality

    def move(_: Cluster, mask: Mask) -> Mask:
        found = [fetch() for fetch in fetches]
        sure = found[0][1]
        for half in found[1:]:
            sure = sure | half[1]
        if low is not None:
            np.copyto(values[low], found[0][0], where=mask)
            np.copyto(known[low], sure, where=mask)
        for row in high:
            if row is not None:
                known[row][mask] = taint.UNKNOWN_NAMELESS
        return mask

    return move


def _activemask_step(k: Compiler, unit: Unit, statement: ptx.Statement) -> Step:
    (row,) = k.destination_rows(unit, statement.operands[0])
    assert row is not None
    values, known = k.lanes.values, k.lanes.quality
    bit = np.uint64(1) << (np.arange(k.lanes.count) % WARP).astype(np.uint64)

    def run(c: Cluster, mask: Mask) -> Mask:
        rows = np.where(mask, bit, np.uint64(0)).reshape(-1, WARP)
        together = np.repeat(np.bitwise_or.reduce(rows, axis=1), WARP)
        np.copyto(values[row], together, where=mask)
        known[row][mask] = taint.CONVERGED
        c.assume("activemask names the lanes that converged here")
        return mask

    return run


def _address_function(opcode: Opcode, lanes: Lanes) -> Callable[..., tuple[Word, ...]] | None:
    """The function that converts an address to another space, or gives its space or CTA."""
    base, window = np.uint64(SHARED_BASE), np.uint64(SHARED_WINDOW)
    if opcode.kind is Kind.ADDRESS_CONVERSION:
        if opcode.space == "param":
            return lambda a: (np.where(a < PARAM_BASE, a + np.uint64(PARAM_BASE), a),)
        if opcode.space != "shared":
            return lambda a: (a,)
        if opcode.has("to"):
            return lambda a: (truncate(a - base, 32) if opcode.type == "u32" else np.where(a >= base, a - base, a),)
        return lambda a: (np.where(a < base, a + base, a),)
    if opcode.kind is Kind.ADDRESS_MAPPING:
        first = (lanes.cluster * lanes.cluster_size).astype(np.uint64)
        return lambda a, rank: ((a & (window - np.uint64(1))) | (a & base) | (first + truncate(rank, 32)) * window,)
    if opcode.kind is Kind.CTA_RANK:
        size = np.uint64(lanes.cluster_size)
        return lambda a: ((a & (base - np.uint64(1))) // window % size,)
    low, high = {
        "shared": (SHARED_BASE, LOCAL_BASE), "local": (LOCAL_BASE, FUNCTION_BASE),
    }.get(opcode.space, (GLOBAL_BASE, SHARED_BASE))  # fmt: skip
    return lambda a: (((a >= np.uint64(low)) & (a < np.uint64(high))).astype(np.uint64),)


def _refine_quality(opcode: Opcode, given: list[tuple[Word, Quality]], sure: Quality) -> Quality:
    """The quality of a result that may not depend on all sources: a zero decides an ``and``, all ones an ``or``, a
    predicate a ``selp``.
    """
    if opcode.kind is Kind.SELECTION:
        (a, qa), (b, qb), (p, qp) = given
        mine = np.where(p != 0, qa, qb) | qp
        return np.where((qa | qb) == 0, np.where(a == b, np.uint8(0), mine), mine)
    if opcode.name not in ("and", "or"):
        return sure
    (a, qa), (b, qb) = given
    bits = type_bits(opcode.type)
    decisive = low_mask(bits) if opcode.name == "or" else np.uint64(0)
    decided = ((truncate(a, bits) == decisive) & (qa == 0)) | ((truncate(b, bits) == decisive) & (qb == 0))
    return np.where(decided, np.uint8(0), sure)
