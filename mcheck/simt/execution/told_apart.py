"""What a path tells apart of the numbers that its atomics return.

A number that goes into nothing but comparisons with numbers that the thread has computed decides by their results
alone. By induction over its statements, a thread does the same for all numbers with these results, for none of them
reads the number itself (``mcheck.simt.execution.compared_numbers``). So a path with one of them is the path with every
other, and threads that count themselves take as many paths as there are threads that may be the last, not as many as
they have orders. The engine still has the atomics return each number that the model allows, and leaves the path with
one that the path does not stand for.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.ir.ops import Ranges
from mcheck.simt.execution.forced_values import AccessId


class ToldApart:
    """The numbers that atomics have returned to registers which only comparisons read, and what these have shown."""

    def __init__(self) -> None:
        self.alike: dict[AccessId, Ranges] = {}
        """By access, the numbers for which all comparisons so far have had the same results."""
        self.held: dict[tuple[int, int], AccessId] = {}
        """By row and lane, the access whose number a register holds."""

    def draw(self, rows: Iterable[int | None], place: AccessId, size: int, *, sure: bool) -> None:
        """Note that registers hold what an access has returned; ``sure``: and that it is recorded as that."""
        for row in rows:
            if row is not None and sure:
                self.held[row, place[0]] = place
                self.alike[place] = ((0, (1 << 8 * size) - 1),)
            elif row is not None:
                self.held.pop((row, place[0]), None)

    def compare(self, row: int, lane: int, shown: Ranges) -> None:
        """Note that a comparison of what a register holds has the same result for these numbers."""
        place = self.held.get((row, lane))
        if place is not None:
            both = ((max(a, c), min(b, d)) for a, b in self.alike[place] for c, d in shown)
            self.alike[place] = tuple(sorted((low, high) for low, high in both if low <= high))
