"""What is observed of a program: what its condition names, or else what its threads load and what it writes.

Arrays that only copies read, and that begin as zeros, get contents of their own where nobody names what to observe: of
zeros nobody could tell which copy of them arrived. No verdict depends on them, for no control does.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from mcheck.answers.final_states import terms_of
from mcheck.ir import ops
from mcheck.ir.condition import MemTerm, RegTerm, Term
from mcheck.ir.expr import Const, Reg
from mcheck.ir.memory import Instance, MemObject
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.program import Program, Thread
from mcheck.ir.type_sizes import type_size

MOST = 16
"""Terms that are watched where no condition says which."""
OUTSIDE = 6
"""How many of them are words of global memory, where there are so many."""
LOADED = 6
"""How many of them are registers, where there are others."""
FARTHEST = 4096
"""Bytes behind the address of a tensor copy that it may write."""
_RESULTS = re.compile(r"wgmma\.mma_async\S*\s*\{([^}]*)\}")
T = TypeVar("T")


def observed(program: Program) -> Program:
    """The program with a condition that names what is observed."""
    if terms_of(program.condition):
        return program
    program = filled(_typed(program))
    outside, inside = _words(program)
    registers = [t for t in _registers(program) if t.reg in program.threads[t.thread].types]
    chosen: list[Term] = [*_spread(outside, OUTSIDE)]
    rest = MOST - len(chosen)
    chosen += _spread(registers, max(LOADED, rest - len(inside)) if inside else rest)
    chosen += _spread(inside, MOST - len(chosen))
    return _watching(program, chosen)


def observed_as(program: Program, labels: Sequence[str], *, contents: bool) -> Program:
    """The program as it was run: with these terms, and with contents of its arrays or without."""
    if terms_of(program.condition):
        return program
    if contents:
        program = filled(_typed(program))
    outside, inside = _words(program, opaque=True)
    known = {t.label: t for t in (*_registers(program, opaque=True), *outside, *inside)}
    return _watching(program, [known[label] for label in labels])


def filled(program: Program) -> Program:
    """The program with contents in the arrays that only copies read."""
    objects = {id(item): _contents(item) for item in _read_by_copies(program)}
    if not objects:
        return program
    instances = tuple(
        replace(i, object=replace(i.object, init=objects[id(i.object)])) if id(i.object) in objects else i
        for i in program.memory.instances
    )
    return replace(program, memory=replace(program.memory, instances=instances))


def _watching(program: Program, terms: Sequence[Term]) -> Program:
    return replace(program, condition=replace(program.condition, locations=tuple(terms)))


def _spread(items: Sequence[T], number: int) -> list[T]:
    """So many of the items, from the first to the last."""
    if len(items) <= number:
        return list(items)
    if number < 2:
        return list(items[:number])
    return [items[k * (len(items) - 1) // (number - 1)] for k in range(number)]


# --- registers ----------------------------------------------------------------------------------------------


def _registers(program: Program, *, opaque: bool = False) -> list[RegTerm]:
    """What is loaded, and the results of matrix products."""
    found: dict[RegTerm, None] = {}
    for thread in program.threads:
        for op in map(performed_operation, thread.code):
            if not opaque and isinstance(op, ops.Load) and isinstance(op.address, Const):
                holder = _holder(program, op.address.value)
                if holder is not None and holder.object.tensor_map:
                    continue
            for name in _results(op):
                found[RegTerm(thread.index, name, f"{thread.name}:{name}")] = None
    return list(found)


def _typed(program: Program) -> Program:
    """The program with types for the results of matrix products that no declaration gives one."""
    threads = []
    for thread in program.threads:
        products = (op for op in thread.code if isinstance(op, ops.Wgmma))
        types = dict.fromkeys((name for op in products for name in matrix_registers(op)), "f32")
        threads.append(replace(thread, types={**types, **thread.types}) if types else thread)
    return replace(program, threads=tuple(threads))


def _results(op: Op) -> Iterator[str]:
    if isinstance(op, ops.Wgmma):
        yield from matrix_registers(op)
        return
    registers = op.dsts if isinstance(op, ops.Load) else (op.dst,) if isinstance(op, ops.Atomic) else ()
    yield from (r.name for r in registers if r is not None)


def matrix_registers(op: ops.Wgmma) -> tuple[str, ...]:
    """The registers that a matrix product names for its result."""
    found = _RESULTS.search(op.text)
    return tuple(name.strip().lstrip("%") for name in found.group(1).split(",")) if found else ()


# --- words of memory ------------------------------------------------------------------------------------------


def _words(program: Program, *, opaque: bool = False) -> tuple[list[MemTerm], list[MemTerm]]:
    """The words of global and of shared memory that the program writes at addresses that are known before."""
    hidden = set() if opaque else {_holder(program, a) for thread in program.threads for a in _opaque(program, thread)}
    ranges: dict[Instance, set[tuple[int, int]]] = {}
    for thread in program.threads:
        for op in map(performed_operation, thread.code):
            for address, size in _written(program, op):
                holder = _holder(program, address)
                if holder is None or holder in hidden or holder.object.tensor_map or not size:
                    continue
                start = address - holder.base
                ranges.setdefault(holder, set()).add((start, min(start + size, holder.object.size)))
    outside: list[MemTerm] = []
    inside: list[MemTerm] = []
    labels = Counter(i.label for i in program.memory.instances)
    for holder in program.memory.instances:
        for start, size in _pieces(ranges.get(holder, set())):
            of = f" of CTA {holder.cta.number}" if holder.cta is not None and labels[holder.label] > 1 else ""
            label = f"{holder.label}{of}[bytes {start}..{start + size}]"
            term = MemTerm(holder.physical + start, size, f"u{8 * size}", label)
            (outside if holder.cta is None else inside).append(term)
    return outside, inside


def _opaque(program: Program, thread: Thread) -> Iterator[int]:
    """Addresses of what no program may read the bytes of: mbarriers, and tensor maps, which hold real addresses, with
    what is copied from one or to one.
    """
    for op in thread.code:
        match op:
            case ops.MbarrierInit(address=Const(value)) | ops.TensormapReplace(address=Const(value)):
                yield value
            case ops.TensormapCopyFence(src=Const(value)):
                yield value
            case ops.BulkCopy(dst=Const(to), src=Const(where)):
                holders = (_holder(program, to), _holder(program, where))
                if any(h is not None and h.object.tensor_map for h in holders):
                    yield from (to, where)


def _pieces(ranges: set[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Aligned words that lie in the union of the ranges, each once."""
    end = 0
    for start, stop in _union(ranges):
        at = max(start, end)
        while at < stop:
            size = next(s for s in (8, 4, 2, 1) if at % s == 0 and at + s <= stop)
            yield at, size
            at += size
        end = max(end, stop)


def _union(ranges: set[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return found


def _written(program: Program, op: Op) -> Iterator[tuple[int, int]]:
    """Where an operation writes, and how many bytes, if its operands say so."""
    match op:
        case ops.Store(address=Const(value)) | ops.AsyncStore(address=Const(value)):
            yield value, type_size(op.type) * len(op.srcs)
        case ops.Atomic(address=Const(value)):
            yield value, type_size(op.type)
        case ops.BulkCopy(dst=Const(value), size=Const(size)) | ops.CpAsync(dst=Const(value), size=Const(size)):
            yield value, size
        case ops.Fill(address=Const(value), size=Const(size)):
            yield value, size
        case ops.TensorCopy(kind="load", shared=Const(value)):
            yield value, FARTHEST
        case ops.TensorCopy(kind="store", tensor_map=Const(value)):
            yield from ((item.base, min(item.object.size, FARTHEST)) for item in _described(program, value))


def _described(program: Program, map_: int) -> Iterator[Instance]:
    """The objects that the tensor maps of an object describe."""
    holder = _holder(program, map_)
    for spec in holder.object.tensor_map if holder is not None else ():
        found = _holder(program, spec.global_address)
        if found is not None:
            yield found


def _holder(program: Program, address: int) -> Instance | None:
    return program.memory.find(address)


# --- contents ---------------------------------------------------------------------------------------------------


def _contents(item: MemObject) -> bytes:
    """Halves that differ from place to place, and are numbers between an eighth and two where they are f16."""
    halves = (0x3000 + (k * 0x9E3779B1 >> 16) % 0x1000 for k in range((item.size + 1) // 2))
    return b"".join(struct.pack("<H", half) for half in halves)[: item.size]


def _read_by_copies(program: Program) -> Iterator[MemObject]:
    """Global arrays that copies read and nothing else touches, if no control depends on data."""
    if any(_steers(thread) for thread in program.threads):
        return
    read: dict[int, MemObject] = {}
    touched: set[int] = set()
    for thread in program.threads:
        for op in map(performed_operation, thread.code):
            sources: list[int] = []
            if isinstance(op, ops.BulkCopy | ops.CpAsync) and isinstance(op.src, Const):
                sources = [op.src.value]
            elif isinstance(op, ops.TensorCopy) and op.kind == "load" and isinstance(op.tensor_map, Const):
                sources = [i.base for i in _described(program, op.tensor_map.value)]
            for address in sources:
                holder = _holder(program, address)
                if holder is not None and holder.cta is None:
                    read[id(holder.object)] = holder.object
            for value in _constants(op):
                holder = _holder(program, value)
                if holder is not None and value not in sources:
                    touched.add(id(holder.object))
    for key, item in read.items():
        plain = item.dims and not item.tensor_map and item.alias_of is None and not any(item.init or b"")
        if plain and key not in touched:
            yield item


def _constants(value: Any) -> Iterator[int]:
    """The constants in an operand or an operation."""
    if isinstance(value, Const):
        yield value.value
    elif isinstance(value, tuple):
        for part in value:
            yield from _constants(part)
    elif hasattr(value, "__dataclass_fields__"):
        for f in fields(value):
            if f.compare:
                yield from _constants(getattr(value, f.name))


def _steers(thread: Thread) -> bool:
    """Whether a branch, a guard or an address may depend on what the thread has loaded."""
    loaded: set[str] = set()
    while True:
        before = len(loaded)
        for op in map(performed_operation, thread.code):
            if isinstance(op, ops.Load | ops.Atomic | ops.Collective) or (
                isinstance(op, ops.Alu) and loaded & set(_names(op.srcs))
            ):
                loaded.update(_names(getattr(op, "dsts", ()) or getattr(op, "dst", None)))
        if len(loaded) == before:
            break
    for op in thread.code:
        inner = performed_operation(op)
        decisive = [getattr(inner, name, None) for name in type(inner).decisive]
        condition = inner.condition if isinstance(inner, ops.Branch) else None
        compared = op.compare if isinstance(op, ops.Await) and isinstance(op.inner, ops.Load | ops.Atomic) else None
        guard = inner.guard.reg if inner.guard is not None else None
        if compared is not None or loaded & set(_names((*decisive, condition, guard))):
            return True
    return False


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, Reg):
        yield value.name
    elif isinstance(value, tuple):
        for part in value:
            yield from _names(part)
    elif hasattr(value, "__dataclass_fields__"):
        for f in fields(value):
            yield from _names(getattr(value, f.name))
