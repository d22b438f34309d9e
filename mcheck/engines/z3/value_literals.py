"""Literals for decisions on values: the branches of a path, the terms of a condition."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.answers.final_states import COMPARE, terms_of
from mcheck.answers.result import Value
from mcheck.engines.z3.bit_vectors import Vector, Vectors, constant, literal
from mcheck.engines.z3.clauses import FALSE, TRUE, Clauses, Side, spell
from mcheck.engines.z3.decision_trees import Leaf, Partial, answers, by_leaf, cases
from mcheck.engines.z3.merged_structure import Guarded
from mcheck.engines.z3.symbolic_choices import Opened
from mcheck.ir.condition import And, Compare, Condition, ConstTerm, Formula, MemTerm, Not, Or, RegTerm, Term, Truth
from mcheck.semantics.terms import Term as ValueTerm
from mcheck.semantics.terms import typed

LEAVES = 64
"""The maximum size of the decision tree of a value; values with a larger one become bit-vectors."""

ABSENT: tuple[Leaf, ...] = ("unknown", "missing", "circular")


class Values:
    """The values of one structure, as decision trees or as bit-vectors."""

    def __init__(self, prepared: Opened, clauses: Clauses, selectors: list[list[int]]) -> None:
        self.prepared = prepared
        self.clauses = clauses
        self.answers = answers(prepared, clauses)
        self.selectors = selectors + self.answers.selectors
        self.leaves = LEAVES
        self.vectors = Vectors(prepared, clauses, selectors)

    def small_tree(self, compute: Callable[[Partial], int]) -> dict[Leaf, int] | None:
        """The literal of each value, if the decision tree is small."""
        found = cases(self.prepared, self.answers, compute, self.leaves)
        return None if found is None else by_leaf(found, self.selectors, self.clauses)

    def truth(self, term: ValueTerm, wanted: bool) -> int:
        """The literal that a branch is taken so; if its condition has no value, it goes both ways."""
        table = self.small_tree(lambda v: v.term(term))
        if table is not None:
            fits = [x for leaf, x in table.items() if leaf in ABSENT or bool(leaf) is wanted]
            return self.clauses.any_of(fits, Side.EXACT)
        vector = self.vectors.vector_of(term)
        text = self.vectors.is_nonzero(vector)
        return self.named(f"(or (not {spell(vector.known)}) {text if wanted else f'(not {text})'})")

    def named(self, text: str) -> int:
        """A variable for an SMT-LIB Boolean."""
        variable = self.clauses.new()
        self.vectors.lines.append(f"(assert (= v{variable} {text}))")
        return variable


class ConditionLiterals:
    """The condition of a program in one structure."""

    def __init__(self, values: Values, condition: Condition) -> None:
        self.values = values
        self.clauses = values.clauses
        self.s = values.prepared.s
        self.condition = condition
        self.terms = terms_of(condition)
        self.finals = {c.address: k for k, c in enumerate(values.prepared.choices) if c.kind == "final"}
        self.tables: dict[Term, dict[Leaf, int] | None] = {}
        self.vectors: dict[Term, Vector] = {}
        self.equal: dict[tuple[Term, Value], int] = {}

    def target(self, wanted: bool) -> int:
        """The literal that the formula is possibly ``wanted``, within the filter."""
        both = (self.possibly(self.condition.formula, wanted), self.possibly(self.condition.filter, True))
        return self.clauses.all_of(both, Side.EXACT)

    def possibly(self, formula: Formula, wanted: bool) -> int:
        """The literal that the formula is possibly ``wanted``: an unknown value may be anything."""
        match formula:
            case Truth(v):
                return TRUE if v is wanted else FALSE
            case Not(part):
                return self.possibly(part, not wanted)
            case And(parts):
                literals = [self.possibly(p, wanted) for p in parts]
                return self._join(literals, every=wanted)
            case Or(parts):
                literals = [self.possibly(p, wanted) for p in parts]
                return self._join(literals, every=not wanted)
            case Compare(op, left, right):
                return self._compare(op, left, right, wanted)
        raise TypeError(formula)

    def _join(self, literals: list[int], *, every: bool) -> int:
        return self.clauses.all_of(literals, Side.EXACT) if every else self.clauses.any_of(literals, Side.EXACT)

    def _compare(self, op: str, left: Term, right: Term, wanted: bool) -> int:
        p, q = self.table(left), self.table(right)
        if p is not None and q is not None and len(p) * len(q) <= self.values.leaves**2:
            fits = []
            for a, x in p.items():
                for b, y in q.items():
                    if isinstance(a, str) or isinstance(b, str) or COMPARE[op](a, b) is wanted:
                        fits.append(self.clauses.all_of((x, y), Side.EXACT))
            return self.clauses.any_of(fits, Side.EXACT)
        first, second = self.vector(left), self.vector(right)
        known = self.values.vectors.all_known(first, second)
        text = self.values.vectors.compare(op, first, second)
        return self.values.named(f"(or (not {spell(known)}) {text if wanted else f'(not {text})'})")

    def equals(self, term: Term, value: Value) -> int:
        """The literal that a term has this value in the final state."""
        found = self.equal.get((term, value))
        if found is None:
            found = self.equal[term, value] = self._has(term, value)
        return found

    def _has(self, term: Term, value: Value) -> int:
        table = self.table(term)
        if table is not None:
            if isinstance(value, str):
                return self.clauses.any_of([x for leaf, x in table.items() if isinstance(leaf, str)], Side.EXACT)
            return table.get(value, FALSE)
        vector = self.vector(term)
        if isinstance(value, str):
            return -vector.known
        bits = max(vector.bits, value.bit_length() + 1)
        text = f"(= {self.values.vectors.widen(vector, bits)} {literal(value, bits)})"
        return self.values.named(f"(and {spell(vector.known)} {text})")

    def table(self, term: Term) -> dict[Leaf, int] | None:
        """The decision tree of a term, if it is small."""
        if isinstance(term, ConstTerm):
            return {term.value: TRUE}
        if term not in self.tables:
            self.tables[term] = self._table(term)
        return self.tables[term]

    def _table(self, term: Term) -> dict[Leaf, int] | None:
        if not isinstance(term, RegTerm):
            return self.values.small_tree(lambda v: self._value(term, v))
        found: dict[Leaf, list[int]] = {}
        for register, under in self._registers(term):
            table = self.values.small_tree(lambda v, register=register: v.term(register))  # type: ignore[misc]
            if table is None:
                return None
            for leaf, x in table.items():
                found.setdefault(leaf, []).append(self.clauses.all_of((x, under), Side.EXACT))
        return {leaf: self.clauses.any_of(literals, Side.EXACT) for leaf, literals in found.items()}

    def _value(self, term: Term, valuation: Partial) -> int:
        assert isinstance(term, MemTerm)
        result = shift = 0
        for address, offset, length in self.s.parts(term.address, term.size):
            k = self.finals[address]
            source = valuation.final(k)
            result |= valuation.written(source, offset, length) << shift
            shift += 8 * length
        value = typed(term.type, result)
        assert isinstance(value, int)
        return value

    def _registers(self, term: RegTerm) -> list[tuple[ValueTerm, int]]:
        """The final values of a register, each with the literal that its path is taken."""
        prepared = self.values.prepared
        if not isinstance(prepared, Guarded):
            return [(self.s.paths[term.thread].registers.get(term.reg, 0), TRUE)]
        joined = prepared.guards.by_thread[term.thread]
        masks: dict[ValueTerm, int] = {}
        for k, path in enumerate(joined.alternatives):
            value = joined.term(k, path.registers.get(term.reg, 0))
            masks[value] = masks.get(value, 0) | 1 << k
        return [(value, prepared.guards.any_taken(term.thread, mask)) for value, mask in masks.items()]

    def vector(self, term: Term) -> Vector:
        """The bit-vector of a term."""
        found = self.vectors.get(term)
        if found is None:
            found = self.vectors[term] = self._vector(term)
        return found

    def _vector(self, term: Term) -> Vector:
        vectors = self.values.vectors
        if isinstance(term, ConstTerm):
            return constant(term.value)
        if isinstance(term, RegTerm):
            return vectors.select([(vectors.vector_of(value), under) for value, under in self._registers(term)])
        raw = vectors.final_value(self.s.parts(term.address, term.size))
        return vectors.signed(raw, 8 * term.size) if term.type[0] == "s" else raw
