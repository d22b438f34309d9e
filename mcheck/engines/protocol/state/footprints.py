"""The bytes that all lanes of an agent access in one instruction."""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.engines.protocol.state.access_history import Lanes
from mcheck.events.event import Event


@dataclass(frozen=True, slots=True)
class LaneBytes:
    """Disjoint ranges of bytes in ascending order, with the lanes that access them."""

    ranges: tuple[tuple[int, int], ...]
    lanes: Lanes

    def overlaps(self, low: int, high: int) -> bool:
        """Whether the ranges contain a byte from ``low`` to ``high``."""
        return any(a < high and low < b for a, b in self.ranges)


@dataclass(frozen=True, slots=True)
class CombinedAccess:
    """A load or store of all lanes as one access."""

    event: Event
    bytes: LaneBytes


def coalesce(found: list[tuple[Event, int, int, int]]) -> list[tuple[Event, int, int, Lanes]]:
    """Merge the accesses of the lanes (event, address, size, lane) into few ranges: one for adjacent accesses, one for
    equal ones.
    """
    if len(found) == 1:
        event, address, size, _ = found[0]
        return [(event, address, address + size, None)]
    ranges = {(a, s) for _, a, s, _ in found}
    event = found[0][0]
    if len(ranges) == 1:
        return [(event, found[0][1], found[0][1] + found[0][2], None)]
    size = found[0][2]
    base = found[0][1]
    if all(s == size and a == base + k * size for k, (_, a, s, _) in enumerate(found)):
        return [(event, base, base + size * len(found), (base, size))]
    return [(e, a, a + s, lane) for e, a, s, lane in found]
