"""Effects of generic memory instructions, fences with a range, tensor-map writes, mapa and execution barriers
(PTX ISA 9.0 sections 6.4.1, 9.7.9, 9.7.13.1 to 9.7.13.4).
"""

from __future__ import annotations

from mcheck.base.phrase import Case, Phrase, say
from mcheck.effects.effect import Access, Effect, Faults, Stored
from mcheck.effects.operands import Operands
from mcheck.effects.registry import defines_effect
from mcheck.effects.site import Site, widened
from mcheck.ir import ops
from mcheck.ir.type_sizes import type_size

MAP_SIZE = 128
WARP = 32
FULL_MASK = 0xFFFFFFFF


@defines_effect(ops.Load, ops.Store, ops.Atomic)
def scalars(op: ops.Load | ops.Store | ops.Atomic, o: Operands, site: Site) -> Effect:
    """A load, a store or an atomic: a vector is a set of scalar accesses, aligned as a whole (8.2.4, 6.4.1). Of
    ldmatrix and stmatrix only as many lanes access memory as there are rows (9.7.14.5.15, 9.7.14.5.16).
    """
    if isinstance(op, ops.Load | ops.Store) and 0 < op.matrix_rows <= site.place.lane:
        return Effect()
    base, size = o.address("address"), type_size(op.type)
    count = op.scalar_count
    faults = Faults()
    if op.multimem is not None:
        instance = site.locate_copy(faults, base, size * count, op.multimem)
    else:
        instance = site.locate(faults, base, size * count, op.space)
    if instance is None:
        return Effect(faults=faults.all())
    site.check_named_space(faults, instance, op.space)
    site.check_alignment(faults, base, size * count, "address of the vector" if count > 1 else "address")
    return Effect(faults=faults.all(), accesses=tuple(Access(base + k * size, size) for k in range(count)))


@defines_effect(ops.DivergentAligned)
def divergent_aligned(op: ops.DivergentAligned, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """Undefined behaviour only."""
    faults = Faults()
    faults.add(op.code, op.reason)
    return Effect(faults=faults.all())


@defines_effect(ops.Trap)
def trap(op: ops.Trap, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """The grid is aborted (9.7.19.4)."""
    faults = Faults()
    faults.add("UB703", "executes trap, which aborts the grid")
    return Effect(faults=faults.all())


@defines_effect(ops.Fill)
def fill(op: ops.Fill, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """A weak write of zeros to shared memory of the executing CTA, in units of 8 bytes (9.7.9.13)."""
    address, size, faults = o.address("address"), o.number("size"), Faults()
    faults.require(size >= 0 and size % 8 == 0, "UB110", f"the size {size} is not a multiple of 8 bytes")
    instance = site.locate(faults, address, size) if size > 0 else None
    if instance is None:
        return Effect(faults=faults.all())
    site.check_named_space(faults, instance, "shared::cta")
    return Effect(faults=faults.all(), stores=(Stored(address, size),))


@defines_effect(ops.ProxyFence)
def proxy_fence(op: ops.ProxyFence, o: Operands, site: Site) -> Effect:
    """The acquiring tensormap fence names 128 bytes of global memory (9.7.13.4)."""
    if op.address is None or op.size is None:
        return Effect()
    address, size = o.address("address"), o.number("size")
    instance = site.at(address)
    if instance is None or instance.object.space != "global" or size != MAP_SIZE:
        faults = Faults()
        faults.add("UB403", "the tensormap fence needs 128 bytes of .global memory")
        return Effect(faults=faults.all())
    return Effect(accesses=(Access(address, size),))


@defines_effect(ops.TensormapReplace)
def tensormap_replace(op: ops.TensormapReplace, o: Operands, site: Site) -> Effect:
    """The whole object is read and written (9.7.9.26)."""
    address, faults = o.address("address"), Faults()
    instance = site.locate(faults, address, MAP_SIZE)
    if instance is None:
        return Effect(faults=faults.all())
    site.check_alignment(faults, address, 64, "address")
    space = instance.object.space
    if op.space != "generic" and space != op.space.partition("::")[0]:
        faults.add("UB108", say("{} is in .{}, not in .{}", instance.thing(), space, op.space))
    return Effect(faults=faults.all(), accesses=(Access(address, MAP_SIZE),))


@defines_effect(ops.TensormapCopyFence)
def tensormap_copy(op: ops.TensormapCopyFence, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """Reads the object in shared memory and writes it to global memory (9.7.13.16)."""
    dst, src, size, faults = o.address("dst"), o.address("src"), o.number("size"), Faults()
    faults.require(size == MAP_SIZE, "UB403", f"tensormap.cp_fenceproxy copies 128 bytes, not {size}")
    found = [site.locate(faults, address, MAP_SIZE) for address in (src, dst)]
    accesses = (Access(src, MAP_SIZE), Access(dst, MAP_SIZE)) if None not in found else ()
    return Effect(faults=faults.all(), accesses=accesses)


def mapa(op: ops.Alu, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """The same offset in another CTA of the cluster (9.7.9.23)."""
    address, rank = o.numbers("srcs")
    there = site.in_rank(widened(address), rank)
    if there is None:
        faults = Faults()
        faults.add("UB108", site.no_rank(rank))
        return Effect(faults=faults.all())
    return Effect(result=there)


@defines_effect(ops.Barrier)
def barrier(op: ops.Barrier, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """A CTA has sixteen barriers; a thread count counts whole warps (9.7.13.1). The table dialect has other rules."""
    number, count, faults = o.optional_number("barrier"), o.optional_number("count"), Faults()
    if op.instance is None:
        inside = number is not None and 0 <= number <= 15
        faults.require(inside, "UB302", f"barrier {number} is not one of 0 to 15")
        whole = count is None or (count > 0 and count % WARP == 0)
        faults.require(whole, "UB301", f"{count} threads are not a positive multiple of the warp size")
    return Effect(faults=faults.all(), result=number)


def name_of(op: ops.WarpSync | ops.Collective) -> str:
    """The name of an instruction at which the lanes of a mask synchronise."""
    return "bar.warp.sync" if isinstance(op, ops.WarpSync) else op.op.partition(".")[0] + ".sync"


def lane_left_out(mask: int, name: str) -> Phrase:
    """The message if a mask lacks the lane that executes the instruction."""
    return say("the member mask {} of {} leaves out the executing lane{}", f"{mask:#x}", name, Case("lane left out"))


@defines_effect(ops.WarpSync, ops.Collective)
def lane_collective(op: ops.WarpSync | ops.Collective, o: Operands, site: Site) -> Effect:
    """The executing lane is one of the mask (9.7.13.2, 9.7.13.9 to 9.7.13.14); the result is the mask."""
    mask, faults = o.number("mask") & FULL_MASK, Faults()
    inside = bool(mask >> site.place.lane & 1)
    faults.require(inside, "UB109", lane_left_out(mask, name_of(op)))
    return Effect(faults=faults.all(), result=mask)
