"""GitHub workflow commands: an annotation per test that is not ok, at its expectation, and one per bug, at its primary
place: GitHub shows only the first ten of a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mcheck.base.errors import McheckError, Span
from mcheck.base.source_files import SourceText
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result
from mcheck.checking.run.summary import Summary
from mcheck.findings.finding import Finding
from mcheck.report.bugs import collect_bugs
from mcheck.report.finding import Bug, compiled_from, tell
from mcheck.report.lines import plain
from mcheck.report.text import count, describe

_LEVELS = {"mismatch": "error", "error": "error", "unknown": "warning"}
_SEVERITIES = {"error": "error", "review": "warning", "advice": "notice"}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Terminal control characters: names of files and tests may contain them, and logs are read in terminals."""
ACCESSES = 6
"""The maximum number of accesses of a finding with their source locations."""


def document(results: list[Result], summary: Summary) -> str:
    """The annotations, then the counts as a notice."""
    lines = [_annotation(result) for result in results if not result.ok]
    lines += [note for result in results for note in _others(result)]
    lines += [note for r in results for note in annotate_findings(r.findings, r.path, expected=r.ok)]
    mismatches = count(summary.mismatch, "mismatch", "mismatches")
    errors = count(summary.error, "error", "errors")
    found = f" ({summary.found} with unexpected errors)" if summary.found else ""
    counts = f"{summary.ok} of {summary.tests} tests ok{found}, {mismatches}, {summary.unknown} unknown, {errors}"
    lines.append(f"::notice title=mcheck::{counts}")
    return "\n".join(lines) + "\n"


def annotate_findings(
    findings: Sequence[Finding], path: str, *, expected: bool, texts: SourceText | None = None
) -> list[str]:
    """An annotation for each bug, at its source line if ``texts`` has it; an ``expected`` one is at most a notice."""
    known = texts or SourceText()
    return [_annotate_bug(bug, path, known, expected=expected) for bug in collect_bugs(findings, known)]


def _annotate_bug(bug: Bug, path: str, texts: SourceText, *, expected: bool) -> str:
    finding, told = bug.finding, tell(bug, texts)
    level = _SEVERITIES[finding.severity] if not expected or finding.severity != "error" else "notice"
    span = told.primary
    parts = [told.sentence]
    parts += [f"{mark.span.path}:{mark.span.line}: {mark.label}" for mark in told.marks[:ACCESSES] if mark.span != span]
    parts += [f"{word}: {said}" for word, said in told.notes]
    parts += [f"compiled from {compiled_from(a)}" for a in finding.accesses[:ACCESSES] if a.source]
    return annotation(level, place_of(span, path), f"{finding.code} {finding.kind}", "\n".join(parts))


def annotation(level: str, place: tuple[str, int, int], title: str, text: str) -> str:
    """A workflow command that annotates a place."""
    path, line, column = place
    return f"::{level} file={_property(path)},line={line},col={column},title={_property(title)}::{_data(text)}"


def place_of(span: Span | None, path: str) -> tuple[str, int, int]:
    """Path, line and column of a span; without one, the beginning of the file."""
    return (span.path, span.line, span.column) if span is not None else (path, 1, 1)


def _annotation(result: Result) -> str:
    span = result.problem.span if result.problem is not None else result.expectation_span
    if result.verdict is Verdict.ERROR and result.problem is not None:
        text = "\n".join(summarize_problem(result.problem))
    else:
        text = "\n".join(plain(part) for part in describe(result, states=10, findings=False))
    title = f"{result.name}: {result.headline}"
    return annotation(_LEVELS[result.status], place_of(span, result.path), title, text)


def summarize_problem(problem: McheckError) -> Iterator[str]:
    """The message of an error, what was expected, and a hint; the annotation has the place."""
    yield problem.message
    if problem.expected:
        yield f"expected: {problem.expected}"
    if problem.hint:
        yield f"hint: {problem.hint}"


def _others(result: Result) -> Iterator[str]:
    """Annotations of all errors of a text but the first."""
    for other in result.problem.others if result.problem is not None else ():
        if other.span is not None:
            text = "\n".join(summarize_problem(other))
            yield annotation("error", place_of(other.span, result.path), f"{result.name}: error", text)


def _data(text: str) -> str:
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
