"""Errors and warnings on standard error, with their line and a caret."""

from __future__ import annotations

import sys

from mcheck.base.errors import InternalError, McheckError, Span
from mcheck.checking.run.single import format_located
from mcheck.report.output import wants_color


def show(problem: McheckError, *, color: str = "auto", debug: str = "") -> None:
    """Print an error; an internal error in a single line that asks for a report, with a traceback only on request."""
    if isinstance(problem, InternalError):
        sys.stderr.write(f"internal error: {problem.message}; please report it with the command and the input")
        sys.stderr.write("\n" if debug else " (MCHECK_DEBUG=1 shows the traceback)\n")
        sys.stderr.write(debug)
        return
    from mcheck.report.errors import render
    from mcheck.report.lines import terminal_width

    _write(render(problem, color=wants_color(color, sys.stderr), width=terminal_width(sys.stderr)))


def show_warning(message: str, span: Span | None, *, color: str = "auto") -> None:
    """Print a warning."""
    from mcheck.report.errors import render_warning
    from mcheck.report.lines import terminal_width

    _write(render_warning(message, span, color=wants_color(color, sys.stderr), width=terminal_width(sys.stderr)))


def list_problems(problem: McheckError | None, reason: str) -> list[tuple[Span | None, str]]:
    """Reasons for a missing answer with their places: the reason, then any further errors of the text."""
    if problem is None:
        return [(None, reason)]
    return [(problem.span, reason), *((other.span, format_located(other)) for other in problem.others)]


def to_json(problem: McheckError) -> list[dict[str, object]]:
    """The errors of a text as JSON objects."""
    return [
        {
            "code": one.code,
            "message": one.message,
            "path": one.span.path if one.span else None,
            "line": one.span.line if one.span else None,
            "column": one.span.column if one.span else None,
            "expected": one.expected,
            "hint": one.hint,
        }
        for one in problem.all_errors
    ]


def _write(text: str) -> None:
    sys.stdout.flush()  # keeps the order of the two streams if both go to the same place
    sys.stderr.write(text + "\n")
