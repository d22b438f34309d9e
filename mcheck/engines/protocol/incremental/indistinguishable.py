"""Merging of events that no later event can distinguish.

The relations of later events are computed from the last event of each thread, from the sets gathered along the threads
so far, and from the events that a new edge other than program order may touch (*pinned* events). Two unpinned events of
one thread and one sort that are in the same relations to all of these will be in the same relations to whatever comes.
So will two that a new edge may touch only together, as members of the same sets. The two latest such events represent
all: an edge from an earlier one to something new also leads through one of them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.incremental.entries import bits, union
from mcheck.engines.protocol.incremental.state import State

KEPT_PER_KIND = 2
"""Events kept of each kind: with one alone, no column would show that a relation leads from one event of the kind to
another.
"""
MIN_FRACTION = 6
"""A search pays off if at least one event in so many might go, and merging if so many do."""
NUMPY_CELLS = 10_000_000
"""Cells of a table from which numpy is imported, which takes a tenth of a second."""
MAX_CELLS = 16_000_000
"""Cells of a table that are processed together."""
SAMPLE_ROWS = 64
"""Rows of a table that mostly suffice to show that few events would go."""


def find_representatives(
    w: State, pinned: int, deadline: Callable[[], None], *, every: bool = False, together: tuple[int, ...] = ()
) -> dict[int, int]:
    """Return the events to remove, each with the event that represents it; none where few would go.

    With ``every`` all such events go. Of the sets ``together`` a new edge touches all members or none. ``deadline`` is
    called now and then.
    """
    watched = find_pinned(w, pinned)
    groups: dict[object, list[int]] = {}
    for k in bits(w.all & ~watched):
        entry = w.entries[k]
        assert entry is not None
        groups.setdefault((entry.thread, entry.sort, entry.exact), []).append(k)
    large = [members for members in groups.values() if len(members) > KEPT_PER_KIND]
    least = 1 if every else -(-w.all.bit_count() // MIN_FRACTION)
    if _count_mergeable(map(len, large)) < least:
        return {}
    seen_from = _classify(w, watched, large, deadline, together, least)
    if seen_from is None:
        return {}
    to_come = union(together)
    gone: dict[int, int] = {}
    for members in large:
        deadline()
        seen: dict[int, list[int]] = {}
        for k in members:
            seen.setdefault(seen_from[k], []).append(k)
        for seen_alike in seen.values():
            if len(seen_alike) <= KEPT_PER_KIND:
                continue
            alike: dict[object, list[int]] = {}
            for k in seen_alike:
                columns = tuple([column[k] & watched for column in w.cols.values()])
                alike.setdefault((columns, _statement(w, k) if to_come >> k & 1 else None), []).append(k)
            for same in alike.values():
                same.sort(key=lambda k: _time(w, k))
                for k in same[:-KEPT_PER_KIND]:
                    gone[k] = same[-KEPT_PER_KIND]
    return gone if len(gone) >= least else {}


def _count_mergeable(sizes: Iterable[int]) -> int:
    """Return how many events go of classes of these sizes."""
    return sum(size - KEPT_PER_KIND for size in sizes if size > KEPT_PER_KIND)


def find_pinned(w: State, pinned: int) -> int:
    """Return the events that must not be merged: pinned ones, the last of each thread, releases of another proxy.

    What such a release makes visible to an acquire are the bytes that the acquire names, and no others (9.7.13.4): a
    later release, of another tensor map, is no path to it.
    """
    last: dict[int, tuple[int, int]] = {}
    watched = pinned & w.all
    for k in bits(w.all):
        entry = w.entries[k]
        if entry is not None and entry.thread >= 0:
            last[entry.thread] = max(last.get(entry.thread, (-1, -1)), (entry.time, k))
            if {Tag.PRELEASE, Tag.READHALF} & entry.event.tags:
                watched |= 1 << k
    for _, k in last.values():
        watched |= 1 << k
    return watched


def _time(w: State, k: int) -> int:
    entry = w.entries[k]
    return entry.time if entry is not None else -1


def _statement(w: State, k: int) -> object:
    """Return the statement of an event's operation, which later findings may name."""
    entry = w.entries[k]
    return entry.event.op.span if entry is not None else None


def _classify(
    w: State, watched: int, groups: list[list[int]], deadline: Callable[[], None], together: tuple[int, ...], least: int
) -> dict[int, int] | None:
    """Return a number for each event of the groups: equal for events that no watched set or column distinguishes.

    The columns of the watched events, the sets gathered along threads and those ``together`` count. ``None`` once it is
    clear that fewer than ``least`` would go.
    """
    events = sorted(k for members in groups for k in members)
    asked = sum(1 << k for k in events)
    at = list(bits(watched))
    columns = [column for n, column in w.cols.items() if w.filled[n] & watched]
    size = len(w.entries)
    numbers = dict.fromkeys(events, 0)
    for part in chain(_sample(asked, columns, at), _parts(w, asked, columns, at, together)):
        deadline()
        digits = columns_of(part, size)
        known: dict[object, int] = {}
        numbers = {k: known.setdefault((number, digits[k]), len(known)) for k, number in numbers.items()}
        if (
            _count_mergeable(size for group in groups for size in Counter(map(numbers.__getitem__, group)).values())
            < least
        ):
            return None
    return numbers


def _sample(asked: int, columns: list[list[int]], at: list[int]) -> Iterator[list[int]]:
    """Return some rows from all over the columns."""
    count = len(columns) * len(at)
    if count:
        yield [columns[k // len(at)][at[k % len(at)]] & asked for k in range(0, count, count // SAMPLE_ROWS + 1)]


def _parts(
    w: State, asked: int, columns: list[list[int]], at: list[int], together: tuple[int, ...]
) -> Iterator[list[int]]:
    """Yield the rows that distinguish events, some at a time, so that not all are made where few events would go."""
    most = max(MAX_CELLS // len(w.entries), 1)
    rows: dict[int, None] = {}
    known: dict[int, int] = {}
    """By their identity, the sets that have been looked at: several events and nodes share one."""
    gathered = (x for pair in w.memo.values() for x in pair)
    for x in chain(gathered, together, (column[k] for column in columns for k in at)):
        if id(x) in known:
            continue
        known[id(x)] = x
        row = x & asked
        if row and row != asked:  # the others tell nothing apart
            rows[row] = None
            if len(rows) == most:
                yield list(rows)
                rows = {}
    if rows:
        yield list(rows)


def columns_of(rows: list[int], size: int) -> Sequence[object]:
    """Return the columns of some rows of bits."""
    if "numpy" in sys.modules or len(rows) * size > NUMPY_CELLS:
        with suppress(ImportError):  # a browser has no numpy
            return _packed(rows, size)
    digits = ["".join(column) for column in zip(*(f"{row:0{size}b}" for row in rows), strict=True)]
    return digits[::-1]


def _packed(rows: list[int], size: int) -> list[bytes]:
    """Return the columns of many rows."""
    import numpy as np

    width = (size + 7) // 8
    raw = b"".join(row.to_bytes(width, "little") for row in rows)
    matrix = np.frombuffer(raw, dtype=np.uint8).reshape(len(rows), width)
    events = np.unpackbits(matrix, axis=1, bitorder="little", count=size).T
    packed = np.packbits(events, axis=1)
    return [row.tobytes() for row in packed]
