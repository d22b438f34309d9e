"""Rings of stages that a launch fills only once, so that its proof says nothing about the reuse of a stage.

A ring is recognised by a loop that has an asynchronous copy to shared memory and a wait for copies, whether the launch
executes it or not: with more rounds it would come back to a stage. What is said of it is counted, not guessed: no byte
of the object is the destination of two copies on any path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from mcheck.base.errors import Span
from mcheck.effects.dispatch import effect_of, tensor_copy_effect
from mcheck.effects.operands import Operands, evaluate_operands
from mcheck.effects.site import Site, layout_of
from mcheck.frontend.ptx.module import Function, Label, Module, Statement
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.isa.kinds import Kind

COPIES = frozenset({Kind.ASYNC_COPY, Kind.BULK_COPY, Kind.TENSOR_COPY})
Range = tuple[int, int]
"""An address and a number of bytes."""


class _Unknown(Exception):
    """Where a copy writes is not known."""


def find_filled_once(programs: Sequence[Program], module: Module, entries: Iterable[str]) -> tuple[str, ...]:
    """The objects in shared memory that are rings of stages, each filled at most once on all paths of a launch; none if
    it is not known where a copy writes.
    """
    in_rings = _copies_in_rings(module, entries)
    if not in_rings:
        return ()
    found: dict[str, bool] = {}
    try:
        for program in programs:
            for name, once in _fills(program, in_rings).items():
                found[name] = found.get(name, True) and once
    except _Unknown:
        return ()
    return tuple(sorted(name for name, once in found.items() if once))


# --- the module -----------------------------------------------------------------------------------------------


def _copies_in_rings(module: Module, entries: Iterable[str]) -> frozenset[Span]:
    """The copies that stand in a loop with a wait for copies."""
    names = set(entries)
    functions = [f for f in module.functions.values() if f.name in names or not f.entry]
    return frozenset(span for function in functions for span in _in_waiting_loops(function))


def _in_waiting_loops(function: Function) -> Iterator[Span]:
    for first, last in _loops(function):
        body = function.body[first : last + 1]
        if any(map(_waits, body)):
            yield from (s.span for s in body if s.kind in COPIES)


def _loops(function: Function) -> Iterator[tuple[int, int]]:
    """The backward branches, each with the place to which it goes."""
    for at, statement in enumerate(function.body):
        if statement.kind is Kind.BRANCH and isinstance(label := statement.operands[0], Label):
            first = function.labels[label.name]
            if first <= at:
                yield first, at


def _waits(statement: Statement) -> bool:
    waits_for_group = statement.kind is Kind.COPY_GROUP and ".wait" in statement.text
    return waits_for_group or statement.kind is Kind.MBARRIER_WAIT


# --- the path of a launch ---------------------------------------------------------------------------------------


def _fills(program: Program, in_rings: frozenset[Span]) -> dict[str, bool]:
    """For the objects of rings, by name: whether no byte is filled twice.

    Where the copy of a loop is not executed, since a prologue has filled all that there is, an object that a thread
    fills in several groups is such a ring.
    """
    copies = {id(op) for op in program.operations if _fills_shared(op)}
    if not copies:
        return {}
    idle = in_rings - {op.span for op in program.operations if op.span is not None}
    layout = layout_of(program)
    filled: dict[int, bytearray] = {}
    once: dict[str, bool] = {}
    rings: set[str] = set()
    for thread in program.threads:
        site, group = Site(layout, thread.place), 0
        groups: defaultdict[str, set[object]] = defaultdict(set)
        for op in thread.code:
            if isinstance(op, ops.Commit | ops.CpAsyncArrive):
                group += 1
            if id(op) not in copies:
                continue
            for address, size in _destinations(op, site, program):
                instance = layout.objects.at(address)
                if instance is None:
                    raise _Unknown
                name, start = instance.object.name, address - instance.base
                marks = filled.setdefault(instance.base, bytearray(instance.object.size))
                again = marks.find(1, start, start + size) >= 0
                once[name] = once.get(name, True) and not again
                marks[start : start + size] = b"\1" * size
                groups[name].add(_group(op, group))
                if op.span in in_rings:
                    rings.add(name)
        if idle:
            rings |= {name for name, several in groups.items() if len(several) > 1}
        if rings and not any(once[name] for name in rings) and not idle:
            return dict.fromkeys(rings, False)
    return {name: once[name] for name in rings}


def _fills_shared(op: Op) -> bool:
    match op:
        case ops.CpAsync():
            return True
        case ops.BulkCopy(dst_space=space, reduce=None):
            return space.startswith("shared")
        case ops.TensorCopy(kind="load"):
            return True
    return False


def _group(op: Op, number: int) -> object:
    """What the wait for a copy is a wait for: its mbarrier, or its group by its ``number`` in the thread."""
    return op.mbar if isinstance(op, ops.BulkCopy | ops.TensorCopy) and op.mbar is not None else number


def _destinations(op: Op, site: Site, program: Program) -> Sequence[Range]:
    """Where a copy writes; raises ``_Unknown``."""
    operands = evaluate_operands(op, lambda expr: _value(expr, site.place.lane))
    if isinstance(op, ops.TensorCopy):
        return _box(op, operands, site, program)
    return [(run.dst, run.size) for run in effect_of(op, operands, site).runs]


def _box(op: ops.TensorCopy, operands: Operands, site: Site, program: Program) -> Sequence[Range]:
    instance = program.memory.find(operands.address("tensor_map"))
    maps = () if instance is None else instance.object.tensor_map
    if op.unplaced or instance is None or len(maps) != 1:
        raise _Unknown
    box = tensor_copy_effect(op, operands, site, maps[0]).box
    if box is None:
        raise _Unknown
    return box.image()


def _value(expr: Expr, lane: int) -> int:
    match expr:
        case Const(value):
            return value
        case Lanes(values):
            return values[lane]
    raise _Unknown
