"""Counters: words of global memory that atomics only add to, and whose contents the launch does not give.

Every thread that counts gets a number of its own, whatever the word held at first. So a value is taken for that: zero,
and, where a result is compared with a number, the one with which the last thread to count gets that number. Other
values are not followed, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.lane_arithmetic import Word, truncate
from mcheck.ir import ops
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.simt.execution.lanes import Mask, Quality

COUNTS = frozenset(("add", "inc", "dec"))


@dataclass(slots=True)
class Counters:
    """``sizes`` are the bytes of the words that are followed as counters, by address; they hold ``start`` at first."""

    sizes: Mapping[int, int] = field(default_factory=dict)
    start: int = 0
    candidates: dict[int, int] = field(default_factory=dict)
    """Further words of unknown contents, by address, of which a thread has wanted to know what it counts."""
    others: set[int] = field(default_factory=set)
    """Words that are no counters: somebody waits for their contents, or puts there what nobody knows."""
    starts: dict[int, None] = field(default_factory=dict)
    """What they would have to hold for comparisons of this run to come out in another way."""
    places: bool = False
    """Whether an address has depended on what was counted: it may well be one for this start alone."""

    def contents(self) -> dict[int, bytes]:
        """What the counters hold at first, by address."""
        return {a: (self.start & (1 << 8 * s) - 1).to_bytes(s, "little") for a, s in self.sizes.items()}

    def count(self, op: ops.Atomic, address: int, size: int, *, held: bool, wanted: bool, known: bool) -> None:
        """An atomic on a word, whether the contents are known, the result is wanted, and the operands are known."""
        if (held and address not in self.sizes) or not GLOBAL_BASE <= address < SHARED_BASE:
            return
        same = {self.sizes.get(address, size), self.candidates.get(address, size)} == {size}
        if op.op not in COUNTS or op.type[0] not in "us" or not known or not same:
            self.others.add(address)
        elif wanted:
            self.candidates[address] = size

    def read(self, address: Word, known: Quality) -> None:
        """Words that are loaded, and whether anything is known of them: of counters nothing but atomics ask."""
        self.others.update(address[(known & taint.UNKNOWN) != 0].tolist())
        self.others.update(a for a in self.sizes if (address == a).any())

    def compare(self, test: str, bits: int, given: list[tuple[Word, Quality]], mask: Mask) -> None:
        """A comparison by these lanes of what was counted with a known number."""
        for (a, qa), (b, qb) in (given, given[::-1]):
            counted = np.broadcast_to(qa, mask.shape)[mask]
            number = np.broadcast_to(b, mask.shape)[mask]
            if not (counted & taint.COUNTED).all() or np.broadcast_to(qb, mask.shape)[mask].any():
                continue
            values = np.broadcast_to(a, mask.shape)[mask]
            last = number - values.max()
            self.starts[int(truncate(last, bits).flat[0]) + self.start] = None
            if test not in ("eq", "ne"):
                self.starts[int(truncate(number - values.min(), bits).flat[0]) + self.start] = None

    def found(self, excluded: set[int]) -> dict[int, int]:
        """The words that are to be followed as counters; ``excluded`` are those that were found to be none."""
        excluded |= self.others
        return {a: s for a, s in sorted((*self.sizes.items(), *self.candidates.items())) if a not in excluded}

    def more(self) -> Iterator[int]:
        """Other contents that the counters may have at first."""
        if self.start == 0 and not self.places:
            yield from (s for s in self.starts if s)
