"""The footprint of a cluster in global memory, in terms of its coordinates.

An access is a range of bytes of a buffer, or a box of elements of a tensor, whose beginning is an affine form in the
symbols of the space. Accesses of one form are collected by their places in the code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base import records
from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.ir.memory import Instance
from mcheck.simt.distinct import distinct_rows
from mcheck.simt.grid.footprints.regions import Extent, Region, find_ranges, join_ranges, regions_of, repeat_range
from mcheck.simt.grid.footprints.space import Slopes, Space

SOMEWHERE = np.zeros((1, 0), np.int64)
"""The beginning of an access that may touch all of its buffer: it has no dimensions."""
ANY = -1
"""The buffer of an access at an unknown place."""
READ, WRITE, REDUCE, UPDATE = "read", "write", "reduce", "update"
"""``REDUCE`` is an atomic at scope gpu or wider that releases nothing; ``UPDATE`` any other one."""
DIM = 2
"""The index of the tensor's extents in the shape of a form."""
COMPACT = 64
"""Number of arrays of beginnings that are kept before duplicates are dropped, a power of two. That is done where as
many may have come as were kept the last time, so that what it costs is linear.
"""


@records.dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """``shape`` is empty for bytes of a buffer, else the fields of a tensor map that say where its elements are.
    ``slopes`` and ``lengths`` have an entry per dimension. ``unit`` are the bytes of what is reduced, 0 else.
    ``sure``: every cluster of the class does it. ``plain``: through the generic proxy, and weak, or of a scope without
    other clusters, so that it is morally strong with no access of theirs (8.7).
    """

    buffer: int
    kind: str
    slopes: tuple[Slopes, ...] = ()
    lengths: tuple[int, ...] = ()
    shape: tuple[object, ...] = ()
    unit: int = 0
    proxy: str = "generic"
    sure: bool = True
    plain: bool = False
    whole: bool = False
    """Whether all of the buffer may be touched."""


@dataclass(frozen=True, slots=True, eq=False)
class AddedAccess:
    """What was added to a footprint by one instruction."""

    footprint: Footprint
    form: Form
    span: Span | None
    starts: NDArray[np.int64]

    def repeat(self, stride: int, count: int) -> None:
        """Add it again ``stride`` bytes further on, ``count`` times."""
        again = RepeatedBytes(self.starts[:, 0] + stride, stride, count)
        self.footprint.repeated.setdefault(self.form, {}).setdefault(self.span, []).append(again)


@records.dataclass(frozen=True, slots=True, eq=False)
class RepeatedBytes:
    """Accesses that begin at each of the ``starts``, and as many again ``stride`` behind them, ``count`` times in all:
    those of the rounds of a loop.
    """

    starts: NDArray[np.int64]
    stride: int
    count: int


@dataclass(slots=True)
class Footprint:
    """The accesses of a class of clusters (``space``); ``outside`` are accesses that may leave their buffers in other
    clusters.
    """

    space: Space
    buffers: tuple[Instance, ...] = ()
    beginnings: dict[Form, dict[Span | None, list[NDArray[np.int64]]]] = field(default_factory=dict)
    """By form and place in the code, where accesses begin: arrays with a row per access, a column per dimension."""
    repeated: dict[Form, dict[Span | None, list[RepeatedBytes]]] = field(default_factory=dict)
    """Further accesses of forms and places that are in ``beginnings``."""
    outside: dict[tuple[int, Span | None], None] = field(default_factory=dict)
    may_signal: bool = False
    """Whether the code may order accesses of different clusters, or let one make some because of what others do."""
    latest: list[AddedAccess] | None = None
    """What was added since it was taken last, where that is asked for."""

    def add(self, form: Form, span: Span | None, starts: NDArray[np.int64]) -> None:
        """Add accesses by their beginnings."""
        if self.latest is not None:
            self.latest.append(AddedAccess(self, form, span, starts))
        found = self.beginnings.setdefault(form, {}).setdefault(span, [])
        found.append(starts)
        count = len(found)
        if count >= COMPACT and not count & count - 1 and sum(map(len, found[1:])) >= len(found[0]):
            found[:] = [distinct_rows(np.concatenate(found))]

    def take_added(self) -> tuple[AddedAccess, ...]:
        """What was added since the last call."""
        found = tuple(self.latest or ())
        if self.latest is not None:
            self.latest.clear()
        return found

    def all_beginnings(self, form: Form) -> NDArray[np.int64]:
        """The distinct beginnings of the accesses of a form."""
        return distinct_rows(np.concatenate([a for found in self.beginnings[form].values() for a in found]))

    def regions(self, form: Form) -> tuple[Region, ...]:
        """The regions that the accesses of a form touch."""
        repeated = [one for those in self.repeated.get(form, {}).values() for one in those]
        return self._regions(form, self.all_beginnings(form), repeated)

    def places(self, form: Form) -> Iterator[tuple[Span | None, tuple[Region, ...]]]:
        """The same by place in the code."""
        for span in self.beginnings[form]:
            yield span, self.regions_at(form, span)

    def regions_at(self, form: Form, span: Span | None) -> tuple[Region, ...]:
        """The regions that the accesses of a form at one place in the code touch."""
        starts = distinct_rows(np.concatenate(self.beginnings[form][span]))
        return self._regions(form, starts, self.repeated.get(form, {}).get(span, []))

    def _regions(self, form: Form, starts: NDArray[np.int64], repeated: list[RepeatedBytes]) -> tuple[Region, ...]:
        if not repeated:
            return regions_of(starts, form.lengths, form.slopes)
        (length,), (slopes,) = form.lengths, form.slopes
        ranges = find_ranges(starts[:, 0], length)
        by_rounds: dict[tuple[int, int], list[NDArray[np.int64]]] = {}
        for one in repeated:
            by_rounds.setdefault((one.stride, one.count), []).append(one.starts)
        for (stride, count), found in by_rounds.items():
            ranges += [repeat_range(one, stride, count) for one in find_ranges(np.concatenate(found), length)]
        return tuple(Region((Extent(low, size, steps, slopes),)) for low, size, steps in join_ranges(ranges))

    def is_clipped(self, form: Form) -> bool:
        """Whether a box is partly outside of its tensor in the executed cluster, so that overlaps there are not
        seen.
        """
        if not form.shape:
            return False
        starts, dim = self.all_beginnings(form), form.shape[DIM]
        assert isinstance(dim, tuple)
        moves = np.array([any(s) for s in form.slopes])
        outside = (starts < 0) | (starts + np.array(form.lengths) > np.array(dim))
        return bool((outside & moves).any())

    def buffer_name(self, buffer: int) -> str:
        """The name of a buffer."""
        return next((i.object.name for i in self.buffers if i.base == buffer), "a buffer")
