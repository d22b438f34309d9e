"""The reports of ``mcheck check``: text, JSON, GitHub annotations and JUnit XML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcheck.answers.result import Covers, LaunchAnswer
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import list_reasons
from mcheck.checking.run.summary import Summary
from mcheck.findings.finding import Finding
from mcheck.findings.ordering import select_causes
from mcheck.ir.program import describe_kinds
from mcheck.report import finding as finding_report
from mcheck.report.finding import to_json
from mcheck.report.json_ import header
from mcheck.report.lines import Line, Printer, plain
from mcheck.report.problems import list_problems
from mcheck.report.problems import to_json as problems_to_json
from mcheck.report.reasons import to_json as reasons_to_json
from mcheck.report.text import count

if TYPE_CHECKING:
    from mcheck.base.errors import Span
    from mcheck.report.junit import Case

ACCESSES = 6
"""The maximum number of accesses shown per finding; a deadlock may have hundreds."""
FEW = 2
"""With more findings than this, a line with their counts follows them."""

VERDICT_STYLES = {
    "proved": "green",
    "bounded": "yellow",
    "finding": "bold red",
    "ignored": "yellow",
    "unknown": "yellow",
    "error": "bold red",
}


# --- text ---------------------------------------------------------------------------------------------------


class TextReport:
    """The text report, written answer by answer. ``quiet``: only those that are not as expected; ``alone``: errors are
    shown nowhere else.
    """

    def __init__(
        self, printer: Printer, *, details: bool, quiet: bool, most: int | None = None, alone: bool = False
    ) -> None:
        self._printer = printer
        self._alone = alone
        self._details = details
        self._quiet = quiet
        self._most = most

    def result(self, result: Result) -> None:
        """Write the answer about one file."""
        if self._quiet and result.status == "ok":
            return
        for line in describe(
            result, details=self._details, most=self._most, width=self._printer.width, errors=self._alone
        ):
            self._printer.line(*line)

    def finish(self, summary: Summary) -> None:
        """Write the counts."""
        self._printer.line(
            f"{count(summary.tests, 'file', 'files')}: ",
            (f"{summary.proved} proved", "green" if summary.proved == summary.tests else ""),
            ", ",
            (f"{summary.findings} with findings", "bold red" if summary.exit_status == 1 else ""),
            _only_ignored(summary),
            f", {summary.open} unknown, {count(summary.error, 'error', 'errors')}",
        )


def _only_ignored(summary: Summary) -> str:
    return f" ({summary.ignored} with ignored findings only)" if summary.ignored else ""


def describe(
    result: Result,
    *,
    details: bool = True,
    most: int | None = None,
    width: int | None = None,
    errors: bool = True,
) -> Iterator[Line]:
    """The lines of an answer. ``width`` is the width of the terminal, if there is one; ``errors``: include an error,
    which is not shown elsewhere.
    """
    expected = (
        " (as expected)" if result.headline == "finding" and result.status == "ok" and result.expected_kinds else ""
    )
    covers = result.covers
    part = (
        f" ({covers.clusters} of {covers.total} clusters)"
        if covers is not None and covers.clusters < covers.total
        else ""
    )
    ignored = f" ({result.ignored_text})" if result.ignored_text else ""
    yield (f"{result.headline:<8}", VERDICT_STYLES[result.headline]), f" {result.path}{part}{expected}{ignored}"
    if result.status == "finding" and result.expected_kinds and not result.as_expected:
        kinds = sorted({f"{f.kind} ({f.severity})" for f in result.findings}) or ["nothing"]
        yield (f"  expected {describe_kinds(result.expected_kinds)}, found {', '.join(kinds)}",)
    if result.reason and (errors or result.verdict is not Verdict.ERROR):
        for reason in list_reasons(result.reason, result.problem):
            yield (f"  {reason}",)
    if result.verdict is Verdict.UNKNOWN and result.problem is not None and result.problem.hint:
        yield (f"  hint: {result.problem.hint}",)
    shown = list(result.findings if details else select_causes(result.findings))
    if expected and not details:
        shown = []
    for found in shown[:most]:
        for line in finding_report.lines(found, result.source, trace=True, most=ACCESSES, width=width):
            yield ("  ", *line)
    if most is not None and len(shown) > most:
        yield (f"  and {len(shown) - most} more (-v shows all)",)
    if len(shown) > FEW:
        yield (f"  {len(shown)} findings: {_counts(shown)}",)
    if details and result.assumptions:
        runs = f"{result.executions} execution{'' if result.executions == 1 else 's'}"
        engines = "engines" if " and " in result.engine else "engine"
        why = f" ({result.chosen})" if result.chosen else ""
        yield (f"  {runs} by the {result.engine} {engines}{why}, assuming:",)
        for assumption in result.assumptions:
            yield (f"    - {assumption}",)


def _counts(findings: Sequence[Finding]) -> str:
    counts = Counter(f.code for f in findings)
    return ", ".join(code if count == 1 else f"{code} ({count})" for code, count in sorted(counts.items()))


# --- JSON ---------------------------------------------------------------------------------------------------


def document(model: str, profile: str, results: list[Result], summary: Summary) -> str:
    """The document of ``mcheck check --format json``."""
    head = json.dumps(header(model=model, profile=profile))[:-1]
    rows = ",\n".join(json.dumps(_result(r)) for r in results)
    return f'{head},\n"results": [\n{rows}\n],\n"summary": {json.dumps(_summary(summary))}}}\n'


def _told(result: Result) -> list[str]:
    """What was not covered or, if proved, the restriction under which it is."""
    if not result.reason:
        return []
    return [result.reason if result.verdict is Verdict.PROVED else f"not covered: {result.reason}"]


def _result(result: Result) -> dict[str, Any]:
    return {
        "path": result.path,
        "name": result.name,
        "verdict": result.verdict,
        "findings": [to_json(f) for f in result.findings],
        "assumptions": [*_told(result), *result.assumptions],
        "executions": result.executions,
        "seconds": round(result.seconds, 6),
        **reasons_to_json(result.reasons, cut=result.cut),
        **({"errors": problems_to_json(result.problem)} if result.verdict is Verdict.ERROR and result.problem else {}),
        **_grid(result.covers),
        **({"launches": [_launch(one) for one in result.launches]} if result.launches else {}),
        **(_left_out(result) if result.suppressed or result.ignored else {}),
    }


def _grid(covers: Covers | None) -> dict[str, Any]:
    """The part of a grid that an answer covers, if it is about one."""
    if covers is None:
        return {}
    return {"covers": {"clusters": covers.clusters, "of": covers.total, "together": covers.together}}


def _launch(one: LaunchAnswer) -> dict[str, Any]:
    return {"entry": one.entry, "gpu": one.gpu, "verdict": one.verdict, **_grid(one.covers)}


def _left_out(result: Result) -> dict[str, Any]:
    return {
        "headline": result.ignored_text or result.headline,
        "suppressed": len(result.suppressed),
        "ignored": [_ignored(result, f) for f in result.ignored],
    }


def _ignored(result: Result, finding: Finding) -> dict[str, Any]:
    """A finding that is left out, and by what: a comment of the file or the selection of codes."""
    by = "selection" if finding in result.deselected else "comment"
    line = next((a.line for a in finding.accesses if a.line is not None), None)
    return {"code": finding.code, "kind": finding.kind, "severity": finding.severity, "line": line, "by": by}


def _summary(summary: Summary) -> dict[str, int]:
    return {
        "files": summary.tests,
        "clean": summary.proved,
        "findings": summary.findings,
        "unknown": summary.open,
        "error": summary.error,
        **({"ignored": summary.ignored} if summary.ignored else {}),
    }


# --- GitHub --------------------------------------------------------------------------------------------------


def github(results: list[Result], summary: Summary) -> str:
    """GitHub workflow commands: an annotation per finding, at its first access."""
    from mcheck.report.github import annotate_finding, annotation, place_of

    lines = []
    for result in results:
        lines += [annotate_finding(f, result.path, expected=result.status == "ok") for f in result.findings]
        if result.ignored_text:
            lines.append(annotation("notice", place_of(None, result.path), "ignored", result.ignored_text))
        if result.status in ("unknown", "error"):
            level = "error" if result.status == "error" else "warning"
            lines += [
                annotation(level, place_of(span, result.path), result.verdict, text) for span, text in _why(result)
            ]
        elif result.status == "finding" and not result.findings:
            place = place_of(result.expectation_span, result.path)
            lines.append(annotation("error", place, "expectation", _unmet(result)))
    counts = (
        f"{summary.proved} of {summary.tests} files proved, {summary.findings} with findings{_only_ignored(summary)}"
    )
    errors = count(summary.error, "error", "errors")
    lines.append(f"::notice title=mcheck::{counts}, {summary.open} unknown, {errors}")
    return "\n".join(lines) + "\n"


def _why(result: Result) -> list[tuple[Span | None, str]]:
    """Why there is no answer: each error of the text with its place, what was expected and a hint."""
    from mcheck.report.github import summarize_problem

    if result.problem is None or result.status != "error":
        return list_problems(result.problem, result.reason or result.verdict)
    return [(one.span, "\n".join(summarize_problem(one))) for one in result.problem.all_errors]


# --- JUnit -----------------------------------------------------------------------------------------------------


def junit(results: list[Result]) -> str:
    """JUnit XML with a test case per file."""
    from mcheck.report.junit import render

    return render(_case(result) for result in results)


def _case(result: Result) -> Case:
    from mcheck.report.junit import Case, error_case

    if result.status == "ok":
        return Case(result.path, result.seconds, "ok", result.ignored_text)
    if result.verdict is Verdict.ERROR and result.problem is not None:
        return error_case(result.path, result.seconds, result.status, result.reason, result.problem)
    text = "\n".join(plain(line) for line in describe(result))
    message = result.reason or (result.findings[0].message if result.findings else _unmet(result))
    return Case(result.path, result.seconds, result.status, message, text)


def _unmet(result: Result) -> str:
    return (
        f"expected {describe_kinds(result.expected_kinds)}, found nothing" if result.expected_kinds else result.verdict
    )
