"""The access history of memory objects: the accesses to each byte that a later access may still conflict with.

Each object is divided into cells, runs of bytes that no access so far has split. A record leaves a cell when no later
event can tell it from a later record (``mcheck.engines.protocol.incremental.indistinguishable``).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from mcheck.base.declared_state import (
    IN_OWNER,
    SHALLOW,
    SHARED,
    VALUE,
    Attribute,
    Unnamed,
    declare_state,
    listed,
    state,
    tupled,
)
from mcheck.base.records import dataclass
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.state.cyclic_names import Ring
from mcheck.engines.protocol.state.naming import (
    ACCESS,
    CLOCK_OBJECTS,
    ENTRIES,
    LANES,
    NUMBER,
    OF_PROGRAM,
    WAITING_AGENTS,
)
from mcheck.events.event import Event
from mcheck.ir.ops import BulkCopy, is_weakened


@dataclass(frozen=True, slots=True)
class LaneOwners:
    """Which lane accessed which bytes: lane ``lanes[k]`` (-1: several lanes) accessed the ``size`` bytes from
    ``starts[k]`` on. The ``starts`` ascend and the ranges are disjoint.
    """

    starts: tuple[int, ...]
    size: int
    lanes: tuple[int, ...]

    def lane_at(self, byte: int) -> int:
        """The lane that accessed a byte of the ranges."""
        return self.lanes[bisect_right(self.starts, byte) - 1]


Lanes = int | tuple[int, int] | LaneOwners | None
"""The lanes of an agent that accessed a range: a lane number; (address, stride) if lane k accessed the k-th stride from
the address; ``None`` for all lanes.
"""


@dataclass(slots=True, eq=False)
class Record:
    """One access, or the accesses of one instruction by all lanes of an agent. ``entries`` are its events in the
    window.

    ``waits`` are the waits for its group as (agent, step), ``mbarrier_clocks`` the clock components of the mbarriers
    that its completion signals.
    """

    agent: int
    step: int
    lanes: Lanes
    event: Event
    write: bool
    proxy: str
    asynchronous: bool
    cp_async: bool
    spaces: tuple[object, ...]
    mbarrier_clocks: tuple[int, ...] = ()
    waits: list[tuple[int, int]] = field(default_factory=list)
    signalled: bool = False
    position: int = 0
    entries: tuple[Live, ...] = ()

    @property
    def in_flight(self) -> bool:
        """Whether it is asynchronous and no wait has observed its completion yet."""
        return self.asynchronous and not self.waits and not self.signalled

    def merge_key(self) -> tuple[object, ...]:
        """What distinguishes it from other records of the same bytes."""
        op = self.event.op
        told_apart = (isinstance(op, BulkCopy) and op.is_strong) or is_weakened(op)
        strength = (op.scope, self.agent, self.event.size) if told_apart else None  # type: ignore[attr-defined]
        return tuple(e.bit for e in self.entries), self.write, self.lanes, strength

    @property
    def event_set(self) -> int:
        """Its events as a set of the window."""
        return to_mask(self.entries)


declare_state(
    Record,
    agent=VALUE,
    step=NUMBER,
    lanes=Attribute(SHARED, LANES),
    event=Attribute(SHARED, ACCESS),
    write=VALUE,
    proxy=VALUE,
    asynchronous=VALUE,
    cp_async=VALUE,
    spaces=VALUE,
    mbarrier_clocks=Attribute(SHARED, CLOCK_OBJECTS),
    waits=Attribute(SHALLOW, WAITING_AGENTS),
    signalled=VALUE,
    position=NUMBER,
    entries=Attribute(tupled(state("Entry")), ENTRIES),
)


@dataclass(slots=True)
class History:
    """The access history of one object: ``starts`` are the boundaries of its cells, ``cells`` their records.

    ``ring`` are the bytes that a rotation moves, if any. ``splits_ring_block`` says that an access covered bytes of
    several blocks of the ring.
    """

    starts: list[int]
    cells: list[list[Record]]
    end: int
    ring: Ring | None = None
    splits_ring_block: bool = False

    @staticmethod
    def create(base: int, size: int, circle: Ring | None = None) -> History:
        """Create the history of an object without accesses."""
        return History([base], [[]], base + size, circle)

    def split_cells(self, low: int, high: int) -> range:
        """Split cells so that some of them cover exactly the bytes from ``low`` to ``high``; return their indices."""
        if self.ring is not None and self.ring.splits_block(low, high):
            self.splits_ring_block = True
        first = self._split(low)
        last = self._split(high)
        return range(first, last)

    def extend(self, end: int) -> None:
        """Extend the object to a new end; the new bytes have no accesses."""
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


declare_state(
    History,
    starts=Attribute(SHALLOW, IN_OWNER),
    cells=Attribute(listed(listed(state("Record"))), IN_OWNER),
    end=Attribute(SHARED, IN_OWNER),
    ring=Attribute(SHARED, OF_PROGRAM),
    splits_ring_block=Attribute(SHARED, Unnamed("a proof that rotates gives up as soon as it is true")),
)


@dataclass(frozen=True, slots=True)
class LaneMeeting:
    """Whether a lane of an agent accesses a byte by both of two accesses (``own``), and whether two lanes access one,
    each by one of them (``across``).
    """

    own: bool
    across: bool


EITHER = LaneMeeting(own=True, across=True)


def meeting_lanes(a: Lanes, b: Lanes, low: int, high: int) -> LaneMeeting:
    """Which lanes of one agent access a common byte of a cell, by ``a`` and by ``b``."""
    if a is None or b is None:
        return EITHER
    if a == b:
        return LaneMeeting(own=True, across=isinstance(a, LaneOwners) and -1 in a.lanes)
    if isinstance(a, int) and isinstance(b, int):
        return LaneMeeting(own=False, across=True)
    own = across = False
    byte = low
    while byte < high and not (own and across):  # tested where either changes lanes
        first, second = lane_at(a, byte), lane_at(b, byte)
        several = first < 0 or second < 0
        own, across = own or several or first == second, across or several or first != second
        byte = min(_lane_end(a, byte), _lane_end(b, byte))
    return LaneMeeting(own=own, across=across)


def first_differing_byte(a: Lanes, b: Lanes, low: int, high: int) -> int:
    """The first byte of a cell that different lanes access by ``a`` and by ``b``; ``low`` where the lanes are not known
    per byte.
    """
    if a is None or b is None or (isinstance(a, int) and isinstance(b, int)):
        return low
    return next((byte for byte in range(low, high) if lane_at(a, byte) != lane_at(b, byte)), low)


def lane_bytes(lanes: Lanes, byte: int) -> tuple[int, int] | None:
    """The first byte of what the lane that accesses a byte accesses, and its end; ``None`` where the lanes are not
    known per byte.
    """
    if lanes is None or isinstance(lanes, int):
        return None
    if isinstance(lanes, LaneOwners):
        first = lanes.starts[bisect_right(lanes.starts, byte) - 1]
        return first, first + lanes.size
    start, stride = lanes
    first = byte - (byte - start) % stride
    return first, first + stride


def lane_at(lanes: Lanes, byte: int) -> int:
    """The lane that accesses a byte; -1 if several do."""
    match lanes:
        case LaneOwners():
            return lanes.lane_at(byte)
        case (start, stride):
            return (byte - start) // stride
        case int():
            return lanes
    return -1


def _lane_end(lanes: Lanes, byte: int) -> int:
    """The end of the bytes of the lane that accesses a byte."""
    match lanes:
        case LaneOwners():
            return lanes.starts[bisect_right(lanes.starts, byte) - 1] + lanes.size
        case (start, stride):
            return byte + stride - (byte - start) % stride
    return byte + (1 << 62)
