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
from mcheck.simt.grid.footprints.regions import Region, regions_of
from mcheck.simt.grid.footprints.space import Slopes, Space

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


@dataclass(slots=True)
class Footprint:
    """The accesses of a class of clusters (``space``); ``outside`` are accesses that may leave their buffers in other
    clusters.
    """

    space: Space
    buffers: tuple[Instance, ...] = ()
    beginnings: dict[Form, dict[Span | None, list[NDArray[np.int64]]]] = field(default_factory=dict)
    """By form and place in the code, where accesses begin: arrays with a row per access, a column per dimension."""
    outside: dict[tuple[int, Span | None], None] = field(default_factory=dict)
    may_signal: bool = False
    """Whether the code may order accesses of different clusters, or let one make some because of what others do."""

    def add(self, form: Form, span: Span | None, starts: NDArray[np.int64]) -> None:
        """Add accesses by their beginnings."""
        found = self.beginnings.setdefault(form, {}).setdefault(span, [])
        found.append(starts)
        count = len(found)
        if count >= COMPACT and not count & count - 1 and sum(map(len, found[1:])) >= len(found[0]):
            found[:] = [distinct_rows(np.concatenate(found))]

    def all_beginnings(self, form: Form) -> NDArray[np.int64]:
        """The distinct beginnings of the accesses of a form."""
        return distinct_rows(np.concatenate([a for found in self.beginnings[form].values() for a in found]))

    def regions(self, form: Form) -> tuple[Region, ...]:
        """The regions that the accesses of a form touch."""
        return regions_of(self.all_beginnings(form), form.lengths, form.slopes)

    def places(self, form: Form) -> Iterator[tuple[Span | None, tuple[Region, ...]]]:
        """The same by place in the code."""
        for span, found in self.beginnings[form].items():
            yield span, regions_of(distinct_rows(np.concatenate(found)), form.lengths, form.slopes)

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
