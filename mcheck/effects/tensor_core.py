"""Effects of the operations on tensor memory (PTX ISA 9.7.16): each of their ranges lies in one object."""

from __future__ import annotations

from mcheck.effects.async_copies import copy_destinations, signals
from mcheck.effects.effect import Access, Effect, Faults, Stored
from mcheck.effects.operands import Operands
from mcheck.effects.registry import defines_effect
from mcheck.effects.site import Site
from mcheck.ir import ops
from mcheck.ir.missing_cells import missing_cells


@defines_effect(ops.TensorCore)
def tensor_core(op: ops.TensorCore, o: Operands, site: Site) -> Effect:
    """What mma, cp, shift, alloc and dealloc read (``accesses``) and write (``stores``)."""
    faults = _faults(op)
    reads = tuple(Access(at, size) for at, size in o.ranges("reads") if _there(faults, site, at, size))
    writes = tuple(Stored(at, size) for at, size in o.ranges("writes") if _there(faults, site, at, size))
    return Effect(faults=faults.all(), accesses=reads, stores=writes)


@defines_effect(ops.TensorMove)
def tensor_move(op: ops.TensorMove, o: Operands, site: Site) -> Effect:
    """The cells of one lane."""
    faults, at = _faults(op), o.address("address")
    if not _there(faults, site, at, op.size):
        return Effect(faults=faults.all())
    if op.family == "tcgen05.ld":
        return Effect(faults=faults.all(), accesses=(Access(at, op.size),))
    return Effect(faults=faults.all(), stores=(Stored(at, op.size),))


@defines_effect(ops.TensorCommit)
def tensor_commit(op: ops.TensorCommit, o: Operands, site: Site) -> Effect:
    """The mbarriers that are arrived on."""
    faults = _faults(op)
    place, mask = o.address("address"), o.optional_number("cta_mask")
    copy_destinations(faults, site, place, mask)  # its mask is that of a copy
    told = signals(faults, site, place, mask, 0)
    return Effect(faults=faults.all(), signals=told)


def _faults(op: ops.TensorCore | ops.TensorMove | ops.TensorCommit) -> Faults:
    """What whoever follows the kernel knows to be wrong."""
    faults = Faults()
    if op.wrong is not None:
        faults.add(*op.wrong)
    return faults


def _there(faults: Faults, site: Site, address: int, size: int) -> bool:
    missing = missing_cells(address)
    if missing is not None:
        faults.add("UB103", f"an access of {size} bytes is to {missing.why(size)}")
        return False
    return site.locate(faults, address, max(size, 1)) is not None
