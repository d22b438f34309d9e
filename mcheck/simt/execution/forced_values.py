"""Forced values: what some atomics and strong loads return on a path.

A path is one of several where control depends on values that other threads write. Another path is executed by giving
the values that differ; lanes are held back until the words hold them. If no order of the lanes brings a value about,
the access returns it even so: whether the model has such an execution is for the engine to decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from mcheck.base import records
from mcheck.base.records import dataclass
from mcheck.ir.ops import Ranges

AccessId = tuple[int, int]
"""An access: a lane, and the index of the operation in its code."""


@records.dataclass(frozen=True, slots=True)
class Observation:
    """The value that an access of the word at ``address`` returns; with those ``alike`` the path is the same."""

    address: int
    value: int
    alike: Ranges = ()

    @property
    def values(self) -> Ranges:
        """Those values, this one among them."""
        return self.alike or ((self.value, self.value),)

    def stands_for(self, value: int) -> bool:
        """Whether a path with this observation is one with another value."""
        return any(low <= value <= high for low, high in self.values)

    def is_told(self, size: int) -> bool:
        """Whether the path says anything of the value, which has so many bytes."""
        return self.alike != ((0, (1 << 8 * size) - 1),)


@dataclass(slots=True)
class ForcedValues:
    """The values of a path that are still to come are those ``wanted``."""

    wanted: dict[AccessId, Observation] = field(default_factory=dict)
    held: dict[int, tuple[int, int, int | None]] = field(default_factory=dict)
    """By lane that is held back, the word it would access: address, bytes, and the value it has to hold."""
    released: set[int] = field(default_factory=set)
    """Lanes that are held back no longer: no other lane can run."""

    def value_of(self, lane: int, place: int) -> int | None:
        """The value that an access has to return, if it is forced."""
        found = self.wanted.get((lane, place))
        return None if found is None else found.value

    def may_run(self, lane: int, place: int, address: int, size: int, present: int, *, writes: bool) -> bool:
        """Whether a lane may access a word that holds ``present`` now; it is held back otherwise.

        One whose value is forced waits for it; one that writes waits for those that are to read what is there.
        """
        if lane in self.released:
            self.released.discard(lane)
            return True
        value = self.value_of(lane, place)
        if value is not None:
            if value == present:
                return True
        elif not writes or not self._is_wanted(address, present):
            return True
        self.held[lane] = address, size, value
        return False

    def _is_wanted(self, address: int, present: int) -> bool:
        return any(o.address == address and o.value == present for o in self.wanted.values())

    def take(self, lane: int, place: int) -> int | None:
        """The value that an access returns, if it is forced: it is no longer to come."""
        found = self.wanted.pop((lane, place), None)
        return None if found is None else found.value

    def ready_lanes(self, present: Mapping[int, int]) -> list[int]:
        """The lanes held back that may go on, given what the word of each holds now."""
        return [
            lane
            for lane, (address, _, value) in self.held.items()
            if (present[lane] == value if value is not None else not self._is_wanted(address, present[lane]))
        ]

    def release(self, lanes: Iterable[int]) -> None:
        """Let lanes go on, whatever their words hold."""
        self.released.update(lanes)

    def forget(self, lanes: Iterable[int]) -> None:
        """Remove lanes from those that are held back."""
        for lane in lanes:
            self.held.pop(lane, None)
