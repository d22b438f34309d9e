"""Names of addresses in canonical forms, for loops whose iterations move on to other bytes."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.base.records import dataclass
from mcheck.engines.protocol.state.cyclic_names import RotatedNames


@dataclass(frozen=True, slots=True)
class StreamedObject:
    """An object whose bytes are consumed as iterations proceed: of the addresses from ``low`` to ``high``, those before
    ``keep_from`` are no longer used, and the others are named relative to ``origin``.
    """

    low: int
    high: int
    origin: int
    keep_from: int


@dataclass(frozen=True, slots=True)
class AddressNames:
    """The names of the addresses of an execution."""

    streamed: Sequence[StreamedObject]
    rotation: RotatedNames

    def name_of(self, address: int) -> int:
        """The name of an address: relative to the origin of its streamed object, or rotated back."""
        for x in self.streamed:
            if x.low <= address < x.high:
                return address - x.origin
        return self.rotation.original_address(address)

    def streamed_object_at(self, low: int) -> StreamedObject | None:
        """The streamed object that begins at an address."""
        return next((x for x in self.streamed if x.low == low), None)
