"""Who touched which bytes: the accesses of an object that a later one may still conflict with.

Every object is cut into runs of bytes that no access so far has split. A record leaves a run when nothing can tell it
from a later one any more (``mcheck.engines.protocol.incremental.indistinguishable``).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import sum_of
from mcheck.engines.protocol.state.cyclic_names import Ring
from mcheck.events.event import Event


@dataclass(frozen=True, slots=True)
class LaneOwners:
    """Which lane touched which bytes: lane ``lanes[k]`` (-1: several) the ``size`` bytes from ``starts[k]`` on, where
    ``starts`` ascend and the ranges are apart.
    """

    starts: tuple[int, ...]
    size: int
    lanes: tuple[int, ...]

    def lane_at(self, byte: int) -> int:
        """The lane of a byte that is among them."""
        return self.lanes[bisect_right(self.starts, byte) - 1]


Lanes = int | tuple[int, int] | LaneOwners | None
"""Which lane of an agent touched a byte: the lane's number; (address, stride) if lane k touched the k-th stride from
the address; ``None`` for all of them."""


@dataclass(slots=True, eq=False)
class Record:
    """An access, or all accesses of one instruction by the lanes of an agent; ``entries`` are its events in the window.

    ``done`` are (agent, step) of the waits of its group, ``bars`` the mbarriers that it signals.
    """

    agent: int
    step: int
    lanes: Lanes
    event: Event
    write: bool
    proxy: str
    asynchronous: bool
    cp_async: bool
    cta: int
    spaces: tuple[object, ...]
    mbarrier_clocks: tuple[int, ...] = ()
    waits: list[tuple[int, int]] = field(default_factory=list)
    signalled: bool = False
    position: int = 0
    entries: tuple[Live, ...] = ()

    @property
    def in_flight(self) -> bool:
        """Whether a wait to come may be the first to observe its completion."""
        return self.asynchronous and not self.waits and not self.signalled

    def merge_key(self) -> tuple[object, ...]:
        """What tells it from other records of the same bytes."""
        return tuple(e.bit for e in self.entries), self.write, self.lanes

    @property
    def event_set(self) -> int:
        """Its events as a set of the window."""
        return sum_of(self.entries)


@dataclass(slots=True)
class History:
    """The records of one object, by byte: ``starts`` are the boundaries, ``cells`` what was done in between.

    ``circle`` are bytes that change places from round to round, if some do, and ``torn`` says that somebody has touched
    bytes together that do not stay together.
    """

    starts: list[int]
    cells: list[list[Record]]
    end: int
    ring: Ring | None = None
    splits_ring_block: bool = False

    @staticmethod
    def create(base: int, size: int, circle: Ring | None = None) -> History:
        """The history of an object that nobody has touched."""
        return History([base], [[]], base + size, circle)

    def split_cells(self, low: int, high: int) -> range:
        """The cells of the bytes from ``low`` to ``high``, cut so that they are covered exactly."""
        if self.ring is not None and self.ring.splits_block(low, high):
            self.splits_ring_block = True
        first = self._split(low)
        last = self._split(high)
        return range(first, last)

    def extend(self, end: int) -> None:
        """Has the object end further on: nobody has touched what is new."""
        before, self.end = self.end, end
        if before < end and self.cells[-1]:
            self.starts.append(before)
            self.cells.append([])

    def _split(self, at: int) -> int:
        """The index of the cell that starts at ``at``."""
        starts = self.starts
        k = bisect_right(starts, at) - 1
        if at >= self.end:
            return len(starts)
        if k < 0:
            return 0
        if starts[k] == at:
            return k
        starts.insert(k + 1, at)
        self.cells.insert(k + 1, list(self.cells[k]))
        return k + 1


def lanes_overlap(a: Lanes, b: Lanes, low: int, high: int) -> bool:
    """Whether different lanes of one agent touch a common byte of a cell, one by ``a`` and one by ``b``."""
    if a is None or b is None:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    if a == b:
        return isinstance(a, LaneOwners) and -1 in a.lanes
    if isinstance(a, LaneOwners) or isinstance(b, LaneOwners):
        return _lanes_differ(a, b, low, high)
    return any(_lane_at(a, byte) != _lane_at(b, byte) for byte in range(low, high))


def first_differing_byte(a: Lanes, b: Lanes, low: int, high: int) -> int:
    """The first byte of a cell that one lane touches by ``a`` and another by ``b``; ``low`` where no byte tells."""
    if a is None or b is None or (isinstance(a, int) and isinstance(b, int)):
        return low
    return next((byte for byte in range(low, high) if _lane_at(a, byte) != _lane_at(b, byte)), low)


def _lanes_differ(a: Lanes, b: Lanes, low: int, high: int) -> bool:
    """Whether some byte of a cell has different lanes in ``a`` and in ``b``: where either changes from lane to lane."""
    byte = low
    while byte < high:
        first, second = _lane_at(a, byte), _lane_at(b, byte)
        if first != second or first < 0:
            return True
        byte = min(_lane_end(a, byte), _lane_end(b, byte))
    return False


def _lane_at(lanes: Lanes, byte: int) -> int:
    match lanes:
        case LaneOwners():
            return lanes.lane_at(byte)
        case (start, stride):
            return (byte - start) // stride
        case int():
            return lanes
    return -1


def _lane_end(lanes: Lanes, byte: int) -> int:
    """Where the bytes of the lane end that has a byte."""
    match lanes:
        case LaneOwners():
            return lanes.starts[bisect_right(lanes.starts, byte) - 1] + lanes.size
        case (start, stride):
            return byte + stride - (byte - start) % stride
    return byte + (1 << 62)
