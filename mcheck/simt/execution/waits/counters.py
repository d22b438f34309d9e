"""Counters and locks: words of global memory whose contents the launch does not give, and that atomics decide by.

Every thread that adds to a counter gets a number of its own, whatever the word held at first. So an initial value is
assumed: zero, and, where a result is compared with a number, the one with which the last thread to count gets that
number. A lock, whose value a swap returns, is assumed to be free at first: it holds what its first compare-and-swap
expects, or zero. With contents that are unknown, all threads would seem to get it at once. Other initial values are not
followed, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.lane_arithmetic import Word, truncate
from mcheck.ir import ops
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.simt.execution.lanes import Mask, Quality

COUNTS = frozenset(("add", "inc", "dec"))
SWAPS = frozenset(("cas", "exch"))
ASSUMED = 'the launch does not give the initial value of this {} ("init" of its buffer): {} was assumed'
"""What an answer says of a counter or a lock of unknown contents."""


@dataclass(frozen=True, slots=True)
class AssumedLock:
    """The initial contents that are assumed of a lock, and a swap that returns its value."""

    contents: bytes
    span: Span | None

    @property
    def assumption(self) -> str:
        """What the answer says of it. It holds for all that follows: what is not reached may depend on it, too."""
        value = int.from_bytes(self.contents, "little")
        return ASSUMED.format("word", value)


@dataclass(slots=True)
class Counters:
    """The counters and locks of a run. ``sizes`` are the bytes of the words followed as counters, by address; ``start``
    is their initial value. ``locks`` are the words followed as locks.
    """

    sizes: Mapping[int, int] = field(default_factory=dict)
    start: int = 0
    locks: Mapping[int, AssumedLock] = field(default_factory=dict)
    candidates: dict[int, int] = field(default_factory=dict)
    """Further words of unknown contents, by address, whose atomics return a value that is used."""
    excluded: set[int] = field(default_factory=set)
    """Words that are not counters: a thread waits for their contents, or stores unknown values there."""
    swapped: dict[int, AssumedLock] = field(default_factory=dict)
    """Further words of unknown contents whose values swaps return."""
    other_starts: dict[int, None] = field(default_factory=dict)
    """Initial values for which comparisons of this run would have another result."""
    decides_address: bool = False
    """Whether an address has depended on a counter: it may be valid for this initial value alone."""

    def initial_contents(self) -> dict[int, bytes]:
        """The initial contents of the counters and locks, by address."""
        return {a: lock.contents for a, lock in self.locks.items()} | {
            a: (self.start & (1 << 8 * s) - 1).to_bytes(s, "little") for a, s in self.sizes.items()
        }

    def record_atomic(
        self, op: ops.Atomic, address: int, size: int, given: int, *, held: bool, wanted: bool, known: bool
    ) -> None:
        """Record an atomic on a word, and its first operand: whether the contents are known, the result is used, and
        the operands are known.
        """
        if (held and address not in self.sizes) or not GLOBAL_BASE <= address < SHARED_BASE:
            return
        same = {self.sizes.get(address, size), self.candidates.get(address, size)} == {size}
        if op.op not in COUNTS or op.type[0] not in "us" or not known or not same:
            self.excluded.add(address)
            if op.op in SWAPS and wanted and known and not held:
                free = given if op.op == "cas" else 0
                self.swapped.setdefault(address, AssumedLock(free.to_bytes(size, "little"), op.span))
        elif wanted:
            self.candidates[address] = size

    def record_load(self, address: Word, known: Quality) -> None:
        """Record loads of words with what is known of them: only atomics may access counters."""
        self.excluded.update(address[(known & taint.UNKNOWN) != 0].tolist())
        self.excluded.update(a for a in self.sizes if (address == a).any())

    def record_comparison(self, test: str, bits: int, given: list[tuple[Word, Quality]], mask: Mask) -> None:
        """Record a comparison of a counted value with a known number."""
        for (a, qa), (b, qb) in (given, given[::-1]):
            counted = np.broadcast_to(qa, mask.shape)[mask]
            number = np.broadcast_to(b, mask.shape)[mask]
            if not (counted & taint.COUNTED).all() or np.broadcast_to(qb, mask.shape)[mask].any():
                continue
            values = np.broadcast_to(a, mask.shape)[mask]
            last = number - values.max()
            self.other_starts[int(truncate(last, bits).flat[0]) + self.start] = None
            if test not in ("eq", "ne"):
                self.other_starts[int(truncate(number - values.min(), bits).flat[0]) + self.start] = None

    def new_counters(self, excluded: set[int]) -> dict[int, int]:
        """The words to follow as counters; ``excluded`` are those that were found not to be."""
        excluded |= self.excluded
        return {a: s for a, s in sorted((*self.sizes.items(), *self.candidates.items())) if a not in excluded}

    def new_locks(self) -> dict[int, AssumedLock]:
        """The words to follow as locks."""
        return {**self.swapped, **self.locks}

    def alternative_starts(self) -> Iterator[int]:
        """Other initial values that the counters may have."""
        if self.start == 0 and not self.decides_address:
            yield from (s for s in self.other_starts if s)
