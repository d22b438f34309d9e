"""The text report of ``mcheck run``: a line per test, details of those that are not ok, a line of counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mcheck.answers.number_text import MEANING, UNKNOWN
from mcheck.answers.result import State, Value
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result, kinds_hold
from mcheck.checking.run.single import list_reasons
from mcheck.checking.run.summary import Summary
from mcheck.findings.finding import Finding
from mcheck.ir.condition import Notation
from mcheck.ir.program import describe_kinds
from mcheck.report.lines import STATUS_STYLES, Line, Printer

_INDENT = "    "
NOTHING_NAMED = (
    "no final states, because the test names no registers or locations: add a line such as `exists (P:r0 == 1)` or "
    "`locations [P:r0;]`; `mcheck check` finds races, undefined behaviour and deadlocks without one"
)
NOTHING_ENDS = "no execution terminates; if this is intended, add `expect undefined` or `expect deadlock`"
WIDE = 1 << 64
"""Numbers from here on are printed in hexadecimal."""


class TextReport:
    """The text report, written result by result. ``details``: states and findings of every test; ``quiet``: only tests
    that are not ok; ``alone``: errors are shown nowhere else.
    """

    def __init__(
        self,
        printer: Printer,
        *,
        details: bool = False,
        quiet: bool = False,
        states: int | None = 40,
        alone: bool = False,
    ) -> None:
        self._printer = printer
        self._details = details
        self._quiet = quiet
        self._states = states
        self._alone = alone

    def result(self, result: Result) -> None:
        """Write the result of one test."""
        if self._quiet and result.ok:
            return
        width = self._printer.width
        for line in describe(result, details=self._details, states=self._states, width=width, errors=self._alone):
            self._printer.line(*line)

    def finish(self, summary: Summary) -> None:
        """Write the counts; without seconds, so that equal runs print equal text."""
        bad = "bold red"
        self._printer.line(
            count(summary.tests, "test", "tests") + ": ",
            (f"{summary.ok} ok", "green" if summary.ok == summary.tests else ""),
            f" ({_unjudged(summary)}), " if summary.unjudged else ", ",
            (count(summary.mismatch, "mismatch", "mismatches"), bad if summary.mismatch else ""),
            ", ",
            (f"{summary.unknown} unknown", "yellow" if summary.unknown else ""),
            ", ",
            (count(summary.error, "error", "errors"), bad if summary.error else ""),
        )


def _unjudged(summary: Summary) -> str:
    found = f", {summary.found} of them with errors" if summary.found else ""
    return f"{summary.unjudged} without an expectation{found}"


def describe(
    result: Result,
    *,
    details: bool = False,
    states: int | None = 40,
    width: int | None = None,
    errors: bool = True,
    findings: bool = True,
) -> Iterator[Line]:
    """The lines of a result, with at most ``states`` states. ``width`` is the width of the terminal, if there is one;
    ``errors`` and ``findings``: include these, which are not shown elsewhere.
    """
    status = result.status
    verdict = result.verdict if result.verdict.is_of_condition and not result.is_vacuous else ""
    found = f" ({', '.join(result.unexpected_errors)} found)" if status == "ok" and result.unexpected_errors else ""
    yield (f"{result.headline:<9}", STATUS_STYLES[result.headline]), f"{verdict:<5}", f"{result.path}{found}"
    if result.is_vacuous and not result.reason:
        yield (f"{_INDENT}{NOTHING_ENDS}",)
    if result.expected is not None and result.verdict.is_of_condition and result.expected != result.verdict:
        yield (f"{_INDENT}expected {result.expected}, found {result.verdict}",)
    if status == "mismatch" and not kinds_hold(result.expected_kinds, result.findings):
        yield (f"{_INDENT}expected {describe_kinds(result.expected_kinds)}, found {_kinds(result)}",)
    if result.reason and (details or status != "ok") and (errors or result.verdict is not Verdict.ERROR):
        for reason in list_reasons(result.reason, result.problem):
            yield (f"{_INDENT}{reason}",)
    if result.verdict is Verdict.UNKNOWN and result.problem is not None and result.problem.hint:
        yield (f"{_INDENT}hint: {result.problem.hint}",)
    if result.was_read and result.verdict is not Verdict.ERROR and (details or status == "mismatch"):
        yield from _answer(result, states, width, result.findings if findings else ())


def _answer(result: Result, most: int | None, width: int | None, findings: tuple[Finding, ...]) -> Iterator[Line]:
    yield _INDENT, (result.condition or "no condition", "cyan"), f" under {result.model}"
    executions = count(result.executions, "execution", "executions")
    engine = "" if result.engine == "explicit" else f", by {result.engine}"
    if result.observes_nothing:
        yield (f"{_INDENT}{executions}{engine}",)
        yield (f"{_INDENT}{NOTHING_NAMED}",)
    else:
        states = count(len(result.outcomes), "state", "states")
        yield (f"{_INDENT}{states}, {executions}{engine}{'' if result.complete else ', incomplete'}",)
    for assumption in result.assumptions:
        yield (f"{_INDENT}assuming: {assumption}",)
    shown = result.outcomes[:most]
    for outcome in shown:
        yield (f"{_INDENT}  {format_state(outcome.state, result.notation)}",)
    if any(value == UNKNOWN for outcome in shown for _, value in outcome.state):
        yield (f"{_INDENT}  ({MEANING})",)
    if len(shown) < len(result.outcomes):
        yield (f"{_INDENT}  and {len(result.outcomes) - len(shown)} more (-v shows all)",)
    if result.undefined and result.reason is None:
        yield _INDENT, ("undefined behaviour", "bold red"), " in some execution, so anything may happen"
    if findings:
        from mcheck.report.bugs import describe_findings

        for line in describe_findings(findings, result.source, result.path, width=width):
            yield (_INDENT, *line)


def format_state(state: State, notation: Iterable[tuple[str, Notation]] = ()) -> str:
    """A state in herd's syntax, ``P0:r0=1; x=2;``, with names and numbers as the condition writes them."""
    written = dict(notation)
    shown = [f"{format_term(label, written)}={format_term_value(label, value, written)};" for label, value in state]
    return " ".join(shown) or "(no names)"


def format_term(label: str, notation: Mapping[str, Notation]) -> str:
    """A term as the condition writes it."""
    return notation[label].name if label in notation else label


def format_term_value(label: str, value: Value, notation: Mapping[str, Notation]) -> str:
    """The value of a term in the number base of the condition."""
    if isinstance(value, int) and value >= WIDE:
        return hex(value)
    return notation[label].number(value) if label in notation and isinstance(value, int) else str(value)


def _kinds(result: Result) -> str:
    found = sorted({f"{f.kind} ({f.severity})" for f in result.findings})
    return ", ".join(found) or "nothing"


def count(number: int, one: str, many: str) -> str:
    """A number with its noun: ``1 state`` or ``2 states``."""
    return f"{number} {one if number == 1 else many}"
