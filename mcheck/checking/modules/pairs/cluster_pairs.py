"""The answer about a grid of which pairs of clusters were followed that stand for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from mcheck.answers.merged_answers import describe_pairs
from mcheck.answers.result import Answer, Covers
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.budget import Limit
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason, unique_reasons
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict

P = TypeVar("P")
"""What says which two clusters are followed, and how."""


def each_pair(pairs: Sequence[P]) -> Iterator[P]:
    """The pairs, each as progress of the answer."""
    for number, pair in enumerate(pairs, 1):
        note(Level.CLUSTERS, f"pair {number} of {len(pairs)} of clusters")
        yield pair


def prove_pairs(
    pairs: Sequence[P], follow: Callable[[P], Answer | None], total: int, said: str, limit: Limit
) -> Answer | None:
    """The answer about ``total`` clusters if there are pairs, and all of them are proved. Raises ``TimeOut``."""
    answers: list[Answer] = []
    for pair in each_pair(pairs):
        one = follow(pair)
        if one is None or one.verdict is not Verdict.PROVED:
            limit.check()
            return None
        answers.append(one)
    return join_pairs(answers, total, said) if answers else None


def join_pairs(answers: Sequence[Answer], total: int, said: str) -> Answer:
    """The answer about ``total`` clusters from those about the pairs, of which none has an error; ``said`` is the
    argument, without the number of pairs.
    """
    return join_answers(answers, total, f"{said}; {describe_pairs(len(answers))}", together=2)


def join_answers(answers: Sequence[Answer], total: int, assumed: str, *, together: int) -> Answer:
    """The answer about ``total`` clusters from those about some, each of so many ``together``; ``assumed`` is the
    argument.
    """
    joined = replace(
        answers[0],
        findings=tuple(dict.fromkeys(f for one in answers for f in one.findings)),
        executions=sum(one.executions for one in answers),
        cut=any(one.cut for one in answers),
        assumptions=tuple(dict.fromkeys((*(a for one in answers for a in one.assumptions), assumed))),
        covers=Covers(clusters=total, total=total, together=together),
    )
    return add_verdict(joined)


def of_two_clusters(found: Answer, total: int) -> Answer:
    """What is found in two of ``total`` clusters."""
    left = Reason(Cause.CLUSTERS, f"2 of {total} clusters of the grid were checked together")
    return add_verdict(replace(found, covered=False, reasons=unique_reasons(found.reasons, (left,))))
