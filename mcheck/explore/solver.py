"""All consistent executions of one event structure under one model.

1. Choices with one option become static edges; static bounds of the tape settle what they can.
2. The remaining choices are made a few at a time, all combinations side by side as the bits of a batch; a monotone
axiom
   that is violated removes its candidates at once.
3. co is the least relation that the model demands and sync_fence an order of its pairs: what an axiom forbids is
inferred by
   the backward evaluation, what is left is decided by search, for all candidates at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from operator import itemgetter

from mcheck.errors import Unsupported
from mcheck.explore import bits
from mcheck.explore.batch import Masks, Plan, add
from mcheck.explore.bits import Rows
from mcheck.explore.bounds import Bounds, bound
from mcheck.explore.choices import (
    Candidate,
    Choice,
    Circular,
    NotYet,
    Valuation,
    constant_values,
    single_event,
)
from mcheck.explore.orders import Orders, Solution
from mcheck.explore.tape import BOUND, TOTAL, UNKNOWNS, Axiom, Tape
from mcheck.graph import relations
from mcheck.graph.structure import Structure
from mcheck.graph.terms import Term, Uid, Unknown, evaluate
from mcheck.graph.warps import completions

BATCH = 4096
"""How many candidates are evaluated side by side."""

MAX_BYTE = 256


@cache
def _digits(option: int) -> bytes:
    """Translates a column of options into binary digits: 1 where it is ``option``."""
    return bytes(49 if k == option else 48 for k in range(MAX_BYTE))


class Solver:
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
        self.static_rows: dict[str, Rows] = {}
        self.failed: dict[str, int] = {}
        self.possible = True
        self.misusable = any(o.misstep or o.remarks for c in choices for o in c.options)
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
        """Drops the options that a constraint on one event rules out by itself."""
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
        self.deadline()
        if name not in UNKNOWNS:
            found = self.static_rows.get(name)
            if found is None:
                found = self.static_rows[name] = relations.rows(self.s, name)
            return found, found
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
            fences = [x.index for x in s.nodes if x.has("SC") and x.has("F")]
            for i in fences:
                for j in fences:
                    if i != j and sr[i] >> j & 1:
                        self.sf_high[i] |= 1 << j
        while True:
            bounds = bound(self.tape, n, self.base, self.deadline)
            forced = self._forced_co(bounds)
            if not forced or not self.possible:
                break
        self.bounds = bounds
        self.checks: list[Axiom] = []
        self.late: list[Axiom] = []
        self.flags: list[Axiom] = []
        for a in self.tape.axioms:
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
        self.orders = Orders(
            s,
            self.plan,
            self.checks,
            self.late,
            self.flags,
            self.co_low,
            self.co_high,
            self.sf_high,
            self.tape.total_co,
            self.tape.free_co,
            self.tape.flags_on if self.flags else frozenset(),
            self.failed,
            self.deadline,
        )

    def _forced_co(self, bounds: Bounds) -> bool:
        """Puts what every execution must have into co's lower bound; whether that changed it."""
        changed = False
        for a in self.tape.axioms:
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

    def _fails(self, a: Axiom, rows: Rows) -> bool:
        holds = not any(rows) if a.test == "empty" else not any(r >> i & 1 for i, r in enumerate(rows))
        return holds if a.negated else not holds

    def _may_fail(self, a: Axiom, bounds: Bounds) -> bool:
        if a.role == "flag":
            return any(bounds.high[a.node])
        if a.negated:
            return not self._fails(Axiom(a.name, a.test, False, a.node, a.role, a.monotone), bounds.low[a.node])
        return self._fails(a, bounds.high[a.node])

    # --- making the choices ---------------------------------------------------------------------------

    def solve(self) -> Iterator[tuple[list[Candidate], Solution]]:
        """Batches of consistent candidates, with the findings of the flags on them."""
        if not self.possible:
            return
        open_choices = [k for k, c in enumerate(self.choices) if len(c.options) > 1]
        start: Candidate = tuple(0 if len(c.options) == 1 else -1 for c in self.choices)
        yield from self._extend([start], open_choices, list(self.constraints))

    def _extend(
        self, candidates: list[Candidate], todo: list[int], constraints: list[tuple[Term, bool]]
    ) -> Iterator[tuple[list[Candidate], Solution]]:
        while True:
            self.deadline()
            candidates, constraints = self._constrain(candidates, constraints)
            if not candidates:
                return
            if not todo:
                for k in range(0, len(candidates), BATCH * 4):
                    for found, solution in self._finish(candidates[k : k + BATCH * 4]):
                        for c in found if constraints else ():
                            self._check_grounded(c, constraints)
                        yield found, solution
                return
            now: list[int] = []
            size = len(candidates)
            while todo and (not now or size * len(self.choices[todo[0]].options) <= BATCH):
                size *= len(self.choices[todo[0]].options)
                now.append(todo[0])
                todo = todo[1:]
            if size > 4 * BATCH and len(candidates) > 1:
                middle = len(candidates) // 2
                for half in (candidates[:middle], candidates[middle:]):
                    yield from self._extend(half, now + todo, list(constraints))
                return
            extended = []
            ranges = [range(len(self.choices[k].options)) for k in now]
            for c in candidates:
                base = list(c)
                for combination in product(*ranges):
                    for k, o in zip(now, combination, strict=True):
                        base[k] = o
                    extended.append(tuple(base))
            if self.misusable:
                extended = [c for c in extended if not self._misused_twice(c)]
            candidates = extended
            if todo:
                candidates, constraints = self._constrain(candidates, constraints)
                candidates = self._prune(candidates)

    def _check_grounded(self, candidate: Candidate, constraints: list[tuple[Term, bool]]) -> None:
        """A circular value that the axioms let through has no value that could be told."""
        if self.misstep(candidate):
            return
        valuation = self.valuation(candidate)
        for term, _ in constraints:
            try:
                valuation.term(term)
            except Circular:
                raise Unsupported("a value that justifies itself, which this model does not forbid") from None
            except Unknown:
                continue

    def _constrain(
        self, candidates: list[Candidate], constraints: list[tuple[Term, bool]]
    ) -> tuple[list[Candidate], list[tuple[Term, bool]]]:
        """Drops the candidates that violate a path's constraint; keeps the constraints that are not decided yet."""
        pending = []
        for term, truth in constraints:
            kept, undecided, circular = [], False, False
            for c in candidates:
                try:
                    if bool(self.valuation(c).term(term)) is truth:
                        kept.append(c)
                except NotYet:
                    kept.append(c)
                    undecided = undecided or not self.misstep(c)
                except Unknown:
                    kept.append(c)  # a branch on unknown contents goes both ways
                except Circular:
                    kept.append(c)  # for the axioms to forbid: see _finish
                    circular = True
            candidates = kept
            if undecided or circular:
                pending.append((term, truth))
        return candidates, pending

    def _misused_twice(self, candidate: Candidate) -> bool:
        """Only the first misuse is of interest: after it nothing is known that could justify another.

        What cannot go well is a misuse whatever else is misused.
        """
        chosen = zip(self.choices, candidate, self.inevitable, strict=True)
        return sum(t >= 0 and not always and c.options[t].misstep is not None for c, t, always in chosen) > 1

    def misstep(self, candidate: Candidate) -> bool:
        """Whether something is misused in this execution."""
        return self.misusable and any(
            taken >= 0 and c.options[taken].misstep for c, taken in zip(self.choices, candidate, strict=True)
        )

    def _bases(self, candidates: list[Candidate]) -> dict[str, Masks]:
        """The chosen relations of a batch as masks."""
        out: dict[str, Masks] = {}
        for choice, o, mask in self._masks(candidates):
            for relation, pairs in choice.options[o].edges:
                for i, j in pairs:
                    add(out.setdefault(relation, {}), i, j, mask)
        return out

    def _masks(self, candidates: list[Candidate]) -> Iterator[tuple[Choice, int, int]]:
        """(choice, option, mask of the candidates that take it), for the choices that are open."""
        for k, choice in enumerate(self.choices):
            if len(choice.options) == 1:
                continue
            column = list(map(itemgetter(k), reversed(candidates)))
            if column[0] < 0:
                continue
            if len(choice.options) < MAX_BYTE:  # the common case, at the speed of bytes
                packed = bytes(column)
                for o in set(column):
                    yield choice, o, int(packed.translate(_digits(o)), 2)
            else:
                for o in set(column):
                    yield choice, o, int("".join(["1" if x == o else "0" for x in column]), 2)

    def _prune(self, candidates: list[Candidate]) -> list[Candidate]:
        """Removes the candidates whose choices so far already violate a monotone axiom."""
        if not any(a.role == "forbid" for a in self.checks) or len(candidates) == 0:
            return candidates
        alive = (1 << len(candidates)) - 1
        alive, _, _, _ = self.orders.propagate(alive, self._bases(candidates), {}, {}, {}, infer=False)
        return [c for k, c in enumerate(candidates) if alive >> k & 1]

    # --- co and the order of fences ---------------------------------------------------------------------

    def _finish(self, candidates: list[Candidate]) -> Iterator[tuple[list[Candidate], Solution]]:
        alive = (1 << len(candidates)) - 1
        bases = self._bases(candidates)
        not_co: Masks = {}
        for choice, o, mask in self._masks(candidates):
            for i, j in choice.options[o].not_co:
                add(not_co, i, j, mask)
        for choice in self.choices:
            if len(choice.options) == 1:
                for i, j in choice.options[0].not_co:
                    add(not_co, i, j, alive)
        solution = Solution(defined=self._defined(candidates))
        solved = self.orders.search(alive, bases, {}, {}, not_co, candidates, solution)
        solution.defined &= solved
        found = [c for k, c in enumerate(candidates) if solved >> k & 1]
        if found:
            yield found, solution

    def _defined(self, candidates: list[Candidate]) -> int:
        """The mask of the candidates that misuse no mbarrier and no barrier."""
        if not self.misusable:
            return (1 << len(candidates)) - 1
        return sum(1 << k for k, c in enumerate(candidates) if not self.misstep(c))

    def may_flag(self) -> Iterator[tuple[str, int, int]]:
        """The pairs that some execution may flag, by the bounds alone."""
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
