"""Merging the answers about several instances of one program into one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import LOOPS, verdict_of
from mcheck.base.reasons import Cause, Reason
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.findings import catalogue
from mcheck.findings.finding import Finding

K = TypeVar("K")
Excused = Callable[[Finding], bool] | None
"""Findings that do not end the search: those that the caller excludes, by default those that are no error under the
profile.
"""


def merge_findings(answers: Sequence[Answer]) -> tuple[Finding, ...]:
    """The findings of several answers, one for each code and source location."""
    return tuple({(f.code, tuple(a.span for a in f.accesses)): f for given in answers for f in given.findings}.values())


def describe_pairs(number: int) -> str:
    """How many pairs of clusters, or CTAs, were followed that stand for all."""
    pairs = "1 pair was" if number == 1 else f"{number} pairs were"
    return f"{pairs} followed, in which every kind of conflict occurs"


def is_counted_error(found: Finding, excused: Excused) -> bool:
    """Whether a finding ends the search: an error under the default profile, so that a stricter profile explores as
    much.
    """
    left_out = found.severity != "error" if excused is None else excused(found)
    return not left_out and catalogue.severity(found.code, "ptx") == "error"


def ends_search(given: Answer, excused: Excused) -> bool:
    """Whether an answer has an error that ends the search over instances.

    A finding for review does not: it may be all that a small instance shows while a larger one has errors.
    """
    return any(is_counted_error(f, excused) for f in given.findings)


def is_whole(given: Answer) -> bool:
    """Whether an answer covers its instance: it is proved, or its findings are complete."""
    return given.verdict is Verdict.PROVED or (given.verdict is Verdict.FINDING and given.covered)


def explain_unproved(
    names: str, one: str, found: Mapping[K, Answer], listed: Callable[[list[K]], str], named: Callable[[K], str],
    others: Reason,
) -> Reason:  # fmt: skip
    """Why there is no verdict for every number, if no instance that was checked has an error.

    Names what the complete instances showed, then the first incomplete one, or else the reason for the ``others``.
    ``one`` is the noun for a number.
    """
    clean = [number for number, given in found.items() if is_whole(given)]
    what = "nothing else" if any(given.findings for given in found.values()) else "nothing"
    said = f"{what} was found with {listed(clean)}" if clean else f"no {one} was checked completely"
    said = f"{names} is any number: {said}"
    first = next(((number, given) for number, given in found.items() if not is_whole(given)), None)
    if first is not None:
        return Reason(
            Cause.NUMBERS, f"{said}; with {named(first[0])}", because=first[1].reasons or (Reason(Cause.LEFT_OUT),)
        )
    return replace(others, what=f"{said}; {others.what}")


def merge_proved(given: Answer, answers: Sequence[Answer], executions: int, because: Reason) -> Answer:
    """The answer about all instances if each is covered; ``given`` is the answer about one of them."""
    found, covered = merge_findings(answers), all(map(is_whole, answers))
    verdict, _ = verdict_of(found, covered=covered)
    return replace(
        given, verdict=verdict, findings=found, covered=covered, executions=executions, reasons=(because,),
        cut=any(a.cut for a in answers), filled_once=(),
    )  # fmt: skip


def merge_assumptions(answers: Sequence[Answer]) -> tuple[str, ...]:
    """The assumptions of several answers, without the trip counts of loops."""
    return tuple(dict.fromkeys(a.removesuffix(LOOPS) for given in answers for a in given.assumptions))
