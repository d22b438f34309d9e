"""The bytes of all lanes of an agent in one instruction."""

from __future__ import annotations

from dataclasses import dataclass

from mcheck.graph.event import Event
from mcheck.kernel.history import Lanes


@dataclass(frozen=True, slots=True)
class Bytes:
    """Ranges of bytes, ascending and apart, and which lane of the agent has which."""

    ranges: tuple[tuple[int, int], ...]
    lanes: Lanes

    def meets(self, low: int, high: int) -> bool:
        """Whether any byte from ``low`` to ``high`` is among them."""
        return any(a < high and low < b for a, b in self.ranges)


@dataclass(frozen=True, slots=True)
class Spread:
    """The access of a load or a store by all lanes."""

    event: Event
    bytes: Bytes
