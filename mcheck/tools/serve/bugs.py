"""The bugs of a result as data, with the edits that their fixes name."""

from __future__ import annotations

import os

from mcheck.base.errors import Span
from mcheck.base.source_files import SourceText
from mcheck.checking.check.files import is_source
from mcheck.checking.run.result import Result
from mcheck.findings.repair import make_edits
from mcheck.report.bugs import collect_bugs
from mcheck.report.excerpts import Mark
from mcheck.report.finding import Bug as ReportedBug
from mcheck.report.finding import tell
from mcheck.report.help_pages import help_page
from mcheck.report.source_edits import find_source_edits, is_table
from mcheck.tools.serve.answers import Bug, Place, TextEdit

_OWN_FIELDS = ("fix", "rule")


def find_bugs(result: Result, most: int | None = None) -> list[Bug]:
    """The bugs of a result, causes first."""
    texts = SourceText(result.source, result.program)
    return [_bug(one, texts, find_edits(result, one, texts)) for one in collect_bugs(result.findings, texts)[:most]]


def find_edits(result: Result, bug: ReportedBug, texts: SourceText) -> list[TextEdit]:
    """The edits that the fix of a bug names, of the file that was asked about."""
    if is_source(result.path):
        return [
            TextEdit(
                path=result.path if is_same_file(e.path, result.path) else texts.name(e.path),
                line=e.line,
                column=e.column + 1,
                insert=e.text,
                replaces=e.replaces,
            )
            for e in find_source_edits(bug.finding, texts)
        ]
    lines = result.source.split("\n")
    made = make_edits(bug.finding.fixes, lines, table=is_table(result.path, result.source))
    return [
        TextEdit(
            path=result.program,
            line=e.line,
            column=e.column + 1,
            insert=e.text,
            replaces=lines[e.line - 1][e.column : e.column + e.length],
        )
        for e in made
    ]


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths name one file."""
    return os.path.abspath(one) == os.path.abspath(other)


def _bug(bug: ReportedBug, texts: SourceText, edits: list[TextEdit]) -> Bug:
    found, told = bug.finding, tell(bug, texts)
    notes = dict(told.notes)
    return Bug(
        code=found.code,
        kind=found.kind,
        severity=found.severity,
        message=told.sentence,
        place=_first(told.marks, told.primary, texts),
        related=[_place(mark.span, mark.label, texts) for mark in told.marks if mark.span != told.primary],
        fix=notes.get("fix", ""),
        edits=edits,
        findings=bug.count,
        notes=[f"{word}: {text}" for word, text in told.notes if word not in _OWN_FIELDS],
        rule=f"{found.spec.document}, {found.spec.section}" if found.section else "",
        help=help_page(found.code),
    )


def _first(marks: tuple[Mark, ...], primary: Span | None, texts: SourceText) -> Place | None:
    if primary is None:
        return None
    return _place(primary, next((mark.label for mark in marks if mark.span == primary), ""), texts)


def _place(span: Span, label: str, texts: SourceText) -> Place:
    line = texts.line(span)
    return Place(
        path=texts.name(span.path), line=span.line, column=span.column, source="" if line is None else line.strip(),
        label=label,
    )  # fmt: skip
