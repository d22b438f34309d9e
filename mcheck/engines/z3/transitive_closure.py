"""Transitive closure as definitions without circular support: Warshall's elimination, on literals.

Definite edges are closed beforehand; only targets of undecided edges are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.engines.z3.clauses import FALSE, TRUE, Clauses, Side


class Elimination:
    """The closure of edges between the bounds ``low`` and ``high``, as lower literals."""

    def __init__(
        self,
        clauses: Clauses,
        low: Rows,
        high: Rows,
        edge: Callable[[int, int], int],
        here: Callable[[int], int] = lambda _: TRUE,
    ) -> None:
        self.clauses = clauses
        self.edge = edge
        self.here = here
        n = len(low)
        guarded = sum(1 << y for y in range(n) if here(y) != TRUE)
        # edges to events that are not in every execution are undecided: a path may end there, or lead through
        self.sure = bits.closure([row & ~guarded for row in low]) if guarded else bits.closure(low)
        self.open = [h & ~s for h, s in zip(high, self.sure, strict=True)]
        ends = 0
        for row in self.open:
            ends |= row
        self.ends = bits.bits(ends)
        self.sources = [x for x, row in enumerate(self.open) if row]
        self.high = bits.closure(bits.union(high, low))
        self.before: list[int] = bits.inverse(self.sure)
        self.direct: dict[tuple[int, int], int] = {}
        self.arrivals: dict[tuple[int, int], int] = {}
        self.found: dict[tuple[int, int], int] = {}
        self.matrix: dict[int, dict[int, int]] | None = None

    def reaches(self, i: int, j: int) -> int:
        """The literal of the pair in the closure."""
        if self.sure[i] >> j & 1:
            return TRUE
        if not self.high[i] >> j & 1:
            return FALSE
        found = self.found.get((i, j))
        if found is None:
            last = [y for y in self.ends if y == j or self.before[j] >> y & 1]
            found = self.clauses.any_of(
                [self._there(self._arrives(i, y), TRUE if y == j else self.here(y)) for y in last], Side.LOWER
            )
            self.found[i, j] = found
        return found

    def _there(self, literal: int, *here: int) -> int:
        """The literal of a path through an event, which has to exist."""
        return self.clauses.all_of((literal, *here), Side.LOWER)

    def _first(self, i: int, y: int) -> int:
        """A path of definite edges, then one undecided edge that ends at y."""
        found = self.direct.get((i, y))
        if found is None:
            starts = [x for x in self.sources if self.open[x] >> y & 1 and (x == i or self.sure[i] >> x & 1)]
            found = self.direct[i, y] = self.clauses.any_of(
                [self._there(self.edge(x, y), TRUE if x == i else self.here(x)) for x in starts], Side.LOWER
            )
        return found

    def _arrives(self, i: int, y: int) -> int:
        """Any path whose last edge is an undecided one that ends at y."""
        found = self.arrivals.get((i, y))
        if found is None:
            matrix = self._matrix()
            terms = [self._first(i, y)]
            for p in self.ends:
                rest = matrix[p].get(y, FALSE)
                if rest != FALSE:
                    terms.append(self.clauses.all_of((self._first(i, p), rest, self.here(p)), Side.LOWER))
            found = self.arrivals[i, y] = self.clauses.any_of(terms, Side.LOWER)
        return found

    def _matrix(self) -> dict[int, dict[int, int]]:
        """Paths from the end of one undecided edge to that of another."""
        if self.matrix is None:
            matrix: dict[int, dict[int, int]] = {}
            for p in self.ends:
                row = {y: self._first(p, y) for y in self.ends}
                matrix[p] = {y: x for y, x in row.items() if x != FALSE}
            for p in self.ends:
                through = list(matrix[p].items())
                for q in self.ends:
                    first = matrix[q].get(p, FALSE)
                    if q == p or first == FALSE:
                        continue
                    row = matrix[q]
                    for y, rest in through:
                        if y != p:
                            both = self.clauses.all_of((first, rest, self.here(p)), Side.LOWER)
                            row[y] = self.clauses.any_of((row.get(y, FALSE), both), Side.LOWER)
            self.matrix = matrix
        return self.matrix
