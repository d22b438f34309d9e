"""The answer to a request, computed in a process of its own; the limits are those of the commands.

What is wrong with a request is an answer too, with the place of each error.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from mcheck.base.errors import InputError
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.files import is_source, read_launch_beside
from mcheck.checking.run.case import Case
from mcheck.checking.run.command import RUN
from mcheck.checking.run.single import list_reasons
from mcheck.frontend.litmus.source import read_source
from mcheck.report.checked import describe
from mcheck.report.lines import plain
from mcheck.report.trace import format_trace
from mcheck.tools.serve import requests
from mcheck.tools.serve.answers import (
    CheckAnswer,
    Cost,
    ExplainAnswer,
    FencesAnswer,
    OutcomeFound,
    OutcomesAnswer,
    Reply,
    Synchronisation,
)
from mcheck.tools.serve.bugs import find_bugs
from mcheck.tools.serve.checks import (
    MOST_BUGS,
    ask_once,
    check_once,
    examine_within,
    is_clean,
    is_decided,
    summarize,
    why_not_decided,
    write_source,
)
from mcheck.tools.serve.memory_store import MemoryStore
from mcheck.tools.serve.refusals import refuse
from mcheck.tools.serve.repairs import repair
from mcheck.tools.serve.requests import Request

if TYPE_CHECKING:
    from mcheck.checking.fences.removal import Tried

MOST_STATES = 200
"""The maximum number of states with a witness in an answer."""


def answer_request(request: Request, store: MemoryStore) -> Reply:
    """The answer to a request; raises only ``KeyboardInterrupt``."""
    started = perf_counter()
    used = _processor_seconds()
    try:
        with _on_disk(request) as (there, renamed):
            reply = renamed(_ANSWERS[request.kind](there, store))
    except Exception as error:  # noqa: BLE001 - whatever happens, the client is told
        reply = refuse(request, error)
    cost = replace(
        reply.answer.cost,
        seconds=round(perf_counter() - started, 4),
        processor_seconds=round(_processor_seconds() - used, 4),
    )
    return replace(reply, answer=replace(reply.answer, cost=cost))


def _processor_seconds() -> float:
    """The seconds of the processor of this process and those that it waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


# --- texts of sources -------------------------------------------------------------------------------------------


@contextmanager
def _on_disk(request: Request) -> Iterator[tuple[Request, Callable[[Reply], Reply]]]:
    """The request with the text of a CUDA C++ source in a file that may be edited, with the launch beside its own file,
    and what restores the names in the reply.
    """
    if not is_source(request.path) or (request.text is None and request.kind != requests.FIX):
        yield request, lambda reply: reply
        return
    folder = tempfile.mkdtemp(prefix="mcheck-serve-")
    try:
        path = os.path.join(folder, os.path.basename(request.path))
        write_source(path, read_source(request.path) if request.text is None else request.text)
        launch = request.launch or read_launch_beside(request.path)
        include = os.path.dirname(os.path.abspath(request.path))
        there = replace(request, path=path, text=None, launch=launch, include=include)
        yield there, lambda reply: _renamed(reply, path, request.path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _renamed(reply: Reply, path: str, given: str) -> Reply:
    """The reply with the file at ``path`` under the name that the client gave."""

    def named(value: Any) -> Any:
        match value:
            case str():
                return value.replace(path, given)
            case list():
                return [named(one) for one in value]
            case dict():
                return {key: named(one) for key, one in value.items()}
        if hasattr(value, "__dataclass_fields__"):
            return replace(value, **{name: named(getattr(value, name)) for name in value.__dataclass_fields__})
        return value

    found: Reply = named(reply)
    return found


# --- check ------------------------------------------------------------------------------------------------------


def _check(request: Request, store: MemoryStore) -> Reply:
    result, template = check_once(request, store)
    if result.verdict is Verdict.ERROR:
        assert result.problem is not None
        reply = refuse(request, result.problem)
        assert isinstance(reply.answer, CheckAnswer)
        more = f'\n\nThe launch file, with "?" where only you know:\n\n{template}' if template else ""
        return replace(reply, answer=replace(reply.answer, launch_file_to_fill_in=template), text=reply.text + more)
    text = "\n".join(plain(line) for line in describe(result, most=MOST_BUGS))
    answer = CheckAnswer(
        path=request.path,
        verdict=result.verdict.value,
        decided=is_decided(result),
        clean=is_clean(result),
        summary=summarize(result),
        bugs=find_bugs(result, MOST_BUGS),
        why_not_decided=why_not_decided(result),
        left_out=[result.ignored_text] if result.ignored_text else [],
        as_expected=result.status == "ok" if result.expected_kinds and is_decided(result) else None,
        warnings=[message for message, _ in result.warnings],
        assumptions=list(result.assumptions),
        executions=result.executions,
        engine=result.engine,
        cost=Cost(cached=store.hits > 0),
    )
    return Reply(answer=answer, text=text if answer.decided else f"not decided\n{text}")


# --- outcomes ---------------------------------------------------------------------------------------------------


def _outcomes(request: Request, store: MemoryStore) -> Reply:
    if not request.path.endswith(".litmus"):
        raise InputError(f"{request.path} is not a litmus test", expected="a file or text of a litmus test")
    settings = replace(request.settings, engine=request.engine, witnesses=True)
    case = Case(request.path, text=request.text)
    result = ask_once(case, settings, RUN, store)
    if result.verdict is Verdict.ERROR:
        assert result.problem is not None
        return refuse(request, result.problem)
    holds = {Verdict.PASS: True, Verdict.FAIL: False}.get(result.verdict) if result.kind != "none" else None
    decided = result.complete and (holds is not None or result.kind == "none")
    states = sorted(result.outcomes, key=lambda outcome: str(sorted(dict(outcome.state).items())))
    summary = f"{len(states)} states" if decided else f"not decided: {len(states)} states found, there may be others"
    answer = OutcomesAnswer(
        path=request.path,
        model=result.model,
        condition=result.condition,
        decided=decided,
        complete=result.complete,
        holds=holds,
        undefined=result.undefined,
        summary=summary,
        outcomes=[
            OutcomeFound(state=dict(one.state), witness=list(format_trace(one.witness))) for one in states[:MOST_STATES]
        ],
        bugs=find_bugs(result, MOST_BUGS),
        why_not_decided=[] if decided else list_reasons(result.reason, result.problem) or ["the exploration stopped"],
        executions=result.executions,
        cost=Cost(cached=store.hits > 0),
    )
    return Reply(answer=answer, text=_outcomes_text(answer))


def _outcomes_text(answer: OutcomesAnswer) -> str:
    lines = [answer.summary]
    if answer.condition:
        said = {True: "holds", False: "does not hold", None: "is not decided"}[answer.holds]
        lines.append(f"{answer.condition} {said} under {answer.model}")
    if answer.undefined:
        lines.append("some execution is undefined, so anything may happen")
    lines += ["; ".join(f"{name}={value}" for name, value in one.state.items()) for one in answer.outcomes]
    return "\n".join((*lines, *answer.why_not_decided))


# --- explain and fences -----------------------------------------------------------------------------------------


def _explain(request: Request, _: MemoryStore) -> Reply:
    from mcheck.findings import catalogue
    from mcheck.findings.entry import PROFILES
    from mcheck.report.help_pages import help_page

    entry = catalogue.get(request.code)
    answer = ExplainAnswer(
        code=entry.code,
        name=entry.name,
        kind=entry.kind,
        severity={profile: entry.severity(profile) for profile in PROFILES},
        section=entry.section,
        explanation=entry.explanation,
        fix=entry.all_remedies,
        incorrect=entry.bad,
        correct=entry.good,
        help=help_page(entry.code),
    )
    parts = (f"{entry.code} {entry.name} ({entry.kind})", entry.explanation, f"fix: {entry.all_remedies}")
    return Reply(
        answer=answer,
        text="\n\n".join((*parts, f"incorrect:\n{entry.bad}", f"correct:\n{entry.good}", entry.section)),
    )


def _fences(request: Request, _: MemoryStore) -> Reply:
    from mcheck.checking.fences.examination import Limits, examine
    from mcheck.checking.fences.removal import Removals
    from mcheck.report import fences

    if request.text is not None or not request.path.endswith(".litmus"):
        raise InputError("fences examines a litmus file", expected="the path of a file that ends in .litmus")
    limits = Limits(timeout=request.settings.timeout, processor_time=request.settings.processor_time)
    examined = examine_within(request, lambda: examine(request.path, limits, settings=request.settings))
    if examined.verdict is Verdict.ERROR:
        raise InputError(examined.reason or "the file cannot be read")
    found = examined.removals or Removals((), (), (), ())
    decided = examined.removals is not None and not found.undecided
    answer = FencesAnswer(
        path=request.path,
        verdict=examined.verdict.value,
        decided=decided,
        summary=f"{len(found.removable)} can go or be weaker, {len(found.needed)} are needed",
        removable=[_synchronisation(tried) for tried in found.removable],
        needed=[_synchronisation(tried) for tried in found.needed],
        together=[edit.line for edit in found.together],
        why_not_decided=[] if decided else [examined.reason or "some are open: see mcheck fences"],
    )
    return Reply(answer=answer, text="\n".join(fences.lines(examined)))


def _synchronisation(tried: Tried) -> Synchronisation:
    edit = tried.edit
    return Synchronisation(
        line=edit.line, instruction=edit.instruction, replacement=edit.replacement, without_it=list(tried.codes)
    )


_ANSWERS: dict[str, Callable[[Request, MemoryStore], Reply]] = {
    requests.CHECK: _check,
    requests.OUTCOMES: _outcomes,
    requests.EXPLAIN: _explain,
    requests.FIX: repair,
    requests.FENCES: _fences,
}
