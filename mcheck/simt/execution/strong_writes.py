"""Strong writes whose order decides what a word holds.

Strong accesses of two threads do not race (PTX ISA 8.7), and either one may come last in coherence order. A weak load
behind a barrier then returns what the last one has left: it has no race either, and its value depends on the order of
the threads, of which one is followed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.simt.execution.forced_values import AccessId
from mcheck.simt.execution.lanes import Mask

STORE = "store"
COMMUTATIVE = frozenset(("add", "and", "or", "xor", "min", "max"))
"""Operations of which any two of one kind commute: what they leave does not depend on their order."""
MAX_BARRIERS = 64
"""How many of the latest barriers order two writes; an earlier one is forgotten."""

What = tuple[str, int]
"""What is written: ``STORE`` and a value, or the operation of an atomic and its size."""


@dataclass(slots=True)
class StrongWrites:
    """The latest strong write of each byte, as lane, time, and what it writes; weak stores end their time."""

    latest: dict[int, tuple[int, int, What]] = field(default_factory=dict)
    settled: set[AccessId] = field(default_factory=set)
    """The strong loads that barriers order behind what they have read, and before what is written later: they return
    the same in every order.
    """
    readers: dict[int, list[tuple[int, int, AccessId]]] = field(default_factory=dict)
    """Which of them have read a byte since it was written, as lane, time, and access."""
    disordered: set[int] = field(default_factory=set)
    """The bytes that hold what one of several orders leaves."""
    barriers: deque[tuple[int, Mask]] = field(default_factory=lambda: deque(maxlen=MAX_BARRIERS))
    """The latest barriers that were completed: when, and which lanes stood there."""
    now: int = 0

    def add_write(self, lane: int, address: int, size: int, what: What) -> None:
        """Record a strong write of a lane."""
        self.now += 1
        for byte in range(address, address + size):
            old = self.latest.get(byte)
            self.latest[byte] = lane, self.now, what
            self._end_reads(byte, lane)
            if old is None:
                continue
            if old[0] == lane or self._are_ordered(old[0], old[1], lane):
                if what[0] == STORE:
                    self.disordered.discard(byte)
            elif old[2] != what:
                self.disordered.add(byte)

    def add_read(self, lane: int, address: int, size: int, access: AccessId) -> None:
        """Record a strong load."""
        found = [self.latest.get(byte) for byte in range(address, address + size)]
        behind = all(last and (last[0] == lane or self._are_ordered(last[0], last[1], lane)) for last in found)
        if not behind or self.are_disordered(address, size):
            self.settled.discard(access)
            return
        self.settled.add(access)
        for byte in range(address, address + size):
            self.readers.setdefault(byte, []).append((lane, self.now, access))

    def _end_reads(self, byte: int, lane: int) -> None:
        """A lane writes a byte: those that have read it without a barrier since might have read this."""
        for reader, time, access in self.readers.pop(byte, ()):
            if reader != lane and not self._are_ordered(reader, time, lane):
                self.settled.discard(access)

    def add_weak(self, addresses: Iterable[int], size: int) -> None:
        """Record weak stores: they are ordered after the writes before them, or race."""
        for address in addresses:
            for byte in range(address, address + size):
                self.readers.pop(byte, None)
                if self.latest.pop(byte, None) is not None:
                    self.disordered.discard(byte)

    def add_barrier(self, lanes: Mask) -> None:
        """Record a barrier at which lanes stood until it was complete."""
        if self.latest:
            self.now += 1
            self.barriers.append((self.now, lanes))

    def are_disordered(self, address: int, size: int) -> bool:
        """Whether a word holds what one of several orders of the threads leaves."""
        return not self.disordered.isdisjoint(range(address, address + size))

    def _are_ordered(self, one: int, time: int, other: int) -> bool:
        """Whether a barrier orders a write of one lane, at some time, before what another one does now."""
        return any(at > time and lanes[one] and lanes[other] for at, lanes in self.barriers)


def written_by_atomic(operation: str, size: int, number: int) -> What:
    """What an atomic writes: one that does not commute with others of its kind is told apart by its number."""
    return operation, size if operation in COMMUTATIVE else -1 - number
