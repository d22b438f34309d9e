"""Instructions that all lanes of a warp must execute (``.sync.aligned``), else behaviour is undefined, except barriers
and wgmma, which the engines check, and arithmetic.

Lanes may come to one at different times. So the complete histories of the lanes are compared, at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.module import Statement
from mcheck.isa.kinds import FRAGMENTS, MAP_EDITS, TMEM, Kind
from mcheck.simt.execution.lanes import WARP, Mask

SECTIONS = {
    Kind.MATRIX_LOAD: "9.7.14.5.15",
    Kind.MATRIX_STORE: "9.7.14.5.16",
    Kind.REGISTER_COUNT: "9.7.19.5",
    **dict.fromkeys(FRAGMENTS, "9.7.14.4"),
    **dict.fromkeys(TMEM, "9.7.16"),
    **dict.fromkeys(MAP_EDITS, "9.7.13.16"),
}
"""The section of the rule."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that different histories have different hashes."""


def is_aligned(statement: Statement) -> bool:
    """Whether the lanes of a warp must execute this instruction together."""
    return statement.kind in SECTIONS and statement.opcode.has("aligned")


@dataclass(slots=True)
class Convergence:
    """The history of each lane, as a hash."""

    exists: Mask
    history: NDArray[np.uint64] = field(init=False)
    diverged: dict[int, tuple[Statement, int]] = field(default_factory=dict)
    """By warp whose histories differ: the statement where they diverged, and a lane that executed it."""

    def __post_init__(self) -> None:
        self.history = np.zeros(self.exists.shape, np.uint64)

    def record(self, mask: Mask, at: int, statement: Statement) -> None:
        """Record that these lanes execute the statement at this place in the code."""
        self.history[mask] = self.history[mask] * FACTOR + np.uint64(at + 1)
        some, every = (x.reshape(-1, WARP) for x in (mask, self.exists))
        for warp in np.flatnonzero(some.any(axis=1) & (some != every).any(axis=1)).tolist():
            lane = warp * WARP + int(np.flatnonzero(some[warp])[0])
            self.diverged.setdefault(warp, (statement, lane))
        for warp in list(self.diverged):
            inside = slice(warp * WARP, (warp + 1) * WARP)
            found = self.history[inside][self.exists[inside]]
            if (found == found[0]).all():
                del self.diverged[warp]

    def divergences(self) -> Iterator[tuple[Statement, int]]:
        """Statements that some lanes of a warp have executed and others not, each once, with one of the lanes."""
        told: set[int] = set()
        for statement, lane in self.diverged.values():
            if id(statement) not in told:
                told.add(id(statement))
                yield statement, lane
