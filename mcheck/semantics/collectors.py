"""The collector buffers of a tensor core: what a product leaves in them, and who relies on it (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from typing import TYPE_CHECKING

from mcheck.base.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Word = NDArray[np.uint64]


def are_overlapping(places: Word, size: int, at: int, length: int) -> bool:
    """Whether some of so many bytes at each place are among the bytes from ``at`` on."""
    return bool(((places < at + length) & (places + places.dtype.type(size) > at)).any())


def collector_use(written: str | None, *, stationary: bool) -> tuple[str, str]:
    """The collector that the qualifier of a product names, and what it says of it: without one it discards that of A,
    or the first one of B.
    """
    _, name, use = (written or f"collector::{'b0' if stationary else 'a'}::discard").split("::")
    return name, use


@dataclass(slots=True)
class Collector:
    """A buffer with the matrix of one operand, if any, and the memory that it was loaded from."""

    operand: Hashable | None = None
    loaded_from: tuple[tuple[int, int], ...] = ()
    issuers: set[int] = field(default_factory=set)
    """The lanes whose products have filled, used or discarded it."""
    is_used: bool = False

    @property
    def depends_on_order(self) -> bool:
        """Whether the order of several threads decides what a product finds: their products are not in order."""
        return self.is_used and len(self.issuers) > 1

    def apply(
        self, use: str, operand: Hashable, loaded_from: tuple[tuple[int, int], ...], lanes: list[int]
    ) -> str | None:
        """Do what a product says of the buffer; returns what is wrong if it may take another matrix than its own."""
        self.issuers.update(lanes)
        held = self.operand
        if use == "fill":
            self.operand, self.loaded_from = operand, loaded_from
        elif use != "use":
            self.operand, self.loaded_from = None, ()
        if use not in ("use", "lastuse"):
            return None
        self.is_used = True
        if held is None:
            return "which no product before it has filled, or which was given up or overwritten in memory since"
        return None if held == operand else "which a product has filled with another matrix"

    def record_writes(self, places: Word, size: int) -> None:
        """Record that so many bytes at each place have changed: the buffer may hold what was there before."""
        for at, length in self.loaded_from:
            if are_overlapping(places, size, at, length):
                self.operand, self.loaded_from = None, ()
                return
