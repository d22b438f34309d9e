"""Sketches with ``const N = any;``: a proof for every N, or the answers for some.

If the state of the program repeats (``mcheck.proofs.parametric_proof``), all large numbers are proved at once, and the
smaller ones are checked one by one. Otherwise small numbers are checked, then ever fewer larger ones. Larger numbers
are then not proved safe, so that without a finding the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from mcheck.answers.merged_answers import Excused, explain_unproved, merge_assumptions, merge_findings, merge_proved
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import InputError
from mcheck.base.reasons import Cause, Reason, Reasons, cut, timeout_reason, unique_reasons
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.every_number import (
    Attempt,
    CheckedNumbers,
    FollowingErrors,
    Proved,
    TimeShares,
    Unproved,
    answer_every_number,
    attempt_proof,
)
from mcheck.ir.program import Program, ShortenedLoops

if TYPE_CHECKING:
    from mcheck.proofs.parametric_proof import Proof

Answerer = Callable[[Program, float | None], Answer]
"""The answer about one program within so many seconds."""
Prover = Callable[[Limit], "Proof"]
"""Proves all numbers from one on; raises ``Aperiodic``, ``Unsupported`` or ``TimeOut``."""

SMALL = 8
"""Every number up to this one is checked."""
FEW = 2
"""Numbers up to this one are checked first if the proof has met an error with some number."""
GROWTH = 1.5
LARGEST = 100
"""The largest of the sampled numbers: what toggles once in 32 rounds has done so three times."""
OPERATIONS = 150_000
"""Larger numbers are checked while their programs have at most so many operations: counters of eight bits and more
overflow in loops of few threads.
"""
PATIENCE = 15.0
"""Seconds that one number may take, without a time limit, for larger ones to be checked: they take longer, and a person
waits for the answer.
"""
WAIT = 30.0
"""Seconds, without a time limit, for a number near a change in behaviour, if it takes as much longer than the one
before it as it is larger; and for all numbers below one with an error that may show it, too.
"""
NEXT_TO_IT = 2.0
"""Seconds for the numbers after the first one with an error, if that took no more; each smaller number that may show
the error as well has twice that.
"""
BEHIND = 4
"""How many numbers after the first one with an error are checked for errors of another kind."""
MOST = 100_000
"""The largest number that is checked, of a program that does not grow with it."""
EXECUTIONS = 64
"""They are checked as long as the program with the last one had at most so many executions: an error has many."""


def sample_numbers(operations: Callable[[], float], patient: Callable[[], bool] = lambda: True) -> Iterator[int]:
    """The numbers to check, in ascending order, while ``patient`` holds.

    ``operations`` gives the number of operations of the last program.
    """
    size = 0
    while size <= LARGEST or (size <= MOST and operations() * GROWTH <= OPERATIONS):
        yield size
        if not patient():
            return
        size = size + 1 if size < SMALL else int(size * GROWTH)


def numbers_around(turn: int | None) -> Iterator[int]:
    """The numbers near one at which the behaviour changes: an error may occur there alone, from there on, or a little
    later.
    """
    if turn is not None and turn <= MOST:
        yield from (turn - 1, turn, turn + 1, turn + SMALL)


def check_every_number(
    program: Program, seconds: float | None, answer: Answerer, prove: Prover | None = None, excused: Excused = None,
    *, brief: bool = False,
) -> Answer:  # fmt: skip
    """The answer about findings for every N, from answers about the program with one number at a time."""
    return answer_every_number(Sketches(program, seconds, answer, prove), seconds, excused, brief=brief)


@dataclass(slots=True)
class Sketches:
    """The programs of a sketch, one for each N."""

    program: Program
    seconds: float | None
    ask: Answerer
    prover: Prover | None
    operations: int = 0
    """The number of operations of the last program."""

    @property
    def least(self) -> int:
        """The smallest number."""
        return 0

    @property
    def shares(self) -> TimeShares:
        """A number that takes more than half of the remaining time is skipped."""
        return TimeShares(one=0.5, skips=True, beside=NEXT_TO_IT, wait=WAIT)

    def prove(self, limit: Limit) -> Attempt[int]:
        """The proof for all large numbers, or why there is none."""
        proof = _proof(limit, self.prover)
        if isinstance(proof, Unproved):
            return proof
        said = (
            f"for every number of rounds from 0 on: from {self.program.parameter} = {proof.first} on,"
            f" the state repeats every {_often(proof)}"
        )
        return Proved(
            numbers=range(proof.first), known=proof.smaller, answers=(proof.answer,), executions=proof.executions,
            said=said,
        )  # fmt: skip

    def answer(self, number: int, seconds: float | None) -> Answer:
        """The answer about the program with a number."""
        assert self.program.instance is not None
        try:
            one = self.program.instance(number)
        except InputError as error:
            error.message = f"{error.message} (with {self.name(number)}, which is any number from 0 on)"
            raise
        self.operations = sum(len(t.code) for t in one.threads)
        return self.ask(replace(one, assumptions=self.program.assumptions), seconds)

    # --- which numbers --------------------------------------------------------------------------------------------

    def numbers(self, proof: Attempt[int], checked: CheckedNumbers[int]) -> Iterator[int]:
        """All numbers below those that are proved; without a proof small ones, then ever fewer larger ones."""
        if isinstance(proof, Proved):
            yield from proof.numbers
            return
        near = tuple(numbers_around(proof.change))
        if proof.known:  # all numbers before the behaviour changes, most of them known; then those where it does
            first = max(proof.known) + 1
            yield from range(first)
            yield from sorted({*numbers_around(first), *near})
        for size in sample_numbers(lambda: self.operations, lambda: self._is_patient(PATIENCE, checked)):
            yield size
            if size == FEW and near and near[-1] <= LARGEST:  # the proof has met an error with it
                yield from near
        longer = max(checked.found, default=0) / (proof.change or 1)
        if not near or self._is_patient(WAIT * longer, checked):
            yield from near

    def _is_patient(self, most: float, checked: CheckedNumbers[int]) -> bool:
        """Whether the last number took at most so many seconds, or there is a time limit; else larger ones are late."""
        if self.seconds is not None or checked.last <= most:
            return True
        said = f"{self.name(max(checked.found, default=0))} took longer than {most:g} s, and larger ones would"
        checked.late = (Reason(Cause.TIME, said),)
        return False

    def skipped(self, number: int, _: Attempt[int], checked: CheckedNumbers[int]) -> Iterable[int]:
        """The smaller numbers that were not sampled, if no larger one without an error was."""
        return [k for k in range(number) if k not in checked and number == max(checked.found)]

    def following(self, number: int, checked: CheckedNumbers[int]) -> Iterator[int]:
        """The next numbers, as long as the program with the last one had few executions."""
        for size in range(number + 1, number + 1 + BEHIND):
            if checked.found[size - 1].executions > EXECUTIONS:
                return
            yield size

    def name(self, number: int) -> str:
        """A number with the name of the constant."""
        return f"{self.program.parameter} = {number}"

    # --- conclusions ----------------------------------------------------------------------------------------------

    def conclude_proved(self, proof: Proved[int], checked: CheckedNumbers[int]) -> Answer:
        """The answer for every number."""
        answers = [*checked.found.values(), *proof.answers]
        last = answers[-2] if checked.found else answers[-1]
        return merge_proved(
            replace(last, assumptions=merge_assumptions([last])), answers, checked.executions + proof.executions,
            Reason(Cause.PERIODIC, proof.said),
        )  # fmt: skip

    def conclude_error(
        self, number: int, proof: Attempt[int], checked: CheckedNumbers[int],
        others: FollowingErrors[int],
    ) -> Answer:  # fmt: skip
        """The answer for the first number with an error, with review findings of smaller and other errors of larger
        numbers.
        """
        found = checked.found
        given = found[number]
        missed = [k for k in range(self.least, number) if k not in found]
        gap = f"{missed[0]} was not checked" if len(missed) == 1 else ""
        if len(missed) > 1:
            gap = f"{missed[0]} to {missed[-1]} were not all checked"
        said = f"found with {self.name(number)}, {gap or 'the smallest such value'}"
        earliest = _earliest(self.program, number) if number > max(1, self.least) and not missed else 0
        if earliest > 0:
            said += f", so not before round {earliest} of a loop (the first is 0)"
        for size, errors in others.errors.items():
            said += f"; {', '.join(sorted({f.code for f in errors}))} with {self.name(size)}"
        smaller = [found[k] for k in sorted(found) if k < number]
        beside = [replace(found[size], findings=tuple(errors)) for size, errors in others.errors.items()]
        unproved = isinstance(proof, Unproved) and cut(proof.why)
        return replace(
            given, findings=merge_findings([*smaller, given, *beside]), covered=False, executions=checked.executions,
            reasons=unique_reasons((Reason(Cause.SMALLEST, said),), given.reasons, others.late),
            cut=bool(missed) or unproved or any(a.cut for a in found.values()),
        )  # fmt: skip

    def conclude_open(self, why: Reasons, checked: CheckedNumbers[int]) -> Answer:
        """The answer with what the checked numbers showed."""
        name = str(self.program.parameter)
        found = checked.found
        left = explain_unproved(
            name, name, dict(sorted(found.items())), lambda clean: f"{name} = {_listed(clean)}", self.name,
            Reason(Cause.NOT_PERIODIC, "larger values are not proved safe", because=why),
        )  # fmt: skip
        last = found[max(found)] if found else Answer(verdict=Verdict.UNKNOWN)
        return replace(
            last, verdict=Verdict.UNKNOWN, findings=merge_findings([found[k] for k in sorted(found, reverse=True)]),
            covered=False, assumptions=merge_assumptions([last]), executions=checked.executions,
            reasons=unique_reasons((left,), checked.cut_reasons(self.name) or checked.late),
            cut=any(a.cut for a in found.values()),
        )  # fmt: skip


def check_written_loops(
    shortened: ShortenedLoops, seconds: float | None, answer: Answerer, prove: Prover | None
) -> Answer:
    """The answer for loops with a large fixed trip count: by a proof, or else from the whole program."""
    limit = Limit(seconds)
    try:
        proof = _proof(limit, prove)
        if isinstance(proof, Unproved):
            return answer(shortened.whole(), limit.remaining())
    except TimeOut:
        return Answer(verdict=Verdict.UNKNOWN, covered=False, complete=False, reasons=(timeout_reason(seconds),))
    said = (
        f"the state repeats every {_often(proof)}: iterations other than the first {proof.first}"
        " and the last ones show nothing new"
    )
    return merge_proved(proof.answer, [proof.answer], proof.executions, Reason(Cause.PERIODIC, said))


def _proof(limit: Limit, prove: Prover | None) -> Proof | Unproved[int]:
    """The proof for all large numbers, or why there is none."""
    if prove is None:
        return Unproved()
    try:
        return attempt_proof(limit, prove)
    except InputError:  # said with the number that makes no program, by whoever looks at the numbers
        return Unproved()


def _often(proof: Proof) -> str:
    often = f"{proof.period} rounds" if proof.period > 1 else "round"
    return f"{often}, up to rotation of stages and parities" if proof.turns else often


def _earliest(program: Program, wrong: int) -> int:
    """The earliest loop iteration that exists with a number and not with the one before; 0 if unknown."""
    assert program.instance is not None
    before, behind = ([dict(t.rounds) for t in program.instance(k).threads] for k in (wrong - 1, wrong))
    if len(before) != len(behind):  # the number is of threads
        return 0
    counts = [
        len(begins) - 1
        for few, many in zip(before, behind, strict=True)
        for loop, begins in few.items()
        if len(many[loop]) > len(begins)
    ]
    return min(counts, default=0)


def _listed(numbers: list[int]) -> str:
    """Numbers as text, leading consecutive ones as a range."""
    end = 0
    while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
        end += 1
    first = f"{numbers[0]} to {numbers[end]}" if end else str(numbers[0])
    return ", ".join([first, *map(str, numbers[end + 1 :])])
