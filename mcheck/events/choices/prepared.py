"""An event structure with its choices under a model, and what is decided before any choice is made.

Choices with one option are static edges; the static bounds of the model's tape say what every execution has and what
none has, which axioms may still fail and which flags may still be raised. What is left, an engine searches or solves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from mcheck.cat.algebra import bits
from mcheck.cat.algebra.batch import Plan
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.bounds import SMALL, Bounds, compute_bounds
from mcheck.cat.algebra.tape import BOUND, TOTAL, UNKNOWNS, Tape, TapeCheck
from mcheck.cat.tags import Tag
from mcheck.events import relations
from mcheck.events.choices import mbarrier_tokens
from mcheck.events.choices.always_undefined import find_always_undefined, is_only_misuse
from mcheck.events.choices.candidate import Candidate, Choice, Valuation, constant_values, single_event
from mcheck.events.event import Event
from mcheck.events.structure import Structure
from mcheck.events.warpgroups import completions
from mcheck.findings.undefined_effects import REPORTED_BESIDE_MISUSE
from mcheck.semantics.mbarrier_states import counted_state
from mcheck.semantics.terms import Term, Uid, Unknown, evaluate


class Prepared:
    """One event structure, its choices, and a tape."""

    def __init__(
        self,
        tape: Tape,
        structure: Structure,
        choices: list[Choice],
        deadline: Callable[[], None],
    ) -> None:
        self.tape = tape
        self.s = structure
        self.n = structure.size
        self.deadline = deadline
        self.choices = sorted(choices, key=lambda c: (c.rank, len(c.options) > 1))
        self.constraints: list[tuple[Term, bool]] = [c for p in structure.paths for c in p.constraints]
        self.failed: dict[str, int] = {}
        self.possible = True
        self.misusable = any(o.misstep or o.remarks for c in choices for o in c.options)
        self.counting = [t for t, truth in self.constraints if truth and counted_state(t) is not None]
        self.inevitable = [c.inevitable for c in self.choices]
        self._index()
        self._filter_domains()
        self.possible = self.possible and all(c.options for c in self.choices)
        if self.possible:
            self._bounds()

    # --- preparation ----------------------------------------------------------------------------------

    def _index(self) -> None:
        self.reader = {c.node: k for k, c in enumerate(self.choices) if c.kind == "rf"}
        self.results: dict[Uid, list[int]] = {}
        for k, c in enumerate(self.choices):
            for uid in {u for o in c.options for u, _ in o.results}:
                self.results.setdefault(uid, []).append(k)

    def valuation(self, candidate: Candidate) -> Valuation:
        """The values of a candidate."""
        return Valuation(self.s, self.choices, candidate, self.reader, self.results)

    def _filter_domains(self) -> None:
        """Remove the options that a constraint on one event rules out."""
        rest = []
        for term, truth in self.constraints:
            uid = single_event(term)
            nodes = self.s.nodes_of.get(uid, []) if uid is not None else []
            if uid is None or len(nodes) != 1 or not self._filter_one(term, truth, uid, nodes[0]):
                rest.append((term, truth))
        self.constraints = rest

    def _filter_one(self, term: Term, truth: bool, uid: Uid, node: int) -> bool:
        """Whether the constraint is fully used up by dropping options."""
        k = self.reader.get(node)
        if k is None:
            return self._filter_result(term, truth, uid)
        choice = self.choices[k]
        values = constant_values(self.s, choice)
        assert values is not None
        complete = all(v is not None for v in values)
        kept = []
        for option, value in zip(choice.options, values, strict=True):
            if value is None or _fits(term, value, truth):
                kept.append(option)
        choice.options = kept
        return complete

    def _filter_result(self, term: Term, truth: bool, uid: Uid) -> bool:
        owners = self.results.get(uid, [])
        if len(owners) != 1:
            return False
        choice = self.choices[owners[0]]
        kept = []
        for option in choice.options:
            value = dict(option.results).get(uid)
            if value is None or _fits(term, value, truth):
                kept.append(option)
        complete = all(uid in dict(o.results) for o in choice.options)
        choice.options = kept
        return complete

    def base(self, name: str) -> tuple[Rows, Rows]:
        """The static bounds of a base set or relation."""
        if self.n > SMALL:
            self.deadline()
        if name not in UNKNOWNS:
            rows = relations.static_rows(self.s, name)
            return rows, rows
        low, high = bits.empty(self.n), bits.empty(self.n)
        if name == "co":
            return self.co_low, self.co_high
        if name == "sync_fence":
            return bits.empty(self.n), self.sf_high
        for choice in self.choices:
            for option in choice.options:
                for relation, pairs in option.edges:
                    if relation == name:
                        for i, j in pairs:
                            high[i] |= 1 << j
            if len(choice.options) == 1:
                for relation, pairs in choice.options[0].edges:
                    if relation == name:
                        for i, j in pairs:
                            low[i] |= 1 << j
        for relation, i, j in self.extra_edges:
            if relation == name:
                low[i] |= 1 << j
                high[i] |= 1 << j
        return low, high

    extra_edges: tuple[tuple[str, int, int], ...] = ()

    def _bounds(self) -> None:
        s, n = self.s, self.n
        self.extra_edges = tuple(
            ("complete", i, j) for m, w in completions(s) for i in s.nodes_of[m] for j in s.nodes_of[w]
        )
        self.co_low, self.co_high = bits.empty(n), bits.empty(n)
        for writes in s.writes.values():
            first, *others = writes
            for w in others:
                self.co_low[first] |= 1 << w
                self.co_high[first] |= 1 << w
                for x in others:
                    if x != w:
                        self.co_high[w] |= 1 << x
        self.sf_high = bits.empty(n)
        if "sync_fence" in self.tape.bases:
            sr = self.base("sr")[0]
            fences = [x.index for x in s.nodes if x.has(Tag.SC) and x.has(Tag.F)]
            for i in fences:
                for j in fences:
                    if i != j and sr[i] >> j & 1:
                        self.sf_high[i] |= 1 << j
        while True:
            bounds = compute_bounds(self.tape, n, self.base, self.deadline)
            forced = self._forced_co(bounds)
            if not forced or not self.possible:
                break
        self.bounds = bounds
        self.checks: list[TapeCheck] = []
        self.late: list[TapeCheck] = []
        self.flags: list[TapeCheck] = []
        for a in self.tape.checks:
            if a.role == "flag":
                if self._may_fail(a, bounds):
                    self.flags.append(a)
            elif a.role in (BOUND, TOTAL):
                if any(bounds.high[a.node]):
                    self.checks.append(a)
            elif self._may_fail(a, bounds):
                (self.checks if a.monotone else self.late).append(a)
                if a.monotone and self._fails(a, bounds.low[a.node]):
                    self.possible = False
                    self.failed[a.name] = self.failed.get(a.name, 0) + 1
        roots = [a.node for a in self.checks + self.late + self.flags]
        self.plan = Plan(self.tape, bounds, roots)

    def _forced_co(self, bounds: Bounds) -> bool:
        """Add the forced pairs to co's lower bound; returns whether that changed it."""
        changed = False
        for a in self.tape.checks:
            if a.role != BOUND:
                continue
            for i, row in enumerate(bounds.low[a.node]):
                if row & ~self.co_high[i]:
                    self.possible = False
                    self.failed[a.name] = self.failed.get(a.name, 0) + 1
                    return False
                if row & ~self.co_low[i]:
                    self.co_low[i] |= row
                    changed = True
        if changed:
            self.co_low = bits.closure(self.co_low)
            for i in range(self.n):
                for j in bits.bits(self.co_low[i]):
                    self.co_high[j] &= ~(1 << i)
                if self.co_low[i] >> i & 1 or self.co_low[i] & ~self.co_high[i]:
                    self.possible = False
                    self.failed["co"] = self.failed.get("co", 0) + 1
                    return False
        return changed

    def _fails(self, a: TapeCheck, rows: Rows) -> bool:
        holds = not any(rows) if a.test == "empty" else not any(r >> i & 1 for i, r in enumerate(rows))
        return holds if a.negated else not holds

    def _may_fail(self, a: TapeCheck, bounds: Bounds) -> bool:
        if a.role == "flag":
            return any(bounds.high[a.node])
        if a.negated:
            return not self._fails(TapeCheck(a.name, a.test, False, a.node, a.role, a.monotone), bounds.low[a.node])
        return self._fails(a, bounds.high[a.node])

    # --- candidates -----------------------------------------------------------------------------------

    def misstep(self, candidate: Candidate) -> bool:
        """Whether this execution has a misuse."""
        return self.misusable and any(
            taken >= 0 and c.options[taken].misstep for c, taken in zip(self.choices, candidate, strict=True)
        )

    def culprit(self, candidate: Candidate) -> int | None:
        """The event of the only misuse in this execution, unless a flag reports the same."""
        found = {c.options[taken].misstep for c, taken in zip(self.choices, candidate, strict=True) if taken >= 0} - {
            None
        }
        if len(found) != 1:
            return None
        ((code, _, uid),) = (misstep for misstep in found if misstep is not None)
        if code in REPORTED_BESIDE_MISUSE or not self.alone(uid):
            return None
        return next(iter(self.s.nodes_of[uid]), None)

    @cached_property
    def doomed(self) -> tuple[Event, ...]:
        """The misuses that occur in every order."""
        return find_always_undefined(self.s)

    def alone(self, uid: Uid) -> bool:
        """Whether the misuse at an event may be the only one."""
        return is_only_misuse(self.s, self.doomed, uid)

    def believable(self, candidate: Candidate) -> bool:
        """Whether every wait has the state that its belief says, as far as values are known.

        A state has no value where its arrive comes after a misuse: that must not be the misuse of that very wait.
        """
        valuation: Valuation | None = None
        for k, choice in enumerate(self.choices):
            beliefs = choice.options[candidate[k]].beliefs if candidate[k] >= 0 else ()
            for wait, belief in beliefs:
                valuation = valuation or self.valuation(candidate)
                found = mbarrier_tokens.fits_belief(valuation, wait, belief)
                if found is False or (found is None and self._never(valuation, wait, k)):
                    return False
        return not self.counting or mbarrier_tokens.may_count(valuation or self.valuation(candidate), self.counting)

    def _never(self, valuation: Valuation, wait: Uid, own: int) -> bool:
        """Whether a state never has a value though nothing is misused but the object of choice ``own``."""
        candidate = valuation.candidate
        if min(candidate) < 0 or mbarrier_tokens.is_circular(valuation, wait):
            return False
        chosen = enumerate(zip(self.choices, candidate, strict=True))
        return not any(k != own and c.options[taken].misstep for k, (c, taken) in chosen)

    def check_beliefs(self, candidate: Candidate) -> None:
        """Raise ``Unsupported`` if it is not known whether mbarrier instructions have the states that they suppose."""
        for choice, taken in zip(self.choices, candidate, strict=True):
            for wait, belief in choice.options[taken].beliefs if taken >= 0 else ():
                mbarrier_tokens.check_belief(self.valuation(candidate), wait, belief)
        mbarrier_tokens.check_counts(self.valuation(candidate), self.counting)

    def may_flag(self) -> Iterator[tuple[str, int, int]]:
        """The pairs that some execution may flag, by the static bounds alone."""
        if self.possible:
            for a in self.flags:
                for i, row in enumerate(self.bounds.high[a.node]):
                    for j in bits.bits(row):
                        yield a.name, i, j


def _fits(term: Term, value: int, truth: bool) -> bool:
    """Whether a condition has this truth value, its only event returning ``value``."""
    try:
        return bool(evaluate(term, lambda _: value)) is truth
    except Unknown:
        return True
