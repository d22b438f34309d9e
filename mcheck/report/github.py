"""GitHub's workflow commands: one annotation per test that is not ok, at the line that expects something else."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.report.lines import plain
from mcheck.report.text import describe
from mcheck.run.case import Result, Summary

_LEVELS = {"mismatch": "error", "error": "error", "unknown": "warning"}


def document(results: list[Result], summary: Summary) -> str:
    """The annotations, then the counts as a notice."""
    lines = [_annotation(result) for result in results if not result.ok]
    lines += [note for result in results for note in _others(result)]
    counts = f"{summary.ok} of {summary.tests} tests ok, {summary.mismatch} mismatches"
    lines.append(f"::notice title=mcheck::{counts}, {summary.unknown} unknown, {summary.error} errors")
    return "\n".join(lines) + "\n"


def _annotation(result: Result) -> str:
    span = result.problem.span if result.problem is not None else result.expectation_span
    path, line, column = (span.path, span.line, span.column) if span else (result.path, 1, 1)
    text = "\n".join(plain(part) for part in describe(result, states=10))
    where = f"file={_property(path)},line={line},col={column},title={_property(f'{result.name}: {result.status}')}"
    return f"::{_LEVELS[result.status]} {where}::{_data(text)}"


def _others(result: Result) -> Iterator[str]:
    """The mistakes behind the first of a text that has several."""
    for other in result.problem.others if result.problem is not None else ():
        if other.span is not None:
            place = f"file={_property(other.span.path)},line={other.span.line},col={other.span.column}"
            yield f"::error {place},title={_property(f'{result.name}: error')}::{_data(other.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
