"""Events that nothing can tell apart any more.

What is still to come is computed from the last event of each thread, from the sets gathered along the threads so far,
and from the events that a new edge other than program order may touch (those are *pinned*). Two unpinned events of one
thread and one sort that stand to all of these in the same relations will stand so to whatever comes. The two latest
such events stand for all: what leads from an earlier one to something new leads through one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from mcheck.views.state import State

KEPT = 2
"""Events of a kind that stay."""
MANY = 1_000_000
"""Cells of a table from which on it is worth the import of numpy, a tenth of a second."""


def stand_ins(w: State, pinned: int) -> dict[int, int]:
    """The events to forget, each with the one that stands for it."""
    groups: dict[object, list[int]] = {}
    times: dict[int, int] = {}
    for k, entry in enumerate(w.entries):
        if entry is None or not w.all >> k & 1:
            continue
        times[k] = entry.time
        if not pinned >> k & 1:
            groups.setdefault((entry.thread, entry.sort, entry.exact), []).append(k)
    watched = named(w, pinned)
    if not any(len(g) > KEPT for g in groups.values()):
        return {}
    seen_from = _columns(w, watched)
    gone: dict[int, int] = {}
    for members in groups.values():
        if len(members) <= KEPT:
            continue
        alike: dict[object, list[int]] = {}
        for k in members:
            if watched >> k & 1:
                continue
            into = tuple(column[k] & watched for column in w.cols.values())
            alike.setdefault((seen_from[k], into), []).append(k)
        for same in alike.values():
            same.sort(key=times.__getitem__)
            for k in same[:-KEPT]:
                gone[k] = same[-KEPT]
    return gone


def named(w: State, pinned: int) -> int:
    """The events that stand for themselves: the pinned ones, and the last one of each thread."""
    last: dict[int, tuple[int, int]] = {}
    for k, entry in enumerate(w.entries):
        if entry is not None and w.all >> k & 1 and entry.thread >= 0:
            last[entry.thread] = max(last.get(entry.thread, (-1, -1)), (entry.time, k))
    watched = pinned & w.all
    for _, k in last.values():
        watched |= 1 << k
    return watched


def _columns(w: State, watched: int) -> Sequence[object]:
    """For each event, in which of the watched events' columns, and of the sets gathered along threads, it is."""
    size = len(w.entries)
    rows = [known for known, _ in w.memo.values()] + [result for _, result in w.memo.values()]
    at = [k for k in range(size) if watched >> k & 1]
    for column in w.cols.values():
        rows += [column[k] for k in at]
    rows = [row & w.all for row in rows]
    if len(rows) * size > MANY:
        with suppress(ImportError):  # a browser has no numpy
            return _packed(rows, size)
    digits = ["".join(column) for column in zip(*(f"{row:0{size}b}" for row in rows), strict=True)]
    return digits[::-1] or [""] * size


def _packed(rows: list[int], size: int) -> list[bytes]:
    """The columns of many rows."""
    import numpy as np

    width = (size + 7) // 8
    raw = b"".join(row.to_bytes(width, "little") for row in rows)
    matrix = np.frombuffer(raw, dtype=np.uint8).reshape(len(rows), width)
    events = np.unpackbits(matrix, axis=1, bitorder="little", count=size).T
    packed = np.packbits(events, axis=1)
    return [row.tobytes() for row in packed]
