"""Sketches with ``const N = any;``: a proof for every N, or the answers for some.

If the state of the program repeats (``mcheck.proofs.parametric_proof``), all large numbers are proved at once, and the
smaller ones are checked one by one. Otherwise small numbers are checked, then ever fewer larger ones. Larger numbers
are then not proved safe, so that without a finding the answer is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mcheck.answers.merged_answers import (
    Excused,
    explain_unproved,
    is_counted_error,
    is_whole,
    merge_assumptions,
    merge_findings,
    merge_proved,
)
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import InputError
from mcheck.base.reasons import Cause, Reason, Reasons, cut, mark_own_limit, timeout_reason, unique_reasons
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.number_ranges import CheckedNumbers, Unproved, attempt_proof
from mcheck.findings.finding import Finding
from mcheck.ir.program import Program, ShortenedLoops

if TYPE_CHECKING:
    from mcheck.proofs.parametric_proof import Proof

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
    program: Program, seconds: float | None, answer: Callable[[Program, float | None], Answer],
    prove: Prover | None = None, excused: Excused = None,
) -> Answer:  # fmt: skip
    """The answer about findings for every N, from answers about the program with one number at a time.

    The first number with an error ends the search, unless the error is ``excused``; some larger numbers are checked for
    other errors. Without a proof, a number that takes more than half of the remaining time is skipped: larger ones may
    be faster if they have an error.
    """
    limit = Limit(seconds)
    looked = CheckedNumbers[int](excused)
    unproved, took = Unproved(), NEXT_TO_IT
    late: Reasons = ()
    try:
        proof = _proof(limit, prove)
        unproved = proof if isinstance(proof, Unproved) else unproved
        turn = unproved.change
        large, last = 0, 0.0
        share = 0.5 if isinstance(proof, Unproved) else 1.0

        def look(one: Program, left: float | None) -> Answer:
            nonlocal large
            large = sum(len(t.code) for t in one.threads)
            return answer(one, None if left is None else left * share)

        def patient(most: float) -> bool:
            nonlocal late
            if seconds is not None or last <= most:
                return True
            number = f"{program.parameter} = {max(looked.found, default=0)}"
            said = f"{number} took longer than {most:g} s, and larger ones would"
            late = (Reason(Cause.TIME, said),)
            return False

        def tried() -> Iterator[int]:
            near = tuple(numbers_around(turn))
            for size in sample_numbers(lambda: large, lambda: patient(PATIENCE)):
                yield size
                if size == FEW and near and near[-1] <= LARGEST:  # the proof has met an error with it
                    yield from near
            if not near or patient(WAIT * max(looked.found, default=0) / (turn or 1)):
                yield from near

        for size in tried() if isinstance(proof, Unproved) else range(proof.first):
            if size in looked:
                continue
            began = time.monotonic()
            if not isinstance(proof, Unproved) and size in proof.smaller:
                looked.record(size, proof.smaller[size])
            elif _look(program, size, limit, look, looked):
                took = max(NEXT_TO_IT, time.monotonic() - began)
                break
            last = time.monotonic() - began
        else:
            if not isinstance(proof, Unproved) and not looked.slow and all(map(is_whole, looked.found.values())):
                return _proved(program, proof, looked.found)
        largest = max(looked.found, default=0)
        smaller = [k for k in range(largest) if k not in looked and looked.ends_search(looked.found[largest])]
        waits = limit if seconds is not None else Limit(WAIT)
        for size in smaller:
            waits.check()
            if _look(program, size, limit.part(2 * took), answer, looked):
                break
    except TimeOut:
        late = (timeout_reason(seconds),)
    wrong = min(looked.with_errors, default=None)
    if wrong is None:
        return _open(program, looked, unproved.why, late)
    others = _others(program, limit.part(took), answer, looked, wrong)
    given = _wrong(program, looked, wrong, others)
    return replace(given, cut=given.cut or cut(unproved.why))


def check_written_loops(
    shortened: ShortenedLoops,
    seconds: float | None,
    answer: Callable[[Program, float | None], Answer],
    prove: Prover | None,
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


def _proof(limit: Limit, prove: Prover | None) -> Proof | Unproved:
    """The proof for all large numbers, or why there is none."""
    if prove is None:
        return Unproved()
    try:
        return attempt_proof(limit, prove)
    except InputError:  # said with the number that makes no program, by whoever looks at the numbers
        return Unproved()


def _proved(program: Program, proof: Proof, found: dict[int, Answer]) -> Answer:
    answers = [*found.values(), proof.answer]
    last = answers[-2] if found else answers[-1]
    said = (
        f"for every number of rounds from 0 on: from {program.parameter} = {proof.first} on,"
        f" the state repeats every {_often(proof)}"
    )
    executions = sum(a.executions for a in found.values()) + proof.executions
    return merge_proved(
        replace(last, assumptions=merge_assumptions([last])), answers, executions, Reason(Cause.PERIODIC, said)
    )


def _often(proof: Proof) -> str:
    often = f"{proof.period} rounds" if proof.period > 1 else "round"
    return f"{often}, up to rotation of stages and parities" if proof.turns else often


def _look(
    program: Program, size: int, limit: Limit, answer: Callable[[Program, float | None], Answer],
    looked: CheckedNumbers[int],
) -> bool:  # fmt: skip
    """Checks the program with one number; whether it ends the search."""
    left = limit.remaining()
    assert program.instance is not None
    try:
        one = program.instance(size)
    except InputError as error:
        error.message = f"{error.message} (with {program.parameter} = {size}, which is any number from 0 on)"
        raise
    return looked.record(size, answer(replace(one, assumptions=program.assumptions), left))


@dataclass(frozen=True, slots=True)
class _Others:
    """Errors of other kinds found with numbers after the first one with an error, and what was not checked for lack of
    time.
    """

    errors: dict[int, list[Finding]]
    late: Reasons = ()


def _others(
    program: Program, limit: Limit, answer: Callable[[Program, float | None], Answer],
    looked: CheckedNumbers[int], wrong: int,
) -> _Others:  # fmt: skip
    found = looked.found
    known = {f.code for f in found[wrong].findings}
    others: dict[int, list[Finding]] = {}
    for size in range(wrong + 1, wrong + 1 + BEHIND):
        if found[size - 1].executions > EXECUTIONS:
            break
        try:
            if size not in looked:
                _look(program, size, limit, answer, looked)
        except InputError:  # what has been found stands
            break
        except TimeOut:
            return _Others(others, (_cut_at(program, size, (replace(timeout_reason(limit.seconds), own=True),)),))
        if size not in found:
            return _Others(others, (_cut_at(program, size, mark_own_limit(looked.slow[size].reasons)),))
        new = [f for f in found[size].findings if is_counted_error(f, looked.excused) and f.code not in known]
        if new:
            others[size] = new
            known.update(f.code for f in new)
        if cut(found[size].reasons):
            return _Others(others, (_cut_at(program, size, mark_own_limit(found[size].reasons)),))
    return _Others(others)


def _cut_at(program: Program, size: int, why: Reasons) -> Reason:
    return Reason(Cause.NUMBERS, f"with {program.parameter} = {size}", because=tuple(r for r in why if r.cut))


def _wrong(program: Program, looked: CheckedNumbers[int], wrong: int, others: _Others) -> Answer:
    """The answer for the first number with an error, with review findings of smaller and other errors of larger
    numbers.
    """
    found = looked.found
    given = found[wrong]
    missed = [k for k in range(wrong) if k not in found]
    gap = f"{missed[0]} was not checked" if len(missed) == 1 else ""
    if len(missed) > 1:
        gap = f"{missed[0]} to {missed[-1]} were not all checked"
    smallest = gap or "the smallest such value"
    said = f"found with {program.parameter} = {wrong}, {smallest}"
    earliest = _earliest(program, wrong) if wrong > 1 and not missed else 0
    if earliest > 0:
        said += f", so not before round {earliest} of a loop (the first is 0)"
    for size, errors in others.errors.items():
        said += f"; {', '.join(sorted({f.code for f in errors}))} with {program.parameter} = {size}"
    smaller = [found[k] for k in sorted(found) if k < wrong]
    beside = [replace(found[size], findings=tuple(errors)) for size, errors in others.errors.items()]
    return replace(
        given, findings=merge_findings([*smaller, given, *beside]), covered=False, executions=looked.executions,
        reasons=unique_reasons((Reason(Cause.SMALLEST, said),), given.reasons, others.late),
        cut=bool(missed) or any(a.cut for a in found.values()),
    )  # fmt: skip


def _earliest(program: Program, wrong: int) -> int:
    """The earliest loop iteration that exists with a number and not with the one before; 0 if unknown."""
    assert program.instance is not None
    before, behind = ([dict(t.rounds) for t in program.instance(k).threads] for k in (wrong - 1, wrong))
    counts = [
        len(begins) - 1
        for few, many in zip(before, behind, strict=True)
        for loop, begins in few.items()
        if len(many[loop]) > len(begins)
    ]
    return min(counts, default=0)


def _open(program: Program, looked: CheckedNumbers[int], why: Reasons, late: Reasons) -> Answer:
    """The answer if no number that was checked ends the search, and there is no proof."""
    name = str(program.parameter)
    found = looked.found
    left = explain_unproved(
        name, name, dict(sorted(found.items())), lambda clean: f"{name} = {_listed(clean)}",
        lambda number: f"{name} = {number}",
        Reason(Cause.NOT_PERIODIC, "larger values are not proved safe", because=why),
    )  # fmt: skip
    last = found[max(found)] if found else Answer(verdict=Verdict.UNKNOWN)
    return replace(
        last, verdict=Verdict.UNKNOWN, findings=merge_findings([found[k] for k in sorted(found, reverse=True)]),
        covered=False, assumptions=merge_assumptions([last]), executions=looked.executions,
        reasons=unique_reasons((left,), looked.cut_reasons(lambda number: f"{name} = {number}") or late),
        cut=any(a.cut for a in found.values()),
    )  # fmt: skip


def _listed(numbers: list[int]) -> str:
    """Numbers as text, leading consecutive ones as a range."""
    end = 0
    while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
        end += 1
    first = f"{numbers[0]} to {numbers[end]}" if end else str(numbers[0])
    return ", ".join([first, *map(str, numbers[end + 1 :])])
