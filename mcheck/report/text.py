"""The report of ``mcheck run`` for people: a line per test, more where something is wrong, a line of counts."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.explore.result import State
from mcheck.report import finding as finding_report
from mcheck.report.lines import STATUS_STYLES, Line, Printer
from mcheck.run.case import Result, Summary, kinds_hold

_INDENT = "    "


class TextReport:
    """Writes each result as it comes. ``details``: every test's states and findings; ``quiet``: only what is not ok."""

    def __init__(
        self, printer: Printer, *, details: bool = False, quiet: bool = False, states: int | None = 40
    ) -> None:
        self._printer = printer
        self._details = details
        self._quiet = quiet
        self._states = states

    def result(self, result: Result) -> None:
        """One test."""
        if self._quiet and result.ok:
            return
        for line in describe(result, details=self._details, states=self._states):
            self._printer.line(*line)

    def finish(self, summary: Summary) -> None:
        """The counts; seconds are not among them, so that equal runs print equal text."""
        bad = "bold red"
        self._printer.line(
            count(summary.tests, "test", "tests") + ": ",
            (f"{summary.ok} ok", "green" if summary.ok == summary.tests else ""),
            f" ({summary.unjudged} without an expectation), " if summary.unjudged else ", ",
            (count(summary.mismatch, "mismatch", "mismatches"), bad if summary.mismatch else ""),
            ", ",
            (f"{summary.unknown} unknown", "yellow" if summary.unknown else ""),
            ", ",
            (count(summary.error, "error", "errors"), bad if summary.error else ""),
        )


def describe(result: Result, *, details: bool = False, states: int | None = 40) -> Iterator[Line]:
    """A result in words; at most ``states`` states of it."""
    status = result.status
    verdict = result.verdict if result.verdict in ("pass", "fail") else ""
    yield (f"{status:<9}", STATUS_STYLES[status]), f"{verdict:<5}", result.path
    if result.expected is not None and result.verdict in ("pass", "fail") and result.expected != result.verdict:
        yield (f"{_INDENT}expected {result.expected}, found {result.verdict}",)
    if status == "mismatch" and not kinds_hold(result.expected_kinds, result.findings):
        yield (f"{_INDENT}expected {' | '.join(result.expected_kinds)}, found {_kinds(result)}",)
    if result.reason and (details or status != "ok"):
        yield (f"{_INDENT}{result.reason}",)
    if result.verdict != "error" and (details or status == "mismatch"):
        yield from _answer(result, states)


def _answer(result: Result, most: int | None) -> Iterator[Line]:
    yield _INDENT, (result.condition or "no condition", "cyan"), f" under {result.model}"
    states = count(len(result.outcomes), "state", "states")
    executions = count(result.executions, "execution", "executions")
    engine = "" if result.engine == "explicit" else f", by {result.engine}"
    yield (f"{_INDENT}{states}, {executions}{engine}{'' if result.complete else ', not all of them'}",)
    shown = result.outcomes[:most]
    for outcome in shown:
        yield (f"{_INDENT}  {state_text(outcome.state)}",)
    if len(shown) < len(result.outcomes):
        yield (f"{_INDENT}  and {len(result.outcomes) - len(shown)} more (-v shows all)",)
    if result.undefined and result.reason is None:
        yield _INDENT, ("undefined behaviour", "bold red"), " in some execution, so anything may happen"
    for found in result.findings:
        for line in finding_report.lines(found):
            yield (_INDENT, *line)


def state_text(state: State) -> str:
    """``P0:r0=1; x=2;``, as herd prints it."""
    return " ".join(f"{label}={value};" for label, value in state) if state else "(nothing is named)"


def _kinds(result: Result) -> str:
    found = sorted({f"{f.kind} ({f.severity})" for f in result.findings})
    return ", ".join(found) or "nothing"


def count(number: int, one: str, many: str) -> str:
    """``1 state`` or ``2 states``."""
    return f"{number} {one if number == 1 else many}"
