"""One candidate execution in full: the orders of its writes and fences, or the axiom that it fails and by which edges.

The engine decides whole batches and keeps no order; whoever draws or explains an execution settles that one again here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcheck.algebra import bits
from mcheck.algebra.bits import Rows
from mcheck.algebra.chains import Explainer, Step, joined
from mcheck.algebra.shortest import cheapest
from mcheck.algebra.tape import BOUND, TOTAL, UNKNOWNS, Axiom, Instr, Tape
from mcheck.candidates.choices import Candidate
from mcheck.candidates.prepared import Prepared
from mcheck.graph.tags import Tag

MAX_LEAVES = 48
"""Orders of writes and fences that are tried for one candidate before the first failure has to do as explanation."""


Tried = tuple[tuple[str, int, int], ...]
"""The pairs (relation, first, second) that the search has decided."""


@dataclass(frozen=True, slots=True)
class Violation:
    """The axiom that fails and the edges that show it: a cycle, or the members of a forbidden pattern."""

    axiom: str
    steps: tuple[Step, ...]
    cost: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The chosen relations of an execution as rows; ``violation`` is the axiom that fails on every order tried."""

    relations: dict[str, Rows]
    violation: Violation | None


class Evaluator:
    """The value of every node of a tape on executions of one structure; what none of them chooses is computed once."""

    def __init__(self, tape: Tape, prepared: Prepared) -> None:
        self.tape = tape
        self.prepared = prepared
        self.n = prepared.s.size
        self._zero = bits.empty(self.n)
        self._static = self._constant()
        self._cache: list[Rows | None] = [None] * len(tape.code)

    def _constant(self) -> list[bool]:
        out: list[bool] = []
        for i in self.tape.code:
            fixed = i.op != "rec" and (i.op != "base" or i.name not in UNKNOWNS)
            out.append(fixed and all(out[x] for x in (i.a, i.b) if x >= 0))
        return out

    def values(self, chosen: dict[str, Rows]) -> list[Rows]:
        """The nodes that the axioms need, where the chosen relations are ``chosen``."""
        code = self.tape.code
        values: list[Rows] = [[]] * len(code)
        at = 0
        while at < len(code):
            i = code[at]
            if i.op == "rec":
                at = self._fixpoint(values, at, chosen)
                continue
            if not self.tape.forbids[at]:
                at += 1
                continue
            known = self._cache[at]
            if known is None:
                known = self._base(i.name, chosen) if i.op == "base" else self._apply(i, values)
                if self._static[at]:
                    self._cache[at] = known
            values[at] = known
            at += 1
        return values

    def _apply(self, i: Instr, values: list[Rows]) -> Rows:
        second = values[i.b] if i.b >= 0 else self._zero
        return bits.operate(i.op, values[i.a] if i.a >= 0 else self._zero, second, self._zero)

    def _base(self, name: str, chosen: dict[str, Rows]) -> Rows:
        rows = chosen.get(name) if name in UNKNOWNS else self.prepared.base(name)[0]
        return rows if rows is not None and any(rows) else self._zero

    def _fixpoint(self, values: list[Rows], at: int, chosen: dict[str, Rows]) -> int:
        code, group = self.tape.code, self.tape.groups[self.tape.group_of[at]]
        start, end, _ = group[-1]
        bindings = [(v, body) for v, body, kind in group if kind == 0]
        for v, _ in bindings:
            values[v] = self._zero
        while True:
            for k in range(start, end):
                if code[k].op == "base":
                    values[k] = self._base(code[k].name, chosen)
                elif code[k].op != "rec":
                    values[k] = self._apply(code[k], values)
            if all(values[v] == values[body] for v, body in bindings):
                return end
            for v, body in bindings:
                values[v] = bits.union(values[v], values[body])


class Trial:
    """One candidate of a prepared under the axioms of a tape (which need not be those that the prepared ran with)."""

    def __init__(self, evaluator: Evaluator, prepared: Prepared, candidate: Candidate) -> None:
        self.tape = evaluator.tape
        self.evaluator = evaluator
        self.s = prepared.s
        self.n = prepared.s.size
        self.chosen: dict[str, Rows] = {}
        self.not_co: set[tuple[int, int]] = set()
        self.leaves = 0
        self.explain = True
        for relation, i, j in prepared.extra_edges:
            self._add(relation, i, j)
        for choice, taken in zip(prepared.choices, candidate, strict=True):
            if taken >= 0:
                for relation, pairs in choice.options[taken].edges:
                    for i, j in pairs:
                        self._add(relation, i, j)
                self.not_co.update(choice.options[taken].not_co)
        self.fences = self._fences()

    def _add(self, relation: str, i: int, j: int) -> None:
        self.chosen.setdefault(relation, bits.empty(self.n))[i] |= 1 << j

    def _fences(self) -> list[tuple[int, int]]:
        """The pairs of fence.sc that must be ordered (PTX ISA 8.9.3)."""
        if "sync_fence" not in self.tape.bases:
            return []
        nodes = [x.index for x in self.s.nodes if x.has(Tag.SC) and x.has(Tag.F)]
        sr = self.evaluator.prepared.base("sr")[0] if len(nodes) > 1 else []
        return [(i, j) for i in nodes for j in nodes if i < j and sr[i] >> j & 1]

    def settle(self, *, explain: bool = True) -> Settled:
        """Orders writes and fences so that all axioms hold; if there is no such order, the most telling failure.

        Without ``explain`` a failure names its axiom but no edges: cheap, where an order is known to exist.
        """
        self.explain = explain
        co = bits.empty(self.n)
        for first, *others in self.s.writes.values():
            for w in others:
                co[first] |= 1 << w
        best: tuple[Violation, dict[str, Rows]] | None = None
        sf = bits.empty(self.n)
        for i, j in self.fences if explain else ():
            if self.s.nodes[i].thread == self.s.nodes[j].thread:
                sf[i] |= 1 << j  # program order decides: the other direction would explain nothing
        for violation, found in self._orders(co, sf, ()):
            if violation is None:
                return Settled(found, None)
            if best is None or violation.cost < best[0].cost:
                best = violation, found
            if self.leaves >= MAX_LEAVES:
                break
        assert best is not None
        return Settled(best[1], best[0])

    def _orders(self, co: Rows, sf: Rows, tried: Tried) -> Iterator[tuple[Violation | None, dict[str, Rows]]]:
        """Every way to decide the open pairs, each with the axiom that it fails, if any."""
        while True:
            co, sf = bits.closure(co), bits.closure(sf)
            chosen = {**self.chosen, "co": co, "sync_fence": sf}
            values = self.evaluator.values(chosen)
            failed = self._failure(values, co, sf, tried, monotone=True)
            if failed is not None:
                self.leaves += 1
                yield failed, chosen
                return
            demanded = [
                (i, j)
                for a in self.tape.axioms
                if a.role == BOUND
                for i, row in enumerate(values[a.node])
                for j in bits.bits(row & ~co[i])
            ]
            if not demanded:
                break
            for i, j in demanded:
                co = [*co]
                co[i] |= 1 << j
        pending = self._pending(values, co, sf)
        if pending is None:
            self.leaves += 1
            yield self._failure(values, co, sf, tried, monotone=False), chosen
            return
        name, i, j = pending
        ways = [(i, j), (j, i)]
        if self.explain:
            ways = self._sensible(ways, name, co, sf, tried)
        for a, b in ways:
            rows = _with(co if name == "co" else sf, a, b)
            now = (*tried, (name, a, b))
            yield from self._orders(rows, sf, now) if name == "co" else self._orders(co, rows, now)
            if self.leaves >= MAX_LEAVES:
                return

    def _sensible(
        self, ways: list[tuple[int, int]], name: str, co: Rows, sf: Rows, tried: Tried
    ) -> list[tuple[int, int]]:
        """Without the direction that fails at once where the other does not: its failure would explain nothing."""
        alive = []
        for a, b in ways:
            rows = _with(co if name == "co" else sf, a, b)
            now_co, now_sf = (bits.closure(rows), sf) if name == "co" else (co, bits.closure(rows))
            values = self.evaluator.values({**self.chosen, "co": now_co, "sync_fence": now_sf})
            if self._failure(values, now_co, now_sf, (*tried, (name, a, b)), monotone=True) is None:
                alive.append((a, b))
        return alive or ways

    def _pending(self, values: list[Rows], co: Rows, sf: Rows) -> tuple[str, int, int] | None:
        """A pair that must be ordered and is not yet."""
        for a in self.tape.axioms:
            if a.role == TOTAL:
                for i, row in enumerate(values[a.node]):
                    for j in bits.bits(row):
                        if i != j and not (co[i] >> j & 1) | (co[j] >> i & 1):
                            return "co", i, j
        if self.tape.total_co:
            for writes in self.s.writes.values():
                for i in writes:
                    for j in writes:
                        if i < j and not (co[i] >> j & 1) | (co[j] >> i & 1):
                            return "co", i, j
        for i, j in self.fences:
            if not (sf[i] >> j & 1) | (sf[j] >> i & 1):
                return "sync_fence", i, j
        return None

    def _failure(self, values: list[Rows], co: Rows, sf: Rows, tried: Tried, *, monotone: bool) -> Violation | None:
        """The cheapest explanation among the axioms that fail."""
        explainer = Explainer(self.tape, values)
        clash = self._clash(explainer, values, co, sf, tried)
        if clash is not None:
            return clash
        found: list[Violation] = []
        for a in self.tape.axioms:
            if a.role == "forbid" and a.monotone is monotone and _fails(a, values[a.node]):
                cost, steps = explainer.violation(a) if self.explain else (1, ())
                found.append(Violation(a.name, steps, cost))
        return min(found, key=lambda v: (v.cost, v.axiom), default=None)

    def _clash(self, explainer: Explainer, values: list[Rows], co: Rows, sf: Rows, tried: Tried) -> Violation | None:
        """What is demanded of co or of the fences goes round in a circle, or past the last write."""
        for i in range(self.n):
            if sf[i] >> i & 1:
                return Violation("FenceSC", tuple(Step(a, b, name) for name, a, b in tried if name == "sync_fence"), 60)
        past = next(((i, j) for i, j in sorted(self.not_co) if co[i] >> j & 1), None)
        circle = next((i for i in range(self.n) if co[i] >> i & 1), None)
        if past is None and circle is None:
            return None
        start, end = past if past is not None else (circle or 0, circle or 0)
        if not self.explain:
            return Violation("co", (), 1)
        cost, axiom, steps = self._demanded(explainer, values, tried, start, end)
        back = (Step(end, start, "co"),) if past is not None else ()
        return Violation(axiom or "co", joined((*steps, *back)), cost + len(back))

    def _demanded(
        self, explainer: Explainer, values: list[Rows], tried: Tried, start: int, end: int
    ) -> tuple[int, str, tuple[Step, ...]]:
        """The cheapest chain of demanded and tried pairs of co between two writes, and an axiom that demands one."""
        import networkx as nx

        graph = nx.DiGraph()

        def add(i: int, j: int, cost: int, axiom: str, steps: tuple[Step, ...]) -> None:
            if not graph.has_edge(i, j) or graph.edges[i, j]["cost"] > cost:
                graph.add_edge(i, j, cost=cost, axiom=axiom, steps=steps)

        for name, i, j in tried:
            if name == "co":
                asks = [a.name for a in self.tape.axioms if a.role == TOTAL and values[a.node][i] >> j & 1]
                add(i, j, 2, asks[0] if asks else "", (Step(i, j, "co"),))
        for first, *others in self.s.writes.values():
            for j in others:
                add(first, j, 2, "", (Step(first, j, "co"),))
        for a in self.tape.axioms:
            if a.role == BOUND:
                for i, row in enumerate(values[a.node]):
                    for j in bits.bits(row):
                        cost, steps = explainer.path(a.node, i, j) or (2, (Step(i, j, "co"),))
                        add(i, j, cost, a.name, steps)
        found = cheapest(graph, start, end, lambda u, v: graph.edges[u, v]["cost"])
        if found is None:
            return 60, "", (Step(start, end, "co"),)
        cost, edges = found
        taken = [graph.edges[edge] for edge in edges]
        axiom = next((edge["axiom"] for edge in taken if edge["axiom"]), "")
        return cost, axiom, tuple(step for edge in taken for step in edge["steps"])


def _with(rows: Rows, i: int, j: int) -> Rows:
    out = [*rows]
    out[i] |= 1 << j
    return out


def _fails(a: Axiom, rows: Rows) -> bool:
    holds = not any(rows) if a.test == "empty" else not any(r >> i & 1 for i, r in enumerate(rows))
    return holds if a.negated else not holds
