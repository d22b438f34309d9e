"""Awaited atomics whose failed attempts change memory, which this engine does not follow.

It executes the attempt that ends a wait, and no other one. That is right if failed ones change nothing: a
compare-and-swap stores only if it reads what it expects (PTX ISA 9.0 section 9.7.13.5), and changes nothing if that
would have ended the wait; an exchange changes nothing if it finds what it writes, as in a lock whose word holds two
values only. Where a module was executed, that has been asked already (``Await.settled``).
"""

from __future__ import annotations

from mcheck.effects.unwritten_objects import find_written_places, places_of, stores_by_a_changed_map
from mcheck.events.structure import initial_bytes
from mcheck.ir import ops
from mcheck.ir.alu import wrap
from mcheck.ir.expr import Const, apply_binary
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size


def has_changing_attempts(program: Program) -> bool:
    """Return whether an atomic may be repeated after an attempt that has changed its word."""
    return any(_may_change(program, op) for op in program.operations)


def _may_change(program: Program, op: Op) -> bool:
    if not isinstance(op, ops.Await) or op.followed or op.settled:
        return False
    if not isinstance(op.inner, ops.Atomic) or op.compare is None:
        return False
    atomic, (operator, right) = op.inner, op.compare
    if atomic.op == "cas" and isinstance(atomic.srcs[0], Const) and isinstance(right, Const):
        expected, wanted = wrap(atomic.type, atomic.srcs[0].value), wrap(atomic.type, right.value)
        if apply_binary(operator, expected, wanted):
            return False
    if atomic.op != "exch" or operator != "==" or not isinstance(atomic.srcs[0], Const) or not isinstance(right, Const):
        return True
    return not _holds_only(program, atomic, {v.value & _ones(atomic) for v in (atomic.srcs[0], right)})


def _holds_only(program: Program, atomic: ops.Atomic, values: set[int]) -> bool:
    """Return whether the word of an atomic is known to hold no other values."""
    if not isinstance(atomic.address, Const) or stores_by_a_changed_map(program):
        return False
    low, size = atomic.address.value, type_size(atomic.type)
    first = initial_bytes(program, low, size)
    if not isinstance(first, int) or first not in values:
        return False
    home = program.memory.find(low)
    for op in map(ops.performed_operation, program.operations):
        if not isinstance(op, ops.ScalarWrite):
            others = find_written_places(program, op)
            if any(at is None or program.memory.find(at) is home for at in others):
                return False
            continue
        length = type_size(op.type) * op.scalar_count
        for at in places_of(op.address):
            if at is not None and (at + length <= low or low + size <= at):
                continue
            if (at, length) != (low, size) or not _stores_one_of(op, values):
                return False
    return True


def _stores_one_of(op: ops.ScalarWrite, values: set[int]) -> bool:
    """Return whether what an access stores is known, and one of the values."""
    if not isinstance(op, ops.Store) and not (isinstance(op, ops.Atomic) and op.op in ("exch", "cas")):
        return False
    left = op.srcs[-1]
    return isinstance(left, Const) and left.value & _ones(op) in values


def _ones(op: ops.ScalarWrite) -> int:
    return (1 << 8 * type_size(op.type)) - 1
