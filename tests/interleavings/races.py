"""Pairs of accesses that are a race for certain (8.7): both may come next, in either order, with nothing between them;
or no fence of a program leads from the proxy of the one to that of the other.

Whoever comes second has seen nothing of the first but perhaps by this access itself, and that orders only if the two
are morally strong. So in the execution in which they follow each other causality does not order them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from mcheck.ir import ops
from mcheck.ir.program import Place
from tests.interleavings.arithmetic import brought, size_of
from tests.interleavings.interpreter import Machine
from tests.interleavings.memory import MAP
from tests.interleavings.state import NOWHERE, Copy, Misuse, State, Unclear, within
from tests.interleavings.tensors import resolved


class Access(NamedTuple):
    """Bytes that are accessed; ``scope`` is that of a strong access. A copy has no place, a reduction adds up."""

    text: str
    address: int
    size: int
    writes: bool
    scope: str | None
    place: Place | None
    adds: bool = False


def races(machine: Machine, state: State) -> Iterator[tuple[str, str]]:
    """The pairs of a state, as texts."""
    groups = [list(_of_thread(machine, state, k)) for k in range(len(state.threads))]
    groups += [list(_of_copy(machine, state, c)) for thread in state.threads for c in thread.copies]
    if machine.unfenced:
        yield from _unfenced(machine, state)
    for one, two in combinations([group for group in groups if group], 2):
        for a in one:
            for b in two:
                if _races(a, b):
                    yield a.text, b.text


def _unfenced(machine: Machine, state: State) -> Iterator[tuple[str, str]]:
    """What threads have accessed and what an operation of the async proxy accesses, with no proxy fence anywhere."""
    for thread in state.threads:
        generic = {c for group in thread.plain for c in group}
        for copy in thread.copies:
            if copy in generic or (copy.box is None and not copy.source):
                continue  # cp.async and st.async are generic
            for access in _of_copy(machine, state, copy):
                touched = state.stored | state.loaded if access.writes and not access.adds else state.stored
                if not touched.isdisjoint(range(access.address, access.address + access.size)):
                    yield "an earlier generic access", copy.text


def _races(a: Access, b: Access) -> bool:
    if not (a.writes or b.writes) or a.address >= b.address + b.size or b.address >= a.address + a.size:
        return False
    if a.place is None or b.place is None:
        return not (a.adds and b.adds)
    same = (a.address, a.size) == (b.address, b.size)
    both = a.scope is not None and b.scope is not None
    return not (both and same and within(a.scope, a.place, b.place) and within(b.scope, b.place, a.place))


def _of_copy(machine: Machine, state: State, copy: Copy) -> Iterator[Access]:
    try:
        found = resolved(machine.store, state, copy)
    except (Misuse, Unclear):
        return
    place, scope = copy.place, None if copy.place is None else "cluster"
    if copy.held is None:
        for address, size in found.source:
            if address != NOWHERE and size:
                yield Access(copy.text, address, size, writes=False, scope=None, place=None)
        if copy.box is not None:
            yield Access(copy.text, copy.box.map, MAP, writes=False, scope=None, place=None)
    for address, size in found.target:
        if address != NOWHERE and size:
            yield Access(copy.text, address, size, writes=True, scope=scope, place=place, adds=bool(copy.reduce))


def _of_thread(machine: Machine, state: State, index: int) -> Iterator[Access]:
    """What a thread accesses next, as scalars; a wait in vain reads as well."""
    thread, declared = state.threads[index], machine.declared[index]
    if thread.over or thread.waits is not None:
        return
    op = ops.performed_operation(declared.code[thread.at])
    if isinstance(op, ops.TensormapReplace | ops.TensormapCopyFence):
        yield from _of_map(machine, state, index, op)
    if not isinstance(op, ops.Load | ops.Store | ops.Atomic):
        return
    try:
        address = machine.number(state, index, op.address)
        size = size_of(op.type)
        count = 1 if isinstance(op, ops.Atomic) else len(op.dsts if isinstance(op, ops.Load) else op.srcs)
        at = machine.store.access(state, address, size * count, size * count)
        writes = not isinstance(op, ops.Load)
        if isinstance(op, ops.Atomic) and op.op == "cas":
            found = machine.store.read(state, at, size)
            if found is None:
                return
            writes = brought(op.type, found) == brought(op.type, machine.number(state, index, op.srcs[0]))
    except (Misuse, Unclear):
        return
    scope = None if op.sem == "weak" else op.scope or "sys"
    for k in range(count):
        yield Access(f"{declared.name}: {op.text}", address + k * size, size, writes, scope, declared.place)


def _of_map(
    machine: Machine, state: State, index: int, op: ops.TensormapReplace | ops.TensormapCopyFence
) -> Iterator[Access]:
    """Both are weak accesses of a whole map (9.7.9.26, 9.7.13.16)."""
    declared = machine.declared[index]
    text = f"{declared.name}: {op.text}"
    target, source = (op.address, None) if isinstance(op, ops.TensormapReplace) else (op.dst, op.src)
    try:
        yield Access(text, machine.number(state, index, target), MAP, writes=True, scope=None, place=declared.place)
        if source is not None:
            at = machine.number(state, index, source)
            yield Access(text, at, MAP, writes=False, scope=None, place=declared.place)
    except (Misuse, Unclear):
        return
