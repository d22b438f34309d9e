"""Accesses of rounds that are not executed one by one: what one instruction accesses in each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Span
from mcheck.base.records import dataclass

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedAccess:
    """``count`` plain accesses of ``size`` bytes of global memory by each of the ``lanes``: the first one at its
    ``start``, each further one ``stride`` behind the one before it.
    """

    lanes: Indices
    starts: Indices
    stride: int
    count: int
    size: int
    writes: bool
    non_coherent: bool
    span: Span | None

    def hulls(self) -> tuple[Indices, Indices]:
        """By lane, where the accessed bytes begin and end."""
        reach = self.stride * (self.count - 1)
        return self.starts + min(reach, 0), self.starts + max(reach, 0) + self.size

    def every_start(self) -> Indices:
        """By lane and round, where the accesses begin."""
        return self.starts[:, None] + self.stride * np.arange(self.count, dtype=np.int64)

    def touches(self, lane: int, low: int, high: int) -> bool:
        """Whether this lane accesses some of these bytes."""
        found = np.flatnonzero(self.lanes == lane)
        if not len(found):
            return False
        start = int(self.starts[found[0]])
        if not self.stride:
            return start < high and low < start + self.size
        step = abs(self.stride)
        first = min(start, start + self.stride * (self.count - 1))
        number = max(-((first + self.size - 1 - low) // step), 0)  # the first range that ends behind ``low``
        return number < self.count and first + number * step < high
