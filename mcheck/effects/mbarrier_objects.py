"""Effects of the mbarrier instructions (PTX ISA 9.0 section 9.7.13.15): which object they work on.

What the object's state makes of it is for ``mcheck.semantics.mbarrier``.
"""

from __future__ import annotations

from mcheck.effects.effect import Effect, Faults
from mcheck.effects.operands import Operands
from mcheck.effects.registry import defines_effect
from mcheck.effects.site import Site
from mcheck.ir import ops

Owned = ops.MbarrierInit | ops.MbarrierInval | ops.CpAsyncArrive
"""Instructions for objects of the executing CTA only (9.7.13.15.8)."""


@defines_effect(ops.MbarrierInit, ops.MbarrierInval, ops.CpAsyncArrive)
def own_object(op: Owned, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """An instruction that works on objects of the own CTA."""
    faults = Faults()
    return Effect(mbarrier=site.mbarrier_object(faults, o.address("address"), own=True), faults=faults.all())


@defines_effect(ops.MbarrierTx)
def tx(op: ops.MbarrierTx, o: Operands, site: Site) -> Effect:
    """expect_tx and complete_tx."""
    faults = Faults()
    return Effect(
        mbarrier=site.mbarrier_object(faults, o.address("address"), own=op.space == "shared::cta"), faults=faults.all()
    )


@defines_effect(ops.MbarrierArrive)
def arrive(op: ops.MbarrierArrive, o: Operands, site: Site) -> Effect:
    """arrive and arrive_drop; on an object of another CTA they return nothing (9.7.13.15.13)."""
    faults, address = Faults(), o.address("address")
    there = site.at(address)
    if op.state is not None and there is not None and there.cta not in (None, site.cta):
        faults.add("UB214", "an arrive on an mbarrier of another CTA returns no state")
    return Effect(mbarrier=site.mbarrier_object(faults, address, own=op.space == "shared::cta"), faults=faults.all())


@defines_effect(ops.MbarrierWait)
def wait(op: ops.MbarrierWait, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """test_wait and try_wait; a parity is 0 or 1 (9.7.13.15.16)."""
    faults, parity = Faults(), o.optional_number("parity")
    where = site.mbarrier_object(faults, o.address("address"), own=True)
    faults.require(parity in (None, 0, 1), "UB109", f"phase parity {parity} is neither 0 nor 1")
    return Effect(mbarrier=where, faults=faults.all())
