"""One answer of several, about programs that differ in a number."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.answers.result import Answer
from mcheck.findings.finding import Finding


def together(answers: Sequence[Answer]) -> tuple[Finding, ...]:
    """The findings of several answers, those of one statement once."""
    return tuple({(f.code, tuple(a.span for a in f.accesses)): f for given in answers for f in given.findings}.values())


def taken(answers: Sequence[Answer]) -> tuple[str, ...]:
    """What answers take for granted, but for the sizes."""
    found = dict.fromkeys(a for given in answers for a in given.assumptions)
    return tuple(a for a in found if not a.startswith("sizes as written"))
