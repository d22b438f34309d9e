"""Coherence order and fence order of all candidates of a batch at once.

co is the least relation that the model demands: what an axiom forces or forbids is inferred from the masks, and a pair
that must be ordered and may be ordered either way is decided by search. The same holds for the pairs of morally strong
fence.sc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.batch import Evaluation, Masks, Plan, add
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.tape import BOUND, TOTAL, TapeCheck
from mcheck.events.choices.candidate import Candidate
from mcheck.events.structure import Structure
from mcheck.findings.undefined_effects import REPORTED_BESIDE_MISUSE


@dataclass(slots=True)
class Flagged:
    """A pair that a ``flag`` of the model reports, and a candidate that shows it."""

    name: str
    pair: tuple[int, int]
    candidate: Candidate


@dataclass(slots=True)
class Solution:
    """The flags that hold in the consistent candidates of a batch.

    ``defined``: the mask of the candidates without misuse; what follows a misuse is no execution of the program.
    ``misused``: the masks of the others by the event of their only misuse; only that event is examined, see
    ``REPORTED_BESIDE_MISUSE``.
    """

    defined: int = -1
    misused: dict[int, int] = field(default_factory=dict)
    flagged: dict[tuple[str, int, int], Flagged] = field(default_factory=dict)


@dataclass(slots=True)
class Orders:
    """The search for the orders of the candidates of one structure.

    ``checks``: the monotone axioms and the demands on co that may fail here; ``final_checks``: axioms that only a
    complete execution can answer; ``flags``: the flags of the model. co lies between ``co_low`` and ``co_high``, the
    fence order within ``sf_high``. ``failed`` counts the candidates that each axiom removed.
    """

    s: Structure
    plan: Plan
    checks: list[TapeCheck]
    final_checks: list[TapeCheck]
    flags: list[TapeCheck]
    co_low: Rows
    co_high: Rows
    sf_high: Rows
    total_co: bool
    free_co: bool
    flags_on: frozenset[str]
    failed: dict[str, int]
    deadline: Callable[[], None]

    @property
    def n(self) -> int:
        """The number of events."""
        return self.s.size

    def search(
        self,
        alive: int,
        bases: dict[str, Masks],
        co: Masks,
        sf: Masks,
        not_co: Masks,
        candidates: list[Candidate],
        solution: Solution,
    ) -> int:
        """The candidates for which some coherence and fence order is consistent; their flags go to ``solution``."""
        self.deadline()
        alive, co, sf, pending = self.propagate(alive, bases, co, sf, not_co, infer=True)
        if not alive:
            return 0
        choice = next(((rel, i, j, m & alive) for rel, i, j, m in pending if m & alive), None)
        if choice is None:
            return self._leaf(alive, bases, co, sf, candidates, solution)
        rel, i, j, mask = choice
        solved = 0
        explore_all = ("sync_fence" if rel == "sf" else "co") in self.flags_on
        settled = alive & ~mask
        for k, (a, b) in enumerate(((i, j), (j, i))):
            todo = mask if explore_all or k == 0 else mask & ~solved
            if k == 0:
                todo |= settled
            if not todo:
                continue
            co2, sf2 = _copy(co), _copy(sf)
            add(sf2 if rel == "sf" else co2, a, b, todo & mask)
            solved |= self.search(todo, bases, co2, sf2, not_co, candidates, solution)
        if rel == "free" and (todo := mask if explore_all else mask & ~solved):
            unrelated = _copy(not_co)
            add(unrelated, i, j, todo)
            add(unrelated, j, i, todo)
            solved |= self.search(todo, bases, _copy(co), _copy(sf), unrelated, candidates, solution)
        return solved

    def _leaf(
        self, alive: int, bases: dict[str, Masks], co: Masks, sf: Masks, candidates: list[Candidate], solution: Solution
    ) -> int:
        if not self.final_checks and not self.flags:
            return alive
        evaluation = Evaluation(self.plan, alive, {**bases, "co": co, "sync_fence": sf})
        for a in self.final_checks:
            bad = evaluation.violated(a.test, a.node)
            alive &= bad if a.negated else ~bad
        shown = alive & solution.defined
        for a in self.flags:
            if not shown:
                break
            loops_only = a.test != "empty"
            for i, row in enumerate(self.plan.low[a.node]):
                for j in bits.bits(row & 1 << i if loops_only else row):
                    self._flag(a, i, j, shown, candidates, solution)
            for i, cells in evaluation.get(a.node).items():
                for j, m in cells.items():
                    if i == j or not loops_only:
                        self._flag(a, i, j, m & shown, candidates, solution)
        self._flag_misused(evaluation, alive, candidates, solution)
        return alive

    def _flag_misused(
        self, evaluation: Evaluation, alive: int, candidates: list[Candidate], solution: Solution
    ) -> None:
        for a in self.flags if solution.misused else ():
            if a.name in REPORTED_BESIDE_MISUSE:
                cells = evaluation.get(a.node)
                for k, mask in solution.misused.items():
                    flagged = -1 if self.plan.low[a.node][k] >> k & 1 else cells.get(k, {}).get(k, 0)
                    self._flag(a, k, k, flagged & mask & alive, candidates, solution)

    def _flag(self, a: TapeCheck, i: int, j: int, mask: int, candidates: list[Candidate], solution: Solution) -> None:
        if mask and (a.name, i, j) not in solution.flagged:
            c = candidates[(mask & -mask).bit_length() - 1]
            solution.flagged[a.name, i, j] = Flagged(a.name, (i, j), c)

    def propagate(
        self, alive: int, bases: dict[str, Masks], co: Masks, sf: Masks, not_co: Masks, *, infer: bool
    ) -> tuple[int, Masks, Masks, list[tuple[str, int, int, int]]]:
        """Applies the monotone axioms and the demands on co until nothing changes.

        Returns the remaining candidates, co, the fence order, and the pairs to be decided (relation, i, j, candidates).
        """
        forbidding = [a for a in self.checks if a.role == "forbid"]
        demands = [a for a in self.checks if a.role in (BOUND, TOTAL)]
        while True:
            alive = self._close_co(alive, co, not_co)
            if sf:
                alive = self._close_sf(alive, sf)
            if not alive:
                return 0, co, sf, []
            evaluation = Evaluation(self.plan, alive, {**bases, "co": co, "sync_fence": sf})
            for a in forbidding:
                bad = evaluation.violated(a.test, a.node) & alive
                if bad:
                    self.failed[a.name] = self.failed.get(a.name, 0) + bad.bit_count()
                    alive &= ~bad
            if not alive:
                return 0, co, sf, []
            pending: list[tuple[str, int, int, int]] = []
            changed = False
            for a in demands:
                for i, j, mask in self._demanded(evaluation, a, alive):
                    have = self._co(co, i, j, alive)
                    if a.role == BOUND:
                        missing = mask & ~have
                        if not missing:
                            continue
                        if not self.co_high[i] >> j & 1:
                            self.failed[a.name] = self.failed.get(a.name, 0) + missing.bit_count()
                            alive &= ~missing
                        else:
                            add(co, i, j, missing)
                        changed = True
                    elif i == j:
                        self.failed[a.name] = self.failed.get(a.name, 0) + mask.bit_count()
                        alive &= ~mask
                        changed = True
                    elif open_ := mask & ~have & ~self._co(co, j, i, alive):
                        pending.append(("co", min(i, j), max(i, j), open_))
            if self.total_co and infer:
                for writes in self.s.writes.values():
                    for x, i in enumerate(writes[1:]):
                        for j in writes[x + 2 :]:
                            if open_ := alive & ~self._co(co, i, j, alive) & ~self._co(co, j, i, alive):
                                pending.append(("co", i, j, open_))
            if self.free_co and infer:
                pending += self._unrelated(alive, co, not_co)
            if infer:
                for i in range(self.n):
                    for j in bits.bits(self.sf_high[i] >> (i + 1)):
                        j += i + 1
                        have = sf.get(i, {}).get(j, 0) | sf.get(j, {}).get(i, 0)
                        if open_ := alive & ~have:
                            pending.append(("sf", i, j, open_))
            if changed:
                continue
            if not infer or not pending:
                return alive, co, sf, pending
            changed, alive = self._infer(evaluation, forbidding, pending, alive, co, sf, not_co)
            if not changed:
                return alive, co, sf, pending

    def _unrelated(self, alive: int, co: Masks, not_co: Masks) -> Iterator[tuple[str, int, int, int]]:
        """The undecided pairs of writes of one location."""
        for writes in self.s.writes.values():
            for x, i in enumerate(writes[1:]):
                for j in writes[x + 2 :]:
                    excluded = not_co.get(i, {}).get(j, 0) & not_co.get(j, {}).get(i, 0)
                    if open_ := alive & ~excluded & ~self._co(co, i, j, alive) & ~self._co(co, j, i, alive):
                        yield "free", i, j, open_

    def _co(self, co: Masks, i: int, j: int, alive: int) -> int:
        return alive if self.co_low[i] >> j & 1 else co.get(i, {}).get(j, 0)

    def _demanded(self, evaluation: Evaluation, a: TapeCheck, alive: int) -> Iterator[tuple[int, int, int]]:
        low = self.plan.low[a.node]
        for i, row in enumerate(low):
            for j in bits.bits(row):
                if not self.co_low[i] >> j & 1:
                    yield i, j, alive
        for i, cells in evaluation.get(a.node).items():
            for j, m in cells.items():
                if m & alive:
                    yield i, j, m & alive

    def _close_co(self, alive: int, co: Masks, not_co: Masks) -> int:
        """The transitive closure of co, location by location.

        Removes the candidates in which co has a cycle or a forbidden edge.
        """
        for writes in self.s.writes.values():
            if len(writes) > 2:
                others = writes[1:]
                for k in others:
                    for i in others:
                        first = self._co(co, i, k, alive) if i != k else 0
                        if first:
                            for j in others:
                                if j != k and (both := first & self._co(co, k, j, alive)):
                                    if i == j:
                                        alive &= ~both
                                    elif both & ~self._co(co, i, j, alive):
                                        add(co, i, j, both)
        for i, row in not_co.items():
            for j, m in row.items():
                alive &= ~(m & self._co(co, i, j, alive))
        return alive

    def _close_sf(self, alive: int, sf: Masks) -> int:
        """Orders the pairs of fences that transitivity decides, and removes the candidates whose fence order has a
        cycle.
        """
        reach = _copy(sf)
        fences = [i for i in range(self.n) if self.sf_high[i]]
        for k in fences:
            for i in fences:
                first = reach.get(i, {}).get(k, 0)
                if first:
                    for j, m in list(reach.get(k, {}).items()):
                        if both := first & m:
                            if i == j:
                                alive &= ~both
                            else:
                                add(reach, i, j, both)
        for i in fences:
            for j, m in reach.get(i, {}).items():
                if self.sf_high[i] >> j & 1:
                    add(sf, i, j, m)
        return alive

    def _infer(
        self,
        evaluation: Evaluation,
        forbidding: list[TapeCheck],
        pending: list[tuple[str, int, int, int]],
        alive: int,
        co: Masks,
        sf: Masks,
        not_co: Masks,
    ) -> tuple[bool, int]:
        """Orders the pairs of which one direction would violate an axiom at once."""
        seeds: dict[int, Masks] = {}
        for a in forbidding:
            seed = seeds.setdefault(a.node, {})
            low, high = self.plan.low[a.node], self.plan.high[a.node]
            for i in range(self.n):
                free = high[i] & ~low[i]
                if a.test == "irreflexive":
                    free &= 1 << i
                for j in bits.bits(free):
                    add(seed, i, j, alive)
        bad = evaluation.backward(seeds, frozenset({"co", "sync_fence"}))
        changed = False
        for rel, i, j, mask in pending:
            if rel == "free":
                continue
            table = bad.get("co" if rel == "co" else "sync_fence", {})
            forward = table.get(i, {}).get(j, 0)
            back = table.get(j, {}).get(i, 0)
            if rel == "co":
                forward |= not_co.get(i, {}).get(j, 0)
                back |= not_co.get(j, {}).get(i, 0)
                if not self.co_high[i] >> j & 1:
                    forward |= mask
                if not self.co_high[j] >> i & 1:
                    back |= mask
            mask &= alive
            if dead := mask & forward & back:
                alive &= ~dead
                mask &= ~dead
                changed = True
            target = co if rel == "co" else sf
            if m := mask & forward:
                add(target, j, i, m)
                changed = True
            if m := mask & back:
                add(target, i, j, m)
                changed = True
        return changed, alive


def _copy(masks: Masks) -> Masks:
    return {i: dict(row) for i, row in masks.items()}
