"""The answer for every number: a proof for all large ones, or the answers for some.

A ``Family`` of programs has one for each number: a sketch with ``const N = any`` (``mcheck.checking.policy.every_n``),
or a module with a parameter that is any number (``mcheck.checking.modules.any_parameter``). The driver asks for a
proof, checks the numbers that are left one by one, and lets the family conclude. Without a proof larger numbers are not
known to be safe, so that without a finding the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Generic, Protocol, TypeVar

from mcheck.answers.merged_answers import Excused, ends_search, is_counted_error, is_whole
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut, read_clock
from mcheck.base.errors import InputError, Unsupported
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason, Reasons, cut, error_reason, mark_own_limit, timeout_reason
from mcheck.base.records import dataclass, replace
from mcheck.findings.finding import Finding
from mcheck.ir.loop_unrolling import Aperiodic

K = TypeVar("K")
T = TypeVar("T")
PROOF = 0.5
"""The fraction of the remaining time that a proof may take."""


# --- what is known of the numbers -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved(Generic[K]):
    """A proof for all numbers but some, which are to be checked one by one.

    ``known``: answers for some of these. ``answers`` are those of the proof, ``executions`` their number; ``said`` is
    what it proves, in words.
    """

    numbers: Sequence[K]
    known: Mapping[K, Answer] = field(default_factory=dict)
    answers: tuple[Answer, ...]
    executions: int
    said: str


@dataclass(frozen=True, slots=True)
class Unproved(Generic[K]):
    """A failed proof for all large numbers: the reasons, the number near which the behaviour changes, if known, and the
    numbers that differ from smaller ones, as far as they are known. ``known``: answers for numbers that are proved
    nevertheless.
    """

    why: Reasons = ()
    change: int | None = None
    numbers: Sequence[K] = ()
    known: Mapping[K, Answer] = field(default_factory=dict)


def attempt_proof(limit: Limit, prove: Callable[[Limit], T]) -> T | Unproved[Any]:
    """The result of an attempt at a proof within half of the remaining time; raises ``TimeOut`` if no time is left
    afterwards.
    """
    left = limit.remaining()
    try:
        return prove(Limit(None if left is None else left * PROOF))
    except Aperiodic as error:
        return Unproved((Reason(Cause.NOT_PERIODIC, str(error)),), error.turn, known=error.known)
    except Unsupported as error:
        return Unproved((error_reason(error),))
    except TimeOut:
        limit.check()
        return Unproved((Reason(Cause.TIME, "a proof takes more than half of the time limit"),))


@dataclass(slots=True)
class CheckedNumbers(Generic[K]):
    """The answers by number: those that are complete (``found``), and those that the time limit cut (``slow``).

    ``last``: the seconds that the last number took. ``late``: why larger ones were not checked.
    """

    excused: Excused = None
    found: dict[K, Answer] = field(default_factory=dict)
    slow: dict[K, Answer] = field(default_factory=dict)
    last: float = 0.0
    late: Reasons = ()

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
    def are_whole(self) -> bool:
        """Whether every answer covers its instance."""
        return not self.slow and all(map(is_whole, self.found.values()))

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
        return tuple(cut_at(named(number), given.reasons) for number, given in [*self.slow.items()][:1])


@dataclass(frozen=True, slots=True)
class FollowingErrors(Generic[K]):
    """Errors of other kinds found with numbers after the first one with an error, and what was not checked for lack of
    time.
    """

    errors: Mapping[K, list[Finding]] = field(default_factory=dict)
    late: Reasons = ()


def cut_at(number: str, why: Reasons) -> Reason:
    """The reason for a number whose answer the time limit cut."""
    return Reason(Cause.NUMBERS, f"with {number}", because=tuple(r for r in why if r.cut))


# --- the driver -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShares:
    """How long a number may take.

    ``one``: the fraction of the remaining time for one number, without a proof; if it takes longer, ``skips`` says
    whether larger ones are checked nevertheless: they may be faster if they have an error. ``beside``: seconds for the
    numbers after the first one with an error, if that took no more; each smaller one that may show the error as well
    has twice that. ``wait``: seconds for all of these, without a time limit. ``None``: all time that is left.
    """

    one: float = 1.0
    skips: bool = False
    beside: float | None = None
    wait: float | None = None


Attempt = Proved[K] | Unproved[K]


class Family(Protocol[K]):
    """Programs, one for each number (or for each of several), how a proof is asked for, and the words.

    ``prove`` attempts a proof, and raises ``TimeOut``; ``answer`` is that about the program for a number within
    so many seconds. ``numbers`` are those to check in their order, until one has an error; ``skipped`` the smaller ones
    that may have it too; ``following`` the larger ones that may have others. ``name`` is a number with the name of the
    parameter. ``conclude_proved`` gives the answer if all numbers are covered, ``conclude_error`` for the first number
    with an error, ``conclude_open`` if there is neither a proof nor an error, for these reasons.
    """

    @property
    def shares(self) -> TimeShares: ...
    def prove(self, limit: Limit, /) -> Attempt[K]: ...
    def answer(self, number: K, seconds: float | None, /) -> Answer: ...
    def numbers(self, proof: Attempt[K], checked: CheckedNumbers[K], /) -> Iterator[K]: ...
    def skipped(self, number: K, proof: Attempt[K], checked: CheckedNumbers[K], /) -> Iterable[K]: ...
    def following(self, number: K, checked: CheckedNumbers[K], /) -> Iterable[K]: ...
    def name(self, number: K, /) -> str: ...
    def conclude_proved(self, proof: Proved[K], checked: CheckedNumbers[K], /) -> Answer: ...
    def conclude_error(
        self, number: K, proof: Attempt[K], checked: CheckedNumbers[K], others: FollowingErrors[K], /
    ) -> Answer: ...
    def conclude_open(self, why: Reasons, checked: CheckedNumbers[K], /) -> Answer: ...


def answer_every_number(
    family: Family[K], seconds: float | None, excused: Excused = None, *, brief: bool = False
) -> Answer:
    """The answer about findings for every number. The first number with an error ends the search, unless the error is
    ``excused``; some larger numbers are checked for other errors, unless the answer is to be ``brief``.
    """
    search = _Search(family, Limit(seconds), CheckedNumbers[K](excused), brief)
    try:
        search.run()
    except TimeOut as over:
        search.checked.late = (timeout_reason(seconds, str(over)),)
    proof, checked = search.proof, search.checked
    wrong = checked.with_errors
    if wrong:
        least = wrong[-1]  # after the first one, only smaller ones were checked
        others = FollowingErrors[K]() if brief else search.check_following(least)
        return family.conclude_error(least, proof, checked, others)
    if isinstance(proof, Unproved):
        return family.conclude_open(proof.why, checked)
    if checked.are_whole and all(number in checked for number in proof.numbers):
        return family.conclude_proved(proof, checked)
    left = next((a for a in checked.found.values() if not is_whole(a)), None)
    return family.conclude_open(() if left is None else left.reasons or (Reason(Cause.LEFT_OUT),), checked)


@dataclass(slots=True)
class _Search(Generic[K]):
    family: Family[K]
    limit: Limit
    checked: CheckedNumbers[K]
    brief: bool = False
    """Whether any number with an error will do."""
    proof: Attempt[K] = field(default_factory=Unproved)
    took: float = 0.0
    """The seconds that the first number with an error took."""

    def run(self) -> None:
        """Attempts the proof, and checks numbers until one has an error; raises ``TimeOut``."""
        note(Level.NUMBER, "attempting the proof for every number")
        self.proof = self.family.prove(self.limit)
        share = self.family.shares.one if isinstance(self.proof, Unproved) else 1.0
        for number in self.family.numbers(self.proof, self.checked):
            if number in self.checked:
                continue
            began = read_clock()
            known = self.proof.known.get(number)
            ends = self.check(number, self.limit, share) if known is None else self.checked.record(number, known)
            self.checked.last = read_clock() - began
            if ends:
                self.took = self.checked.last
                if not self.brief:
                    self.check_skipped(number)
                return

    def check(self, number: K, limit: Limit, share: float = 1.0) -> bool:
        """Checks a number; whether it ends the search. Raises ``TimeOut``."""
        left = limit.remaining()
        note(Level.NUMBER, f"checking {self.family.name(number)}")
        ends = self.checked.record(number, self.family.answer(number, None if left is None else left * share))
        if number in self.checked.slow and not self.family.shares.skips:
            raise TimeOut
        return ends

    def check_skipped(self, number: K) -> None:
        """Checks smaller numbers than one with an error; raises ``TimeOut``."""
        wait = self.family.shares.wait
        waits = self.limit if wait is None or self.limit.seconds is not None else Limit(wait)
        for smaller in self.family.skipped(number, self.proof, self.checked):
            waits.check()
            if self.check(smaller, self.beside(2)):
                break

    def check_following(self, number: K) -> FollowingErrors[K]:
        """Checks numbers after the first one with an error, until there is no time."""
        checked, named, limit = self.checked, self.family.name, self.beside(1)
        known = {f.code for f in checked.found[number].findings}
        errors: dict[K, list[Finding]] = {}
        for following in self.family.following(number, checked):
            try:
                if following not in checked:
                    self.check(following, limit)
            except InputError:  # what has been found stands
                break
            except TimeOut:
                late = (replace(timeout_reason(limit.seconds), own=True),)
                return FollowingErrors(errors, (cut_at(named(following), late),))
            given = checked.found.get(following, checked.slow.get(following))
            assert given is not None
            if following in checked.found:
                new = [f for f in given.findings if is_counted_error(f, checked.excused) and f.code not in known]
                if new:
                    errors[following] = new
                    known.update(f.code for f in new)
            if following in checked.slow or cut(given.reasons):
                return FollowingErrors(errors, (cut_at(named(following), mark_own_limit(given.reasons)),))
        return FollowingErrors(errors)

    def beside(self, times: int) -> Limit:
        """The limit for a number beside one with an error: half of the time that is left remains for the answer."""
        least, left = self.family.shares.beside, self.limit.left()
        if least is None:
            return self.limit
        spent = times * max(least, self.took)
        return self.limit.part(spent if left is None else min(spent, left / 2))
