"""Agents that one thread can represent in the window: those that only wait, synchronise and read.

A conflict between two lanes of an agent takes a write; the lanes of an agent without one need not be distinguished,
where the model allows it (``mcheck.engines.protocol.incremental.lane_representatives``). Its reads are weak ones, of
bytes that belong neither to an mbarrier, nor to a tensor map, nor to a tracked word: then it does not matter which lane
an event belongs to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from mcheck.effects.site import widened
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size

Ranges = Iterable[tuple[int, int]]
"""Byte ranges, each from its first byte to the one after its last."""


class TrackedBytes:
    """Bytes whose accesses have to be distinguished."""

    def __init__(self, ranges: Ranges) -> None:
        found = sorted(set(ranges))
        self._lows = [low for low, _ in found]
        self._longest = max((high - low for low, high in found), default=0)
        self._highs = [high for _, high in found]

    def overlaps(self, low: int, high: int) -> bool:
        """Return whether any of them is in the range from ``low`` to ``high``."""
        k = bisect_left(self._lows, low - self._longest)
        while k < len(self._lows) and self._lows[k] < high:
            if self._highs[k] > low:
                return True
            k += 1
        return False


def find_representable(
    program: Program, partition: Sequence[tuple[int, ...]], tracked: TrackedBytes
) -> tuple[bool, ...]:
    """Return for each agent whether one of its threads can represent all."""
    if all(len(group) == 1 for group in partition):
        return (False,) * len(partition)
    more = {id(op) for op in program.operations if not _is_harmless(op, tracked)}
    return tuple(len(group) > 1 and _only_reads(program, group, more) for group in partition)


def _only_reads(program: Program, group: tuple[int, ...], more: set[int]) -> bool:
    """Return whether the lanes only wait, synchronise and read; ``more`` are the operations that do more."""
    return all(more.isdisjoint(map(id, program.threads[thread].code)) for thread in group)


def _is_harmless(op: Op, tracked: TrackedBytes) -> bool:
    match op:
        case ops.Await():
            return isinstance(op.inner, ops.MbarrierWait)
        case ops.MbarrierArrive():
            return not op.no_complete
        case ops.Fence():
            return op.sem != "sc" and op.restrict != "mbarrier_init"
        case ops.ProxyFence():
            return op.kind in ("async", "alias")
        case ops.Load():
            return (
                op.sem == "weak" and not op.volatile and op.proxy == "generic" and _reads_untracked_bytes(op, tracked)
            )
        case _:
            local = op.facets.computes or isinstance(op, ops.Branch | ops.Exit)
            return local or op.facets.synchronises or isinstance(op, ops.MbarrierWait)


def _reads_untracked_bytes(op: ops.Load, tracked: TrackedBytes) -> bool:
    """Return whether a load is known to read no tracked bytes."""
    size = type_size(op.type) * len(op.dsts)
    match op.address:
        case Const(value):
            places: tuple[int, ...] = (value,)
        case Lanes(values):
            places = tuple(values)
        case _:
            return False
    return not any(tracked.overlaps(widened(at), widened(at) + size) for at in places)
