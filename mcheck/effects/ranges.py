"""Ranges of bytes."""

from __future__ import annotations

from collections.abc import Iterable


def join_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same bytes, given as (address, size), in as few ranges as they make, in the order of their addresses."""
    out: list[tuple[int, int]] = []
    for at, size in sorted(ranges):
        if out and at <= out[-1][0] + out[-1][1]:
            first, length = out[-1]
            out[-1] = first, max(length, at + size - first)
        else:
            out.append((at, size))
    return tuple(out)
