"""Unshared accesses: plain loads and stores of global memory whose bytes no other thread, and no other kind of access,
ever touches.

Two accesses race only where they conflict (PTX ISA 9.0 8.7.1), and accesses of one thread by weak operations through
the generic proxy are ordered by its program order (8.9.1). So an access whose bytes one thread alone touches, and
always so, conflicts with none, and needs no event: synchronisation is related through events of others, for program
order is transitive. Its value is not needed either, where no load of these bytes has a register that decides anything.

The bytes are compared, not the objects: each thread has its elements of an output that all of them write. What another
grid, another name or another kind of operation may touch leaves an object out as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from mcheck.effects.site import Objects
from mcheck.effects.unwritten_objects import copies_by_changed_maps, declared_places, is_plain_access, places_of
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.type_sizes import type_size


def find_unshared_accesses(program: Program) -> frozenset[int]:
    """The loads and stores (by identity) each of whose bytes one thread alone touches, by such accesses only."""
    plain = {id(op) for op in program.operations if _is_plain(op)}
    if not plain:
        return frozenset()
    objects = Objects(program.memory)
    apart = _objects_touched_plainly(program, plain, objects)
    if not apart:
        return frozenset()
    return _find_ops_apart(program, plain, objects, apart)


def _is_plain(op: Op) -> bool:
    """Whether this is a plain access, and no value that it loads is needed."""
    return is_plain_access(op) and not (isinstance(op, ops.Load) and any(op.dsts))


def _objects_touched_plainly(program: Program, plain: set[int], objects: Objects) -> frozenset[int]:
    """The addresses of the objects of global memory that nothing but the ``plain`` loads and stores can touch."""
    instances = program.memory.instances
    if any(i.cta is None and i.base != i.physical for i in instances):
        return frozenset()  # what has a second name is touched by that as well
    if copies_by_changed_maps(program):
        return frozenset()  # what a map comes to name is touched by its copies
    found = {i.base for i in instances if i.cta is None and i.object.earlier_grid is None and not i.object.tensor_map}
    for op in program.operations:
        if id(op) in plain:
            continue
        for address in _touched_places(program, ops.performed_operation(op)):
            if address is None:
                return frozenset()
            instance = objects.at(address)
            if instance is not None:
                found.discard(instance.base)
    return frozenset(found)


def _touched_places(program: Program, op: Op) -> Iterator[int | None]:
    """Where an operation may read or write global memory; ``None`` is for a place that only an execution shows."""
    match op:
        case ops.Wgmma() | ops.TensorCore() | ops.TensorMove() | ops.Fill():
            return  # shared and tensor memory alone
        case ops.Load(space=space) | ops.Store(space=space) | ops.Atomic(space=space) if space.startswith("shared"):
            return
        case ops.TensorCopy():
            yield from declared_places(program, op)
        case _:
            for name in {*op.facets.reads, *op.facets.writes}:
                yield from places_of(getattr(op, name))


def _find_ops_apart(program: Program, plain: set[int], objects: Objects, apart: frozenset[int]) -> frozenset[int]:
    """Those of the ``plain`` operations each of whose bytes, in objects ``apart``, one thread alone touches."""
    accesses = sorted(_accesses(program, plain))
    shared: set[int] = set()
    first, reach, alone = 0, 0, True
    for k, (low, high, thread, _) in enumerate(accesses):
        if low >= reach:  # these bytes overlap with none before
            if not (alone and _lies_in(accesses[first][0], reach, objects, apart)):
                shared.update(name for _, _, _, name in accesses[first:k])
            first, reach, alone = k, high, True
        else:
            alone = alone and thread == accesses[first][2]
            reach = max(reach, high)
    if not (alone and accesses and _lies_in(accesses[first][0], reach, objects, apart)):
        shared.update(name for _, _, _, name in accesses[first:])
    return frozenset(plain) - shared


def _accesses(program: Program, plain: set[int]) -> Iterator[tuple[int, int, int, int]]:
    """The bytes (from, to) that a thread touches by an operation, each of them by number and identity."""
    for threads, code in _threads_by_code(program):
        for op in code:
            if id(op) not in plain:
                continue
            assert isinstance(op, ops.Load | ops.Store)
            size = type_size(op.type) * op.scalar_count
            places = places_of(op.address)
            for thread in threads:
                low = places[thread.place.lane if len(places) > 1 else 0]
                assert low is not None
                yield low, low + size, thread.index, id(op)


def _threads_by_code(program: Program) -> list[tuple[list[Thread], tuple[Op, ...]]]:
    """The threads that have the same operations, with these."""
    found: defaultdict[tuple[int, ...], list[Thread]] = defaultdict(list)
    for thread in program.threads:
        found[tuple(map(id, thread.code))].append(thread)
    return [(threads, threads[0].code) for threads in found.values()]


def _lies_in(low: int, high: int, objects: Objects, apart: frozenset[int]) -> bool:
    """Whether bytes lie in one of the objects ``apart``."""
    instance = objects.at(low)
    return instance is not None and instance.base in apart and high <= instance.base + instance.object.size
