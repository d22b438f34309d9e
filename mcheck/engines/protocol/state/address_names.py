"""What addresses are called in forms: where rounds go on to other bytes, what they were called in an earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcheck.engines.protocol.state.cyclic_names import RotatedNames


@dataclass(frozen=True, slots=True)
class StreamedObject:
    """An object whose bytes are used up as the rounds go: of the addresses from ``low`` to ``high``, those before
    ``keep`` are done with, and the others are told from ``origin`` on.
    """

    low: int
    high: int
    origin: int
    keep_from: int


@dataclass(frozen=True, slots=True)
class AddressNames:
    """How the addresses of an execution are told."""

    streamed: Sequence[StreamedObject]
    rotation: RotatedNames

    def name_of(self, address: int) -> int:
        """An address, by what it was called before it turned; in a moving object, from its present origin on."""
        for x in self.streamed:
            if x.low <= address < x.high:
                return address - x.origin
        return self.rotation.original_address(address)

    def streamed_object_at(self, low: int) -> StreamedObject | None:
        """The moving object that begins at an address."""
        return next((x for x in self.streamed if x.low == low), None)
