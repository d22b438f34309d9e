"""Plain asynchronous copies: which destination byte comes from which source byte.

PTX ISA 9.0 sections 9.7.9.25.3.1 (cp.async), 9.7.9.25.4.1 (cp.async.bulk) and 9.7.9.25.4.2 (its reductions). Data come
as runs, so that a copy of a kilobyte is one run. What must hold when they execute is in
``mcheck.effects.async_copies``.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.base.records import dataclass

CHUNK = 16
"""Bytes that a byte mask describes, and the unit of sizes and addresses of every bulk copy."""


@dataclass(frozen=True, slots=True)
class Run:
    """``length`` bytes at offset ``dst`` of the destination come from offset ``src`` of the source (``None``: fill)."""

    dst: int
    src: int | None
    length: int


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
    return merge_runs(
        Run(start + bit, start + bit, 1)
        for start in range(0, size, CHUNK)
        for bit in range(CHUNK)
        if byte_mask >> bit & 1
    )


def merge_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
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
