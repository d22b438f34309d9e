"""Error pages."""

from __future__ import annotations

import os

from mcheck.base.errors import McheckError
from mcheck.base.reasons import Reasons
from mcheck.base.records import replace
from mcheck.checking.run.single import format_located
from mcheck.report.site.content import Page, Problem

SUFFIX = ".litmus"
UNREAD = "This file could not be read"
UNANSWERED = "This file has no answer"
BROKEN = "This file has no answer: internal error of mcheck"


def error_page(page: Page, error: McheckError, title: str) -> Page:
    """The page of a file with errors, in the order of the text."""
    problems = tuple(_problem(page.path, e) for e in error.all_errors)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return replace(
        page,
        name=name_of_file(page.path),
        status="error",
        problem=problems[0].text + more,
        problem_title=title,
        problems=problems,
    )


def page_without_answer(path: str, status: str, problem: str, title: str, reasons: Reasons = ()) -> Page:
    """A page that only shows the reason for the missing answer."""
    return Page(
        name=name_of_file(path),
        path=path,
        suite="",
        file="",
        source="",
        status=status,
        problem=problem,
        problem_title=title,
        problems=(Problem(problem),),
        cut=True,
        reasons=reasons,
    )


def name_of_file(path: str) -> str:
    """The name of a test from its file; modules keep their suffix."""
    return os.path.basename(path).removesuffix(SUFFIX)


def _problem(path: str, error: McheckError) -> Problem:
    hints = [f"Expected: {error.expected}." if error.expected else "", f"Hint: {error.hint}" if error.hint else ""]
    hint = " ".join(filter(None, hints))
    span = error.span
    if span is None or span.path != path:
        return Problem(format_located(error), hint=hint)
    return Problem(f"line {span.line}, column {span.column}: {error.message}", span.line, hint)
