"""Rotations: renamings of ring-buffer stages and mbarrier parities that map one iteration of a pipeline to another.

A *turn* rotates the bytes of some objects by one stage and changes the phase parity of some mbarriers.
``mcheck.proofs.rotation_symmetry`` says what a proof gains by this.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from math import gcd

from mcheck.base.records import dataclass
from mcheck.ir.memory import MemoryMap


@dataclass(frozen=True, slots=True)
class Ring:
    """The ``size`` bytes of an object from ``low`` on, which one turn rotates by ``step`` bytes."""

    low: int
    size: int
    step: int

    @property
    def block(self) -> int:
        """The size of a block: bytes that stay adjacent in every rotation."""
        return gcd(self.size, self.step)

    def splits_block(self, low: int, high: int) -> bool:
        """Whether the bytes from ``low`` to ``high`` do not all lie in one block."""
        return low < self.low + self.size and high > self.low and (
            low < self.low or (low - self.low) // self.block != (high - 1 - self.low) // self.block
        )  # fmt: skip

    def block_starts(self) -> range:
        """The addresses at which blocks start, and the end of the ring."""
        return range(self.low, self.low + self.size + 1, self.block)

    def rotate(self, address: int, turns: int) -> int:
        """The address of a byte of the ring after so many ``turns``."""
        return self.low + (address - self.low + self.step * turns) % self.size


@dataclass(frozen=True, slots=True)
class Rotation:
    """The difference between two iterations: the ``rings`` that turn, by address, and the mbarriers whose parity
    changes with a turn (``flips``, by address).
    """

    rings: tuple[Ring, ...]
    flips: frozenset[int]
    _lows: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lows", [c.low for c in self.rings])

    def ring_at(self, address: int) -> Ring | None:
        """The ring that contains a byte."""
        k = bisect_right(self._lows, address) - 1
        found = self.rings[k] if k >= 0 else None
        return found if found is not None and address < found.low + found.size else None

    def rings_by_object(self, memory: MemoryMap) -> dict[int, Ring]:
        """The rings, by the base address of their object."""
        return {found.base: c for c in self.rings if (found := memory.find(c.low)) is not None}

    def affects(self, address: int) -> bool:
        """Whether a turn renames what is at an address."""
        return address in self.flips or self.ring_at(address) is not None


@dataclass(slots=True)
class RotatedNames:
    """The names of addresses and parities ``turns`` turns ago."""

    rotation: Rotation
    turns: int
    _parities: dict[int, int] = field(default_factory=dict)

    def original_address(self, address: int) -> int:
        """The address of a byte before the turns."""
        circle = self.rotation.ring_at(address)
        return address if circle is None else circle.rotate(address, -self.turns)

    def parity_change(self, address: int) -> int:
        """1 if the turns have changed the parity of an mbarrier, else 0."""
        found = self._parities.get(address)
        if found is None:
            circle, flips = self.rotation.ring_at(address), self.rotation.flips
            on_the_way = (
                address if circle is None else circle.rotate(address, -back) for back in range(1, self.turns + 1)
            )
            found = self._parities[address] = sum(at in flips for at in on_the_way) % 2
        return found


UNROTATED = RotatedNames(Rotation((), frozenset()), 0)
"""The identity: every address keeps its name."""
