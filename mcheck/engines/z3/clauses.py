"""Clauses over Boolean variables, with one-sided gates (Plaisted-Greenbaum).

A literal is an integer: a variable, or its negation. ``TRUE`` and ``FALSE`` are constants. A gate is *lower* (the
literal implies its meaning), *upper* (the meaning implies the literal) or exact (both). An axiom that forbids needs
upper gates only, a report that something holds lower ones; so most gates need half their clauses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import Enum

from mcheck.base.records import dataclass

TRUE, FALSE = 1, -1

Clause = tuple[int, ...]


class Side(Enum):
    """The implications between a gate's literal and its meaning."""

    LOWER = "lower"
    UPPER = "upper"
    EXACT = "exact"

    @property
    def other(self) -> Side:
        """The side for an operand that is negated."""
        return {Side.LOWER: Side.UPPER, Side.UPPER: Side.LOWER}.get(self, self)


@dataclass(slots=True)
class Clauses:
    """Collects clauses and SMT-LIB lines; ``text`` returns what is new since the last call."""

    variables: int = 1
    declared: int = 1
    clauses: list[Clause] = field(default_factory=list)
    gates: dict[tuple[str, Side, frozenset[int]], int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def new(self) -> int:
        """Creates a variable."""
        self.variables += 1
        return self.variables

    def add(self, *literals: int) -> None:
        """Adds a clause: one of the literals holds."""
        if TRUE in literals:
            return
        kept = tuple(x for x in literals if x != FALSE)
        self.clauses.append(kept)

    def any_of(self, literals: Iterable[int], side: Side) -> int:
        """A literal for the disjunction."""
        parts = frozenset(literals) - {FALSE}
        if TRUE in parts:
            return TRUE
        if len(parts) < 2:
            return next(iter(parts), FALSE)
        key = ("or", side, parts)
        gate = self.gates.get(key)
        if gate is None:
            gate = self.gates[key] = self.new()
            if side is not Side.UPPER:
                self.add(-gate, *sorted(parts))
            if side is not Side.LOWER:
                for x in sorted(parts):
                    self.add(-x, gate)
        return gate

    def all_of(self, literals: Iterable[int], side: Side) -> int:
        """A literal for the conjunction."""
        parts = frozenset(literals) - {TRUE}
        if FALSE in parts or any(-x in parts for x in parts):
            return FALSE
        if len(parts) < 2:
            return next(iter(parts), TRUE)
        key = ("and", side, parts)
        gate = self.gates.get(key)
        if gate is None:
            gate = self.gates[key] = self.new()
            if side is not Side.UPPER:
                for x in sorted(parts):
                    self.add(-gate, x)
            if side is not Side.LOWER:
                self.add(gate, *(-x for x in sorted(parts)))
        return gate

    def exactly_one(self, literals: list[int]) -> None:
        """Requires exactly one of the literals; long lists are encoded by the bits of the index."""
        self.add(*literals)
        if len(literals) <= 6:
            for k, x in enumerate(literals):
                for y in literals[k + 1 :]:
                    self.add(-x, -y)
            return
        digits = [self.new() for _ in range((len(literals) - 1).bit_length())]
        for k, x in enumerate(literals):
            for place, digit in enumerate(digits):
                self.add(-x, digit if k >> place & 1 else -digit)

    def text(self, more: list[str]) -> str:
        """SMT-LIB of all variables and clauses since the last call, and of ``more`` lines."""
        out = [f"(declare-const v{x} Bool)" for x in range(self.declared + 1, self.variables + 1)]
        self.declared = self.variables
        for clause in self.clauses:
            if len(clause) == 1:
                out.append(f"(assert {spell(clause[0])})")
            else:
                out.append(f"(assert (or {' '.join(map(spell, clause))}))" if clause else "(assert false)")
        out += self.lines
        self.clauses, self.lines = [], []
        return "\n".join(out + more)


def spell(literal: int) -> str:
    """A literal in SMT-LIB."""
    if literal == TRUE:
        return "true"
    if literal == FALSE:
        return "false"
    return f"v{literal}" if literal > 0 else f"(not v{-literal})"
