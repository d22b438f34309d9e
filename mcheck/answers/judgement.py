"""What an answer says of a program's safety: ``proved``, ``bounded``, ``finding`` or ``unknown``."""

from __future__ import annotations

from dataclasses import replace

from mcheck.answers.readings import readings
from mcheck.answers.result import NOT_UNDEFINED, Answer
from mcheck.findings.finding import Finding
from mcheck.program.program import Program

ACCEPTED = frozenset(("RACE005", "RACE007", "RACE008"))
"""Pairs that the model orders and that deserve a word: for review they leave a program proved."""


LOOPS = ", loops by their trip counts"
NOT_ALL = "not every execution was looked at"


def decides(finding: Finding) -> bool:
    """Whether the finding makes the verdict ``finding``: an error, or one for review beyond ``ACCEPTED``."""
    return finding.severity == "error" or (finding.severity == "review" and finding.code not in ACCEPTED)


def voids(finding: Finding) -> bool:
    """Whether a finding means that some execution is undefined."""
    defined = finding.code in NOT_UNDEFINED and not any(a.asynchronous for a in finding.accesses)
    return finding.severity == "error" and not defined and finding.kind != "deadlock"


def judged(given: Answer) -> Answer:
    """The answer with its verdict about findings. An error is one however little was looked at; that there is none
    holds if everything was. ``reason`` is what kept the engine from looking further.
    """
    unsure = given.reason if given.verdict == "unknown" else None
    bound = None if given.bound is None else f"explored up to {given.bound}"
    if any(f.severity == "error" for f in given.findings):
        return replace(given, verdict="finding", reason=unsure or bound)
    if given.covered:
        return replace(given, verdict="finding" if any(map(decides, given.findings)) else "proved", reason=None)
    if bound is not None and unsure is None:
        return replace(given, verdict="bounded", reason=bound)
    return replace(given, verdict="unknown", reason=unsure or NOT_ALL)


def assumptions(program: Program) -> tuple[str, ...]:
    """What every engine takes for granted."""
    threads, ctas = len(program.threads), len({t.place.cta for t in program.threads})
    return (
        f"sizes as written: {_count(threads, 'thread')} in {_count(ctas, 'CTA')}{LOOPS}",
        "the scheduler is fair: whoever can go on does, and every write is seen at last",
        *readings(program),
        *program.assumptions.described(),
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
