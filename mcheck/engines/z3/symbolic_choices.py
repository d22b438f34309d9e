"""Open choices, whose options are not enumerated but described by constraints: solutions give their options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Protocol

from mcheck.base.records import dataclass
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.tape import UNKNOWNS
from mcheck.engines.z3.clauses import FALSE, TRUE, Clauses
from mcheck.engines.z3.pseudo_boolean import Sum
from mcheck.events.choices.candidate import Choice, Option, Pair
from mcheck.events.choices.prepared import Prepared
from mcheck.semantics.terms import Uid

True_ = Callable[[int], bool]
"""Whether a literal holds in a solution."""

Mishap = tuple[str, Uid, int]
"""The code of a finding, the event that is to blame, and its literal."""


class Encoding(Protocol):
    """The meaning of the variables of an open choice."""

    def may(self, relation: str) -> Iterable[Pair]:
        """The pairs of a base relation that some option has."""

    def literal(self, relation: str, i: int, j: int) -> int:
        """The literal of such a pair."""

    def missteps(self) -> list[Mishap]:
        """The misuses that end the execution, of which exactly one is examined."""

    def remarks(self) -> list[Mishap]:
        """The findings that do not end the execution."""

    def results(self) -> dict[Uid, dict[int, int] | Token]:
        """The literals of the possible results of each event, or the parts of a number."""

    def states(self) -> dict[Uid, dict[Uid, int]]:
        """For each wait whose state is a value: the literals that it is what an arrive returned, by that arrive."""

    def decode(self, true: True_) -> Option:
        """The option of a solution, after a check; raises ``InternalError`` if it is invalid."""


@dataclass(frozen=True, slots=True)
class Token:
    """A composed result: a sum, the number of complete phases from bit ``shift`` on, a constant; and whether it is
    known.
    """

    low: Sum
    phases: tuple[int, ...]
    shift: int
    constant: int
    known: int


@dataclass(slots=True)
class OpenChoice(Choice):
    """A choice whose options are found one by one. Option 0 is a placeholder that is never taken."""

    encode: Callable[[Clauses], Encoding] = field(kw_only=True)


def open_choice(kind: str, encode: Callable[[Clauses], Encoding], *, rank: int) -> OpenChoice:
    """A choice that ``encode`` describes."""
    return OpenChoice(kind, [Option()], rank=rank, encode=encode)


class Opened(Prepared):
    """A structure with its bounds, some of whose choices are open."""

    def _index(self) -> None:
        self.clauses = Clauses()
        self.open: dict[int, Encoding] = {}
        self.given: dict[Uid, dict[int, int] | Token] = {}
        self.candidates: dict[str, list[tuple[int, int, int]]] = {}
        self._prepare()
        super()._index()
        for k, c in enumerate(self.choices):
            if isinstance(c, OpenChoice):
                self.deadline()
                encoding = self.open[k] = c.encode(self.clauses)
                for uid, given in encoding.results().items():
                    self.given[uid] = given
                    self.results.setdefault(uid, []).append(k)

    def _prepare(self) -> None:
        """Computes what has to be known before the open choices become constraints."""

    def here(self, i: int) -> int:
        """The literal that an event is in the execution."""
        return TRUE if 0 <= i < self.n else FALSE

    def compose(self, a: Rows, b: Rows) -> Rows:
        """The definite pairs of a composition."""
        return bits.compose(a, b)

    def _filter_result(self, term: object, truth: bool, uid: Uid) -> bool:
        if uid in self.given:
            return False
        return super()._filter_result(term, truth, uid)  # type: ignore[arg-type]

    def base(self, name: str) -> tuple[list[int], list[int]]:
        """The static bounds of a base set or relation."""
        low, high = super().base(name)
        if name in UNKNOWNS and name not in ("co", "sync_fence"):
            for i, j, literal in self.opened(name):
                high[i] |= 1 << j
                if literal == TRUE:
                    low[i] |= 1 << j
        return low, high

    def opened(self, name: str) -> list[tuple[int, int, int]]:
        """The pairs of a relation that open choices may give, with their literals."""
        found = self.candidates.get(name)
        if found is None:
            pairs = ((i, j, e.literal(name, i, j)) for e in self.open.values() for i, j in e.may(name))
            found = self.candidates[name] = [pair for pair in pairs if pair[2] != FALSE]
        return found
