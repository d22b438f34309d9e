"""Instructions on multimem addresses, split into one operation for each copy of the bytes.

A multimem address stands for bytes of the memory of several GPUs (PTX ISA 8.2.3), and an instruction accesses all of
them (9.7.9.14). The text does not order these accesses (open question Q41): they have one place in program order.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass, replace
from mcheck.ir.expr import Binary, Const, Expr, Lanes, Reg
from mcheck.ir.memory import Instance, MemoryMap
from mcheck.ir.ops import (
    Alu,
    Atomic,
    Await,
    Branch,
    BulkCopy,
    Label,
    Load,
    Multimem,
    Op,
    Store,
    multimem_of,
    performed_operation,
)
from mcheck.ir.program import LoopIterations, Thread
from mcheck.ir.spin_loops import NEGATED
from mcheck.ir.type_sizes import type_size


@dataclass(frozen=True, slots=True)
class Part:
    """One of the accesses of an instruction: of its operation in ``op``, the address is still the multimem address, and
    that of the access lies ``offset`` bytes behind it.
    """

    op: Op
    offset: int


def split_accesses(op: Op, distances: Sequence[int]) -> list[Part]:
    """The accesses of an instruction, for copies at these distances from the multimem address, copy by copy."""
    form = multimem_of(op)
    assert form is not None
    found = [
        (distance, Part(one, distance + offset))
        for k, distance in enumerate(distances)
        for offset, one in _elements(op, form, k)
    ]
    last = len(found) - 1
    return [
        Part(with_multimem(part.op, Multimem(distance=distance, number=number, more=number < last)), part.offset)
        for number, (distance, part) in enumerate(found)
    ]


def with_multimem(op: Op, form: Multimem) -> Op:
    """An operation that accesses memory in this way."""
    return replace(op, multimem=form)  # type: ignore[call-arg]


def _elements(op: Op, form: Multimem, copy: int) -> list[tuple[int, Op]]:
    """The accesses of one copy, with their offsets: a vector and what is packed in a register is a set of scalars that
    nothing orders (8.2.4, 8.2.5).
    """
    match op:
        case BulkCopy():
            return [(0, op)]
        case Load():
            registers = [_taken(copy, k) if form.combine != "opaque" else None for k in range(len(op.dsts))]
            kind, count = _scalar(op.type, form.packed), len(op.dsts) * form.packed
            dsts = tuple(registers) if form.packed == 1 else (None,) * count
            return [(0, replace(op, dsts=dsts, type=kind))]
        case Store():
            kind = _scalar(op.type, form.packed)
            return [(0, replace(op, srcs=_unpacked(op.srcs, form.packed, kind), type=kind))]
        case Atomic():
            size = type_size(op.type)
            srcs = _unpacked(op.srcs, form.packed, op.type)
            return [(k * size, replace(op, srcs=(src,))) for k, src in enumerate(srcs)]
    raise AssertionError(type(op).__name__)


def _scalar(kind: str, packed: int) -> str:
    return kind if packed == 1 else f"b{8 * type_size(kind) // packed}"


def _unpacked(srcs: Sequence[Expr], packed: int, kind: str) -> tuple[Expr, ...]:
    bits = 8 * type_size(kind)
    return tuple(src if not k else Binary(">>", src, Const(k * bits)) for src in srcs for k in range(packed))


def _taken(copy: int, element: int) -> Reg:
    """The register for what ``multimem.ld_reduce`` reads of a copy: no source can name it."""
    return Reg(f"multimem.{copy}.{element}")


def split_instruction(op: Op, distances: Sequence[int]) -> list[Op]:
    """The operations of an instruction, of ``multimem.ld_reduce`` with those that combine what it has read."""
    out = [_displaced(part) for part in split_accesses(op, distances)]
    form = multimem_of(op)
    if not isinstance(op, Load) or form is None or form.combine is None:
        return out
    common = {"span": op.span, "text": op.text, "guard": op.guard, "section": op.section}
    for k, dst in enumerate(op.dsts):
        if dst is None:
            continue
        if form.combine == "opaque":
            out.append(Alu(op="opaque", type=op.type, dsts=(dst,), srcs=(), **common))  # type: ignore[arg-type]
            continue
        total: Expr = _taken(0, k)
        for copy in range(1, len(distances)):
            srcs = total, _taken(copy, k)
            out.append(Alu(op=form.combine, type=op.type, dsts=(dst,), srcs=srcs, **common))  # type: ignore[arg-type]
            total = dst
        if len(distances) == 1:
            out.append(Alu(op="mov", type=op.type, dsts=(dst,), srcs=(total,), **common))  # type: ignore[arg-type]
    return out


def _displaced(part: Part) -> Op:
    return with_address(part.op, _plus(address_of(part.op), part.offset))


def _plus(address: Expr, distance: int) -> Expr:
    match address:
        case Const(value):
            return Const(value + distance)
        case Lanes(values):
            return Lanes(tuple(value + distance for value in values))
    return Binary("+", address, Const(distance))


def address_of(op: Op) -> Expr:
    """The operand with the multimem address."""
    found: Expr = op.dst if isinstance(op, BulkCopy) else op.address  # type: ignore[attr-defined]
    return found


def with_address(op: Op, address: Expr) -> Op:
    """An operation with another operand for the multimem address."""
    return replace(op, dst=address) if isinstance(op, BulkCopy) else replace(op, address=address)  # type: ignore[call-arg]


# --- programs ------------------------------------------------------------------------------------------------


def find_copies(memory: MemoryMap, instance: Instance) -> tuple[int, ...]:
    """The distances of its copies from a multimem object; none if the object is no such."""
    found = [memory.instance_of(name) for name in instance.object.copies]
    return tuple(copy.base - instance.base for copy in found if copy is not None)


def split_threads(threads: Sequence[Thread], memory: MemoryMap) -> tuple[Thread, ...]:
    """The threads with each instruction on multimem addresses split into the accesses of the copies."""
    if not any(multimem_of(performed_operation(op)) for op in {id(op): op for t in threads for op in t.code}.values()):
        return tuple(threads)
    known: dict[int, list[Op]] = {}
    return tuple(_split_thread(thread, memory, known) for thread in threads)


def _split_thread(thread: Thread, memory: MemoryMap, known: dict[int, list[Op]]) -> Thread:
    code: list[Op] = []
    places: list[int] = []
    labels: dict[str, int] = {}
    for op in thread.code:
        places.append(len(code))
        if multimem_of(performed_operation(op)) is None:
            code.append(op)
        elif isinstance(op, Await):
            name = f"multimem.{len(code)}"
            labels[name] = len(code)
            code += _awaited(op, name, memory)
        else:
            found = known.get(id(op))
            if found is None:
                found = known[id(op)] = _split(op, memory)
            code += found
    places.append(len(code))
    labels |= {name: places[at] for name, at in thread.labels.items()}
    iterations, types = thread.iterations, dict(thread.types)
    if iterations is not None:
        starts = tuple(places[at] for at in iterations.starts)
        iterations = LoopIterations(len(code), starts, iterations.texts)
    for op in code:
        if isinstance(op, Load) and op.multimem is not None:
            types |= {reg.name: op.type for reg in op.dsts if reg is not None}
    rounds = {span: tuple(places[at] for at in found) for span, found in thread.rounds.items()}
    return replace(thread, code=tuple(code), labels=labels, iterations=iterations, types=types, rounds=rounds)


def _split(op: Op, memory: MemoryMap) -> list[Op]:
    distances = _distances(op, address_of(op), memory)
    return split_instruction(op, distances) if distances else [op]


def _awaited(op: Await, name: str, memory: MemoryMap) -> list[Op]:
    """A loop that repeats ``multimem.ld_reduce`` until its result compares as awaited."""
    inner = op.inner
    assert isinstance(inner, Load) and op.compare is not None
    (dst,) = inner.dsts
    assert dst is not None
    operator, right = op.compare
    if op.guard is not None:
        raise Unsupported("await of multimem.ld_reduce takes no guard", op.span)
    failed = Branch(
        target=name, condition=Binary(NEGATED[operator], dst, right), span=op.span, text=op.text, section=op.section
    )
    return [Label(name=name, span=op.span, text=op.text), *_split(inner, memory), failed]


def _distances(op: Op, address: Expr, memory: MemoryMap) -> tuple[int, ...]:
    """The distances of the copies from the multimem address of an instruction; none if it is no such address."""
    if isinstance(address, Const):
        instance = memory.find(address.value)
        return () if instance is None else find_copies(memory, instance)
    found = {find_copies(memory, instance) for instance in memory.instances if instance.object.copies}
    if len(found) > 1:
        raise Unsupported("a register with one of several multimem addresses is not followed", op.span)
    return next(iter(found), ())
