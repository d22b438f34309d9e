"""Objects outside shared memory that no operation of a program can write, whose reads cannot conflict."""

from __future__ import annotations

from mcheck.effects.site import Objects, widened
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.ops import Op
from mcheck.ir.program import Program


def find_unwritten_objects(program: Program) -> frozenset[int]:
    """The addresses of these objects; none if some operation writes where only its execution shows."""
    found = _unwritten_as_declared(program)
    changed = (op for op in _tensor_copies(program) if not _keeps_map(program, op, found))
    return frozenset() if any(op.kind != "load" for op in changed) else found


def stores_by_a_changed_map(program: Program) -> bool:
    """Whether a tensor copy may write elsewhere than the declaration of its map says, since the program may change the
    map: by ``tensormap.replace`` (PTX ISA 9.0 9.7.9.28) or as other memory.
    """
    return any(op.kind != "load" for op in copies_by_changed_maps(program))


def copies_by_changed_maps(program: Program) -> list[ops.TensorCopy]:
    """The tensor copies whose map is not one that is declared and stays as it is."""
    copies = _tensor_copies(program)
    kept = _unwritten_as_declared(program) if copies else frozenset()
    return [op for op in copies if not _keeps_map(program, op, kept)]


def _tensor_copies(program: Program) -> list[ops.TensorCopy]:
    return [op for op in map(ops.performed_operation, program.operations) if isinstance(op, ops.TensorCopy)]


def _keeps_map(program: Program, copy: ops.TensorCopy, unwritten: frozenset[int]) -> bool:
    """Whether the map of a copy is declared, and in one of the ``unwritten`` objects."""
    if not isinstance(copy.tensor_map, Const):
        return False
    instance = program.memory.find(copy.tensor_map.value)
    return instance is not None and bool(instance.object.tensor_map) and instance.base in unwritten


def _unwritten_as_declared(program: Program) -> frozenset[int]:
    """The same if the maps stay as they are declared."""
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
    """Where an operation may write outside shared and tensor memory. A tensor copy writes where the declaration of its
    map says, unless ``stores_by_a_changed_map``.
    """
    if isinstance(op, ops.TensorCopy):
        return [] if op.kind == "load" else declared_places(program, op)
    names = () if _space(op).startswith(("shared", "tensor")) else op.facets.writes
    return [place for name in names for place in places_of(getattr(op, name))]


def declared_places(program: Program, copy: ops.TensorCopy) -> list[int | None]:
    """Where the tensors lie in global memory that the declaration of the copy's map names."""
    where = copy.tensor_map.value if isinstance(copy.tensor_map, Const) else None
    instance = None if where is None else program.memory.find(where)
    maps = () if instance is None else instance.object.tensor_map
    return [spec.global_address for spec in maps] or [None]


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


def is_plain_access(op: Op) -> bool:
    """Whether this is a weak load or store through the generic proxy, at addresses that the program says."""
    return (
        isinstance(op, ops.Load | ops.Store)
        and isinstance(op.address, Const | Lanes)
        and op.sem == "weak"
        and op.proxy == "generic"
        and not (op.volatile or op.matrix_rows or op.multimem)
        and not (isinstance(op, ops.Load) and (op.non_coherent or ".nc." in op.text))
    )


def places_of(expr: Expr) -> list[int | None]:
    """The addresses that an operand says, of all lanes; ``None`` is for one that only an execution shows."""
    match expr:
        case Const(value):
            return [widened(value)]
        case Lanes(values):
            return [widened(value) for value in values]
    return [None]
