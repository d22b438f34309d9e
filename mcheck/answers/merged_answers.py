"""One answer of several, about programs that differ in a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import LOOPS, verdict_of
from mcheck.base.reasons import Cause, Reason
from mcheck.base.verdicts import Verdict
from mcheck.findings import catalogue
from mcheck.findings.finding import Finding

K = TypeVar("K")
Excused = Callable[[Finding], bool] | None
"""Which findings end no search: those that the asker leaves out, else what the profile makes less than an error."""


def merge_findings(answers: Sequence[Answer]) -> tuple[Finding, ...]:
    """The findings of several answers, those of one statement once."""
    return tuple({(f.code, tuple(a.span for a in f.accesses)): f for given in answers for f in given.findings}.values())


def is_counted_error(found: Finding, excused: Excused) -> bool:
    """Whether a finding ends a search. It is an error under the default profile: a stricter one looks as far."""
    left_out = found.severity != "error" if excused is None else excused(found)
    return not left_out and catalogue.severity(found.code, "ptx") == "error"


def ends_search(given: Answer, excused: Excused) -> bool:
    """Whether a program has an error that counts, so that further programs need not be looked at. What is for review
    may be all that shows with a small number while a larger one has errors.
    """
    return any(is_counted_error(f, excused) for f in given.findings)


def is_whole(given: Answer) -> bool:
    """Whether there is nothing else to say of a program than its findings."""
    return given.verdict is Verdict.PROVED or (given.verdict is Verdict.FINDING and given.covered)


def explain_unproved(
    names: str, one: str, found: Mapping[K, Answer], listed: Callable[[list[K]], str], named: Callable[[K], str],
    others: Reason,
) -> Reason:  # fmt: skip
    """Why nothing is said of all numbers, where none of those that were looked at has an error: what was found with
    those that were followed to their end, and the first that was not, or what is said of the ``others``. ``one`` is
    what a number is called.
    """
    clean = [number for number, given in found.items() if is_whole(given)]
    what = "nothing else" if any(given.findings for given in found.values()) else "nothing"
    said = f"{what} was found with {listed(clean)}" if clean else f"no {one} was looked at to its end"
    said = f"{names} is any number: {said}"
    first = next(((number, given) for number, given in found.items() if not is_whole(given)), None)
    if first is not None:
        return Reason(
            Cause.NUMBERS, f"{said}; with {named(first[0])}", because=first[1].reasons or (Reason(Cause.LEFT_OUT),)
        )
    return replace(others, what=f"{said}; {others.what}")


def merge_proved(given: Answer, answers: Sequence[Answer], executions: int, because: Reason) -> Answer:
    """The answer about all programs where there is nothing else to say of any: ``given`` is that of one of them."""
    found = merge_findings(answers)
    verdict, _ = verdict_of(found, covered=all(map(is_whole, answers)))
    return replace(
        given, verdict=verdict, findings=found, covered=True, executions=executions, reasons=(because,),
        cut=any(a.cut for a in answers),
    )  # fmt: skip


def merge_assumptions(answers: Sequence[Answer]) -> tuple[str, ...]:
    """What answers assume, but for how often loops run."""
    return tuple(dict.fromkeys(a.removesuffix(LOOPS) for given in answers for a in given.assumptions))
