"""Effects of asynchronous copies and stores without a tensor map, and of wgmma
(PTX ISA 9.0 sections 9.7.9.12, 9.7.9.25.3.1, 9.7.9.25.4 and 9.7.15).
"""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.effects.effect import Access, Effect, Faults, Run, Signal
from mcheck.effects.operands import Operands
from mcheck.effects.registry import defines_effect
from mcheck.effects.site import Site
from mcheck.ir import ops
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.copy_bytes import CHUNK, bulk, cp_async

SIZES = (4, 8, 16)
Range = tuple[int, int]
"""An address and so many bytes from there."""
RANKS = 16
"""Bits of a ctaMask, one per ``%cluster_ctarank``."""


@defines_effect(ops.CpAsync)
def non_bulk(op: ops.CpAsync, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """``cp.async``: the first src-size bytes are copied, the rest is zero (9.7.9.25.3.1).

    The source range is that of the bytes that are read: kernels point anywhere with src-size 0, and the section forbids
    only what leaves its space. src-size equal to the copy size counts as a plain copy.
    """
    dst, src, size, faults = o.address("dst"), o.address("src"), o.number("size"), Faults()
    taken = o.optional_number("src_size")
    if taken is not None:
        taken &= 0xFFFFFFFF
        faults.require(taken <= size, "UB104", f"src-size {taken} is above cp-size {size}")
    faults.require(size in SIZES, "UB101", f"cp.async of {size} bytes; it copies 4, 8 or 16")
    runs = cp_async(size, taken, bool(o.optional_number("ignore_src")))
    copied = sum(run.length for run in runs if run.src is not None)
    target = site.locate(faults, dst, size)
    if target is not None:
        site.check_alignment(faults, dst, size, "destination address")
        site.check_object_space(faults, target, "shared::cta", "destination")
    site.check_alignment(faults, src, size, "source address")
    source = site.locate(faults, src, copied) if copied else None
    if source is not None:
        site.check_object_space(faults, source, "global", "source")
    if target is None or (copied and source is None):
        return Effect(faults=faults.all())
    moved = tuple(Run(None if run.src is None else src + run.src, dst + run.dst, run.length) for run in runs)
    return Effect(faults=faults.all(), runs=moved)


def one_group(written: Sequence[Range]) -> Effect:
    """``cp.async.commit_group``: two copies of one group must not write one place (9.7.9.25.3.1), but where an mbarrier
    tells of the first before the second is issued: that may order them, and a race is told of if it does not.
    """
    faults = Faults()
    for k, (a, n) in enumerate(written):
        if any(a < b + m and b < a + n for b, m in written[:k]):
            faults.add("UB106", "two cp.async of one group write the same bytes")
            break
    return Effect(faults=faults.all())


def copy_destinations(faults: Faults, site: Site, address: int, mask: int | None) -> tuple[int, ...]:
    """The destination itself, or its place in every CTA of a multicast mask.

    PTX ISA 9.0 calls the bits ``%ctaid``, 9.2 ``%cluster_ctarank``; the latter is meant (9.2 section 9.7.9.25.4.1).
    """
    if mask is None:
        return (address,)
    if mask >> RANKS:
        faults.add("UB107", f"ctaMask {mask:#x} has a bit above {RANKS - 1}")
    elif not mask:
        faults.add("UB107", "ctaMask names no CTA")
    out = []
    for rank in ranks(mask):
        there = site.in_rank(address, rank)
        if there is None:
            faults.add("UB107", site.no_rank(rank))
        else:
            out.append(there)
    return tuple(out)


def ranks(mask: int) -> tuple[int, ...]:
    """The ranks that a ctaMask names."""
    return tuple(rank for rank in range(RANKS) if mask >> rank & 1)


def window(address: int) -> int:
    """The number of the CTA whose shared window an address is in."""
    return (address - SHARED_BASE) // SHARED_WINDOW


def signals(
    faults: Faults, site: Site, bar: int, mask: int | None, count: int, *, pairs: bool = False
) -> tuple[Signal, ...]:
    """The complete-tx of a copy: on its mbarrier, or on that at the same place of every destination CTA, which tells of
    what is written there. With ``pairs``, .cta_group::2, that of the CTA of the destination's pair whose rank is even
    or odd as that of the CTA with the mbarrier is (9.7.9.27.1.2).
    """
    if mask is None:
        where = site.mbarrier_object(faults, bar, own=False)
        return () if where is None else (Signal(where, count),)
    owner = site.mbarrier_object(faults, bar, own=False) if pairs else bar
    if owner is None:
        return ()
    out = []
    for rank in ranks(mask):
        peer = rank & ~1 | site.rank_of(owner) & 1 if pairs else rank
        there, told = site.in_rank(bar, rank), site.in_rank(bar, peer)
        if there is not None and told is None:
            faults.add("UB107", site.no_rank(peer))
        where = None if there is None or told is None else site.mbarrier_object(faults, told, own=False)
        if there is not None and where is not None:
            out.append(Signal(where, count, window(there)))
    return tuple(out)


def covers(signal: Signal, address: int) -> bool:
    """Whether a signal tells of a write to this address."""
    return signal.cta is None or window(address) == signal.cta


@defines_effect(ops.BulkCopy)
def bulk_copy(op: ops.BulkCopy, o: Operands, site: Site) -> Effect:
    """``cp.async.bulk`` and ``cp.reduce.async.bulk`` (9.7.9.25.4.1, 9.7.9.25.4.2). Size 0 is one (open question Q20).

    Where the mbarrier of a copy without multicast has to be, beside being in the cluster, the section leaves open. A
    copy from ``.shared::cta`` to ``.shared::cluster`` goes to another CTA; of a reduction the text does not ask it.
    """
    dst, src, size, faults = o.address("dst"), o.address("src"), o.number("size"), Faults()
    mask = o.optional_number("cta_mask")
    faults.require(size >= 0 and size % CHUNK == 0, "UB101", f"the size {size} is not a multiple of 16 bytes")
    site.check_alignment(faults, dst, CHUNK, "destination address")
    site.check_alignment(faults, src, CHUNK, "source address")
    complete = size >= 0
    if size > 0:
        source = site.locate(faults, src, size)
        complete = source is not None
        if source is not None:
            site.check_object_space(faults, source, op.src_space, "source")
    targets = copy_destinations(faults, site, dst, mask)
    for target in targets:
        if op.multimem is not None:
            instance = site.locate_copy(faults, target, max(size, 1), op.multimem)
        else:
            instance = site.locate(faults, target, max(size, 1))
        complete = complete and instance is not None
        if instance is not None:
            site.check_object_space(faults, instance, op.dst_space, "destination")
            between = (op.src_space, op.dst_space) == ("shared::cta", "shared::cluster") and op.reduce is None
            if between and instance.cta == site.cta:
                faults.add("UB105", "the destination is in the executing CTA; it must be in another one")
    told: tuple[Signal, ...] = ()
    if op.mbar is not None:
        told = signals(faults, site, o.address("mbar"), mask, size)
    if not complete:
        return Effect(faults=faults.all(), signals=told)
    runs = tuple(
        Run(src + run.src, target + run.dst, run.length)
        for run in bulk(size, o.optional_number("byte_mask"))
        for target in targets
        if run.src is not None
    )
    return Effect(faults=faults.all(), runs=runs, signals=told)


@defines_effect(ops.Prefetch)
def prefetch(op: ops.Prefetch, o: Operands, site: Site) -> Effect:
    """No memory effect; its operands must still be legal (9.7.9.25.4.3)."""
    faults = Faults()
    if op.src is not None and op.size is not None:
        size = o.number("size")
        faults.require(size >= 0 and size % CHUNK == 0, "UB101", f"the size {size} is not a multiple of 16 bytes")
        site.check_alignment(faults, o.address("src"), CHUNK, "source address")
    return Effect(faults=faults.all())


@defines_effect(ops.AsyncStore)
def async_store(op: ops.AsyncStore, o: Operands, site: Site) -> Effect:
    """``st.async`` and ``red.async``: destination and mbarrier lie in one CTA of the cluster, of ``red.async`` not in
    the executing one (9.7.9.12, 9.7.13.7).
    """
    address, width, faults = o.address("address"), type_size(op.type), Faults()
    size = width * len(op.srcs)
    instance = site.locate(faults, address, size)
    if instance is None:
        return Effect(faults=faults.all())
    site.check_alignment(faults, address, size, "address")
    site.check_object_space(faults, instance, "global" if op.space == "generic" else op.space, "destination")
    if op.mbar is not None and not site.is_multi_cta:
        faults.add("UB105", f"{'st' if op.reduce is None else 'red'}.async needs a cluster of more than one CTA")
    elif op.reduce is not None and op.mbar is not None and instance.cta == site.cta:
        faults.add("UB105", "the destination of red.async is in the executing CTA; it must be in another one")
    told: tuple[Signal, ...] = ()
    if op.mbar is not None:
        bar = o.address("mbar")
        there = site.at(bar)
        if there is not None and there.cta != instance.cta:
            faults.add("UB105", "the mbarrier is not in the CTA of the destination")
        told = signals(faults, site, bar, None, size)
    accesses = tuple(Access(address + k * width, width) for k in range(len(op.srcs)))
    return Effect(faults=faults.all(), accesses=accesses, signals=told)


@defines_effect(ops.Wgmma)
def wgmma(op: ops.Wgmma, o: Operands, site: Site) -> Effect:  # noqa: ARG001 - one signature
    """``wgmma.mma_async`` reads its matrices in shared memory (9.7.15.5.1)."""
    faults = Faults()
    accesses = []
    for address, size in o.ranges("reads"):
        instance = site.locate(faults, address, max(size, 1))
        if instance is not None:
            site.check_object_space(faults, instance, "shared::cta", "matrix")
            accesses.append(Access(address, size))
    return Effect(faults=faults.all(), accesses=tuple(accesses))
