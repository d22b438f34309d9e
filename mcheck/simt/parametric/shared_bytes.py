"""Shared memory, byte by byte: which of its bytes hold the same for all numbers of a parameter.

*Why a load may return what the executed schedule stored.* The program is proved to have no race, so a weak load returns
what the newest store before it has stored, in each of its executions; which store that is recurs with the state
(``mcheck.proofs.state_recurrence``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
    """Which bytes were stored last by an instruction that stores the same for all numbers."""

    bytes: SharedBytes
    steady: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.steady = np.zeros(self.bytes.count, np.bool_)

    def store(self, address: Word, size: int, steady: Mask) -> None:
        """Lanes store values; what is outside of shared memory is passed over."""
        where = self.bytes.index(address, size)
        if where is not None:
            self.steady[where] = steady[:, None]

    def forget(self, address: Word, size: int) -> None:
        """Lanes change bytes in another way."""
        self.store(address, size, np.zeros(len(address), np.bool_))

    def load(self, address: Word, size: int) -> Mask:
        """Which lanes load the same for all numbers."""
        where = self.bytes.index(address, size)
        if where is None:
            return np.zeros(len(address), np.bool_)
        return np.asarray(self.steady[where].all(axis=1), np.bool_)
