"""What addresses are called in forms: where rounds go on to other bytes, what they were called in an earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcheck.engines.protocol.state.cyclic_names import RotatedNames


@dataclass(frozen=True, slots=True)
class Moving:
    """An object whose bytes are used up as the rounds go: of the addresses from ``low`` to ``high``, those before
    ``keep`` are done with, and the others are told from ``origin`` on.
    """

    low: int
    high: int
    origin: int
    keep: int


@dataclass(frozen=True, slots=True)
class Addresses:
    """How the addresses of an execution are told."""

    moving: Sequence[Moving]
    turned: RotatedNames

    def at(self, address: int) -> int:
        """An address, by what it was called before it turned; in a moving object, from its present origin on."""
        for x in self.moving:
            if x.low <= address < x.high:
                return address - x.origin
        return self.turned.at(address)

    def moving_from(self, low: int) -> Moving | None:
        """The moving object that begins at an address."""
        return next((x for x in self.moving if x.low == low), None)
