"""What the lanes of a warp hold while all of its ways are followed, by what their latest looks may have found.

A look finds one of a few values: what the word held at first, or what one of the stores to it left. Each is a *case* of
the lane that looked, and registers hold a value for each case. A branch on what was found leaves on either way those
cases that go there; a vote on it those of every lane that has voted. The next look of the warp forgets the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass, replace
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.looks.known_bits import EVERY, ZERO, Bits

Lanes = NDArray[np.bool_]
"""Lanes of a warp; of what depends on the cases of each lane, too, cases first."""
Cells = frozenset[int]
"""Addresses of bytes."""
MAX_CASES = 4
"""Maximum number of cases of a lane."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a look may find: a value, and what is published with it (``mcheck.simt.grid.looks.published_cells``)."""

    bits: Bits
    cells: Cells = frozenset()

    def covers(self, other: Case) -> bool:
        """Whether each value of the other one is one of this, too."""
        more, differ = other.bits.unknown & ~self.bits.unknown, self.bits.value ^ other.bits.value
        return not more.any() and not (differ & ~self.bits.unknown).any()

    def join(self, other: Case) -> Case:
        """One of both."""
        return Case(self.bits.join(other.bits), self.cells & other.cells)


class Look(Protocol):
    """Tells what the word of an address and a size may hold, or, if it is ``final``, what it holds in the end."""

    def __call__(self, address: int, size: int, *, final: bool) -> Sequence[Case]: ...


def merge(given: Sequence[Case]) -> tuple[Case, ...]:
    """The same values in few cases."""
    found: list[Case] = []
    for case in given:
        for k, other in enumerate(found):
            if other.covers(case) or case.covers(other):
                found[k] = other.join(case)
                break
        else:
            found.append(case)
    if len(found) < len(given):
        return merge(found)
    if len(found) > MAX_CASES:
        joined = found[0]
        for case in found[1:]:
            joined = joined.join(case)
        return (joined,)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Vote:
    """A vote: in which cases a lane may have voted that way which every lane has, if the result is ``told``."""

    told: bool
    cases: Lanes

    def key(self) -> Hashable:
        """Equal for equal votes."""
        return self.told, self.cases.tobytes()


@dataclass(slots=True)
class State:
    """The registers of a warp that have been written since the exploration began, by row, and in which lanes each is
    the same, known or not.
    """

    registers: dict[int, Bits] = field(default_factory=dict)
    uniform: dict[int, Lanes] = field(default_factory=dict)
    alive: Lanes = field(default_factory=lambda: np.ones((1, WARP), np.bool_))
    """Which cases are possible, of each lane that may be here one at least."""
    look: Hashable = None
    """Which look the cases are of."""
    cells: tuple[tuple[Cells, ...], ...] = ()
    """What is published, by lane and case."""
    acquired: Lanes = field(default_factory=lambda: np.zeros(WARP, np.bool_))
    """Which lanes have acquired what they found."""
    votes: dict[int, Vote] = field(default_factory=dict)
    """Results of votes of which the cases tell more, by row."""

    def copy(self) -> State:
        """A copy."""
        return replace(
            self, registers=dict(self.registers), uniform=dict(self.uniform), votes=dict(self.votes)
        )  # fmt: skip

    def key(self, rows: Container[int] | None = None) -> tuple[Hashable, ...]:
        """Equal for equal states, as far as these rows are concerned."""
        found: list[Hashable] = [self.look, self.alive.tobytes(), self.acquired.tobytes()]
        for row, bits in sorted(self.registers.items()):
            if rows is not None and row not in rows:
                continue
            found += (row, bits.value.tobytes(), bits.unknown.tobytes())
            if row in self.uniform and self.uniform[row].any():
                found.append(self.uniform[row].tobytes())
        found += ((row, vote.key()) for row, vote in sorted(self.votes.items()))
        return tuple(found)

    @property
    def here(self) -> Lanes:
        """The lanes that may be here."""
        return np.asarray(self.alive.any(axis=0))

    def settled(self, bits: Bits) -> Bits:
        """What a register holds in whichever case a lane is."""
        if bits.value.ndim < 2:
            return bits
        high = np.bitwise_or.reduce(np.where(self.alive, bits.value, ZERO), axis=0)
        low = np.bitwise_and.reduce(np.where(self.alive, bits.value, EVERY), axis=0)
        unknown = np.bitwise_or.reduce(np.where(self.alive, bits.unknown, ZERO), axis=0) | (high ^ low)
        return Bits(high & ~unknown, unknown)

    def settle(self) -> None:
        """Forget the cases."""
        self.registers = {row: self.settled(bits) for row, bits in self.registers.items()}
        self.alive = self.here[None]
        self.look, self.cells = None, ()
        self.acquired = np.zeros(WARP, np.bool_)
        self.votes = {}

    def write(self, row: int, bits: Bits, same: Lanes) -> None:
        """Write a register; ``same``: lanes of which all get the same value."""
        self.registers[row], self.uniform[row] = bits, same
        self.votes.pop(row, None)

    def restrict(self, row: int, told: bool, guard: Bits, mask: Lanes, *, apart: bool) -> bool:
        """Leave the cases in which a predicate in a row is ``told``, in these lanes; returns whether that is possible:
        for some of them if they are ``apart``, else for all.
        """
        may = (guard.unknown != 0) | ((guard.value != 0) == told)
        alive = self.alive & (may | ~mask)
        vote = self.votes.get(row)
        if vote is not None and vote.told == told:
            alive &= vote.cases
        self.alive = alive
        left = mask & self.here
        return bool(left.any()) if apart else bool((left == mask).all())


def join(states: Sequence[State], base: Callable[[int], Bits], *, mixed: bool) -> State:
    """What holds in all of these states; ``mixed``: each lane may be in another one. ``base`` gives registers that a
    state has not written.
    """
    joined = states[0]
    for other in states[1:]:
        if joined.look != other.look:
            joined.settle()
            other.settle()
        joined = _join(joined, other, base)
    if mixed:
        joined.uniform.clear()
    return joined


def _join(one: State, other: State, base: Callable[[int], Bits]) -> State:
    found = replace(one, registers={}, uniform={}, alive=one.alive | other.alive)
    found.votes = {r: v for r, v in one.votes.items() if r in other.votes and other.votes[r].key() == v.key()}
    nowhere = np.zeros(WARP, np.bool_)
    mine, theirs = one.here & ~other.here, other.here & ~one.here
    found.acquired = np.where(mine, one.acquired, np.where(theirs, other.acquired, one.acquired & other.acquired))
    for row in one.registers.keys() | other.registers.keys():
        x, y = (state.registers[row] if row in state.registers else base(row) for state in (one, other))
        both = x.join(y)
        if both.value.ndim < 2:
            found.registers[row] = x.where(mine, y.where(theirs, both))
        else:
            only, others = one.alive & ~other.alive, other.alive & ~one.alive
            found.registers[row] = x.where(only, y.where(others, both))
        found.uniform[row] = one.uniform.get(row, nowhere) & other.uniform.get(row, nowhere)
    return found
