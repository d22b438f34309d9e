"""Effects of tensor copies (PTX ISA 9.0 section 9.7.9.27.1.2): where their map is, and the effect given its fields."""

from __future__ import annotations

from mcheck.effects.async_copies import copy_destinations, signals
from mcheck.effects.effect import Access, Box, Effect, Faults, Signal
from mcheck.effects.generic_memory import MAP_SIZE
from mcheck.effects.operands import Operands
from mcheck.effects.registry import defines_effect
from mcheck.effects.site import Site
from mcheck.ir import ops
from mcheck.ir.alu import wrap
from mcheck.ir.memory import Instance, TensorMapSpec
from mcheck.semantics import tensor_footprint
from mcheck.semantics.tensor_footprint import box_bytes
from mcheck.semantics.undefined import Misuse


@defines_effect(ops.TensorCopy)
def map_of(op: ops.TensorCopy, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """The tensor map that is read: 128 bytes aligned to 64, in .global, .const or .param."""
    address, faults = o.address("tensor_map"), Faults()
    instance = site.locate(faults, address, MAP_SIZE)
    if instance is None:
        return Effect(faults=faults.all())
    site.check_alignment(faults, address, 64, "address")
    inside = instance.object.space in ("global", "const", "param")
    faults.require(inside, "UB404", f"the tensor map {instance.label} is in shared memory")
    return Effect(faults=faults.all(), accesses=(Access(address, MAP_SIZE),))


def copy(op: ops.TensorCopy, o: Operands, site: Site, spec: TensorMapSpec | None) -> Effect:
    """The copy with the fields of the map that was found, ``None`` if the bytes are no map."""
    faults = Faults()
    if spec is None:
        faults.add("UB404", "the bytes at this address are not a tensor map")
        return Effect(faults=faults.all())
    coords = tuple(wrap("s32", c) for c in o.numbers("coords"))
    info, shared, mask = o.numbers("im2col_info"), o.address("shared"), o.optional_number("cta_mask")
    targets = copy_destinations(faults, site, shared, mask)
    dim = 2 if op.mode in tensor_footprint.FOUR_ROWS else len(coords)
    try:
        tensor_footprint.check_copy(spec, op.kind, dim, op.mode, shared, coords, info, op.reduce)
    except Misuse as misuse:
        faults.add(misuse.code, misuse.message)
        return Effect(faults=faults.all())
    box = Box(spec=spec, mode=op.mode, kind=op.kind, coords=coords, info=info, reduce=op.reduce, targets=targets)
    complete = _in_shared(faults, site, op, box)
    complete = _in_tensor(faults, site, box) and complete
    told: tuple[Signal, ...] = ()
    if op.mbar is not None:
        bar = o.address("mbar")
        _group(faults, site, op, bar, shared)
        told = signals(faults, site, bar, mask, box_bytes(spec, op.mode, info), pairs=op.cta_group == 2)
    return Effect(faults=faults.all(), box=box if complete and targets else None, signals=told)


def _in_shared(faults: Faults, site: Site, op: ops.TensorCopy, box: Box) -> bool:
    """Whether the image of the box lies in one object of each CTA."""
    space = op.dst_space if op.kind == "load" else "shared::cta"
    found = [
        site.locate(faults, target, tensor_footprint.image_bytes(box.spec, box.mode, target, box.info))
        for target in box.targets
    ]
    for instance in found:
        if instance is not None:
            site.check_object_space(faults, instance, space, "shared address")
    return None not in found


def _in_tensor(faults: Faults, site: Site, box: Box) -> bool:
    """Whether all bytes inside the tensor that the copy touches are those of objects in global memory.

    Mostly the whole tensor lies in one object. Where it does not, several objects under one map are legal as long as
    every row of the box is in one. Addresses are exact: one above 64 bits is in no object.
    """
    lowest, size = tensor_footprint.extent(box.spec)
    whole = site.at(lowest)
    if whole is not None and lowest + size <= whole.base + whole.object.size:
        return _global(faults, site, whole)
    for address, length in tensor_footprint.rows_inside(box.spec, box.mode, box.coords, box.info):
        instance = site.locate(faults, address, length)
        if instance is None or not _global(faults, site, instance):
            return False
    return True


def _global(faults: Faults, site: Site, instance: Instance) -> bool:
    before = len(faults.found)
    site.check_object_space(faults, instance, "global", "tensor")
    return len(faults.found) == before


def _group(faults: Faults, site: Site, op: ops.TensorCopy, bar: int, shared: int) -> None:
    """The mbarrier is in the CTA of the destination or, with .cta_group::2, in its pair."""
    one, other = site.at(bar), site.at(shared)
    if one is None or other is None or one.cta is None or other.cta is None:
        return
    same = one.cta == other.cta
    pair = (one.cta.gpu, one.cta.cluster, one.cta.rank // 2) == (other.cta.gpu, other.cta.cluster, other.cta.rank // 2)
    allowed = same or (op.cta_group == 2 and pair)
    faults.require(allowed, "UB105", "the mbarrier is not in the CTA of the destination")
