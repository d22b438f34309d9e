"""Numbers of which something is any: what was looked at one by one, and what that comes to.

Shared by sketches with a constant that is any number (``mcheck.checking.policy.every_n``) and by modules with such a
parameter (``mcheck.checking.modules.any_parameter``).
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
"""The share of the time that is left which a proof may take."""


@dataclass(frozen=True, slots=True)
class Unproved:
    """That there is no proof for all large numbers, why, and near which number that shows, where it is known."""

    why: Reasons = ()
    turn: int | None = None


def attempted(limit: Limit, prove: Callable[[Limit], T]) -> T | Unproved:
    """A proof, made within half of the time that is left; raises ``TimeOut`` where none is left afterwards."""
    left = limit.remaining()
    try:
        return prove(Limit(None if left is None else left * SHARE))
    except Aperiodic as error:
        return Unproved((Reason(Cause.NOT_PERIODIC, str(error)),), error.turn)
    except Unsupported as error:
        return Unproved((error_reason(error),))
    except TimeOut:
        limit.check()
        return Unproved((Reason(Cause.TIME, "a proof takes longer than half of the time"),))


@dataclass(slots=True)
class Looked(Generic[K]):
    """The answers by the numbers that were looked at: those that stand, and those that the time cut (``slow``)."""

    excused: Excused = None
    found: dict[K, Answer] = field(default_factory=dict)
    slow: dict[K, Answer] = field(default_factory=dict)

    def take(self, number: K, given: Answer) -> bool:
        """Keeps an answer; whether it has an error that ends the search, which counts though the time cut it."""
        ends = self.ends(given)
        where = self.slow if given.cut and not ends and not is_whole(given) else self.found
        where[number] = given
        return ends

    def ends(self, given: Answer) -> bool:
        """Whether there is an error that counts, so that other numbers need not be looked at."""
        return ends_search(given, self.excused)

    def __contains__(self, number: K) -> bool:
        return number in self.found or number in self.slow

    @property
    def wrong(self) -> list[K]:
        """The numbers with an error that counts."""
        return [number for number, given in self.found.items() if self.ends(given)]

    @property
    def executions(self) -> int:
        """How many executions were looked at for numbers that stand."""
        return sum(a.executions for a in self.found.values())

    def limits(self, named: Callable[[K], str]) -> Reasons:
        """What the time cut, the first number of it."""
        first = next(iter(self.slow.items()), None)
        if first is None:
            return ()
        number, given = first
        return (Reason(Cause.NUMBERS, f"with {named(number)}", because=tuple(r for r in given.reasons if r.cut)),)
