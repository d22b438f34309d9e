"""Addresses in sketches with any number of CTAs: the object, and an offset that is linear or the same in all CTAs."""

from __future__ import annotations

from collections.abc import Mapping

from mcheck.base.errors import Span
from mcheck.frontend.litmus.alike_ctas.registers import Registers, Surroundings
from mcheck.ir.cta_family import Linear, NotAlike
from mcheck.ir.expr import Binary, Expr, Name
from mcheck.ir.memory import MemObject


def find_place(
    address: Expr, objects: Mapping[str, MemObject], where: Surroundings, registers: Registers, span: Span | None
) -> tuple[str, Linear | None]:
    """The object at an address, and the offset in it, ``None`` if it is not linear. Raises ``NotAlike``."""
    base: Name | None = None
    offset: Linear | None = Linear()
    todo = [(address, 1)]

    def add(expr: Expr, by: int) -> None:
        nonlocal offset
        found = where.linear(expr)
        offset = None if offset is None or found is None else offset.plus(found, by)
        if found is None and not registers.is_fixed(expr, where):
            raise NotAlike("an address depends on what differs between CTAs", span)

    while todo:
        expr, sign = todo.pop()
        match expr:
            case Binary("+" | "-" as op, left, right):
                todo += [(left, sign), (right, sign if op == "+" else -sign)]
            case Name(name) if name in objects and sign == 1 and base is None and expr.rank is None:
                base = expr
            case _:
                add(expr, sign)
    if base is None:
        raise NotAlike("an address that is not made of the name of a variable", span)
    item = objects[base.name]
    stride = item.elem_size
    strides: list[int] = []
    for extent in reversed(item.dims):
        strides.append(stride)
        stride *= extent
    for index, by in zip(base.indices, reversed(strides), strict=False):
        add(index, by)
    if item.space == "shared" and offset is not None and offset.terms:
        raise NotAlike("an address depends on what differs between CTAs", span)
    return base.name, offset


def objects_at(name: str, offset: Linear | None, size: int, objects: Mapping[str, MemObject]) -> set[str]:
    """The objects in shared memory that so many bytes there may be of: of the named one, if they are surely in it."""
    if offset is not None and 0 <= offset.constant <= objects[name].size - size:
        return {name}
    return {item.name for item in objects.values() if item.space == "shared"}
