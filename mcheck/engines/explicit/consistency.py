"""Finds all consistent executions of one event structure under one model.

1. Choices with one option become static edges; static bounds of the tape decide what they can.
2. The remaining choices are made a few at a time, all combinations side by side as the bits of a batch; a violated
   monotone axiom removes its candidates at once.
3. co is the least relation that the model demands and sync_fence an order of its pairs: what an axiom forbids is
   inferred by the backward evaluation, the rest is decided by search, for all candidates at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cache, partial
from itertools import product
from operator import itemgetter

from mcheck.base.errors import Unsupported
from mcheck.cat.algebra.batch import Masks, add
from mcheck.engines.explicit.coherence_orders import Orders, Solution
from mcheck.engines.explicit.decision_tree import DecisionTree
from mcheck.events.choices.candidate import Candidate, Choice, CircularValue, Undetermined
from mcheck.events.choices.prepared import Prepared
from mcheck.semantics.terms import Term, Unknown

BATCH = 4096
"""The number of candidates that are evaluated side by side."""

MAX_BYTE = 256


@cache
def _digits(option: int) -> bytes:
    """A translation table from a column of options to binary digits: 1 for ``option``."""
    return bytes(49 if k == option else 48 for k in range(MAX_BYTE))


class Judgement(Enum):
    """What a candidate makes of a constraint of a path."""

    MET = "met"
    VIOLATED = "violated"
    PENDING = "pending"
    """A choice is open, the event comes after a misuse, or the value is circular, which the axioms have to forbid."""


class Solver(Prepared):
    """The search for all consistent executions of a structure."""

    def _bounds(self) -> None:
        super()._bounds()
        self.believing = any(o.beliefs for c in self.choices for o in c.options) or bool(self.counting)
        self.orders = Orders(
            self.s,
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

    # --- making the choices ---------------------------------------------------------------------------

    def solve(self) -> Iterator[tuple[list[Candidate], Solution]]:
        """Batches of consistent candidates, with the flags that hold in them."""
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
                        for c in found if self.believing else ():
                            self.check_beliefs(c)
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
        """Raises ``Unsupported`` for a circular value that the axioms permit: it has no determined value."""
        if self.misstep(candidate):
            return
        valuation = self.valuation(candidate)
        for term, _ in constraints:
            try:
                valuation.term(term)
            except CircularValue:
                raise Unsupported("a value that depends on itself, which this model does not forbid") from None
            except Unknown:
                continue

    def _constrain(
        self, candidates: list[Candidate], constraints: list[tuple[Term, bool]]
    ) -> tuple[list[Candidate], list[tuple[Term, bool]]]:
        """Removes the candidates that violate a constraint of a path, and returns the constraints that are still
        undecided.
        """
        pending = []
        for term, truth in constraints:
            judge = DecisionTree(partial(self._judge, term, truth))
            judged = [(c, judge(c)) for c in candidates]
            candidates = [c for c, judgement in judged if judgement is not Judgement.VIOLATED]
            if any(judgement is Judgement.PENDING for _, judgement in judged):
                pending.append((term, truth))
        if self.believing:
            candidates = [c for c in candidates if self.believable(c)]
        return candidates, pending

    def _judge(self, term: Term, truth: bool, candidate: Candidate) -> Judgement:
        """Whether a candidate meets a constraint; a branch on unknown contents goes both ways."""
        try:
            met = bool(self.valuation(candidate).term(term)) is truth
        except Unknown:
            return Judgement.MET
        except (Undetermined, CircularValue):
            return Judgement.PENDING
        return Judgement.MET if met else Judgement.VIOLATED

    def _misused_twice(self, candidate: Candidate) -> bool:
        """Whether a candidate has two misuses; only the first counts, for nothing after it is known.

        A misuse that every option has counts in any case.
        """
        chosen = zip(self.choices, candidate, self.inevitable, strict=True)
        return sum(t >= 0 and not always and c.options[t].misstep is not None for c, t, always in chosen) > 1

    def _bases(self, candidates: list[Candidate]) -> dict[str, Masks]:
        """The chosen relations of a batch as masks."""
        out: dict[str, Masks] = {}
        for choice, o, mask in self._masks(candidates):
            for relation, pairs in choice.options[o].edges:
                for i, j in pairs:
                    add(out.setdefault(relation, {}), i, j, mask)
        return out

    def _masks(self, candidates: list[Candidate]) -> Iterator[tuple[Choice, int, int]]:
        """(choice, option, mask of the candidates that take it) for the choices that are open."""
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
        """Removes the candidates whose choices so far violate a monotone axiom."""
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
        solution = Solution(self._defined(candidates), self._misused_once(candidates))
        solved = self.orders.search(alive, bases, {}, {}, not_co, candidates, solution)
        solution.defined &= solved
        found = [c for k, c in enumerate(candidates) if solved >> k & 1]
        if found:
            yield found, solution

    def _defined(self, candidates: list[Candidate]) -> int:
        """The mask of the candidates without a misuse of an mbarrier or a barrier."""
        if not self.misusable:
            return (1 << len(candidates)) - 1
        return sum(1 << k for k, c in enumerate(candidates) if not self.misstep(c))

    def _misused_once(self, candidates: list[Candidate]) -> dict[int, int]:
        """The mask of the candidates with exactly one misuse, by its event."""
        out: dict[int, int] = {}
        for k, candidate in enumerate(candidates if self.misusable and self.flags else ()):
            if (culprit := self.culprit(candidate)) is not None:
                out[culprit] = out.get(culprit, 0) | 1 << k
        return out
