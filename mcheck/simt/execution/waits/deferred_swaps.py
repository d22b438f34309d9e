"""Swaps that wait for the value that they expect.

A compare-and-swap whose word holds another value is in a loop, more likely than not, and each failed attempt would be
one more iteration to follow. So its lane is deferred until other lanes have run, and every swap succeeds that can;
``failures`` is for those that fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from mcheck.base.records import dataclass

ExpectedWord = tuple[int, int, int]
"""A word and what a swap expects there: address, bytes, value."""


@dataclass(slots=True)
class DeferredSwaps:
    """The lanes that are deferred, each with the word that it would swap."""

    failures: int = 0
    """How often a lane tries a swap that fails."""
    deferred: dict[int, ExpectedWord] = field(default_factory=dict)
    failed: dict[int, int] = field(default_factory=dict)
    """By lane, the number of swaps that failed."""
    forced: set[int] = field(default_factory=set)
    """Lanes whose swaps fail because no other lane can run."""
    happened: bool = False
    """Whether a lane has been deferred."""

    def may_run(self, lane: int, word: ExpectedWord, *, succeeds: bool) -> bool:
        """Whether a lane may swap now; it is deferred otherwise."""
        if not succeeds:
            if self.failed.get(lane, 0) >= self.failures and lane not in self.forced:
                self.deferred[lane] = word
                self.happened = True
                return False
            self.failed[lane] = self.failed.get(lane, 0) + 1
        self.forced.discard(lane)
        return True

    def resume(self, holds: Callable[[int, ExpectedWord], bool]) -> list[int]:
        """The deferred lanes whose word ``holds`` what they expect: they may go on."""
        return self._forget([lane for lane, word in self.deferred.items() if holds(lane, word)])

    def force(self) -> list[int]:
        """All deferred lanes, whose swaps fail: no other lane makes progress that would help them."""
        self.forced.update(self.deferred)
        return self._forget(list(self.deferred))

    def _forget(self, lanes: list[int]) -> list[int]:
        for lane in lanes:
            del self.deferred[lane]
        return lanes
