"""Batches of tests that are expected to take equally long, estimated from the times measured so far."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.checking.machines.parcel import MAX_CHARACTERS, MAX_TESTS, Item, estimate_cost

SECONDS = 1.0
"""The target time of a batch: little to repeat if a worker is lost, and long compared with the transfer."""
FIRST_GUESS = 0.05
"""Seconds per unit of cost before any measurement."""
BEGINNING = 0.2
"""The fraction of a batch that is sent before any measurement."""
FLOOR = 0.001
"""The minimum estimate for a test, in seconds."""


class Batches:
    """Divides a stream of tests into batches."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._held: Item | None = None
        self._cost = 0.0
        self._seconds = 0.0

    def record_time(self, items: list[Item], seconds: float) -> None:
        """Records the time that a batch took."""
        self._cost += sum(estimate_cost(i.case) for i in items)
        self._seconds += seconds

    def next_batch(self) -> list[Item]:
        """The next batch; empty at the end."""
        rate = self._seconds / self._cost if self._cost else FIRST_GUESS
        room = SECONDS if self._cost else SECONDS * BEGINNING
        characters = 0
        out: list[Item] = []
        while len(out) < MAX_TESTS:
            following = self._held if self._held is not None else next(self._items, None)
            self._held = None
            if following is None:
                break
            room -= max(estimate_cost(following.case) * rate, FLOOR)
            characters += len(following.case.text or "")
            if out and (room < 0 or characters > MAX_CHARACTERS):
                self._held = following
                break
            out.append(following)
        return out
