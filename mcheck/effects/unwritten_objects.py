"""Objects outside shared memory that no operation of a program can write, whose reads cannot conflict."""

from __future__ import annotations

from mcheck.effects.site import Objects, widened
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.ops import Op
from mcheck.ir.program import Program


def find_unwritten_objects(program: Program) -> frozenset[int]:
    """The addresses of these objects; none if some operation writes where only its execution shows."""
    objects = Objects(program.memory)
    found = {i.base for i in program.memory.instances if i.cta is None and i.base == i.physical}
    if len(found) < sum(1 for i in program.memory.instances if i.cta is None):
        return frozenset()  # what has a second name is written by that as well
    for op in program.operations:
        for address in find_written_places(program, ops.performed_operation(op)):
            if address is None:
                return frozenset()
            instance = objects.at(address)
            if instance is not None:
                found.discard(instance.base)
    return frozenset(found)


def without_earlier_writes(program: Program, unwritten: frozenset[int]) -> frozenset[int]:
    """Those of some unwritten objects that an earlier grid does not write either: reads of them need no events."""
    return unwritten - {i.base for i in program.memory.instances if i.object.earlier_grid == "writes"}


def find_written_places(program: Program, op: Op) -> list[int | None]:
    """Where an operation may write outside shared and tensor memory; a tensor copy writes where its map says."""
    if isinstance(op, ops.TensorCopy):
        if op.kind == "load":
            return []
        where = op.tensor_map.value if isinstance(op.tensor_map, Const) else None
        instance = None if where is None else program.memory.find(where)
        maps = () if instance is None else instance.object.tensor_map
        return [spec.global_address for spec in maps] or [None]
    names = () if _space(op).startswith(("shared", "tensor")) else op.facets.writes
    return [place for name in names for place in places_of(getattr(op, name))]


def _space(op: Op) -> str:
    """The state space that an operation writes; what lies in another is undefined and not written (UB105, UB108)."""
    match op:
        case ops.TensorCore() | ops.TensorMove():
            return "tensor memory"
        case ops.Fill() | ops.CpAsync():
            return "shared::cta"
        case ops.BulkCopy(dst_space=space):
            return space
        case ops.Store(space=space) | ops.Atomic(space=space) | ops.AsyncStore(space=space):
            return space
        case ops.TensormapReplace(space=space):
            return space
    return "generic"


def places_of(expr: Expr) -> list[int | None]:
    """The addresses that an operand says, of all lanes; ``None`` is for one that only an execution shows."""
    match expr:
        case Const(value):
            return [widened(value)]
        case Lanes(values):
            return [widened(value) for value in values]
    return [None]
