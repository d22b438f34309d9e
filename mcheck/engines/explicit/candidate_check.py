"""Consistency of a single candidate execution, with the coherence and fence orders that show it.

The engine decides whole batches and keeps no orders; to draw an execution, its orders are found again here. Why a
candidate is forbidden: ``mcheck.engines.explicit.refutation``.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.base.records import dataclass
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.explanation import Violation
from mcheck.cat.algebra.tape import BOUND, TOTAL, UNKNOWNS, Instr, Tape, TapeCheck
from mcheck.cat.tags import Tag
from mcheck.events.choices.candidate import Candidate
from mcheck.events.choices.prepared import Prepared

MAX_LEAVES = 48
"""The maximum number of coherence and fence orders tried for one candidate."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The chosen relations of an execution; ``violation`` is the axiom that fails, if one does."""

    relations: dict[str, Rows]
    violation: Violation | None = None


class Evaluator:
    """Evaluates a tape on executions of one structure; nodes that do not depend on choices are computed once."""

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
        """The values of the nodes that the axioms need, for the chosen relations."""
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
        return bits.apply_operation(i.op, values[i.a] if i.a >= 0 else self._zero, second, self._zero)

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
    """The search for the orders of one candidate under the axioms of a tape, which may be another model's."""

    def __init__(self, evaluator: Evaluator, prepared: Prepared, candidate: Candidate) -> None:
        self.tape = evaluator.tape
        self.evaluator = evaluator
        self.s = prepared.s
        self.n = prepared.s.size
        self.decided: dict[str, Rows] = {}
        self.not_co: set[tuple[int, int]] = set()
        self.leaves = 0
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
        self.decided.setdefault(relation, bits.empty(self.n))[i] |= 1 << j

    def _fences(self) -> list[tuple[int, int]]:
        """The pairs of fence.sc that must be ordered (PTX ISA 8.9.3)."""
        if "sync_fence" not in self.tape.bases:
            return []
        nodes = [x.index for x in self.s.nodes if x.has(Tag.SC) and x.has(Tag.F)]
        sr = self.evaluator.prepared.base("sr")[0] if len(nodes) > 1 else []
        return [(i, j) for i in nodes for j in nodes if i < j and sr[i] >> j & 1]

    def initial_order(self) -> Rows:
        """The coherence order of every execution: the initial write of a location comes first."""
        co = bits.empty(self.n)
        for first, *others in self.s.writes.values():
            for w in others:
                co[first] |= 1 << w
        return co

    def chosen_relations(self, co: Rows, sf: Rows) -> dict[str, Rows]:
        """The chosen relations with these orders, both transitive; of fences only pairs that must be ordered are
        related.
        """
        fences = bits.empty(self.n)
        for i, j in self.fences:
            fences[i] |= sf[i] & 1 << j
            fences[j] |= sf[j] & 1 << i
        return {**self.decided, "co": co, "sync_fence": fences}

    def find_orders(self) -> Settled:
        """Coherence and fence orders with which all axioms hold; if there are none, some that were tried."""
        last: dict[str, Rows] = {}
        for holds, chosen in self._orders(self.initial_order(), bits.empty(self.n)):
            last = chosen
            if holds or self.leaves >= MAX_LEAVES:
                break
        return Settled(last)

    def _orders(self, co: Rows, sf: Rows) -> Iterator[tuple[bool, dict[str, Rows]]]:
        """All ways to order the open pairs, each with whether all axioms hold."""
        while True:
            co, sf = bits.closure(co), bits.closure(sf)
            chosen = self.chosen_relations(co, sf)
            circular = any(co[i] >> i & 1 or sf[i] >> i & 1 for i in range(self.n))
            if circular or any(co[i] >> j & 1 for i, j in self.not_co):
                self.leaves += 1
                yield False, chosen
                return
            values = self.evaluator.values(chosen)
            if any(self.failing_axioms(values, monotone=True)):
                self.leaves += 1
                yield False, chosen
                return
            demanded = list(self.missing_demands(values, co))
            if not demanded:
                break
            for _, i, j in demanded:
                co[i] |= 1 << j
        pending = self.pending_pair(values, co, sf)
        if pending is None:
            self.leaves += 1
            yield not any(self.failing_axioms(values, monotone=False)), chosen
            return
        name, i, j = pending
        for a, b in ((i, j), (j, i)):
            rows = extended(co if name == "co" else sf, a, b)
            yield from self._orders(rows, sf) if name == "co" else self._orders(co, rows)
            if self.leaves >= MAX_LEAVES:
                return

    def failing_axioms(self, values: list[Rows], *, monotone: bool) -> Iterator[TapeCheck]:
        """The axioms that fail, except those that demand pairs of co."""
        for a in self.tape.checks:
            if a.role == "forbid" and a.monotone is monotone and _fails(a, values[a.node]):
                yield a

    def missing_demands(self, values: list[Rows], co: Rows) -> Iterator[tuple[TapeCheck, int, int]]:
        """The pairs that an axiom demands in co and that are missing, each with the axiom."""
        for a in self.tape.checks:
            if a.role == BOUND:
                for i, row in enumerate(values[a.node]):
                    for j in bits.bits(row & ~co[i]):
                        yield a, i, j

    def pending_pair(self, values: list[Rows], co: Rows, sf: Rows) -> tuple[str, int, int] | None:
        """A pair that must be ordered and is not yet."""
        for a in self.tape.checks:
            if a.role == TOTAL:
                for i, row in enumerate(values[a.node]):
                    for j in bits.bits(row):
                        if i != j and not (co[i] >> j & 1) | (co[j] >> i & 1):
                            return "co", i, j
        if self.tape.total_co and (open_ := next(self.unordered_pairs(co), None)):
            return "co", *open_
        return next((("sync_fence", i, j) for i, j in self.fences if not (sf[i] >> j & 1) | (sf[j] >> i & 1)), None)

    def unordered_pairs(self, co: Rows) -> Iterator[tuple[int, int]]:
        """The pairs of writes of one location that co leaves unordered."""
        for writes in self.s.writes.values():
            for i in writes:
                for j in writes:
                    if i < j and not (co[i] >> j & 1) | (co[j] >> i & 1):
                        yield i, j


def extended(rows: Rows, i: int, j: int) -> Rows:
    """The relation with one more pair."""
    out = [*rows]
    out[i] |= 1 << j
    return out


def _fails(a: TapeCheck, rows: Rows) -> bool:
    holds = not any(rows) if a.test == "empty" else not any(r >> i & 1 for i, r in enumerate(rows))
    return holds if a.negated else not holds
