"""Checks an execution found by Z3 with the explicit engine's evaluator before it is reported."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.errors import InternalError, Unsupported
from mcheck.base.records import dataclass
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.batch import Evaluation, Masks, add
from mcheck.cat.algebra.tape import BOUND, TOTAL
from mcheck.events.choices.candidate import Candidate, CircularValue, Undetermined
from mcheck.events.choices.prepared import Prepared
from mcheck.semantics.terms import Unknown

Ordered = Callable[[str, int, int], bool]
"""Whether the solution orders a pair of co or sync_fence so."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A pair that a flag of the model reports in an execution."""

    name: str
    pair: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Witness:
    """A consistent execution: the options taken, and the flags of the model that hold in it."""

    prepared: Prepared
    candidate: Candidate
    flags: tuple[Flag, ...]
    shared: tuple[tuple[int, int], ...] = ()
    """The pairs of the flags in the structure that was solved, if that holds several paths."""

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The flagged pairs in the structure that was solved."""
        return self.shared or tuple(flag.pair for flag in self.flags)


def recheck(prepared: Prepared, candidate: Candidate, ordered: Ordered) -> Witness | None:
    """The witness of a solution.

    ``None`` if the least co of its choices violates a check that a larger co satisfies, or a wait has another state
    than it assumes. Values, axioms and flags are computed anew from the options and from the order of the pairs that
    the model leaves open. Raises ``InternalError`` if the execution is not consistent.
    """
    _check_values(prepared, candidate)
    if not prepared.believable(candidate):
        return None
    prepared.check_beliefs(candidate)
    bases: dict[str, Masks] = {}
    for choice, taken in zip(prepared.choices, candidate, strict=True):
        if len(choice.options) > 1:
            for relation, pairs in choice.options[taken].edges:
                low = prepared.base(relation)[0]
                for i, j in pairs:
                    if not low[i] >> j & 1:
                        add(bases.setdefault(relation, {}), i, j, 1)
    fences: Masks = {}
    for i in range(prepared.n):
        for j in bits.bits(prepared.sf_high[i]):
            if ordered("sync_fence", i, j):
                add(fences, i, j, 1)
    evaluation = _least_coherence(prepared, {**bases, "sync_fence": fences}, ordered)
    for axiom in prepared.checks:
        if axiom.role == "forbid" and evaluation.violated(axiom.test, axiom.node):
            raise InternalError(f"the solver's execution breaks {axiom.name}")
    for axiom in prepared.late:
        if bool(evaluation.violated(axiom.test, axiom.node)) is not axiom.negated:
            return None
    flags = []
    for axiom in prepared.flags:
        for i, row in enumerate(prepared.plan.low[axiom.node]):
            flags += [Flag(axiom.name, (i, j)) for j in bits.bits(row)]
        for i, cells in evaluation.get(axiom.node).items():
            flags += [Flag(axiom.name, (i, j)) for j in cells]
    return Witness(prepared, candidate, tuple(flags))


def _check_values(prepared: Prepared, candidate: Candidate) -> None:
    """Checks that the constraints of the paths hold of the values in this execution."""
    valuation = prepared.valuation(candidate)
    misused = any(c.options[taken].misstep for c, taken in zip(prepared.choices, candidate, strict=True))
    for term, truth in prepared.constraints:
        try:
            if bool(valuation.term(term)) is not truth:
                raise InternalError("the solver's execution takes another path than its values do")
        except Unknown:
            continue
        except Undetermined:
            if not misused:
                raise Unsupported(
                    "a value depends on itself or on unknown contents in a way that is not followed"
                ) from None
        except CircularValue:
            if not misused:
                raise Unsupported("a value that depends on itself, which this model does not forbid") from None


def _least_coherence(prepared: Prepared, bases: dict[str, Masks], ordered: Ordered) -> Evaluation:
    """The relations with the least co that the model demands; pairs that it leaves open are as in the solution."""
    rows = list(prepared.co_low)
    if prepared.tape.free_co:  # every order is an execution of its own
        for i, row in enumerate(prepared.co_high):
            rows[i] |= sum(1 << j for j in bits.bits(row & ~rows[i]) if ordered("co", i, j))
    demands = [a for a in prepared.checks if a.role in (BOUND, TOTAL)]
    while True:
        rows = bits.closure(rows)
        co: Masks = {}
        for i, row in enumerate(rows):
            if row >> i & 1 or row & ~prepared.co_high[i]:
                raise InternalError("the solver's coherence order has a cycle")
            for j in bits.bits(row & ~prepared.co_low[i]):
                add(co, i, j, 1)
        evaluation = Evaluation(prepared.plan, 1, {**bases, "co": co})
        before = list(rows)
        for axiom in demands:
            low, value = prepared.plan.low[axiom.node], evaluation.get(axiom.node)
            for i in range(prepared.n):
                for j in [*bits.bits(low[i]), *value.get(i, {})]:
                    if axiom.role == BOUND:
                        rows[i] |= 1 << j
                    elif not rows[i] >> j & 1 and not rows[j] >> i & 1:
                        _orient(rows, i, j, ordered)
        if prepared.tape.total_co:
            for writes in prepared.s.writes.values():
                for k, i in enumerate(writes):
                    for j in writes[k + 1 :]:
                        if not rows[i] >> j & 1 and not rows[j] >> i & 1:
                            _orient(rows, i, j, ordered)
        if rows == before:
            return evaluation


def _orient(rows: list[int], i: int, j: int, ordered: Ordered) -> None:
    if ordered("co", i, j):
        rows[i] |= 1 << j
    elif ordered("co", j, i):
        rows[j] |= 1 << i
    else:
        raise InternalError("the solver leaves two writes unordered that the model orders")
