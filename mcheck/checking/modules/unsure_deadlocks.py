"""Deadlocks that other clusters may resolve, or what memory holds at first."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.reasons import Cause, Reason, unique_reasons
from mcheck.base.records import replace
from mcheck.findings.finding import Access, Finding
from mcheck.findings.waits import OfWord
from mcheck.frontend.ptx.launch import Launch
from mcheck.ir.program import Program

OTHERS_WRITE = "this waits for {}, which other clusters of the grid may write"
NOT_GIVEN = (
    "whether this wait ends depends on what {} holds at first, which the launch does not say "
    '(its "init", such as {{"hex": "00000000"}})'
)


def in_the_grid(program: Program, launch: Launch, given: Answer) -> tuple[Answer, tuple[Finding, ...]]:
    """The answer without deadlocks that another cluster of the grid may resolve by a write to global memory, and these
    deadlocks.
    """
    if launch.executed_count == launch.total_count:
        return given, ()
    unsure = {f: waits for f in given.findings if (waits := _global_waits(program, f))}
    cause = Cause.CLUSTERS if launch.is_sample else Cause.OTHER_CLUSTERS  # of a sample, a few are known
    return _without(given, unsure, cause, OTHERS_WRITE), tuple(unsure)


def given_contents(program: Program, given: Answer) -> Answer:
    """The answer without deadlocks at words of global memory of which it is not known what they hold."""
    unsure = {f: waits for f in given.findings if _is_of_unknown(f) and (waits := _global_waits(program, f))}
    return _without(given, unsure, Cause.UNKNOWN_DATA, NOT_GIVEN)


def _is_of_unknown(finding: Finding) -> bool:
    return any(isinstance(wait.goal, OfWord) and wait.goal.value is None for wait in finding.waits)


def _global_waits(program: Program, finding: Finding) -> tuple[Access, ...]:
    """The waits of a deadlock for words of global memory."""
    if finding.kind != "deadlock":
        return ()
    names = {i.label for i in program.memory.instances if i.object.space == "global"}
    return tuple(a for a in finding.accesses if a.object in names)


def _without(given: Answer, unsure: dict[Finding, tuple[Access, ...]], cause: Cause, said: str) -> Answer:
    """The answer without some deadlocks, and with the reasons why they are not sure."""
    if not unsure:
        return given
    kept = tuple(f for f in given.findings if f not in unsure)
    reasons = [Reason(cause, said.format(a.object), span=a.span) for a in _in_order(unsure.values())]
    return add_verdict(replace(given, findings=kept, covered=False, reasons=unique_reasons(given.reasons, reasons)))


def _in_order(waits: Iterable[tuple[Access, ...]]) -> list[Access]:
    """One access of each place, in the order of the text."""
    places = {(a.span.path, a.span.line, a.span.column): a for group in waits for a in group if a.span is not None}
    return [places[place] for place in sorted(places)]
