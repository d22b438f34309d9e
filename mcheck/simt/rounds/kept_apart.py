"""Whether the accesses of rounds that were left out conflict with no access of another lane.

Weak accesses of one thread through the generic proxy are ordered by its program order, and two accesses race only where
they conflict (PTX ISA 9.0 8.7.1). So an access matters to no other one if nothing writes its object, or if one thread
alone touches its bytes, by plain accesses: what the pass ``unshared-accesses`` of the protocol engine leaves out of a
program that has them. The bytes of an object are shown to be those of one lane each in one of three ways: the lanes
keep to intervals of their own; or to remainders of their own modulo the common divisor of all strides; or, where they
are few, by all accesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.effects.unwritten_objects import is_plain_access, places_of
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import MemoryMap
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.tensor_map_values import decode
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.rounds.repeated_access import RepeatedAccess

Indices = NDArray[np.int64]
_Plain = tuple[int, list[tuple[int | None, int]]]
"""The bytes that an access touches, and for each of its lanes the wanted object, if it is in one, and the place."""
MOST_ENUMERATED = 1 << 22
"""So many accesses of an object are compared one by one."""


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Plain accesses of lanes: the first one of each from ``low`` on, and ``count`` in all, ``stride`` apart."""

    lanes: Indices
    low: Indices
    size: int
    stride: int = 0
    count: int = 1

    @property
    def hulls(self) -> tuple[Indices, Indices]:
        """By lane, where the bytes begin and end."""
        reach = self.stride * (self.count - 1)
        return self.low + min(reach, 0), self.low + max(reach, 0) + self.size


def are_apart(c: Cluster) -> bool:
    """Whether no access that was left out of an execution can conflict with one of another lane."""
    repeated = c.recorded.repeated_accesses
    if not repeated:
        return True
    memory = c.places.memory
    if any(i.cta is None and i.base != i.physical for i in memory.instances):
        return False  # what has a second name is touched by that as well
    by_object: dict[int, list[RepeatedAccess]] = {}
    for one in repeated:
        for base in _objects_of(memory, one.starts):
            by_object.setdefault(base, []).append(one)
    touched = _touched_objects(c, memory)
    if touched is None:
        return False
    written, otherwise = touched
    doubtful = [base for base, those in by_object.items() if base in written or any(one.writes for one in those)]
    if any(base in otherwise or any(one.non_coherent for one in by_object[base]) for base in doubtful):
        return False
    if not doubtful:
        return True
    plain = _plain_accesses(c, memory, set(doubtful))
    if plain is None:
        return False
    for base in doubtful:
        ranges = [_Ranges(one.lanes, one.starts, one.size, one.stride, one.count) for one in by_object[base]]
        if not _are_of_one_lane([*ranges, *plain.get(base, ())]):
            return False
    return True


def _objects_of(memory: MemoryMap, starts: Indices) -> Iterator[int]:
    """The objects of global memory in which accesses begin."""
    bases = np.array([i.base for i in memory.instances], np.int64)
    order = np.argsort(bases)
    found = np.searchsorted(bases[order], starts, side="right") - 1
    yield from distinct(bases[order][found]).tolist()


def _touched_objects(c: Cluster, memory: MemoryMap) -> tuple[set[int], set[int]] | None:
    """The objects that operations may write, and those that others than plain accesses may touch; ``None`` where only
    an execution shows which.
    """
    written: set[int] = set()
    otherwise: set[int] = set()
    maps: set[int | None] = set()
    for op in map(performed_operation, c.recorded.distinct_operations()):
        if isinstance(op, ops.TensorCopy):
            maps.update(places_of(op.tensor_map))
        for names, found in ((op.facets.writes, written), ((*op.facets.reads, *op.facets.writes), otherwise)):
            if found is otherwise and is_plain_access(op):
                continue
            for place in _places(c, op, names):
                if place is None:
                    return None
                instance = memory.find(place)
                if instance is not None:
                    found.add(instance.base)
    named = {None if at is None else memory.find(at) for at in maps}
    if c.store.maps or any(i is None or i.base in written for i in named):
        return None  # what a map comes to name is touched by its copies
    return written, otherwise


def _places(c: Cluster, op: Op, names: Sequence[str]) -> Iterator[int | None]:
    """Where an operation touches memory by these operands, the tensor of a map included."""
    if isinstance(op, ops.Wgmma | ops.TensorCore | ops.TensorMove | ops.Fill):
        return  # shared and tensor memory alone
    if isinstance(op, ops.Load | ops.Store | ops.Atomic) and op.space.startswith("shared"):
        return
    if isinstance(op, ops.TensorCopy):
        contents = c.store.read_map(op.tensor_map.value) if isinstance(op.tensor_map, Const) else None
        spec = None if contents is None else decode(contents)
        yield None if spec is None else spec.global_address
    for name in names:
        yield from places_of(getattr(op, name))


def _plain_accesses(c: Cluster, memory: MemoryMap, wanted: set[int]) -> dict[int, list[_Ranges]] | None:
    """The plain accesses that were executed, by object, of the ``wanted`` ones."""
    known: dict[int, _Plain | None] = {}
    found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for lane, code in enumerate(c.recorded.code):
        for op in code:
            if id(op) not in known:
                known[id(op)] = _plain_access(op, memory, wanted)
            access = known[id(op)]
            if access is None:
                continue
            size, places = access
            base, low = places[lane % WARP if len(places) > 1 else 0]
            if base is None:
                continue
            lanes, lows = found.setdefault((base, size), ([], []))
            lanes.append(lane)
            lows.append(low)
    out: dict[int, list[_Ranges]] = {}
    for (base, size), (lanes, lows) in found.items():
        out.setdefault(base, []).append(_Ranges(np.array(lanes, np.int64), np.array(lows, np.int64), size))
    return out


def _plain_access(op: Op, memory: MemoryMap, wanted: set[int]) -> _Plain | None:
    """The bytes of a plain access that touches an object that is wanted, and its places."""
    if not is_plain_access(op):
        return None
    assert isinstance(op, ops.Load | ops.Store)
    places: list[tuple[int | None, int]] = []
    for at in places_of(op.address):
        instance = memory.find(at) if at else None
        places.append((instance.base if instance is not None and instance.base in wanted else None, at or 0))
    return (type_size(op.type) * op.scalar_count, places) if any(base is not None for base, _ in places) else None


def _are_of_one_lane(ranges: list[_Ranges]) -> bool:
    """Whether each byte is one lane's alone."""
    return _have_intervals(ranges) or _have_remainders(ranges) or _share_nothing(ranges)


def _have_intervals(ranges: list[_Ranges]) -> bool:
    """Whether each lane keeps to an interval in which no other lane is."""
    lanes = np.concatenate([r.lanes for r in ranges])
    hulls = [r.hulls for r in ranges]
    low, high = (np.concatenate(ends) for ends in zip(*hulls, strict=True))
    mine, number = np.unique(lanes, return_inverse=True)
    first = np.full(len(mine), np.iinfo(np.int64).max)
    last = np.zeros(len(mine), np.int64)
    np.minimum.at(first, number, low)
    np.maximum.at(last, number, high)
    order = np.argsort(first)
    return bool((first[order][1:] >= last[order][:-1]).all())


def _have_remainders(ranges: list[_Ranges]) -> bool:
    """Whether the bytes of different lanes differ modulo the common divisor of all strides."""
    divisor = gcd(*(r.stride for r in ranges))
    if not divisor or any(r.size > divisor for r in ranges):
        return False
    lanes = np.concatenate([r.lanes for r in ranges])
    low = np.concatenate([r.low for r in ranges]) % divisor
    high = low + np.concatenate([np.full(len(r.low), r.size) for r in ranges])
    over = high > divisor
    low = np.concatenate([low, np.zeros(int(over.sum()), np.int64)])
    ends = np.concatenate([np.minimum(high, divisor), high[over] - divisor])
    return _each_of_one_lane(np.concatenate([lanes, lanes[over]]), low, ends)


def _share_nothing(ranges: list[_Ranges]) -> bool:
    """Whether the bytes of different lanes differ, by all of them."""
    if sum(len(r.lanes) * r.count for r in ranges) > MOST_ENUMERATED:
        return False
    lanes = np.concatenate([np.repeat(r.lanes, r.count) for r in ranges])
    low = np.concatenate([(r.low[:, None] + r.stride * np.arange(r.count)).reshape(-1) for r in ranges])
    sizes = np.concatenate([np.full(len(r.low) * r.count, r.size) for r in ranges])
    return _each_of_one_lane(lanes, low, low + sizes)


def _each_of_one_lane(lanes: Indices, low: Indices, high: Indices) -> bool:
    """Whether ranges that overlap, directly or through others, are of one lane."""
    order = np.argsort(low, kind="stable")
    lanes, low, high = lanes[order], low[order], high[order]
    reach = np.maximum.accumulate(high)
    starts = np.concatenate([[0], np.flatnonzero(low[1:] >= reach[:-1]) + 1])
    return bool((np.maximum.reduceat(lanes, starts) == np.minimum.reduceat(lanes, starts)).all())
