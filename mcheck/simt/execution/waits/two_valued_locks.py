"""Locks that hold one of two values: ``while (atomicExch(lock, taken) != free)``, ``while (atomicCAS(lock, free, taken)
== taken)``. They are followed as the one attempt that succeeds.

A failed attempt changes nothing if the word can only hold ``free`` or ``taken``: an exchange writes the value that it
has found. Without it every value is read as before, from the write in front of it, and whoever read from the attempt
synchronised with more. No execution is added: each thread may make its first attempt when the lock is free. So these
have to hold:

* the word holds one of the two values at first, and every write to it is a store or an atomic, of one of the two;
* nothing else, such as an asynchronous copy, may access the object that it is part of.

The failed attempts may race themselves, unless all accesses of the word are morally strong with them (PTX ISA 8.7.1):
strong, of all its bytes, at a scope no narrower than theirs, which includes all threads that access it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeGuard

from mcheck.base.records import dataclass
from mcheck.ir import ops
from mcheck.ir.def_use import numbers_in, registers_in
from mcheck.ir.expr import Const, Expr
from mcheck.ir.memory import MemoryMap
from mcheck.ir.ops import Op
from mcheck.ir.ops.memory import ScalarAccess
from mcheck.ir.program import Thread
from mcheck.ir.scopes import WIDTH, scope_instance
from mcheck.ir.type_sizes import type_size


@dataclass(frozen=True, slots=True)
class TwoValuedLock:
    """The values of a lock of ``size`` bytes, when it is free and when a thread has it, and the scope of attempts."""

    size: int
    free: int
    taken: int
    scope: str

    def holds(self, value: Expr) -> bool:
        """Whether a value is one of the two."""
        return isinstance(value, Const) and value.value % (1 << 8 * self.size) in (self.free, self.taken)


def may_drop_failures(
    locks: Mapping[int, TwoValuedLock], operations: Iterable[Op], memory: MemoryMap, initial: Mapping[int, int | None]
) -> bool:
    """Whether failed attempts to take these locks, by address, change nothing; ``initial`` are their first values.
    ``operations`` are those of all threads.
    """
    if any((first := initial[at]) is None or not lock.holds(Const(first)) for at, lock in locks.items()):
        return False
    if any(i.object.copies or i.object.alias_of for i in memory.instances):
        return False
    reached = [spec.global_address for i in memory.instances for spec in i.object.tensor_map]
    for op in operations:
        inner = ops.performed_operation(op)
        if isinstance(inner, ops.TensormapReplace | ops.TensormapCopyFence):
            return False  # a map may be made for any buffer
        if not _is_scalar(inner):
            if any(True for part in inner.decisive for _ in registers_in(getattr(inner, part))):
                return False  # an address that is computed may be any
            reached += numbers_in(inner)
        elif not all(_keeps(inner, at, lock) for at, lock in locks.items()):
            return False
    objects = {instance.base for number in reached if (instance := memory.find(number)) is not None}
    return all((home := memory.find(at)) is not None and home.base not in objects for at in locks)


def weaker_accesses(locks: Mapping[int, TwoValuedLock], threads: Iterable[Thread]) -> Iterator[Op]:
    """The accesses of locks that are not morally strong with attempts to take them."""
    accesses = {(id(op), thread.place.cta): op for thread in threads for op in thread.code}
    for at, lock in locks.items():
        found: list[tuple[Op, Hashable, bool]] = []
        for (_, cta), op in accesses.items():
            inner = ops.performed_operation(op)
            if _is_scalar(inner) and _reaches(inner, at, lock):
                found.append((op, scope_instance(cta, lock.scope), _is_strong(inner, at, lock)))
        # Attempts have to name a scope that includes all threads that access the word.
        within = len({instance for _, instance, _ in found}) == 1
        yield from (op for op, _, strong in found if not (strong and within))


def _is_scalar(op: Op) -> TypeGuard[ScalarAccess]:
    """Whether an operation accesses scalars behind each other at an address of its own."""
    return isinstance(op, ScalarAccess) and not (isinstance(op, ops.Load | ops.Store) and op.matrix_rows)


def _reaches(access: ScalarAccess, at: int, lock: TwoValuedLock) -> bool:
    """Whether an access may be one of bytes of a lock."""
    places = list(numbers_in(access.address))
    stop = type_size(access.type) * access.scalar_count
    return not places or access.multimem is not None or any(p < at + lock.size and at < p + stop for p in places)


def _is_whole(access: ScalarAccess, at: int, lock: TwoValuedLock) -> bool:
    """Whether an access is one of all bytes of a lock, and no others."""
    alone = access.scalar_count == 1 and access.multimem is None
    return alone and type_size(access.type) == lock.size and list(numbers_in(access.address)) == [at]


def _is_strong(access: ScalarAccess, at: int, lock: TwoValuedLock) -> bool:
    wide = access.scope in WIDTH and WIDTH[access.scope] >= WIDTH[lock.scope]
    return wide and access.sem != "weak" and _is_whole(access, at, lock)


def _keeps(access: ScalarAccess, at: int, lock: TwoValuedLock) -> bool:
    """Whether an access is elsewhere, or leaves one of the two values."""
    if not _reaches(access, at, lock):
        return True
    match access:
        case ops.Load():
            return access.multimem is None
        case ops.Store():
            return _is_whole(access, at, lock) and lock.holds(access.srcs[0])
        case ops.Atomic():
            swaps = access.op in ("exch", "cas")
            return swaps and _is_whole(access, at, lock) and lock.holds(access.srcs[-1])
    return False
