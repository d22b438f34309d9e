"""The nodes of a tape as literals over pairs of events: a pair within the lower bound is true, one outside the upper
bound false.

Only pairs that are needed are defined. The *upper* literal of a pair is implied by the pair, so that an axiom which
forbids the literal forbids the pair; closures and recursive definitions then need only their closing clauses, for a
pair that supports itself makes the axiom no weaker. The *lower* literal implies the pair, so that a pair that a flag
reports is there; closures are built by eliminating one event after the other, which leaves no circular support.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.errors import Unsupported
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.engines.z3.clauses import FALSE, TRUE, Clauses, Side
from mcheck.engines.z3.recursive_definitions import doubling, rowwise
from mcheck.engines.z3.symbolic_choices import Opened
from mcheck.engines.z3.transitive_closure import Elimination

Base = Callable[[str, int, int], int]
"""(name of an unknown base relation, i, j) -> the literal of the pair."""

MAX_ROUNDS = 64
"""The maximum number of iterations of a recursive definition that is not a closure."""


class Relations:
    """The literals of one structure's tape."""

    def __init__(self, prepared: Opened, clauses: Clauses, base: Base) -> None:
        self.here = prepared.here
        self._conditional = sum(1 << x for x in range(prepared.n) if prepared.here(x) != TRUE)
        self.prepared = prepared
        self.tape = prepared.tape
        self.low = prepared.bounds.low
        self.high = prepared.bounds.high
        self.n = prepared.n
        self.clauses = clauses
        self.base = base
        self.deadline = prepared.deadline
        self.defined = 0
        self.memo: dict[tuple[int, int, int, Side, int], int] = {}
        self.todo: list[tuple[int, int, int, int]] = []
        self.columns: dict[int, Rows] = {}
        self.sources: dict[int, list[int]] = {}
        self.eliminations: dict[int, Elimination] = {}
        self.doublings: dict[int, Elimination] = {}
        self.shapes: dict[int, tuple[int, int] | None] = {}

    def literal(self, node: int, i: int, j: int, side: Side) -> int:
        """The literal of a pair, with its definition."""
        found = self._literal(node, i, j, side, 0)
        while self.todo:
            self.defined += 1
            if self.defined % 256 == 0:
                self.deadline()
            self._define(*self.todo.pop())
        return found

    def _literal(self, node: int, i: int, j: int, side: Side, rounds: int) -> int:
        if self.low[node][i] >> j & 1:
            return TRUE
        if not self.high[node][i] >> j & 1:
            return FALSE
        if self.tape.group_of[node] < 0:
            rounds = 0
        key = (node, i, j, side, rounds)
        found = self.memo.get(key)
        if found is None:
            instr = self.tape.code[node]
            if side is Side.UPPER and instr.op in ("plus", "star", "rec"):
                found = self.memo[key] = self.clauses.new()
                self.todo.append((node, i, j, found))
            else:
                found = self.memo[key] = self._build(node, i, j, side, rounds)
        return found

    def _build(self, node: int, i: int, j: int, side: Side, rounds: int) -> int:
        instr = self.tape.code[node]
        a, b, c = instr.a, instr.b, self.clauses
        match instr.op:
            case "base":
                return self.base(instr.name, i, j)
            case "or":
                return c.any_of((self._literal(a, i, j, side, rounds), self._literal(b, i, j, side, rounds)), side)
            case "and":
                return c.all_of((self._literal(a, i, j, side, rounds), self._literal(b, i, j, side, rounds)), side)
            case "sub":
                return c.all_of((self._literal(a, i, j, side, rounds), -self._literal(b, i, j, side.other, 0)), side)
            case "comp" | "compset":
                return -self._literal(a, i, j, side.other, 0)
            case "seq":
                middle = self.high[a][i] & self._column(b)[j]
                terms = []
                for z in bits.bits(middle):
                    first = self._literal(a, i, z, side, rounds)
                    if first != FALSE:
                        terms.append(c.all_of((first, self._literal(b, z, j, side, rounds), self.here(z)), side))
                return c.any_of(terms, side)
            case "inv":
                return self._literal(a, j, i, side, rounds)
            case "opt":
                return self._literal(a, i, j, side, rounds)
            case "prod":
                return c.all_of((self._literal(a, i, i, side, rounds), self._literal(b, j, j, side, rounds)), side)
            case "dom":
                found = [(self._literal(a, i, y, side, rounds), self.here(y)) for y in bits.bits(self.high[a][i])]
                return c.any_of([c.all_of(both, side) for both in found], side)
            case "rng":
                found = [(self._literal(a, x, i, side, rounds), self.here(x)) for x in bits.bits(self._column(a)[i])]
                return c.any_of([c.all_of(both, side) for both in found], side)
            case "plus" | "star":
                if self.tape.group_of[a] >= 0:
                    raise Unsupported("a closure inside a recursive definition")
                return self._elimination(a).reaches(i, j)
            case "rec":
                return self._recursive(node, i, j, rounds)
        raise KeyError(instr.op)

    def _column(self, node: int) -> Rows:
        found = self.columns.get(node)
        if found is None:
            found = self.columns[node] = bits.inverse(self.high[node])
        return found

    # --- upper: closing clauses ------------------------------------------------------------------------

    def _define(self, node: int, i: int, j: int, literal: int) -> None:
        """The clauses by which a pair of a closure or of a recursive relation follows from others."""
        instr = self.tape.code[node]
        if instr.op == "rec":
            self.clauses.add(-self._literal(self._body(node), i, j, Side.UPPER, 0), literal)
            return
        a, low, high = instr.a, self.low[node], self.high[node]
        for x in self._sources(node, a):
            if x != i:
                if low[i] >> x & 1 and high[x] >> j & 1:
                    self.clauses.add(-self._literal(node, x, j, Side.UPPER, 0), -self.here(x), literal)
                continue
            for y in bits.bits(self.high[a][x] & (~low[x] | self._conditional)):
                rest = TRUE if y == j else self._literal(node, y, j, Side.UPPER, 0)
                if rest != FALSE:
                    there = TRUE if y == j else self.here(y)
                    self.clauses.add(-self._literal(a, x, y, Side.UPPER, 0), -rest, -there, literal)

    def _sources(self, node: int, a: int) -> list[int]:
        """The sources of the undecided edges of a closure."""
        found = self.sources.get(node)
        if found is None:
            low, high = self.low[node], self.high[a]
            found = self.sources[node] = [x for x in range(self.n) if high[x] & (~low[x] | self._conditional)]
        return found

    def _body(self, node: int) -> int:
        group = self.tape.groups[self.tape.group_of[node]]
        return next(body for v, body, kind in group if kind == 0 and v == node)

    # --- lower: definitions without a circle -------------------------------------------------------------

    def _elimination(self, a: int) -> Elimination:
        found = self.eliminations.get(a)
        if found is None:
            edge = lambda x, y: self._literal(a, x, y, Side.LOWER, 0)  # noqa: E731
            found = self.eliminations[a] = Elimination(self.clauses, self.low[a], self.high[a], edge, self.here)
        return found

    def _recursive(self, node: int, i: int, j: int, rounds: int) -> int:
        """``x = a | x; b; x`` is the closure of ``a; b`` followed by ``a``; anything else is iterated."""
        if node not in self.shapes:
            self.shapes[node] = doubling(self.tape, node, self._body(node))
        shape = self.shapes[node]
        if shape is not None:
            return self._doubled(node, shape, i, j)
        if rounds == 0:
            rounds = self._undecided(node, i) + 2
            if rounds > MAX_ROUNDS:
                raise Unsupported("a recursive definition that is not a closure, on too many pairs")
        if rounds == 1:
            return FALSE
        return self._literal(self._body(node), i, j, Side.LOWER, rounds - 1)

    def _undecided(self, node: int, i: int) -> int:
        """The maximum number of undecided pairs that may depend on one another, of which each iteration decides one:
        those of the row if the definition is computed row by row.
        """
        group = self.tape.groups[self.tape.group_of[node]]
        rows = [i] if rowwise(self.tape, node) else range(self.n)
        return sum((self.high[v][x] & ~self.low[v][x]).bit_count() for v, _, kind in group if kind == 0 for x in rows)

    def _doubled(self, node: int, shape: tuple[int, int], i: int, j: int) -> int:
        a, b = shape
        found = self.doublings.get(node)
        if found is None:
            low, high = (
                self._step(self.low[a], self.low[b] if b >= 0 else None, self.prepared.compose),
                self._step(self.high[a], self.high[b] if b >= 0 else None, bits.compose),
            )

            def edge(x: int, y: int) -> int:
                if b < 0:
                    return self._literal(a, x, y, Side.LOWER, 0)
                middle = self.high[a][x] & self._column(b)[y]
                return self.clauses.any_of(
                    [
                        self.clauses.all_of(
                            (
                                self._literal(a, x, z, Side.LOWER, 0),
                                self._literal(b, z, y, Side.LOWER, 0),
                                self.here(z),
                            ),
                            Side.LOWER,
                        )
                        for z in bits.bits(middle)
                    ],
                    Side.LOWER,
                )

            found = self.doublings[node] = Elimination(self.clauses, low, high, edge, self.here)
        terms = [self._literal(a, i, j, Side.LOWER, 0)]
        for z in bits.bits(self._column(a)[j]):
            first = found.reaches(i, z)
            if first != FALSE:
                last = self._literal(a, z, j, Side.LOWER, 0)
                terms.append(self.clauses.all_of((first, last, self.here(z)), Side.LOWER))
        return self.clauses.any_of(terms, Side.LOWER)

    @staticmethod
    def _step(a: Rows, b: Rows | None, compose: Callable[[Rows, Rows], Rows]) -> Rows:
        return list(a) if b is None else compose(a, b)
