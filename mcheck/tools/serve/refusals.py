"""Replies to requests that have no answer: what is wrong, with its place; nothing is decided in them."""

from __future__ import annotations

import re
from typing import Any

from mcheck.base.errors import InternalError, McheckError
from mcheck.checking.run.single import crash_error
from mcheck.frontend.cuda.nvcc import CompileError
from mcheck.report.problems import to_json as problems_to_json
from mcheck.tools.serve import requests
from mcheck.tools.serve.answers import (
    Answer,
    CheckAnswer,
    ExplainAnswer,
    FencesAnswer,
    FixAnswer,
    OutcomesAnswer,
    Problem,
    Reply,
)
from mcheck.tools.serve.requests import Request

MOST_ERRORS = 10
"""The maximum number of a compiler's errors in an answer."""
LEAST_SAID = 2000
"""The characters that an answer has of what a compiler wrote, if no error is recognised in it; the last ones."""
_COMPILER_ERROR = re.compile(
    r"^(?P<path>[^\s():][^():\n]*)(?:\((?P<line>\d+)\)|:(?P<row>\d+):(?P<column>\d+)): "
    r"(?:catastrophic |fatal )?error:? (?P<message>.+)",
    re.MULTILINE,
)


def refuse(request: Request, error: BaseException) -> Reply:
    """The reply to a request that is wrong, or met a bug of mcheck."""
    problem = error if isinstance(error, McheckError) else crash_error(error)
    found = _problems(problem)
    text = "\n".join(format_problem(one) for one in found)
    if isinstance(problem, InternalError):
        text = f"internal error: {text}; please report it with the request"
    answer = _undecided(request, "error", [], found)
    return Reply(answer=answer, text=f"error: nothing was decided\n{text}", refused=True)


def leave_open(request: Request, why: str) -> Reply:
    """The reply to a request whose process was stopped or died."""
    return Reply(answer=_undecided(request, "unknown", [why], []), text=f"not decided\n{why}")


def _undecided(request: Request, verdict: str, why: list[str], errors: list[Problem]) -> Answer:
    """The answer of the kind that was asked for, in which nothing is decided."""
    path, summary = request.path, "error" if errors else "not decided"
    match request.kind:
        case requests.EXPLAIN:
            return ExplainAnswer(code=request.code, errors=errors or [Problem(message=one) for one in why])
        case requests.OUTCOMES:
            return OutcomesAnswer(
                path=path, model=request.settings.model or "", condition="", decided=False, complete=False, holds=None,
                undefined=False, summary=summary, errors=errors, why_not_decided=why,
            )  # fmt: skip
        case requests.FENCES:
            return FencesAnswer(
                path=path, verdict=verdict, decided=False, summary=summary, errors=errors, why_not_decided=why
            )
        case requests.FIX:
            return FixAnswer(
                path=path, before=verdict, after=verdict, decided=False, fixed=None, summary=summary, errors=errors,
                why_not_decided=why,
            )  # fmt: skip
    return CheckAnswer(
        path=path, verdict=verdict, decided=False, clean=None, summary=summary, errors=errors, why_not_decided=why
    )


def _problems(problem: McheckError) -> list[Problem]:
    fields: Any = problems_to_json(problem)
    found = [Problem(**one) for one in fields]
    return found + _compiler_errors(problem.said) if isinstance(problem, CompileError) else found


def _compiler_errors(said: str) -> list[Problem]:
    """The errors among the lines that nvcc, or the compiler of the host behind it, wrote."""
    errors = [
        Problem(
            message=found["message"],
            path=found["path"],
            line=int(found["line"] or found["row"]),
            column=int(found["column"] or 1),
        )
        for found in _COMPILER_ERROR.finditer(said)
    ]
    return errors[:MOST_ERRORS] or [Problem(message=said.strip()[-LEAST_SAID:])]


def format_problem(problem: Problem) -> str:
    """An error in one line, with its place, what was expected, and the hint."""
    place = f"{problem.path}:{problem.line}:{problem.column}: " if problem.path is not None else ""
    expected = f"; expected {problem.expected}" if problem.expected else ""
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{place}{problem.message}{expected}{hint}"
