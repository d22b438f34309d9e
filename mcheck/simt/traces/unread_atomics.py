"""Unread atomics: counts of a histogram, sums of split-K products. Only atomics access these words, and nobody uses the
results.

Where a word has one thread, its atomics race with nothing, synchronise with nobody (8.7, 8.8), and nothing depends on
their order: the engine need not track the words.

Where it has several, the scope of each atomic has to include all threads. Then they are morally strong and do not race
with each other (8.7.1). If they are relaxed and no thread has a fence, no pattern releases or acquires by them (8.8),
so they order nothing else. An execution without them is one with them, too: let those of a word come in an order that
agrees with causality and program order, each reading the one before it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping

from mcheck.base.records import replace
from mcheck.ir import ops
from mcheck.ir.def_use import numbers_in, registers_in
from mcheck.ir.expr import Const
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, MemoryMap
from mcheck.ir.ops import Op, multimem_of, performed_operation
from mcheck.ir.program import Program
from mcheck.ir.scopes import WIDTH, width_of_program
from mcheck.ir.type_sizes import type_size

MIN_DROPPED = 64
"""Number of atomics that are kept in any case."""
WIDEST = 16
"""Bytes of the widest atomic; words of one size in an aligned range of so many do not overlap."""


def drop_unread_atomics(program: Program) -> Program:
    """The program without the atomics that no result, race or order depends on."""
    found = _find_unread(program)
    if not found:
        return program
    owners: dict[int, set[int]] = {}
    for thread in program.threads:
        for op in thread.code:
            if id(op) in found:
                owners.setdefault(_address(found[id(op)]), set()).add(thread.index)
    kept = {at for at, those in owners.items() if len(those) > 1}
    if kept and not any(isinstance(performed_operation(op), ops.Fence | ops.ProxyFence) for op in program.operations):
        width = width_of_program(program)
        kept = {_address(op) for op in found.values() if op.sem != "relaxed" or WIDTH[op.scope] < width} & kept
    idle = {number for number, op in found.items() if _address(op) not in kept}
    if not idle:
        return program
    threads = tuple(replace(t, code=tuple(op for op in t.code if id(op) not in idle)) for t in program.threads)
    return replace(program, threads=threads)


def _find_unread(program: Program) -> Mapping[int, ops.Atomic]:
    """The atomics without results of words that only such atomics access, by identity."""
    different = program.operations
    atomics = {id(op) for op in different if isinstance(op, ops.Atomic)}
    if sum(id(op) in atomics for thread in program.threads for op in thread.code) <= MIN_DROPPED:
        return {}
    if any(isinstance(op, ops.TensormapReplace | ops.TensormapCopyFence) for op in different):
        return {}  # a map may be made for any buffer
    if any(multimem_of(performed_operation(op)) is not None for op in different):
        return {}  # it accesses buffers that its address does not name
    if any(True for op in different for part in op.decisive for _ in registers_in(getattr(op, part))):
        return {}  # an address that is computed may be any
    plain = {id(op): op for op in different if isinstance(op, ops.Atomic) and _is_plain(op, program.memory)}
    sizes: dict[int, set[int]] = {}
    for op in plain.values():
        sizes.setdefault(_address(op) // WIDEST, set()).add(type_size(op.type))
    words = sorted({_address(op) for op in plain.values()})
    busy = {at for at in words if len(sizes[at // WIDEST]) > 1}
    for low, high in _accessed(program.memory, [op for op in different if id(op) not in plain]):
        first = bisect_right(words, low) - 1
        if first >= 0 and words[first] + min(sizes[words[first] // WIDEST]) > low:
            busy.add(words[first])
        busy.update(words[first + 1 : bisect_left(words, high)])
    return {number: op for number, op in plain.items() if _address(op) not in busy}


def _address(op: ops.Atomic) -> int:
    assert isinstance(op.address, Const)
    return op.address.value


def _is_plain(op: ops.Atomic, memory: MemoryMap) -> bool:
    """Whether an atomic has no result, and its word lies in an object of global memory at a multiple of its size: the
    engine reports the others.
    """
    if not isinstance(op.address, Const) or not GLOBAL_BASE <= op.address.value < SHARED_BASE:
        return False
    at, size, found = op.address.value, type_size(op.type), memory.find(op.address.value)
    whole = found is not None and at % size == 0 and at + size <= found.base + found.object.size
    return whole and op.dst is None and op.proxy == "generic" and _is_scalar(op)


def _is_scalar(op: ops.Atomic) -> bool:
    return len(op.srcs) == (2 if op.op == "cas" else 1)


def _accessed(memory: MemoryMap, others: Iterable[Op]) -> Iterator[tuple[int, int]]:
    """The ranges that operations may access, and all buffers that tensor maps name."""
    for instance in memory.instances:
        for spec in instance.object.tensor_map:
            yield from _buffer_of(memory, spec.global_address)
    for op in others:
        match op:
            case ops.Load(address=Const(at)) | ops.Store(address=Const(at)):
                yield at, at + type_size(op.type) * op.scalar_count
            case ops.Atomic(address=Const(at)) if _is_scalar(op):
                yield at, at + type_size(op.type)
            case _:
                for number in numbers_in(op):
                    yield from _buffer_of(memory, number)


def _buffer_of(memory: MemoryMap, number: int) -> Iterator[tuple[int, int]]:
    if GLOBAL_BASE <= number < SHARED_BASE and (found := memory.find(number)) is not None:
        yield found.base, found.base + found.object.size
