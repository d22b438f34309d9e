"""Shared memory, byte by byte: which of its bytes hold the same for all numbers of a parameter.

*Why a load may return what the executed schedule stored.* The program is proved to have no race, so a weak load returns
what the newest store before it has stored, in each of its executions. Every store to its bytes, before the load or
behind it, stores the same with all numbers, and in each period (``SteadyBytes``). So it remains which store is the
newest. Where there are few rounds, some lanes may be behind their loops while others have not begun theirs, and load
something that they do not find with a larger number. So executions with each number up to two distances behind the
first state that recurs (``mcheck.proofs.parametric_proof``) have to load the same values
(``PeriodicTrace.check_loads``). With any larger number a load behind the second of these states corresponds to one with
that number less the distance: it finds the store that corresponds to the one found there, or the newest one before the
state. All that has been stored since the state before that, the same instructions have stored in each distance.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.memory_layout import LOCAL_BASE
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.simt.execution.lanes import Mask


@dataclass(frozen=True, slots=True)
class SharedBytes:
    """The bytes of shared memory, ``size`` of each CTA, in one row."""

    ctas: int
    size: int

    @property
    def count(self) -> int:
        """The number of all bytes."""
        return self.ctas * self.size

    def index(self, address: Word, size: int) -> NDArray[np.int64] | None:
        """The numbers of ``size`` bytes at each of some generic addresses; ``None`` if some are elsewhere."""
        at = address.astype(np.int64)
        cta, offset = np.divmod(at & SHARED_BASE - 1, SHARED_WINDOW)
        if not ((at >= SHARED_BASE) & (at < LOCAL_BASE) & (cta < self.ctas) & (offset + size <= self.size)).all():
            return None
        return (cta * self.size + offset)[:, None] + np.arange(size)


@dataclass(slots=True)
class SteadyBytes:
    """Which bytes were stored last by an instruction that stores the same for all numbers, and what that was.

    That it stores the same in each period of a loop rests on what it has computed this from: a value that goes round
    through memory, such as a counter, is another one in each period, though no register carries it. So a load inside a
    period is steady only if all stores to its bytes store one and the same, but for those behind the loops that come
    after it: these belong to the last period.
    """

    bytes: SharedBytes
    steady: Mask = field(init=False)
    values: NDArray[np.uint8] = field(init=False)
    stored: Mask = field(init=False)
    varies: Mask = field(init=False)
    """Whether different values were stored."""
    needed: Mask = field(init=False)
    """Whether a period depends on the byte."""
    used: Mask = field(init=False)
    """Whether anything does."""
    moves: Mask = field(init=False)
    """Whether something was stored that is not the same for all numbers."""

    def __post_init__(self) -> None:
        count = self.bytes.count
        self.values = np.zeros(count, np.uint8)
        self.steady, self.stored, self.varies, self.needed, self.used, self.moves = np.zeros((6, count), np.bool_)

    def store(self, address: Word, values: NDArray[np.uint8], steady: Mask, behind: Mask) -> bool:
        """Lanes store values, a row of bytes each, some of them behind their loops; what is outside of shared memory is
        passed over. Returns whether no period depended on that these bytes stay the same.
        """
        where = self.bytes.index(address, values.shape[1])
        if where is None:
            return True
        changes = ~steady[:, None] | (self.stored[where] & (self.values[where] != values))
        kept = not (changes & self.needed[where] & ~behind[:, None]).any()
        self.varies[where] |= changes
        self.moves[where] |= ~steady[:, None]
        self.values[where], self.stored[where] = values, True
        self.steady[where] = steady[:, None]
        return kept

    def load(self, address: Word, size: int, inside: Mask) -> Mask:
        """Which lanes load the same for all numbers; some are ``inside`` a period."""
        where = self.bytes.index(address, size)
        if where is None:
            return np.zeros(len(address), np.bool_)
        known = np.asarray((self.steady[where] & ~(self.varies[where] & inside[:, None])).all(axis=1), np.bool_)
        self.needed[where[known & inside]] = True
        self.used[where[known]] = True
        return known
