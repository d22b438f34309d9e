"""Names that go round: of bytes whose place others take from round to round, and of phases whose parity changes.

A *turn* moves the bytes of some objects on in circles, and has some mbarriers change the parity of their phase. What
such names are good for is said in ``mcheck.proofs.rotation_symmetry``.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from math import gcd

from mcheck.ir.memory import MemoryMap


@dataclass(frozen=True, slots=True)
class Ring:
    """Bytes of an object, ``size`` of them from ``low`` on, that a turn moves on by ``step`` bytes."""

    low: int
    size: int
    step: int

    @property
    def block(self) -> int:
        """The bytes that stay together however often it turns."""
        return gcd(self.size, self.step)

    def splits_block(self, low: int, high: int) -> bool:
        """Whether bytes from ``low`` to ``high`` do not all stay together."""
        return low < self.low + self.size and high > self.low and (
            low < self.low or (low - self.low) // self.block != (high - 1 - self.low) // self.block
        )  # fmt: skip

    def block_starts(self) -> range:
        """Where what stays together begins, and the end of the circle."""
        return range(self.low, self.low + self.size + 1, self.block)

    def rotate(self, address: int, often: int) -> int:
        """Where a byte of the circle is after so many turns."""
        return self.low + (address - self.low + self.step * often) % self.size


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a round and a later one differ in: the ``circles``, by their addresses, and of which mbarriers the parity
    changes when they move on (``flips``, by address).
    """

    rings: tuple[Ring, ...]
    flips: frozenset[int]
    _lows: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lows", [c.low for c in self.rings])

    def ring_at(self, address: int) -> Ring | None:
        """The circle that a byte is in."""
        k = bisect_right(self._lows, address) - 1
        found = self.rings[k] if k >= 0 else None
        return found if found is not None and address < found.low + found.size else None

    def rings_by_object(self, memory: MemoryMap) -> dict[int, Ring]:
        """The circles by the addresses of the objects that they are in."""
        return {found.base: c for c in self.rings if (found := memory.find(c.low)) is not None}

    def affects(self, address: int) -> bool:
        """Whether a turn makes something else of what is at an address."""
        return address in self.flips or self.ring_at(address) is not None


@dataclass(slots=True)
class RotatedNames:
    """What things were called before ``often`` turns."""

    rotation: Rotation
    turns: int
    _parities: dict[int, int] = field(default_factory=dict)

    def original_address(self, address: int) -> int:
        """What a byte was."""
        circle = self.rotation.ring_at(address)
        return address if circle is None else circle.rotate(address, -self.turns)

    def parity_change(self, address: int) -> int:
        """1 if the parity of an mbarrier is not what it was, else 0."""
        found = self._parities.get(address)
        if found is None:
            circle, flips = self.rotation.ring_at(address), self.rotation.flips
            on_the_way = (
                address if circle is None else circle.rotate(address, -back) for back in range(1, self.turns + 1)
            )
            found = self._parities[address] = sum(at in flips for at in on_the_way) % 2
        return found


UNROTATED = RotatedNames(Rotation((), frozenset()), 0)
"""All is called what it is."""
