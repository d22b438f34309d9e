"""Slicing: the registers that matter for branches, addresses, counts and awaited values.

The value of a read that does not matter need not be chosen; the read is explored as the one that synchronises least.
"""

from __future__ import annotations

from mcheck.effects.site import Objects
from mcheck.effects.unwritten_objects import copies_by_changed_maps, places_of
from mcheck.ir import ops
from mcheck.ir.def_use import registers_of, written_registers
from mcheck.ir.expr import Expr
from mcheck.ir.liveness import defined_and_used
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread

Uses = tuple[set[str] | None, set[str]]
"""The registers that a computation defines, and those that it uses; for other operations those that matter."""
Watched = dict[int, frozenset[str]]
"""By thread, registers whose final values are asked for."""


def needed_registers(program: Program, watched: Watched | None = None) -> list[frozenset[str]]:
    """Return for each thread the registers whose values matter, or reach ``watched`` registers or memory."""
    if watched is None:
        found = _needed_by_threads(program, watched, stores=False)
        if not _contents_decide(program, found):
            return found
    return _needed_by_threads(program, watched, stores=True)


def all_registers(program: Program) -> list[frozenset[str]]:
    """Return all registers of each thread."""
    known: dict[tuple[int, ...], frozenset[str]] = {}
    found = []
    for thread in program.threads:
        key = tuple(map(id, thread.code))
        if key not in known:
            known[key] = frozenset().union(*(_defined_registers(op) for op in thread.code))
        found.append(known[key])
    return found


def memory_matters(program: Program) -> bool:
    """Return whether anything may depend on the contents of memory, apart from mbarriers."""
    return maps_may_change(program) or _contents_decide(program, _needed_by_threads(program, None, stores=False))


def needed_objects(program: Program, found: list[frozenset[str]]) -> frozenset[int] | None:
    """Return the addresses of objects whose contents may matter, given the ``found`` needed registers.

    ``None`` where only an execution shows which they are, or asynchronous copies write them.
    """
    if maps_may_change(program) or _maps_are_moved(program):
        return None
    objects = Objects(program.memory)
    asked: set[int] = set()
    seen: set[tuple[int, frozenset[str]]] = set()
    for thread, names in zip(program.threads, found, strict=True):
        for op in thread.code:
            if (id(op), names) not in seen:
                seen.add((id(op), names))
                bases = _objects_read_by(op, names, objects)
                if bases is None:
                    return None
                asked |= bases
    for op in map(ops.performed_operation, program.operations):
        if op.facets.copies:
            dst = getattr(op, "dst", None)  # of a tensor copy nobody knows
            bases = None if dst is None else _objects_at(dst, objects)
            if bases is None or bases & asked:
                return None
    return frozenset(asked)


def object_names(program: Program, objects: frozenset[int]) -> set[str]:
    """Return the names of the objects at some addresses."""
    return {i.object.name for i in program.memory.instances if i.base in objects}


def _objects_read_by(op: Op, names: frozenset[str], objects: Objects) -> set[int] | None:
    """Return the objects that an operation reads to decide something."""
    inner = ops.performed_operation(op)
    if isinstance(inner, ops.Atomic) or (
        isinstance(inner, ops.Load) and (isinstance(op, ops.Await) or _defined_registers(inner) & names)
    ):
        return _objects_at(inner.address, objects)
    return set()


def _objects_at(address: Expr, objects: Objects) -> set[int] | None:
    """Return the objects that may contain an address; ``None`` for any."""
    found = [None if place is None else objects.at(place) for place in places_of(address)]
    return None if None in found else {i.base for i in found if i is not None}


def maps_may_change(program: Program) -> bool:
    """Return whether some copy uses a tensor map that is not known from the declarations."""
    return bool(copies_by_changed_maps(program))


def _contents_decide(program: Program, found: list[frozenset[str]]) -> bool:
    return _maps_are_moved(program) or _awaits_values(program) or _loads_decide(program, found)


def _needed_by_threads(program: Program, watched: Watched | None, *, stores: bool) -> list[frozenset[str]]:
    """Return the registers of each thread that matter, or reach what is stored."""
    found = []
    by_code: dict[tuple[frozenset[str], tuple[int, ...]], frozenset[str]] = {}
    uses = _register_uses(program, stores=stores)
    for thread in program.threads:
        names = (watched or {}).get(thread.index, frozenset())
        key = (names, tuple(map(id, thread.code)))
        if key not in by_code:
            by_code[key] = _needed_by_thread(thread, names, uses)
        found.append(by_code[key])
    return found


def copied_data_matters(program: Program) -> bool:
    """Return whether anything can depend on what copies move: values that are read or awaited, fields of maps."""
    return (
        _maps_are_moved(program)
        or _awaits_values(program)
        or any(_defined_registers(op) for op in program.operations if isinstance(op, ops.ScalarRead))
    )


def _maps_are_moved(program: Program) -> bool:
    """Return whether tensor maps are modified or copied at run time, possibly by loads and stores."""
    kinds = ops.TensormapReplace | ops.TensormapCopyFence
    return any(isinstance(op, kinds) for op in program.operations)


def _awaits_values(program: Program) -> bool:
    """Return whether a value of memory is awaited: what is stored there decides if the wait ends."""
    code = program.operations
    return any(isinstance(op, ops.Await) and isinstance(op.inner, ops.ScalarRead) for op in code)


def _loads_decide(program: Program, found: list[frozenset[str]]) -> bool:
    return any(
        _defined_registers(op) & names
        for thread, names in zip(program.threads, found, strict=True)
        if names
        for op in thread.code
        if isinstance(op, ops.ScalarRead)
    )


def _defined_registers(op: Op) -> set[str]:
    """Return the registers that an operation defines where it is executed, under a guard as well."""
    return {name for name, _ in written_registers(op)}


def _register_uses(program: Program, *, stores: bool) -> dict[int, Uses]:
    """Return the uses of registers, by the identity of the operation."""
    found = {id(op): _find_uses(op, stores=stores) for op in program.operations}
    return {k: uses for k, uses in found.items() if uses != (None, set())}


def _find_uses(op: Op, *, stores: bool) -> Uses:
    """Return how an operation uses registers; unless ``stores``, what is stored does not matter."""
    _, used = defined_and_used(op)
    if isinstance(op, ops.Alu):
        return {r.name for r in op.dsts if r is not None}, used
    if isinstance(op, ops.Store) and not stores:
        data = {name for src in op.srcs for name in registers_of(src)}
        used = (used - data) | set(registers_of(op.address)) | _guard_register(op)
    return None, used


def _guard_register(op: Op) -> set[str]:
    return set() if op.guard is None else {op.guard.reg.name}


def _needed_by_thread(thread: Thread, watched: frozenset[str], uses: dict[int, Uses]) -> frozenset[str]:
    """Return the registers of one thread that matter; ``uses`` are those of the operations that use any."""
    wanted: set[str] = set(watched)
    flows: list[tuple[set[str], set[str]]] = []
    for op in {id(op): op for op in thread.code if id(op) in uses}.values():
        defined, used = uses[id(op)]
        if defined is None:
            wanted |= used
        else:
            wanted |= _guard_register(op)
            flows.append((defined, used))
    changed = True
    while changed:
        changed = False
        for defined, used in flows:
            if defined & wanted and not used <= wanted:
                wanted |= used
                changed = True
    return frozenset(wanted)
