"""Strong writes whose order decides what a word holds.

Strong accesses of two threads do not race (PTX ISA 8.7), and either one may come last in coherence order. A weak load
behind a barrier then returns what the last one has left: it has no race either, and its value depends on the order of
the threads, of which one is followed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.simt.execution.forced_values import AccessId
from mcheck.simt.execution.lanes import Mask

STORE = "store"
COMMUTATIVE = frozenset(("add", "and", "or", "xor", "min", "max"))
"""Operations of which any two of one kind commute: what they leave does not depend on their order."""
ASYNCHRONOUS = -1
"""Stands for the lane of writes that nothing is ordered behind."""
MAX_BARRIERS = 64
"""How many of the latest barriers order two writes; an earlier one is forgotten."""

Times = NDArray[np.int64]
"""A time for each lane; zero for none."""
What = tuple[str, int | str]
"""What is written: ``STORE`` and a value, or the operation of an atomic and its type. An unknown value, and an atomic
that does not commute with others of its kind, is told apart by a negative number.
"""


@dataclass(slots=True)
class StrongWrites:
    """The strong writes of each byte that no later store is ordered behind. What they leave is the same in every order
    if any two of them that are unordered commute; weak stores end their time.
    """

    latest: dict[int, dict[What, dict[int, int]]] = field(default_factory=dict)
    """By byte and what is written, when each lane, or an asynchronous operation, has written it last."""
    settled: set[AccessId] = field(default_factory=set)
    """The strong loads that barriers order behind what they have read, and before what is written later: they return
    the same in every order.
    """
    readers: dict[int, list[tuple[int, int, AccessId]]] = field(default_factory=dict)
    """Which of them have read a byte since it was written, as lane, time, and access."""
    disordered: set[int] = field(default_factory=set)
    """The bytes that hold what one of several orders leaves."""
    barriers: deque[tuple[Times, Mask]] = field(default_factory=lambda: deque(maxlen=MAX_BARRIERS))
    """The latest barriers that were completed: when each lane had arrived, if that releases what it did before, and
    which lanes waited for them all.
    """
    arrived: Times | None = None
    """The same of lanes that have arrived at the barrier of their cluster."""
    now: int = 0

    def add_write(self, lane: int, address: int, size: int, what: What, *, completes_later: bool = False) -> None:
        """Record a strong write of a lane, or of an asynchronous operation that it issues, which ``completes_later``:
        nothing is known to be ordered behind that.
        """
        self.now += 1
        writer = ASYNCHRONOUS if completes_later else lane
        for byte in range(address, address + size):  # unordered writes of other words that overlap race
            self._end_reads(byte, lane)
            self._add_to_byte(byte, lane, what, writer)

    def _add_to_byte(self, byte: int, lane: int, what: What, writer: int) -> None:
        written = self.latest.setdefault(byte, {})
        if not isinstance(what[1], str):  # what commutes with nothing else stands for all that is ordered before it
            written = {w: left for w, those in written.items() if (left := self._unordered(those, lane))}
            self.latest[byte] = written
        if what[0] == STORE and written.keys() <= {what}:
            self.disordered.discard(byte)
        elif byte not in self.disordered and any(
            w != what and self._unordered(those, lane) for w, those in written.items()
        ):
            self.disordered.add(byte)
        written.setdefault(what, {})[writer] = self.now

    def add_read(self, lane: int, address: int, size: int, access: AccessId) -> None:
        """Record a strong load."""
        found = [self.latest.get(byte, {}) for byte in range(address, address + size)]
        behind = all(written and not any(self._unordered(w, lane) for w in written.values()) for written in found)
        if not behind or self.are_disordered(address, size):
            self.settled.discard(access)
            return
        self.settled.add(access)
        for byte in range(address, address + size):
            self.readers.setdefault(byte, []).append((lane, self.now, access))

    def _end_reads(self, byte: int, lane: int) -> None:
        """A lane writes a byte: those that have read it without a barrier since might have read this."""
        for reader, time, access in self.readers.pop(byte, ()):
            if self._unordered({reader: time}, lane):
                self.settled.discard(access)

    def add_weak(self, addresses: Iterable[int], size: int) -> None:
        """Record weak stores: they are ordered after the writes before them, or race."""
        for address in addresses:
            for table in (self.readers, self.latest):
                for byte in _within(table, address, size):
                    del table[byte]
            self.disordered.difference_update(_within(self.disordered, address, size))

    def move(self, target: int, source: int, size: int) -> None:
        """Record that bytes are written by what depends on other ones."""
        self.disordered.update(byte - source + target for byte in _within(self.disordered, source, size))

    def add_barrier(self, lanes: Mask) -> None:
        """Record a barrier at which lanes stood until it was complete."""
        if self.latest:
            self.now += 1
            self.barriers.append((np.where(lanes, self.now, 0), lanes))

    def add_arrival(self, lanes: Mask) -> None:
        """Record that lanes arrive at the barrier of their cluster and release what they have done (9.7.13.3): not what
        they do from there to their wait. A relaxed arrival releases nothing.
        """
        if self.latest:
            self.now += 1
            self.arrived = np.zeros(len(lanes), np.int64) if self.arrived is None else self.arrived
            self.arrived[lanes] = self.now

    def add_cluster_barrier(self, lanes: Mask, waiting: Mask) -> None:
        """Record that the barrier of a cluster of lanes is complete, for which some of them were waiting."""
        if self.arrived is not None:
            self.barriers.append((np.where(lanes, self.arrived, 0), waiting))
            self.arrived[lanes] = 0

    def are_disordered(self, address: int, size: int) -> bool:
        """Whether a word holds what one of several orders of the threads leaves."""
        return not self.disordered.isdisjoint(range(address, address + size))

    def _unordered(self, accesses: Mapping[int, int], lane: int) -> dict[int, int]:
        """Those of the accesses, by lane and time, that neither program order nor a barrier orders before what a lane
        does now. Nothing orders those of asynchronous operations.
        """
        return {
            other: time
            for other, time in accesses.items()
            if other == ASYNCHRONOUS
            or (other != lane and not any(waited[lane] and arrived[other] > time for arrived, waited in self.barriers))
        }


def _within(found: Collection[int], address: int, size: int) -> list[int]:
    """Those of the bytes that are among so many from an address on."""
    there = range(address, address + size)
    return [byte for byte in found if byte in there] if len(found) < size else [byte for byte in there if byte in found]


def written_by_atomic(operation: str, kind: str, number: int) -> What:
    """What an atomic of a type writes. Of those that commute, ``min`` and ``max`` go by the sign of the type, too."""
    if operation not in COMMUTATIVE:
        return operation, -1 - number
    return operation, kind if operation in ("min", "max") else kind.lstrip("bus")
