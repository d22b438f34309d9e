"""Tests in batches that are expected to take equally long, by what has been measured so far."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.checking.machines.parcel import LARGEST, MOST, Item, cost

SECONDS = 1.0
"""What a batch is to take: little to do again when a worker is lost, and much beside the way there and back."""
FIRST_GUESS = 0.05
"""Seconds per unit of cost, before anything has been measured."""
BEGINNING = 0.2
"""The share of a batch that is risked before anything has been measured."""
FLOOR = 0.001
"""Seconds of the cheapest test."""


class Batches:
    """Cuts batches off a stream of tests."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._held: Item | None = None
        self._cost = 0.0
        self._seconds = 0.0

    def measured(self, items: list[Item], seconds: float) -> None:
        """A batch has taken so long."""
        self._cost += sum(cost(i.case) for i in items)
        self._seconds += seconds

    def next(self) -> list[Item]:
        """The next batch; empty at the end."""
        rate = self._seconds / self._cost if self._cost else FIRST_GUESS
        room = SECONDS if self._cost else SECONDS * BEGINNING
        characters = 0
        out: list[Item] = []
        while len(out) < MOST:
            following = self._held if self._held is not None else next(self._items, None)
            self._held = None
            if following is None:
                break
            room -= max(cost(following.case) * rate, FLOOR)
            characters += len(following.case.text or "")
            if out and (room < 0 or characters > LARGEST):
                self._held = following
                break
            out.append(following)
        return out
