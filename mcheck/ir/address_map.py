"""The layout of memory objects in the address map of ``mcheck.ir.memory``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcheck.ir.memory import (
    GLOBAL_BASE,
    SHARED_BASE,
    SHARED_WINDOW,
    TENSOR_OFFSET,
    Cta,
    Instance,
    MemObject,
    MemoryMap,
)

GRAIN = 256
APART = 1 << 32
"""The alignment of objects that may have any size."""


def _after(offset: int, size: int) -> int:
    """The first multiple of ``GRAIN`` that leaves a gap of at least ``GRAIN`` bytes after an object."""
    return (offset + size + 2 * GRAIN - 1) // GRAIN * GRAIN


def _aligned(offset: int, align: int) -> int:
    step = max(align, GRAIN)
    return (offset + step - 1) // step * step


def shared_size(objects: Iterable[MemObject]) -> int:
    """The bytes of a shared window that the shared ones of ``objects`` take, gaps included."""
    offset = 0
    for item in objects:
        if item.space == "shared" and item.alias_of is None:
            offset = _after(_aligned(offset, item.align), item.size)
    return offset


def lay_out(objects: Sequence[MemObject], ctas: Sequence[Cta], *, apart: bool = False) -> MemoryMap:
    """An instance of every global object, and of every one in shared or tensor memory in each of ``ctas``; an alias
    follows its target.

    Global objects that are laid ``apart`` lie where they lie whatever their sizes are, if there is room.
    """
    room = (len(objects) + 1) * APART <= SHARED_BASE - GLOBAL_BASE and all(item.size < APART for item in objects)
    found: list[Instance] = []
    places: dict[tuple[str, int], Instance] = {}
    offsets = {"global": 0, "shared": 0, "tensor": TENSOR_OFFSET}
    for item in objects:
        shared = item.space in ("shared", "tensor")
        own = item.alias_of is None or item.alias_proxy == "generic"
        offset = 0
        if own:
            window = item.space if shared else "global"
            offset = _aligned(offsets[window], item.align)
            offsets[window] = _after(offset, item.size)
            if apart and room and not shared:
                offsets[window] = _aligned(offsets[window], APART)
        for cta in ctas if shared else (None,):
            number = -1 if cta is None else cta.number
            base = offset + (GLOBAL_BASE if cta is None else SHARED_BASE + cta.number * SHARED_WINDOW)
            physical = base
            if item.alias_of is not None:
                target = places[item.alias_of, number]
                physical = target.physical
                base = base if own else target.base
            instance = Instance(item, base, physical, cta)
            places[item.name, number] = instance
            found.append(instance)
    found.sort(key=lambda instance: instance.base)
    return MemoryMap(tuple(found))
