"""Events that nothing can tell apart any more.

What is still to come is computed from the last event of each thread, from the sets gathered along the threads so far,
and from the events that a new edge other than program order may touch (those are *pinned*). Two unpinned events of one
thread and one sort that stand to all of these in the same relations will stand so to whatever comes; so will two that a
new edge may touch together alone, as members of the same sets. The two latest
such events stand for all: what leads from an earlier one to something new leads through one of them.
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

KEPT = 2
"""Events of a kind that stay: of one alone no column would tell any more that a relation leads from one of the kind to
another.
"""
WORTH = 6
"""It is worth while to look where at least every so manyth event might go, and to forget where so many do."""
MANY = 10_000_000
"""Cells of a table from which on it is worth the import of numpy, a tenth of a second, unless that is done."""
TABLE = 16_000_000
"""Cells of a table that are looked at together."""
SAMPLE = 64
"""So many rows of a table mostly show that few events would go, where few would."""


def find_representatives(
    w: State, pinned: int, deadline: Callable[[], None], *, every: bool = False, together: tuple[int, ...] = ()
) -> dict[int, int]:
    """The events to forget, each with the one that stands for it; none where few could go, unless ``every`` one is
    to. Of the sets ``together`` a new edge may touch all members or none. ``deadline`` is asked now and then.
    """
    watched = find_pinned(w, pinned)
    groups: dict[object, list[int]] = {}
    for k in bits(w.all & ~watched):
        entry = w.entries[k]
        assert entry is not None
        groups.setdefault((entry.thread, entry.sort, entry.exact), []).append(k)
    large = [members for members in groups.values() if len(members) > KEPT]
    least = 1 if every else -(-w.all.bit_count() // WORTH)
    if _beyond(map(len, large)) < least:
        return {}
    seen_from = _seen_from(w, watched, large, deadline, together, least)
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
            if len(seen_alike) <= KEPT:
                continue
            alike: dict[object, list[int]] = {}
            for k in seen_alike:
                columns = tuple([column[k] & watched for column in w.cols.values()])
                alike.setdefault((columns, _statement(w, k) if to_come >> k & 1 else None), []).append(k)
            for same in alike.values():
                same.sort(key=lambda k: _time(w, k))
                for k in same[:-KEPT]:
                    gone[k] = same[-KEPT]
    return gone if len(gone) >= least else {}


def _beyond(sizes: Iterable[int]) -> int:
    """How many events go of sets of so many that are alike."""
    return sum(size - KEPT for size in sizes if size > KEPT)


def find_pinned(w: State, pinned: int) -> int:
    """The events that stand for themselves: the pinned ones, the last one of each thread, and releases of another
    proxy. What these hand over to an acquire goes to the bytes that the acquire names, and to no others (9.7.13.4): a
    later release, of another tensor map, does not lead there.
    """
    last: dict[int, tuple[int, int]] = {}
    watched = pinned & w.all
    for k in bits(w.all):
        entry = w.entries[k]
        if entry is not None and entry.thread >= 0:
            last[entry.thread] = max(last.get(entry.thread, (-1, -1)), (entry.time, k))
            if Tag.PRELEASE in entry.event.tags:
                watched |= 1 << k
    for _, k in last.values():
        watched |= 1 << k
    return watched


def _time(w: State, k: int) -> int:
    entry = w.entries[k]
    return entry.time if entry is not None else -1


def _statement(w: State, k: int) -> object:
    """Where the operation of an event stands, which findings name that are still to come."""
    entry = w.entries[k]
    return entry.event.op.span if entry is not None else None


def _seen_from(
    w: State, watched: int, groups: list[list[int]], deadline: Callable[[], None], together: tuple[int, ...], least: int
) -> dict[int, int] | None:
    """A number for each event of the groups, the same for those that are in the same ones of the watched events'
    columns, of the sets gathered along threads, and of those ``together``. ``None`` once it shows that less than the
    ``least`` would go of those of one group and number.
    """
    events = sorted(k for members in groups for k in members)
    asked = sum(1 << k for k in events)
    at = list(bits(watched))
    columns = [column for n, column in w.cols.items() if w.filled[n] & watched]
    size = len(w.entries)
    numbers = dict.fromkeys(events, 0)
    for part in chain(_some(asked, columns, at), _parts(w, asked, columns, at, together)):
        deadline()
        digits = columns_of(part, size)
        known: dict[object, int] = {}
        numbers = {k: known.setdefault((number, digits[k]), len(known)) for k, number in numbers.items()}
        if _beyond(size for group in groups for size in Counter(map(numbers.__getitem__, group)).values()) < least:
            return None
    return numbers


def _some(asked: int, columns: list[list[int]], at: list[int]) -> Iterator[list[int]]:
    """Some rows from everywhere in the columns."""
    count = len(columns) * len(at)
    if count:
        yield [columns[k // len(at)][at[k % len(at)]] & asked for k in range(0, count, count // SAMPLE + 1)]


def _parts(
    w: State, asked: int, columns: list[list[int]], at: list[int], together: tuple[int, ...]
) -> Iterator[list[int]]:
    """What tells some events apart, so many rows at a time."""
    rows = {x & asked for gathered in w.memo.values() for x in gathered}
    rows.update(x & asked for x in together)
    for column in columns:
        rows.update([column[k] & asked for k in at])
    table = sorted(rows - {0, asked})  # the others tell nothing apart
    most = max(TABLE // len(w.entries), 1)
    for start in range(0, len(table), most):
        yield table[start : start + most]


def columns_of(rows: list[int], size: int) -> Sequence[object]:
    """The columns of some rows of bits."""
    if "numpy" in sys.modules or len(rows) * size > MANY:
        with suppress(ImportError):  # a browser has no numpy
            return _packed(rows, size)
    digits = ["".join(column) for column in zip(*(f"{row:0{size}b}" for row in rows), strict=True)]
    return digits[::-1]


def _packed(rows: list[int], size: int) -> list[bytes]:
    """The columns of many rows."""
    import numpy as np

    width = (size + 7) // 8
    raw = b"".join(row.to_bytes(width, "little") for row in rows)
    matrix = np.frombuffer(raw, dtype=np.uint8).reshape(len(rows), width)
    events = np.unpackbits(matrix, axis=1, bitorder="little", count=size).T
    packed = np.packbits(events, axis=1)
    return [row.tobytes() for row in packed]
