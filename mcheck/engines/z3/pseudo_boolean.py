"""Weighted sums of literals compared with constants: one pseudo-Boolean constraint each."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.base.records import dataclass
from mcheck.engines.z3.clauses import FALSE, TRUE, Clauses, spell


@dataclass(frozen=True, slots=True)
class Sum:
    """A constant plus the weights of the literals that hold; no literal is negative, no weight zero."""

    constant: int = 0
    weights: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(terms: Iterable[tuple[int, int]], constant: int = 0) -> Sum:
        """The sum of (literal, weight) terms."""
        found: dict[int, int] = {}
        for literal, weight in terms:
            if literal == TRUE:
                constant += weight
            elif literal == FALSE:
                continue
            elif literal < 0:
                constant += weight
                found[-literal] = found.get(-literal, 0) - weight
            else:
                found[literal] = found.get(literal, 0) + weight
        return Sum(constant, tuple(sorted((x, w) for x, w in found.items() if w)))

    def plus(self, amount: int) -> Sum:
        """The sum with a constant added."""
        return Sum(self.constant + amount, self.weights)

    @property
    def least(self) -> int:
        """The minimum over all assignments."""
        return self.constant + sum(w for _, w in self.weights if w < 0)

    @property
    def most(self) -> int:
        """The maximum over all assignments."""
        return self.constant + sum(w for _, w in self.weights if w > 0)


class Comparisons:
    """Literals for comparisons of sums; ``lines`` are their definitions in SMT-LIB."""

    def __init__(self, clauses: Clauses) -> None:
        self.clauses = clauses
        self.known: dict[tuple[str, Sum], int] = {}

    def zero(self, x: Sum) -> int:
        """The literal that a sum is 0."""
        if x.least > 0 or x.most < 0:
            return FALSE
        if not x.weights:
            return TRUE
        return self._gate("pbeq", x)

    def at_least(self, x: Sum, bound: int) -> int:
        """The literal that a sum is ``bound`` or more."""
        x = x.plus(-bound)
        if x.least >= 0:
            return TRUE
        if x.most < 0:
            return FALSE
        return self._gate("pbge", x)

    def _gate(self, name: str, x: Sum) -> int:
        found = self.known.get((name, x))
        if found is None:
            literals = [(lit if w > 0 else -lit, abs(w)) for lit, w in x.weights]
            bound = -x.constant + sum(-w for _, w in x.weights if w < 0)
            found = self.known[name, x] = self.clauses.new()
            sizes = " ".join(str(w) for _, w in literals)
            terms = " ".join(spell(lit) for lit, _ in literals)
            self.clauses.lines.append(f"(assert (= {spell(found)} ((_ {name} {bound} {sizes}) {terms})))")
        return found
