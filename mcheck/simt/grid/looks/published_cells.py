"""Which bytes a cluster publishes with each of its stores to words that others look at.

    value[tile] = sum; fence; store(flag + tile, 1);           // publishes the bytes of value[tile]

A thread that finds what a store left, and acquires it, comes behind everything that the storing thread has done before
it released: the two patterns synchronise (8.8, 8.9.4), and program order leads to one and away from the other one.
So bytes are *published* by a store to a word if the same thread has written all that its cluster ever writes there by
weak stores through the generic proxy, before the point at which it releases: the store itself, or the last fence
before it, at scope gpu or wider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.scopes import GRID_SCOPES, is_grid_fence
from mcheck.ir.type_sizes import type_size
from mcheck.simt.grid.looks.warp_states import Cells
from mcheck.simt.grid.looks.word_values import Stored
from mcheck.simt.grid.pairs.cluster_accesses import Accesses
from mcheck.simt.grid.pairs.global_places import Numbers


def find_published(
    program: Program, lanes: Numbers, accesses: Accesses, stored: Mapping[int, Sequence[Stored]]
) -> dict[int, list[Cells]]:
    """By word, what each store of a cluster to it publishes. ``lanes`` are those of the threads; ``stored`` are the
    stores to words, ``accesses`` all others.
    """
    threads = {int(lane): number for number, lane in enumerate(lanes.tolist())}
    storing = {one.lane for stores in stored.values() for one in stores}
    found: dict[int, list[Cells]] = {}
    for lane in sorted(storing):
        number = threads[lane]
        mine = {at for at, stores in stored.items() if {one.lane for one in stores} == {lane}}
        for at, cells in _of_thread(program.threads[number], mine):
            found.setdefault(at, []).append(_alone(cells, number, accesses))
    return found


def _of_thread(thread: Thread, words: set[int]) -> Iterator[tuple[int, Cells]]:
    """The words that a thread stores to, in its order, and what it has written by weak stores alone before it released
    each.
    """
    lane = thread.place.lane
    written = [_bytes(op, lane) for op in thread.code]
    fence = 0
    for place, op in enumerate(thread.code):
        if is_grid_fence(op):
            fence = place
        if not isinstance(op, ops.Store | ops.Atomic) or op.sem == "weak" or words.isdisjoint(written[place]):
            continue
        point = place if op.sem in ("release", "acq_rel") and op.scope in GRID_SCOPES else fence
        before = {k for k in range(point) if _is_weak_store(thread.code[k])}
        cells = {byte for k in before for byte in written[k]}
        cells.difference_update(*(written[k] for k in range(len(written)) if k not in before))
        size = type_size(op.type)
        for at in written[place][::size]:
            if at in words:
                yield at, frozenset(cells)


def _is_weak_store(op: Op) -> bool:
    return isinstance(op, ops.Store) and op.sem == "weak" and op.proxy == "generic"


def _bytes(op: Op, lane: int) -> range:
    """The bytes that an operation writes."""
    if not isinstance(op, ops.Store | ops.Atomic) or not isinstance(op.address, Const | Lanes):
        return range(0)
    at = op.address.value if isinstance(op.address, Const) else op.address.values[lane]
    return range(at, at + type_size(op.type) * op.scalar_count)


def _alone(cells: Cells, number: int, accesses: Accesses) -> Cells:
    """Those bytes that no other thread of the cluster writes."""
    if not cells:
        return cells
    others = accesses.writes & (accesses.threads != number)
    near = others & (accesses.starts <= max(cells)) & (accesses.ends > min(cells))
    taken = (range(int(a), int(b)) for a, b in zip(accesses.starts[near], accesses.ends[near], strict=True))
    return cells.difference(*taken) if np.any(near) else cells
