"""Private atomics: sums of split-K products, which each thread adds to words of its own.

No thread reads such a word, or the results of the atomics, and no other thread accesses it. So they race with nothing,
synchronise with nobody (8.7, 8.8), and nothing depends on their order: the engine need not track the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mcheck.ir import ops
from mcheck.ir.def_use import numbers_in, registers_in
from mcheck.ir.expr import Const
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, Instance, MemoryMap
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size

MIN_DROPPED = 64
"""Number of atomics that are kept in any case."""


def drop_private_atomics(program: Program) -> Program:
    """The program without the atomics of buffers that only atomics access, where a word has one thread."""
    different = program.operations
    if sum(isinstance(op, ops.Atomic) for op in different) <= MIN_DROPPED:
        return program
    if any(isinstance(op, ops.TensormapReplace | ops.TensormapCopyFence) for op in different):
        return program  # a map may be made for any buffer
    if any(True for op in different for part in op.decisive for _ in registers_in(getattr(op, part))):
        return program  # an address that is computed may be any
    busy = set(_shared_buffers(program.memory, different))
    owners: dict[int, set[int]] = {}
    for thread in program.threads:
        for op in thread.code:
            if isinstance(op, ops.Atomic) and isinstance(op.address, Const):
                owners.setdefault(op.address.value, set()).add(thread.index)
    idle = {
        id(op)
        for op in different
        if isinstance(op, ops.Atomic)
        and isinstance(op.address, Const)
        and len(owners[op.address.value]) == 1
        and (instance := program.memory.find(op.address.value)) is not None
        and instance.base not in busy
    }
    if not idle:
        return program
    kept = tuple(replace(t, code=tuple(op for op in t.code if id(op) not in idle)) for t in program.threads)
    return replace(program, threads=kept)


def _shared_buffers(memory: MemoryMap, different: Iterable[Op]) -> Iterator[int]:
    """The buffers, by address, that other operations access, or atomics of several sizes, or atomics with results."""
    sizes: dict[int, int] = {}
    for instance in memory.instances:
        for spec in instance.object.tensor_map:
            yield from _base_of(memory, spec.global_address)
    for op in different:
        if not isinstance(op, ops.Atomic) or not _is_plain(op):
            for number in numbers_in(op):
                yield from _base_of(memory, number)
            continue
        at, size = op.address.value, type_size(op.type)  # type: ignore[union-attr]
        found = memory.find(at)
        if found is not None and (sizes.setdefault(found.base, size) != size or not _fits(found, at, size)):
            yield found.base


def _is_plain(op: ops.Atomic) -> bool:
    known = isinstance(op.address, Const) and GLOBAL_BASE <= op.address.value < SHARED_BASE
    return known and op.dst is None and len(op.srcs) == 1 and op.proxy == "generic"


def _fits(instance: Instance, at: int, size: int) -> bool:
    """Whether a word lies in its object, at a multiple of its size: the engine reports the others."""
    return at % size == 0 and at + size <= instance.base + instance.object.size


def _base_of(memory: MemoryMap, number: int) -> Iterator[int]:
    if GLOBAL_BASE <= number < SHARED_BASE and (found := memory.find(number)) is not None:
        yield found.base
