"""Problems on standard error, rendered with their line and a caret."""

from __future__ import annotations

import sys

from mcheck.base.errors import InternalError, McheckError, Span
from mcheck.checking.run.single import format_located
from mcheck.report.output import wants_color


def show(problem: McheckError, *, color: str = "auto", debug: str = "") -> None:
    """An error; one of ours in a single line that asks for a report, and with its traceback only on request."""
    if isinstance(problem, InternalError):
        sys.stderr.write(f"internal error: {problem.message}; please report it with the command and its input")
        sys.stderr.write("\n" if debug else " (MCHECK_DEBUG=1 shows where)\n")
        sys.stderr.write(debug)
        return
    from mcheck.report.errors import render
    from mcheck.report.lines import width_of

    _write(render(problem, color=wants_color(color, sys.stderr), width=width_of(sys.stderr)))


def show_warning(message: str, span: Span | None, *, color: str = "auto") -> None:
    """A warning of a program."""
    from mcheck.report.errors import render_warning
    from mcheck.report.lines import width_of

    _write(render_warning(message, span, color=wants_color(color, sys.stderr), width=width_of(sys.stderr)))


def list_problems(problem: McheckError | None, reason: str) -> list[tuple[Span | None, str]]:
    """Why there is no answer, with the place: the reason, then the further mistakes of a text that has several."""
    if problem is None:
        return [(None, reason)]
    return [(problem.span, reason), *((other.span, format_located(other)) for other in problem.others)]


def to_json(problem: McheckError) -> list[dict[str, object]]:
    """The mistakes of a text as objects."""
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
    sys.stdout.flush()  # keeps the two streams in order where both go to one place
    sys.stderr.write(text + "\n")
