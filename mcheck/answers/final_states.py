"""Final states: the terms that a condition names, their values in a candidate, and the truth of the condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mcheck.answers.result import State, Value
from mcheck.base.errors import Unsupported
from mcheck.events.choices.candidate import Candidate, Choice, CircularValue, Undetermined, Valuation
from mcheck.ir.condition import And, Compare, Condition, ConstTerm, Formula, MemTerm, Not, Or, RegTerm, Term, Truth
from mcheck.semantics.terms import Unknown, reads_of, typed

if TYPE_CHECKING:
    from mcheck.events.choices.prepared import Prepared
    from mcheck.events.structure import Structure

UNKNOWN: Value = "unknown"
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def terms_of(condition: Condition) -> tuple[Term, ...]:
    """The registers and locations that a final state lists, each once, in the order of the text."""
    found: dict[Term, None] = {}

    def walk(f: Formula) -> None:
        match f:
            case Compare(_, left, right):
                for t in (left, right):
                    if not isinstance(t, ConstTerm):
                        found[t] = None
            case And(parts) | Or(parts):
                for p in parts:
                    walk(p)
            case Not(part):
                walk(part)
            case Truth():
                pass

    walk(condition.formula)
    walk(condition.filter)
    for t in condition.locations:
        if not isinstance(t, ConstTerm):
            found[t] = None
    return tuple(found)


def memory_ranges(condition: Condition) -> tuple[tuple[int, int], ...]:
    """The bytes whose final value the condition names."""
    return tuple((t.address, t.size) for t in terms_of(condition) if isinstance(t, MemTerm))


def final_addresses(s: Structure, condition: Condition) -> list[int]:
    """The chunks that make up the bytes of the condition."""
    return sorted({a for address, size in memory_ranges(condition) for a, _ in s.chunks(address, size)})


TRUE = frozenset({True})
FALSE = frozenset({False})
EITHER = TRUE | FALSE


def evaluate_formula(formula: Formula, value: Callable[[Term], Value]) -> frozenset[bool]:
    """The possible truth values of a formula: both if an unknown value decides. Called for every final state."""
    match formula:
        case Compare(op, left, right):
            a, b = _side(left, value), _side(right, value)
            if isinstance(a, str) or isinstance(b, str):
                return EITHER
            return TRUE if COMPARE[op](a, b) else FALSE
        case And(parts) | Or(parts):
            ends, otherwise = (FALSE, TRUE) if isinstance(formula, And) else (TRUE, FALSE)
            for p in parts:
                found = evaluate_formula(p, value)
                if found == ends:
                    return ends
                if found == EITHER:
                    otherwise = EITHER
            return otherwise
        case Not(part):
            return frozenset(not v for v in evaluate_formula(part, value))
        case Truth(v):
            return TRUE if v else FALSE
    raise TypeError(formula)


def _side(term: Term, value: Callable[[Term], Value]) -> Value:
    return term.value if isinstance(term, ConstTerm) else value(term)


class States:
    """The final states of the candidates of one structure."""

    def __init__(self, prepared: Prepared, condition: Condition) -> None:
        self.prepared = prepared
        self.s = prepared.s
        self.condition = condition
        self.terms = terms_of(condition)
        self.labels = tuple(t.label for t in self.terms if not isinstance(t, ConstTerm))
        self.finals = {c.address: k for k, c in enumerate(prepared.choices) if c.kind == "final"}
        self.tables = [self._table(t) for t in self.terms]
        self.pairs: list[tuple[int, list[tuple[str, Value]]]] = []
        """A choice and what a state has of each of its options (choice -1: of all), where each term has one."""
        if all(table is not None for table in self.tables):
            found = zip(self.labels, filter(None, self.tables), strict=True)
            self.pairs = [(k, [(label, value) for value in entries]) for label, (k, entries) in found]

    def state_of(self, candidate: Candidate) -> State:
        """The final state of a candidate: the values of the condition's terms."""
        if self.pairs:
            return tuple([of[candidate[k]] if k >= 0 else of[0] for k, of in self.pairs])
        values: list[tuple[str, Value]] = []
        valuation: Valuation | None = None
        for label, term, table in zip(self.labels, self.terms, self.tables, strict=True):
            if table is not None:
                k, entries = table
                values.append((label, entries[candidate[k]] if k >= 0 else entries[0]))
                continue
            if valuation is None:
                valuation = self.prepared.valuation(candidate)
            values.append((label, self._value(term, valuation)))
        return tuple(values)

    def _value(self, term: Term, valuation: Valuation) -> Value:
        try:
            if isinstance(term, RegTerm):
                register = self.s.paths[term.thread].registers.get(term.reg, 0)
                return valuation.term(register)
            assert isinstance(term, MemTerm)
            result = shift = 0
            for address, offset, length in self.s.parts(term.address, term.size):
                k = self.finals[address]
                option = self.prepared.choices[k].options[valuation.candidate[k]]
                result |= valuation.written(option.source, offset, length) << shift
                shift += 8 * length
            value = typed(term.type, result)
            assert isinstance(value, int)
            return value
        except Unknown:
            return UNKNOWN
        except Undetermined:
            return UNKNOWN
        except CircularValue:
            raise Unsupported("a final value that depends on itself") from None

    def _table(self, term: Term) -> tuple[int, list[Value]] | None:
        """The choice that alone decides a term, with the term's value for each option; ``None`` if there is no such
        choice.

        Choice -1: the term is constant.
        """
        choices = self.prepared.choices
        if isinstance(term, RegTerm):
            register = self.s.paths[term.thread].registers.get(term.reg, 0)
            if isinstance(register, int):
                return -1, [register]
            uids = reads_of(register)
            if len(uids) != 1:
                return None
            uid = next(iter(uids))
            nodes = self.s.nodes_of.get(uid, [])
            if len(nodes) != 1 or nodes[0] not in self.prepared.reader:
                return None
            k = self.prepared.reader[nodes[0]]
            values = self._option_values(choices[k])
            if values is None:
                return None
            try:
                return k, [self._through(register, v) for v in values]
            except Unknown:
                return None
        if isinstance(term, MemTerm):
            chunks = self.s.chunks(term.address, term.size)
            if chunks != [(term.address, term.size)]:
                return None
            k = self.finals[chunks[0][0]]
            values = self._option_values(choices[k])
            return None if values is None else (k, [typed(term.type, v) for v in values])  # type: ignore[misc]
        return None

    @staticmethod
    def _through(register: object, value: int) -> Value:
        from mcheck.semantics.terms import evaluate

        return evaluate(register, lambda _: value)  # type: ignore[arg-type]

    def _option_values(self, choice: Choice) -> list[int] | None:
        out = []
        for option in choice.options:
            value = self.s.nodes[option.source].value
            if not isinstance(value, int):
                return None
            out.append(value)
        return out


def truth_of(condition: Condition, state: State) -> frozenset[bool]:
    """The possible truth values of the condition's formula in a state; empty if the filter rejects the state."""
    values = dict(state)
    lookup = lambda t: values[t.label]  # noqa: E731
    if evaluate_formula(condition.filter, lookup) == FALSE:
        return frozenset()
    return evaluate_formula(condition.formula, lookup)


def clauses(formula: Formula, limit: int = 64) -> list[list[Compare]] | None:
    """The disjunctive normal form of a formula, ``None`` if it has more than ``limit`` clauses."""

    def positive(f: Formula, truth: bool) -> Iterator[list[Compare]]:
        match f:
            case Truth(v):
                if v is truth:
                    yield []
            case Not(part):
                yield from positive(part, not truth)
            case Compare(op, left, right):
                negated = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
                yield [Compare(op if truth else negated[op], left, right)]
            case And(parts) | Or(parts):
                conjunctive = isinstance(f, And) is truth
                if not conjunctive:
                    for p in parts:
                        yield from positive(p, truth)
                    return
                combos: list[list[Compare]] = [[]]
                for p in parts:
                    options = list(positive(p, truth))
                    combos = [c + o for c in combos for o in options]
                    if len(combos) > limit:
                        raise OverflowError
                yield from combos

    try:
        out = []
        for clause in positive(formula, True):
            out.append(clause)
            if len(out) > limit:
                return None
        return out
    except OverflowError:
        return None
