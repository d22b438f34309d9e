"""The boxes that tensor copies take of the tensors that their maps say (5.5, 9.7.9.27.1.2), in tile mode."""

from __future__ import annotations

from itertools import product

from mcheck.ir.memory import TensorMapSpec
from tests.interleavings.arithmetic import size_of
from tests.interleavings.memory import MAP, Store
from tests.interleavings.state import NOWHERE, Copy, Misuse, NotCovered, Ranges, State, Unclear


def covered(spec: TensorMapSpec) -> bool:
    """Whether a map is of the kind that is followed: no swizzle, no interleaving, zeros where nothing is."""
    plain = (spec.interleave_layout, spec.swizzle_mode, spec.fill_mode) == ("none", "none", "zero")
    return plain and bool(spec.box_dim) and spec.elemtype in ("u8", "u16", "u32", "s32", "u64", "s64")


def resolved(store: Store, state: State, copy: Copy) -> Copy:
    """A copy with the addresses that its map says now."""
    if copy.box is None:
        return copy
    at = store.place(copy.box.map, MAP)
    found = state.memory[at : at + MAP]
    if None in found or not 1 <= (found[8] or 0) <= len(store.maps):
        raise Unclear
    spec = store.maps[(found[8] or 0) - 1]
    base = int.from_bytes(bytes(found[:8]), "little")  # type: ignore[arg-type]
    if len(copy.box.coords) != spec.rank:
        raise Misuse("UB404")
    element = size_of(spec.elemtype)
    if copy.box.coords[0] * element % 16:
        raise Misuse("UB401")
    if copy.box.stores and min(copy.box.coords) < 0:
        raise Misuse("UB402")
    there = _elements(spec, base, copy.box.coords, element)
    size = sum(length for _, length in there)
    if size % 16:
        raise NotCovered("a box of odd size")
    for address, length in there:
        if address != NOWHERE:
            store.place(address, length)
    if copy.box.stores:
        store.place(copy.source[0][0], size)
        new = copy._replace(source=((copy.source[0][0], size),), target=there)
        return new._replace(type=spec.elemtype) if copy.reduce else new
    store.place(copy.target[0][0], size)
    return copy._replace(source=there, target=((copy.target[0][0], size),))


def _elements(spec: TensorMapSpec, base: int, coords: tuple[int, ...], element: int) -> Ranges:
    """Where the elements of a box lie, the first dimension fastest; runs of them as one."""
    strides = (element, *spec.global_stride)
    step = (1, *spec.element_stride[1:])  # without interleaving the first one says nothing
    counts = [-(-box // by) for box, by in zip(spec.box_dim, step, strict=True)]
    found: list[tuple[int, int]] = []
    for at in product(*(range(n) for n in reversed(counts))):
        place = [c + k * by for c, k, by in zip(coords, reversed(at), step, strict=True)]
        inside = all(0 <= x < size for x, size in zip(place, spec.global_dim, strict=True))
        address = base + sum(x * by for x, by in zip(place, strides, strict=True)) if inside else NOWHERE
        start, length = found[-1] if found else (NOWHERE, 0)
        if found and (address == start == NOWHERE or (NOWHERE not in (address, start) and address == start + length)):
            found[-1] = start, length + element
        else:
            found.append((address, element))
    return tuple(found)
