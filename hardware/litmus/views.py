"""Accesses through the texture and the surface proxy: what a chip has of them, and how they are printed.

A texture reads linear memory, so the words of all instances lie behind one texture object. A surface lies over a CUDA
array, whose layout nobody knows and which has no address: the words of a program that it writes by a surface are rows
of one array, and nothing else of the program can touch them.

The assembler takes what textures and surfaces read for constant while a kernel runs: it moves the reads up across
stores, acquires and barriers, and one over another. It moves none across ``pmevent``, which does nothing to memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

from hardware.emit import CannotEmit
from hardware.litmus import settings
from hardware.litmus.fit import owner_of
from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Unary
from mcheck.ir.memory import Instance
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.program import Program

PROXIES = ("texture", "surface")
WORD = 4
KEPT = "pmevent 0;"
NO_ADDRESS = "a surface's memory has no generic address on a chip"


class View(NamedTuple):
    """An object, by its name, that is accessed through a proxy."""

    name: str
    proxy: str


class Registers(NamedTuple):
    """The registers of an access: the handle of the texture or surface, and the coordinates."""

    handle: str
    x: str
    y: str


def proxy_of(op: Op) -> str | None:
    """The proxy that an access goes through, if it is that of textures or surfaces."""
    if isinstance(op, ops.Load | ops.Store | ops.Atomic) and op.proxy in PROXIES:
        return op.proxy
    return None


def views(program: Program) -> tuple[View, ...]:
    """The views of a program; raises ``CannotEmit`` where a chip has none such."""
    found: dict[View, None] = {}
    for op in (op for thread in program.threads for op in thread.code):
        proxy = proxy_of(performed_operation(op))
        if proxy is None:
            continue
        if isinstance(op, ops.Await):
            raise CannotEmit(f"an await of a read through the {proxy} proxy")
        assert isinstance(op, ops.Load | ops.Store | ops.Atomic)
        if isinstance(op, ops.Atomic) or op.sem != "weak":
            raise CannotEmit(f"PTX has no {op.text.split()[0]}")
        found[View(_viewed(program, op).object.name, proxy)] = None
    for view in found:
        if view.proxy == "surface":
            _refuse_mixed(program, view)
    return tuple(found)


def view_of(program: Program, op: Op) -> tuple[View, int]:
    """The view of an access, and by how many words it lies behind the start of the object."""
    assert isinstance(op, ops.Load | ops.Store)
    assert isinstance(op.address, Const)
    instance = _viewed(program, op)
    return View(instance.object.name, op.proxy), (op.address.value - instance.base) // WORD


def coordinates(view: View, at: int, stride: int, k: int, words: dict[int, Registers]) -> list[str]:
    """Sets the registers of a view: ``at`` is its place in the parameter, ``stride`` the bytes of an instance, and
    ``words`` has the registers by word of the object. The instance is in ``%i`` of thread ``k``, the mask in ``%m``.
    """
    lines = [
        f"ld.param.u32 %v{k}, [A+{at + 8}];",
        f"mul.lo.u32 %v{k}, %v{k}, %i{k};",
        f"and.b32 %v{k}, %v{k}, %m{k};",
    ]
    for word, r in words.items():
        lines.append(f"ld.param.u64 {r.handle}, [A+{at}];")
        if view.proxy == "texture":
            lines.append(f"mad.lo.u32 {r.x}, %v{k}, {stride // WORD}, {word};")
            continue
        lines += [
            f"and.b32 {r.x}, %v{k}, {settings.ROW - 1};",
            f"shl.b32 {r.x}, {r.x}, 2;",
            f"shr.u32 {r.y}, %v{k}, {settings.ROW.bit_length() - 1};",
        ]
    return lines


def read(proxy: str, target: str, r: Registers) -> str:
    """The instruction that reads a word."""
    if proxy == "texture":
        return f"tex.1d.v4.u32.s32 {{{target}, _, _, _}}, [{r.handle}, {{{r.x}}}];"
    return f"suld.b.2d.b32.trap {{{target}}}, [{r.handle}, {{{r.x}, {r.y}}}];"


def write(value: str, r: Registers) -> str:
    """The instruction that writes a word of a surface."""
    return f"sust.b.2d.b32.trap [{r.handle}, {{{r.x}, {r.y}}}], {{{value}}};"


def _operations(program: Program) -> Iterator[Op]:
    return (performed_operation(op) for thread in program.threads for op in thread.code)


def _viewed(program: Program, op: ops.Load | ops.Store | ops.Atomic) -> Instance:
    if not isinstance(op.address, Const):
        raise CannotEmit(f"the address of {op.text.split()[0]} is computed")
    instance = owner_of(program, op.address.value)
    if instance.cta is not None or (op.address.value - instance.base) % WORD:
        raise CannotEmit(f"{op.text.split()[0]} of what is no word of global memory")
    return instance


def _refuse_mixed(program: Program, view: View) -> None:
    """Nothing but a surface reaches the memory of a surface."""
    of = next(i for i in program.memory.instances if i.object.name == view.name)
    mine = range(of.physical, of.physical + of.object.size)
    for op in _operations(program):
        if proxy_of(op) == "surface":
            continue
        for value in _constants(op):
            holder = next((i for i in program.memory.instances if i.base <= value < i.base + i.object.size), None)
            if holder is not None and value - holder.base + holder.physical in mine:
                raise CannotEmit(NO_ADDRESS)
    if any(i.physical == of.physical and i.base != of.base for i in program.memory.instances):
        raise CannotEmit(NO_ADDRESS)
    if of.object.size != WORD:
        raise CannotEmit("a surface of more than a word")


def _constants(item: object) -> Iterator[int]:
    """The constants among the operands of an operation."""
    if isinstance(item, Const):
        yield item.value
    elif isinstance(item, Unary):
        yield from _constants(item.operand)
    elif isinstance(item, Binary):
        yield from (*_constants(item.left), *_constants(item.right))
    elif isinstance(item, tuple):
        for part in item:
            yield from _constants(part)
    elif isinstance(item, Op):
        for name in dataclasses.fields(item):
            yield from _constants(getattr(item, name.name))
