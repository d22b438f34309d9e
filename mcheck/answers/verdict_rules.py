"""The verdict about findings: ``proved``, ``bounded``, ``finding`` or ``unknown``, with its reasons and assumptions."""

from __future__ import annotations

from collections.abc import Collection

from mcheck.answers.readings import list_readings
from mcheck.answers.result import NOT_UNDEFINED, Answer
from mcheck.base.reasons import Cause, Reason, Reasons
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.findings.finding import Finding
from mcheck.ir.memory import CANCEL_RESPONSES
from mcheck.ir.program import Program

ACCEPTED = frozenset(("RACE005", "RACE007", "RACE008"))
"""Codes of pairs that the model orders: as findings for review they leave a program proved."""


SIZES = "sizes as written: "
LOOPS = ", trip counts of loops"


def is_decisive(finding: Finding) -> bool:
    """Whether a finding makes the verdict ``finding``: an error, or a review finding that is not in ``ACCEPTED``."""
    return finding.severity == "error" or (finding.severity == "review" and finding.code not in ACCEPTED)


def makes_undefined(finding: Finding) -> bool:
    """Whether a finding means that some execution is undefined."""
    defined = finding.code in NOT_UNDEFINED and not any(a.asynchronous for a in finding.accesses)
    return finding.severity == "error" and not defined and finding.kind != "deadlock"


def verdict_of(findings: Collection[Finding], *, covered: bool, reasons: Reasons = ()) -> tuple[Verdict, Reasons]:
    """The verdict about findings, with its reasons. Only this function returns ``proved``.

    An error is a finding however few executions were explored; the absence of findings holds only if everything was
    ``covered``. Otherwise ``reasons`` say why not: any that is no bound makes the verdict unknown.
    """
    left_out = tuple(r for r in reasons if r.is_incomplete)
    unsure = tuple(r for r in left_out if not r.names_bound)
    if any(f.severity == "error" for f in findings):
        return Verdict.FINDING, unsure or left_out
    if covered:
        return Verdict.FINDING if any(map(is_decisive, findings)) else Verdict.PROVED, ()
    if left_out and not unsure:
        return Verdict.BOUNDED, left_out
    return Verdict.UNKNOWN, unsure or (Reason(Cause.LEFT_OUT),)


def add_verdict(given: Answer) -> Answer:
    """The answer with its verdict about findings; its reasons are those for which executions were left out."""
    verdict, reasons = verdict_of(given.findings, covered=given.covered, reasons=given.reasons)
    return replace(given, verdict=verdict, reasons=reasons)


CANCELLED = (
    "the clusters whose launch is cancelled are those behind the declared ones, in the turn of the CTAs that ask, at"
    " most three for a thread that asks in a loop with a label; who got none gets none later"
)
INTERLEAVING_ASSUMPTION = (
    "strong accesses take effect in some interleaving of the threads; otherwise the answer is bounded"
)
"""The assumption of answers that follow orders of the threads' steps."""


def assumptions(program: Program) -> tuple[str, ...]:
    """The assumptions of every engine."""
    threads, ctas = len(program.threads), len({t.place.cta for t in program.threads})
    return (
        f"{SIZES}{_count(threads, 'thread')} in {_count(ctas, 'CTA')}{LOOPS}",
        "the scheduler is fair and every write eventually becomes visible",
        *list_readings(program),
        *((CANCELLED,) if any(i.object.name == CANCEL_RESPONSES for i in program.memory.instances) else ()),
        *program.assumptions.describe(),
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
