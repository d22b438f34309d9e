"""Why a candidate execution is forbidden: the axiom that fails on a well-formed execution, and the edges that show it.

In a well-formed execution co orders all writes of every location and ends in the final state, and the order of fences
relates every pair that it must (PTX ISA 8.9.3, 8.9.6). If one direction of an open pair fails at once and the other
does not, the failure explains nothing and is not considered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.explanation import Explainer, Step, Violation
from mcheck.cat.algebra.tape import TOTAL, TapeCheck
from mcheck.engines.explicit.candidate_check import MAX_LEAVES, Settled, Trial, extended

Demand = tuple[TapeCheck, int, int]
"""A pair that an axiom demands in co."""

End = tuple[Violation | None, Rows, Rows]
"""The first failure of an execution, with co and the fence order as far as they are decided by then."""


class Refutation(Trial):
    """The search for the most telling failure of a candidate, or for orders with which no axiom fails."""

    def find_orders(self) -> Settled:
        """A well-formed execution with its failure, or one without a failure.

        If no well-formed execution has this final state, the candidate is not one, and there is nothing to explain.
        """
        co = self.initial_order()
        for last, w in self.not_co:
            co[w] |= 1 << last
        sf = bits.empty(self.n)
        for i, j in self.fences:
            if self.s.nodes[i].thread == self.s.nodes[j].thread:
                sf[i] |= 1 << j  # program order decides: the other direction would explain nothing
        co, sf = bits.closure(co), bits.closure(sf)
        if any(row >> i & 1 for i, row in enumerate(co)):
            return Settled(self.chosen_relations(co, sf))
        best: End | None = None
        for end in self._ends(co, sf):
            violation = end[0]
            if violation is None:
                return Settled(self._whole(end[1], end[2]))
            if best is None or best[0] is None or violation.rank < best[0].rank:
                best = end
            self.leaves += 1
            if self.leaves >= MAX_LEAVES:
                break
        assert best is not None
        return Settled(self._whole(best[1], best[2]), best[0])

    def _ends(self, co: Rows, sf: Rows) -> Iterator[End]:
        """Every sensible way to order the open pairs, up to its first failure; both orders are transitive."""
        while True:
            values = self.evaluator.values(self.chosen_relations(co, sf))
            failing = list(self.failing_axioms(values, monotone=True))
            granted, refused = _grant(co, self.missing_demands(values, co))
            if failing or refused:
                yield self._first(values, failing, refused), granted if refused else co, sf
                return
            if granted == co:
                break
            co = granted
        pending = self.pending_pair(values, co, sf)
        if pending is None and self.tape.free_co and (open_ := next(self.unordered_pairs(co), None)):
            pending = ("co", *open_)  # whether an axiom holds may depend on pairs that nothing demands
        if pending is None:
            yield self._last(values, co), co, sf
            return
        name, i, j = pending
        ways = []
        for a, b in ((i, j), (j, i)):
            rows = bits.closure(extended(co if name == "co" else sf, a, b))
            ways.append((rows, sf) if name == "co" else (co, rows))
        for now_co, now_sf in [way for way in ways if not self._dies(*way)] or ways:
            yield from self._ends(now_co, now_sf)

    def _dies(self, co: Rows, sf: Rows) -> bool:
        values = self.evaluator.values(self.chosen_relations(co, sf))
        return any(self.failing_axioms(values, monotone=True)) or bool(_grant(co, self.missing_demands(values, co))[1])

    def _first(
        self, values: list[Rows], failing: Iterable[TapeCheck], refused: Iterable[Demand] = ()
    ) -> Violation | None:
        """The most telling of the axioms that fail.

        A pair that must be in co and cannot be is shown by the path that demands it, and back by co, which has the
        opposite pair.
        """
        explainer = Explainer(self.tape, values)
        found = [explainer.violation(a) for a in failing]
        for a, i, j in refused:
            cost, steps = explainer.path(a.node, i, j) or (0, ())
            back = () if i == j else (Step(j, i, "co"),)
            found.append(Violation.of(a.name, (*steps, *back), cost + 2 * len(back), self.tape.checks.index(a)))
        return min(found, default=None, key=lambda v: v.rank)

    def _last(self, values: list[Rows], co: Rows) -> Violation | None:
        """The failure when everything is decided: an axiom, or a demand for an order between writes that co does not
        relate.
        """
        failing = list(self.failing_axioms(values, monotone=False))
        failing += (a for a in self.tape.checks if a.role == TOTAL and _beyond(values[a.node], co))
        return self._first(values, failing)

    def _whole(self, co: Rows, sf: Rows) -> dict[str, Rows]:
        """A complete execution with these orders; open pairs are ordered as the axioms demand, else as the events
        stand.
        """
        while True:
            values = self.evaluator.values(self.chosen_relations(co, sf))
            granted, _ = _grant(co, self.missing_demands(values, co))
            if granted == co:
                break
            co = granted
        while (open_ := next(self.unordered_pairs(co), None)) is not None:
            co = bits.closure(extended(co, *open_))
        for i, j in self.fences:
            if not (sf[i] >> j & 1) | (sf[j] >> i & 1):
                sf = bits.closure(extended(sf, i, j))
        return self.chosen_relations(co, sf)


def _grant(co: Rows, demands: Iterable[Demand]) -> tuple[Rows, list[Demand]]:
    """co with the demanded pairs, as long as it has no cycle, and those that would make one."""
    refused = []
    for a, i, j in demands:
        if i == j or co[j] >> i & 1:
            refused.append((a, i, j))
        elif not co[i] >> j & 1:
            co = bits.closure(extended(co, i, j))
    return co, refused


def _beyond(wanted: Rows, co: Rows) -> bool:
    """Whether some pair is in co in neither direction."""
    back = bits.inverse(co)
    return any(row & ~(co[i] | back[i]) for i, row in enumerate(wanted))
