"""The value of a term as a decision tree over the choices that it depends on, while the tree is small.

Most values of a litmus test depend on one or two choices; then no bit-vector is needed: the literal of a value is a
disjunction of conjunctions of selectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from mcheck.base.records import dataclass
from mcheck.engines.z3.clauses import Clauses, Side
from mcheck.engines.z3.symbolic_choices import Opened
from mcheck.events.choices.candidate import Candidate, CircularValue, Undetermined, Valuation
from mcheck.events.event import Event
from mcheck.semantics.terms import Uid, Unknown

Missing = Literal["unknown", "missing", "circular"]
"""Why a term has no value: unknown contents, a result that the option does not give, or a circular definition."""

Leaf = int | Missing


class _Needed(Exception):
    """The value depends on a choice that is not made yet."""

    def __init__(self, choice: int) -> None:
        super().__init__()
        self.choice = choice


class _TooWide(Exception):
    """The value depends on a choice whose options are not enumerated."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of waits of open choices, as further choices after the others: 0, 1, or none."""

    choice: dict[Uid, int]
    selectors: list[list[int]]


def answers(prepared: Opened, clauses: Clauses) -> Answers:
    """The results of the waits of the open choices."""
    choice: dict[Uid, int] = {}
    selectors: list[list[int]] = []
    for uid, given in prepared.given.items():
        if isinstance(given, dict):
            choice[uid] = len(prepared.choices) + len(selectors)
            selectors.append([given[0], given[1], clauses.all_of((-given[0], -given[1]), Side.EXACT)])
    return Answers(choice, selectors)


class Partial(Valuation):
    """A valuation under a partial candidate; raises the choice that it lacks."""

    def __init__(self, prepared: Opened, found: Answers, candidate: Candidate) -> None:
        super().__init__(prepared.s, prepared.choices, candidate, prepared.reader, prepared.results)
        self.prepared = prepared
        self.answers = found

    def source(self, read: int) -> int:
        self._require(self.reader[read])
        return super().source(read)

    def final(self, choice: int) -> int:
        """The last write that a final choice selects."""
        self._require(choice)
        return self.choices[choice].options[self.candidate[choice]].source

    def _compute(self, uid: Uid) -> int:
        answer = self.answers.choice.get(uid)
        if answer is not None:
            self._require(answer)
            if self.candidate[answer] > 1:
                raise Undetermined
            return self.candidate[answer]
        if uid in self.prepared.given:
            raise _TooWide
        for c in self.results.get(uid, ()):
            self._require(c)
        return super()._compute(uid)

    def _reduction(self, event: Event) -> int:
        for k, choice in enumerate(self.choices):
            if choice.kind == "barrier":
                if k in self.prepared.open:
                    raise _TooWide
                self._require(k)
        return super()._reduction(event)

    def _require(self, choice: int) -> None:
        if self.candidate[choice] < 0:
            raise _Needed(choice)


@dataclass(frozen=True, slots=True)
class Case:
    """A leaf of a decision tree. ``options`` are the (choice, option) pairs that lead to it."""

    options: tuple[tuple[int, int], ...]
    leaf: Leaf


def cases(prepared: Opened, found: Answers, compute: Callable[[Partial], int], limit: int) -> list[Case] | None:
    """The leaves of the decision tree of a value; ``None`` if there are more than ``limit``, or too many nodes."""
    start = [0 if len(c.options) == 1 else -1 for c in prepared.choices] + [-1] * len(found.selectors)
    out: list[Case] = []
    todo: list[tuple[tuple[int, int], ...]] = [()]
    while todo:
        taken = todo.pop()
        candidate = list(start)
        for k, o in taken:
            candidate[k] = o
        valuation = Partial(prepared, found, tuple(candidate))
        leaf: Leaf
        try:
            leaf = compute(valuation)
        except _Needed as need:
            listed = need.choice < len(prepared.choices)
            options = len(prepared.choices[need.choice].options) if listed else 3
            todo += [(*taken, (need.choice, o)) for o in range(options)]
            if len(todo) + len(out) > limit:
                return None
            continue
        except _TooWide:
            return None
        except Unknown:
            leaf = "unknown"
        except Undetermined:
            leaf = "missing"
        except CircularValue:
            leaf = "circular"
        out.append(Case(taken, leaf))
    return out


def by_leaf(found: list[Case], selectors: list[list[int]], clauses: Clauses) -> dict[Leaf, int]:
    """The exact literal of each leaf."""
    paths: dict[Leaf, list[int]] = {}
    for case in found:
        conjunction = clauses.all_of([selectors[k][o] for k, o in case.options], Side.EXACT)
        paths.setdefault(case.leaf, []).append(conjunction)
    return {leaf: clauses.any_of(literals, Side.EXACT) for leaf, literals in paths.items()}
