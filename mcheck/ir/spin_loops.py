"""Spin loops: loops that repeat a test of memory or of an mbarrier until it succeeds, to no other effect.

One iteration, the one that succeeds, stands for any number of them if three things hold. A failed attempt is repeated:
every path from it leads back, and does nothing but compute, so that no other thread can see it. It asks the same again.
And what failed attempts leave in registers decides nothing afterwards. ``SpinLoop`` decides the first two, for code of
any form; the third is a matter of liveness, which its users add:

* ``mcheck.engines.protocol.analysis.polling`` asks about the operations of a program, whose operands have values;
* ``mcheck.simt.execution.waits.polling_loops`` about the statements of a PTX module, whose operands are registers, and
  whose branches may not be known before the loop ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Generic, NamedTuple, Protocol, TypeVar

from mcheck.base.records import dataclass

R = TypeVar("R")
"""A register."""

MAX_PLACES = 2_000
"""Places on paths after an attempt that are searched for a way back."""
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""The operators of ``setp``."""
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
SWAPPED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The operator for exchanged operands."""


class Step(NamedTuple, Generic[R]):
    """An instruction that no other thread can see.

    ``following`` are the places that may come next; without any the thread ends there, by a trap.
    """

    following: tuple[int, ...]
    writes: AbstractSet[R] = frozenset()
    is_attempt: bool = False
    """Whether it attempts the same as the attempt in question."""


class Computation(NamedTuple, Generic[R]):
    """A computation, which gives equal results if ``what`` is equal and the registers hold the same.

    ``what`` is ``None`` if its results may differ even so.
    """

    what: object
    reads: tuple[R, ...]
    writes: tuple[R, ...]


class Body(Protocol[R]):
    """The code around an attempt."""

    @property
    def asked(self) -> AbstractSet[R]:
        """The registers that say what is attempted."""
        ...

    def step(self, place: int, known: dict[R, int]) -> Step[R] | None:
        """Follow the instruction at a place and update the ``known`` registers.

        ``None`` if others might see it, or if it is not clear what it does.
        """
        ...

    def computed_before(self, place: int) -> Iterable[Computation[R]]:
        """The computations directly before a place, in order, which are executed whenever it is reached."""
        ...


@dataclass(slots=True)
class SpinLoop(Generic[R]):
    """What repeats the attempt at ``at``, which writes ``answer``, as long as it fails.

    A path back has at most ``limit`` instructions.
    """

    body: Body[R]
    at: int
    answer: AbstractSet[R]
    limit: int
    _written: set[R] = field(default_factory=set)
    _repeated: set[tuple[int, frozenset[R]]] = field(default_factory=set)
    """The attempts that are reached, with the registers that say what is attempted and may have changed."""
    _changed: set[R] = field(default_factory=set)

    def leads_back(self, known: dict[R, int]) -> bool:
        """Return whether all paths lead back to the attempt, after which these registers are ``known``."""
        loop = SpinLoop(self.body, self.at, self.answer, self.limit)
        if not loop._follow(self.at + 1, dict(known), self.limit, (self.at,), frozenset(), known):
            return False
        self._written |= loop._written
        self._repeated |= loop._repeated
        self._changed |= loop._changed
        return True

    def may_lead_back(self, known: dict[R, int]) -> bool:
        """Return whether some path without an effect leads back to the attempt."""
        todo, seen = [(self.at + 1, known)], set[tuple[int, frozenset[tuple[R, int]]]]()
        while todo:
            place, held = todo.pop()
            key = place, frozenset(held.items())
            if place == self.at or len(seen) > MAX_PLACES:
                return True
            if key in seen:
                continue
            seen.add(key)
            held = dict(held)
            step = self.body.step(place, held)
            todo += [] if step is None else [(following, held) for following in step.following]
        return False

    def _follow(
        self, place: int, known: dict[R, int], limit: int, attempts: tuple[int, ...], written: frozenset[R],
        first: dict[R, int],
    ) -> bool:  # fmt: skip
        for left in range(limit - 1, -1, -1):
            if place in attempts:
                self._reach(place, known, written, first)
                return True
            step = self.body.step(place, known)
            if step is None:
                return False
            if step.is_attempt:
                self._reach(place, known, written, first)
                attempts = (*attempts, place)
            written |= step.writes
            if not step.following:
                return True
            *others, place = step.following
            if not all(self._follow(other, dict(known), left, attempts, written, first) for other in others):
                return False
        return False

    def _reach(self, place: int, known: dict[R, int], written: frozenset[R], first: dict[R, int]) -> None:
        """Note an attempt; registers that are known to hold what they held at the ``first`` one have not changed."""
        kept = {r for r in first.keys() - self.answer if known.get(r) == first[r]}
        self._written |= written
        self._changed |= first.keys() - self.answer - kept
        self._repeated.add((place, frozenset(self.body.asked & (written | self.answer) - kept)))

    @property
    def changed(self) -> AbstractSet[R]:
        """The registers that were known after an attempt and are not known to hold the same when it is repeated."""
        return self._changed

    def left_behind(self) -> AbstractSet[R] | None:
        """Return the registers that failed attempts leave changed; ``None`` if they do not ask the same each time.

        A register that is computed anew before every attempt, in the same way from what no attempt changes, is not.
        """
        numbers: dict[object, int] = {}
        first = self._values_before(self.at, numbers)
        same = set(first)
        for place in {place for place, _ in self._repeated} - {self.at}:
            here = self._values_before(place, numbers)
            same = {r for r in same if here.get(r) == first[r]}
        if any(asked - same for _, asked in self._repeated):
            return None
        return self._written - same

    def _values_before(self, place: int, numbers: dict[object, int]) -> dict[R, tuple[int, int]]:
        """Return, by number, the values that are computed directly before a place from what no attempt changes."""
        values: dict[R, tuple[int, int]] = {}
        changing = self._written | self.answer
        for what, reads, writes in self.body.computed_before(place):
            fixed = what is not None and all(r in values or r not in changing for r in reads)
            number = numbers.setdefault((what, reads, *map(values.get, reads)), len(numbers))
            for k, r in enumerate(writes):
                if fixed:
                    values[r] = number, k
                else:
                    values.pop(r, None)
        return values
