"""Plain asynchronous copies: which destination byte comes from which source byte, and what must hold when they execute.

PTX ISA 9.0 sections 9.7.9.25.3.1 (cp.async), 9.7.9.25.4.1 (cp.async.bulk), 9.7.9.25.4.2 (its reductions) and 9.7.9.12
(st.async). Data come as runs, so that a copy of a kilobyte is one run. Every ``check_...`` raises ``Misuse``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from mcheck.executor.misuse import Misuse
from mcheck.program.memory import SHARED_BASE, SHARED_WINDOW, Cta, Instance, MemoryMap

CP_ASYNC = "PTX ISA 9.0 section 9.7.9.25.3.1"
BULK = "PTX ISA 9.0 section 9.7.9.25.4.1"
TENSOR = "PTX ISA 9.0 section 9.7.9.27.1.2"
ADDRESSES = "PTX ISA 9.0 section 6.4.1"
CHUNK = 16
"""Bytes that a byte mask describes, and the unit of sizes and addresses of every bulk copy."""


@dataclass(frozen=True, slots=True)
class Run:
    """``length`` bytes at offset ``dst`` of the destination come from offset ``src`` of the source (``None``: fill)."""

    dst: int
    src: int | None
    length: int


# --- data ---------------------------------------------------------------------------------------------


def cp_async(size: int, src_size: int | None = None, ignore_src: bool = False) -> tuple[Run, ...]:
    """The first ``src_size`` bytes are copied and the rest is zero; with ``ignore_src`` all of it is (9.7.9.25.3.1)."""
    copied = 0 if ignore_src else size if src_size is None else min(src_size, size)
    runs = (Run(0, 0, copied), Run(copied, None, size - copied))
    return tuple(run for run in runs if run.length)


def bulk(size: int, byte_mask: int | None = None) -> tuple[Run, ...]:
    """A whole copy, or with ``.cp_mask`` byte i of every 16-byte chunk if bit i of ``byte_mask`` is set (9.7.9.25.4.1).

    Bytes whose bit is clear are not written; the source is read as a whole.
    """
    if byte_mask is None or byte_mask & 0xFFFF == 0xFFFF:
        return (Run(0, 0, size),) if size else ()
    return merged(
        Run(start + bit, start + bit, 1)
        for start in range(0, size, CHUNK)
        for bit in range(CHUNK)
        if byte_mask >> bit & 1
    )


def merged(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The same bytes in as few runs as follow each other in destination and source."""
    out: list[Run] = []
    for run in runs:
        if out and _follows(out[-1], run):
            out[-1] = Run(out[-1].dst, out[-1].src, out[-1].length + run.length)
        else:
            out.append(run)
    return tuple(out)


def _follows(a: Run, b: Run) -> bool:
    if a.dst + a.length != b.dst:
        return False
    return b.src is None if a.src is None else b.src == a.src + a.length


def apply(runs: Iterable[Run], destination: bytearray, source: bytes, fill: bytes = b"\0") -> None:
    """Writes the runs into ``destination``; ``fill`` is the pattern of fill bytes, from the start of each run."""
    for run in runs:
        if run.src is None:
            piece = (fill * (run.length // len(fill) + 1))[: run.length]
        else:
            piece = source[run.src : run.src + run.length]
        destination[run.dst : run.dst + run.length] = piece


def multicast(cta_mask: int, cluster: Collection[int]) -> tuple[int, ...]:
    """The destination CTAs of a multicast copy, by ``%cluster_ctarank``; ``cluster`` holds the ranks that exist.

    PTX ISA 9.0 calls the bits ``%ctaid``, 9.2 ``%cluster_ctarank``; the latter is meant (9.2 section 9.7.9.25.4.1).
    """
    ranks = tuple(rank for rank in range(16) if cta_mask >> rank & 1)
    absent = [rank for rank in ranks if rank not in cluster]
    if not ranks or cta_mask >> 16:
        raise Misuse("UB107", f"ctaMask {cta_mask:#x} names no CTA of a cluster", BULK)
    if absent:
        raise Misuse("UB107", f"ctaMask {cta_mask:#x} names CTA {absent[0]}, which the cluster does not have", BULK)
    return ranks


# --- conditions ---------------------------------------------------------------------------------------


def check_aligned(address: int, alignment: int, what: str, section: str = ADDRESSES) -> None:
    """An address has to be a multiple of ``alignment`` (6.4.1; for bulk copies 16 by their own sections)."""
    if address % alignment:
        raise Misuse("UB102", f"the {what} {address:#x} is not aligned to {alignment} bytes", section)


def check_range(memory: MemoryMap, address: int, size: int, what: str, section: str = ADDRESSES) -> Instance | None:
    """[address, address + size) has to lie in one object, which is returned; no bytes lie nowhere (``None``).

    The ISA speaks of the state space. Ours is stricter: a range that runs into the neighbouring object leaves its own.
    """
    if size <= 0:
        return None
    instance = memory.find(address)
    if instance is None:
        raise Misuse("UB103", f"the {what} {address:#x} is in no object", section)
    beyond = address + size - (instance.base + instance.object.size)
    if beyond > 0:
        raise Misuse("UB103", f"the {what} runs {beyond} bytes past the end of {instance.label}", section)
    return instance


def owner(address: int, ctas: Iterable[Cta]) -> Cta | None:
    """The CTA in whose shared window ``address`` lies, or ``None`` if it is no shared address of these."""
    number = (address - SHARED_BASE) // SHARED_WINDOW
    return next((cta for cta in ctas if cta.number == number), None)


def in_space(address: int, space: str, cta: Cta, ctas: Iterable[Cta], memory: MemoryMap) -> bool:
    """Does ``address`` lie in the state space as the threads of ``cta`` see it? ``ctas`` are all CTAs of the program.

    shared::cta is the own window, shared::cluster that of any CTA of the own cluster (5.1.7); the other spaces are told
    by the object, so an address outside every object is in none of them.
    """
    if space == "generic":
        return True
    if space.startswith("shared"):
        home = owner(address, ctas)
        if home is None:
            return False
        return home == cta if space == "shared::cta" else (home.gpu, home.cluster) == (cta.gpu, cta.cluster)
    instance = memory.find(address)
    return instance is not None and instance.object.space == space


def check_space(address: int, space: str, cta: Cta, ctas: Iterable[Cta], memory: MemoryMap, what: str) -> None:
    """The instruction names ``space``, so the address has to lie in it (5.1, 6.4.1)."""
    if not in_space(address, space, cta, ctas, memory):
        instance = memory.find(address)
        place = "in no object" if instance is None else f"in {instance.label}"
        raise Misuse("UB108", f"the {what} {address:#x} lies {place}, not in .{space}", ADDRESSES)


def check_cp_async(
    dst: int, src: int, size: int, src_size: int | None, memory: MemoryMap, ignore: bool = False
) -> None:
    """Alignment to the copy size, src-size and ranges of ``cp.async`` (9.7.9.25.3.1).

    The source range is that of the bytes that are read: kernels point anywhere with src-size 0, and the section forbids
    only what leaves its space. src-size equal to the copy size counts as a plain copy.
    """
    if size not in (4, 8, 16):
        raise Misuse("UB101", f"cp.async of {size} bytes; it copies 4, 8 or 16", CP_ASYNC)
    if src_size is not None and not 0 <= src_size <= size:
        raise Misuse("UB104", f"src-size {src_size} is above the copy size {size}", CP_ASYNC)
    check_aligned(dst, size, "destination")
    check_aligned(src, size, "source")
    check_range(memory, dst, size, "destination", CP_ASYNC)
    check_range(
        memory, src, sum(run.length for run in cp_async(size, src_size, ignore) if run.src is not None), "source"
    )


def check_bulk_size(size: int, section: str = BULK) -> None:
    """The size of a bulk copy, reduction or prefetch is a multiple of 16; 0 is one (9.7.9.25.4.1)."""
    if size < 0 or size % CHUNK:
        raise Misuse("UB101", f"size {size} is not a multiple of {CHUNK}", section)


def check_bulk(dst: int, src: int, size: int, memory: MemoryMap, section: str = BULK) -> None:
    """Size, alignment and ranges of ``cp.async.bulk`` and ``cp.reduce.async.bulk`` (9.7.9.25.4.1, .2)."""
    check_bulk_size(size, section)
    check_aligned(dst, CHUNK, "destination", section)
    check_aligned(src, CHUNK, "source", section)
    check_range(memory, dst, size, "destination", section)
    check_range(memory, src, size, "source", section)


def check_bulk_places(
    dst: int, src: int, mbar: int | None, dst_space: str, src_space: str, cta: Cta, ctas: Collection[Cta]
) -> None:
    """Which CTA a bulk copy may write to, and where its mbarrier may be (9.7.9.25.4.1).

    A destination in shared::cta is the executing CTA's; from shared::cta to shared::cluster it is in another CTA. Where
    the mbarrier has to be the section leaves open: ours is the own CTA for a shared::cta destination (as 9.4 says of
    tensor copies) and any CTA of the cluster otherwise.
    """
    if dst_space.startswith("shared"):
        target = _in_cluster(dst, "destination", cta, ctas)
        if dst_space == "shared::cta" and target != cta:
            raise Misuse("UB105", f"the destination is in CTA {target.rank}, not in the executing CTA {cta.rank}", BULK)
        if dst_space == "shared::cluster" and src_space == "shared::cta" and target == cta:
            raise Misuse("UB105", "the destination is in the executing CTA; it has to be in another one", BULK)
    if mbar is not None:
        target = _in_cluster(mbar, "mbarrier", cta, ctas)
        if dst_space == "shared::cta" and target != cta:
            raise Misuse("UB105", f"the mbarrier is in CTA {target.rank}, not in the executing CTA {cta.rank}", BULK)
    if src_space == "shared::cta" and owner(src, ctas) != cta:
        raise Misuse("UB108", f"the source {src:#x} is not in the shared memory of the executing CTA", BULK)


def check_tensor_places(
    kind: str, shared: int, mbar: int | None, dst_space: str, cta_group: int, cta: Cta, ctas: Collection[Cta]
) -> None:
    """The same for tensor copies (9.7.9.27.1.2): the source of a store, or a shared::cta destination, is the own CTA's.

    With .cta_group::1, the default, the mbarrier is in the CTA of the destination, with .cta_group::2 there or in the
    CTA that differs from it in the last bit of its rank.
    """
    target = _in_cluster(shared, "source" if kind == "store" else "destination", cta, ctas)
    if target != cta and (kind == "store" or dst_space == "shared::cta"):
        what = "source" if kind == "store" else "destination"
        raise Misuse("UB105", f"the {what} is in CTA {target.rank}, not in the executing CTA {cta.rank}", TENSOR)
    if mbar is not None:
        home = _in_cluster(mbar, "mbarrier", cta, ctas)
        if home.rank != target.rank and not (cta_group == 2 and home.rank == target.rank ^ 1):
            raise Misuse("UB105", f"the mbarrier is in CTA {home.rank}, the destination in CTA {target.rank}", TENSOR)


def check_remote_places(dst: int, mbar: int, cta: Cta, ctas: Collection[Cta], *, other: bool) -> None:
    """st.async and red.async: destination and mbarrier lie in one CTA of the cluster (9.7.9.12).

    With ``other``, which 9.7.13.7 asks of red.async, that is not the executing CTA.
    """
    target = _in_cluster(dst, "destination", cta, ctas)
    if _in_cluster(mbar, "mbarrier", cta, ctas) != target:
        raise Misuse("UB105", "the mbarrier is not in the CTA of the destination", "PTX ISA 9.0 section 9.7.9.12")
    if other and target == cta:
        raise Misuse("UB105", "the destination of red.async is in the executing CTA", "PTX ISA 9.0 section 9.7.13.7")


def _in_cluster(address: int, what: str, cta: Cta, ctas: Iterable[Cta]) -> Cta:
    home = owner(address, ctas)
    if home is None or (home.gpu, home.cluster) != (cta.gpu, cta.cluster):
        raise Misuse("UB105", f"the {what} {address:#x} is in no CTA of the cluster", BULK)
    return home


def check_disjoint(copies: Iterable[tuple[int, int]], address: int, size: int) -> None:
    """A ``cp.async`` must not write what another one of its group writes; ``copies`` are their (address, size)."""
    for other, length in copies:
        if address < other + length and other < address + size:
            raise Misuse("UB106", f"two cp.async of one group write {max(address, other):#x}", CP_ASYNC)
