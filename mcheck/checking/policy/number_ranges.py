"""Bookkeeping for programs with a parameter that is any number: the numbers checked, and attempts at a proof.

Shared by sketches with ``const N = any`` (``mcheck.checking.policy.every_n``) and by modules with such a parameter
(``mcheck.checking.modules.any_parameter``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mcheck.answers.merged_answers import Excused, ends_search, is_whole
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import Unsupported
from mcheck.base.reasons import Cause, Reason, Reasons, error_reason
from mcheck.ir.loop_unrolling import Aperiodic

K = TypeVar("K")
T = TypeVar("T")
SHARE = 0.5
"""The fraction of the remaining time that a proof may take."""


@dataclass(frozen=True, slots=True)
class Unproved:
    """A failed proof for all large numbers: the reasons, and the number near which the behaviour changes, if known."""

    why: Reasons = ()
    change: int | None = None


def attempt_proof(limit: Limit, prove: Callable[[Limit], T]) -> T | Unproved:
    """The result of an attempt at a proof within half of the remaining time; raises ``TimeOut`` if no time is left
    afterwards.
    """
    left = limit.remaining()
    try:
        return prove(Limit(None if left is None else left * SHARE))
    except Aperiodic as error:
        return Unproved((Reason(Cause.NOT_PERIODIC, str(error)),), error.turn)
    except Unsupported as error:
        return Unproved((error_reason(error),))
    except TimeOut:
        limit.check()
        return Unproved((Reason(Cause.TIME, "a proof takes more than half of the time limit"),))


@dataclass(slots=True)
class CheckedNumbers(Generic[K]):
    """The answers by number: those that are complete (``found``), and those that the time limit cut (``slow``)."""

    excused: Excused = None
    found: dict[K, Answer] = field(default_factory=dict)
    slow: dict[K, Answer] = field(default_factory=dict)

    def record(self, number: K, given: Answer) -> bool:
        """Records an answer; whether it has an error that ends the search.

        Such an error counts even if the time limit cut the answer.
        """
        ends = self.ends_search(given)
        where = self.slow if given.cut and not ends and not is_whole(given) else self.found
        where[number] = given
        return ends

    def ends_search(self, given: Answer) -> bool:
        """Whether the answer has an error that ends the search."""
        return ends_search(given, self.excused)

    def __contains__(self, number: K) -> bool:
        return number in self.found or number in self.slow

    @property
    def with_errors(self) -> list[K]:
        """The numbers with an error that ends the search."""
        return [number for number, given in self.found.items() if self.ends_search(given)]

    @property
    def executions(self) -> int:
        """The number of executions explored for complete answers."""
        return sum(a.executions for a in self.found.values())

    def cut_reasons(self, named: Callable[[K], str]) -> Reasons:
        """The reason for the first number whose answer the time limit cut."""
        first = next(iter(self.slow.items()), None)
        if first is None:
            return ()
        number, given = first
        return (Reason(Cause.NUMBERS, f"with {named(number)}", because=tuple(r for r in given.reasons if r.cut)),)
