"""Plans of the operations on tensor memory (PTX ISA 9.7.16): each of their ranges lies in one object."""

from __future__ import annotations

from mcheck.effects.async_copies import signals
from mcheck.effects.operands import Operands
from mcheck.effects.plan import Access, Faults, Plan, Stored
from mcheck.effects.registry import plans
from mcheck.effects.site import Site
from mcheck.ir import ops


@plans(ops.TensorCore)
def tensor_core(op: ops.TensorCore, o: Operands, site: Site) -> Plan:
    """What mma, cp, shift, alloc and dealloc read (``accesses``) and write (``stores``)."""
    faults = Faults()
    if op.wrong is not None:
        faults.add(*op.wrong)
    reads = tuple(Access(at, size) for at, size in o.ranges("reads") if _there(faults, site, at, size))
    writes = tuple(Stored(at, size) for at, size in o.ranges("writes") if _there(faults, site, at, size))
    return Plan(faults=faults.all(), accesses=reads, stores=writes)


@plans(ops.TensorMove)
def tensor_move(op: ops.TensorMove, o: Operands, site: Site) -> Plan:
    """The cells of one lane."""
    faults, at = Faults(), o.address("address")
    if not _there(faults, site, at, op.size):
        return Plan(faults=faults.all())
    if op.family == "tcgen05.ld":
        return Plan(faults=faults.all(), accesses=(Access(at, op.size),))
    return Plan(faults=faults.all(), stores=(Stored(at, op.size),))


@plans(ops.TensorCommit)
def tensor_commit(op: ops.TensorCommit, o: Operands, site: Site) -> Plan:  # noqa: ARG001 - one signature
    """The mbarriers that are arrived on."""
    faults = Faults()
    told = signals(faults, site, o.address("address"), o.optional_number("cta_mask"), 0)
    return Plan(faults=faults.all(), signals=told)


def _there(faults: Faults, site: Site, address: int, size: int) -> bool:
    return site.locate(faults, address, max(size, 1)) is not None
