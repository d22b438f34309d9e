"""Barriers with a choice of who synchronises with whom, as constraints: rounds of named barriers, quorums of static
ones.

Enumerated instead, as in ``mcheck.events.choices.barrier_rounds``, are rounds in which every warp of the barrier takes
part, for there is one way; and those of a barrier to which threads give different counts or kinds (UB304), or at which
they arrive again without having waited.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.base.errors import InternalError
from mcheck.engines.z3.clauses import FALSE, TRUE, Clauses, Side
from mcheck.engines.z3.pseudo_boolean import Comparisons, Sum
from mcheck.engines.z3.symbolic_choices import Mishap, Token, True_, open_choice
from mcheck.events.choices.barrier_generations import quorum_choice, rounds_choice
from mcheck.events.choices.barrier_rounds import WARP, Arrival, LaneExits, Units, next_arrival
from mcheck.events.choices.candidate import Choice, Option, Pair
from mcheck.semantics.terms import Uid


class _Meeting:
    """Common part of the two kinds: they give one relation, return nothing and cannot be misused."""

    def __init__(self) -> None:
        self.pairs: dict[str, dict[Pair, int]] = {}

    def _give(self, relation: str, literal: int, sources: Iterable[int], targets: Iterable[int]) -> None:
        """Relates all sources with all targets if a literal holds."""
        self.pairs.setdefault(relation, {}).update({(a, b): literal for a in sources for b in targets})

    def may(self, relation: str) -> Iterable[Pair]:
        return self.pairs.get(relation, ())

    def literal(self, relation: str, i: int, j: int) -> int:
        return self.pairs.get(relation, {}).get((i, j), FALSE)

    def missteps(self) -> list[Mishap]:
        return []

    def remarks(self) -> list[Mishap]:
        return []

    def results(self) -> dict[Uid, dict[int, int] | Token]:
        return {}

    def states(self) -> dict[Uid, dict[Uid, int]]:
        return {}


class Quorum(_Meeting):
    """A given number of arrivals with which all waiting threads synchronise."""

    def __init__(self, clauses: Clauses, relation: str, sources: list[int], targets: list[int], quorum: int) -> None:
        super().__init__()
        self.relation = relation
        self.quorum = quorum
        self.chosen = {a: clauses.new() for a in sources}
        wanted = Comparisons(clauses).zero(Sum.of(((x, 1) for x in self.chosen.values()), -quorum))
        clauses.add(wanted)
        for a, x in self.chosen.items():
            self._give(relation, x, [a], targets)

    def decode(self, true: True_) -> Option:
        if sum(map(true, self.chosen.values())) != self.quorum:
            raise InternalError("the solver's quorum has another size")
        pairs = self.pairs.get(self.relation, {}).items()
        return Option(((self.relation, tuple(pair for pair, x in pairs if true(x))),))


class Rounds(_Meeting):
    """The rounds of a named barrier: each takes the next arrival of as many warps as its count says."""

    def __init__(self, clauses: Clauses, units: Units, needed: int) -> None:
        super().__init__()
        self.units, self.needed = units, needed
        self.clauses = clauses
        self.arrivals = [(u, k) for u, unit in enumerate(units) for k in range(len(unit))]
        self.most = len(self.arrivals) // needed
        self.place = {x: [clauses.new() for _ in range(self.most + 1)] for x in self.arrivals}
        self._in_order()
        self.used = self._full()
        self._left_over()
        self._pairs()

    def at(self, x: tuple[int, int]) -> Arrival:
        """An arrival by its unit and number."""
        return self.units[x[0]][x[1]]

    def _in_order(self) -> None:
        """A warp's arrivals fall into increasing rounds; the index after the last round is for arrivals that are left
        over.
        """
        for (u, k), places in self.place.items():
            self.clauses.exactly_one(places)
            if k:
                for t, x in enumerate(places[:-1]):
                    self.clauses.add(-x, *self.place[u, k - 1][:t])

    def _full(self) -> list[int]:
        """A round has as many warps as it needs, or it and all later ones are empty."""
        sums = Comparisons(self.clauses)
        out: list[int] = []
        for t in range(self.most):
            here = [places[t] for places in self.place.values()]
            used = self.clauses.any_of(here, Side.EXACT)
            self.clauses.add(-used, sums.zero(Sum.of(((x, 1) for x in here), -self.needed)))
            if out:
                self.clauses.add(-used, out[-1])
            out.append(used)
        return out

    def _left_over(self) -> None:
        """Left-over arrivals cannot fill another round, and none of them resumes."""
        last = [self.place[u, len(unit) - 1][-1] for u, unit in enumerate(self.units)]
        self.clauses.add(-Comparisons(self.clauses).at_least(Sum.of((x, 1) for x in last), self.needed))
        for (u, k), places in self.place.items():
            if self.at((u, k)).standing:
                self.clauses.add(places[-1])
            if self.at((u, k)).targets:
                self.clauses.add(-places[-1], *([self.place[u, k - 1][-1]] if k else []))

    def _pairs(self) -> None:
        """Arrivals of a round synchronise with its resumptions; rounds are ordered, and the last one precedes the
        left-over arrivals.
        """
        c = self.clauses
        for x in self.arrivals:
            self._give("rounds", -self.place[x][-1], self.at(x).stopped, self.at(x).targets)
            for y in self.arrivals:
                if x[0] != y[0] or x == y:
                    both = zip(self.place[x][:-1], self.place[y][:-1], strict=True)
                    meet = c.any_of([c.all_of(pair, Side.EXACT) for pair in both], Side.EXACT)
                    self._give("barrier", meet, self.at(x).sources, self.at(y).targets)
                if x != y:
                    self._give("rounds", self._next(x, y), self.at(x).sources, self.at(y).sources)

    def _next(self, x: tuple[int, int], y: tuple[int, int]) -> int:
        """The literal that y falls into the round after that of x, or is left over after the last one."""
        c = self.clauses
        found = []
        first_left = [self.place[y][-1], *([-self.place[y[0], y[1] - 1][-1]] if y[1] else [])]
        for t in range(self.most):
            ends = -self.used[t + 1] if t + 1 < self.most else TRUE
            found.append(c.all_of((self.place[x][t], ends, *first_left), Side.EXACT))
            if t + 1 < self.most:
                found.append(c.all_of((self.place[x][t], self.place[y][t + 1]), Side.EXACT))
        return c.any_of(found, Side.EXACT)

    def decode(self, true: True_) -> Option:
        """Fills the rounds one after the other as the solution says."""
        reached = [0] * len(self.units)
        edges: dict[str, set[Pair]] = {"barrier": set(), "rounds": set()}
        before: list[int] = []
        for t in range(self.most + 1):
            chosen = [x for x in self.arrivals if true(self.place[x][t]) and reached[x[0]] == x[1]]
            now = [n for x in chosen for n in self.at(x).sources]
            edges["rounds"] |= {(a, b) for a in before for b in now}
            if t == self.most:
                break
            if not chosen:
                continue
            if len(chosen) != self.needed or any(self.at(x).standing for x in chosen):
                raise InternalError("the solver fills a barrier in another way than it is filled")
            edges["barrier"] |= {(a, b) for a in now for x in chosen for b in self.at(x).targets}
            edges["rounds"] |= {(n, b) for x in chosen for n in self.at(x).stopped for b in self.at(x).targets}
            before = now
            for u, _ in chosen:
                reached[u] += 1
        ready = [u for u, unit in enumerate(self.units) if reached[u] < len(unit)]
        if len(ready) >= self.needed or any(self.units[u][reached[u]].targets for u in ready):
            raise InternalError("the solver leaves a barrier unfilled")
        return Option(tuple((name, tuple(sorted(pairs))) for name, pairs in edges.items()))


def quorum(relation: str, sources: list[int], targets: list[int], wanted: int) -> Choice:
    """The choice of the arrivals with which all waiting threads synchronise."""
    if wanted == len(sources):
        return quorum_choice(relation, sources, targets, wanted)
    return open_choice("barrier", lambda clauses: Quorum(clauses, relation, sources, targets, wanted), rank=0)


def rounds(units: Units, leaving: LaneExits) -> Choice:
    """The choice of how the rounds of a barrier with counts are filled."""
    uses = {use for unit in units for x in unit for use in x.uses}
    again = any(next_arrival(unit, k) for unit in units for k in range(len(unit)))
    needed = (units[0][0].step.count or 0) // WARP
    if len(uses) > 1 or again or needed >= len(units):
        return rounds_choice(units, leaving)
    return open_choice("barrier", lambda clauses: Rounds(clauses, units, needed), rank=0)
