"""Checks of what a request names, and what their results say: whether that is decided, and clean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mcheck.base.errors import Exceeded
from mcheck.base.reasons import Cause
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.backends import AnswerStore, Backend
from mcheck.checking.check.command import check_command
from mcheck.checking.check.files import is_source
from mcheck.checking.result_cache import open_result_cache
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.pool import run_cases
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import list_reasons
from mcheck.checking.suite import Command
from mcheck.report.checked import headline
from mcheck.report.longer_limits import suggest_limits
from mcheck.tools.serve.requests import Request

if TYPE_CHECKING:
    from mcheck.checking.fences.examination import Examined

MOST_BUGS = 20
"""The maximum number of bugs in an answer."""


def check_once(request: Request, store: AnswerStore) -> tuple[Result, str | None]:
    """The result of checking what a request names, and a launch file to fill in if nothing says the launch."""
    case, options = Case(request.path, text=request.text), request.options
    if not is_source(request.path):
        return _result(case, request, options, store), None
    from mcheck.checking.check.cuda_sources import LaunchUnknown, SourceOptions, prepare_files

    flags = ("-I", request.include) if request.include else ()
    about = SourceOptions(arch=request.arch, flags=flags, run=request.run)
    file = prepare_files([request.path], about, launched=request.launch is not None)[request.path]
    if file.problem is not None:
        template = file.problem.template if isinstance(file.problem, LaunchUnknown) else None
        return file.failed(request.settings), template
    if file.launch is not None and options.launch is None:
        options = replace(options, launches=((file.module, file.launch),))
    return file.restored(_result(Case(file.module), request, options, store)), None


def _result(case: Case, request: Request, options: Options, store: AnswerStore) -> Result:
    return ask_once(case, request.settings, check_command(options), store)


def ask_once(case: Case, settings: Settings, command: Command, store: AnswerStore) -> Result:
    """The result for one case, known or computed within the limits."""
    here = Backend(jobs=1, store=store)
    cache = open_result_cache(here, Result, command.name, settings, command.texts, **command.options)
    assert cache is not None
    key = cache.key(case)
    known = cache.recall(key, case) if key is not None else None
    if known is not None:
        return known
    (result,) = run_cases([case], settings, 1, command.task, command.lost)
    if key is not None:
        cache.keep(key, result)
    return result


def examine_within(request: Request, work: Callable[[], Examined]) -> Examined:
    """The examination within the memory of the request; it keeps its time itself, and has a part of the answer then."""
    from mcheck.checking.fences.examination import Examined
    from mcheck.checking.run.isolation import run_isolated

    try:
        return run_isolated(request.path, replace(request.settings, timeout=None, processor_time=False), work)
    except Exceeded as error:
        return Examined(request.path, Verdict.UNKNOWN, None, error.message)


def is_decided(result: Result) -> bool:
    """Whether a check says if there is a bug: a bound, a limit or what is not modelled leaves it open."""
    return result.verdict in (Verdict.PROVED, Verdict.FINDING)


def is_clean(result: Result) -> bool | None:
    """Whether there is nothing to find; ``None`` if that was not decided. Findings that were left out are found."""
    if not is_decided(result):
        return None
    return result.verdict is Verdict.PROVED and not result.ignored


def why_not_decided(result: Result) -> list[str]:
    """The reasons why a check was not decided."""
    if is_decided(result):
        return []
    helps = suggest_limits(result)
    said = list_reasons(result.reason, result.problem) or ["not every execution was explored"]
    return [*said, *([helps] if helps else [])]


def summarize(result: Result) -> str:
    """The result in a few words."""
    if not is_decided(result):
        limit = (
            " (a limit of time or memory)" if any(r.cause in (Cause.TIME, Cause.MEMORY) for r in result.reasons) else ""
        )
        return f"not decided: {result.verdict.value}{limit}"
    return "clean: every execution was covered" if is_clean(result) else headline(result)


def write_source(path: str, text: str) -> None:
    """Write the text of a source to the file that is compiled."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
