"""Answers about one file: reads it, asks, judges the findings, and turns any error into a result.

What differs between ``mcheck run``, ``mcheck check`` and the check of a module is its ``Inquiry``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, TypeVar

from mcheck.base import progress
from mcheck.base.budget import Limit, processor_time
from mcheck.base.errors import InputError, InternalError, McheckError, OutOfMemory, Span, Unsupported
from mcheck.base.reasons import Reason, error_reason, format_reasons, with_progress, with_total_time
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.question import Completeness
from mcheck.checking.run import handover
from mcheck.checking.run.case import DEFAULT_MODEL, Case, Settings
from mcheck.checking.run.result import Result
from mcheck.findings.ordering import sort_by_cause

if TYPE_CHECKING:
    from mcheck.answers.result import Answer
    from mcheck.cat.ast import Model
    from mcheck.findings.finding import Finding
    from mcheck.ir.condition import Condition
    from mcheck.ir.program import Expectation, Program


def load_model(name: str) -> Model:
    """The model of this name or path, cached."""
    from mcheck.cat import load_model

    return load_model(name)


def choose_model(asked: str | None, own: str | None, path: str, span: Span | None = None) -> Model:
    """The model of a test at ``path``: the one ``asked`` for, or else its ``own``, named at ``span``, or else the
    default.
    """
    from mcheck.cat.library import load_test_model

    if asked is not None or own is None:
        return load_model(asked or DEFAULT_MODEL)
    try:
        return load_test_model(own, path)
    except McheckError as error:
        error.span = error.span or span
        raise


def load_program(path: str, assume: tuple[str, ...] = (), text: str | None = None, *, every: bool = False) -> Program:
    """The program of a file, under assumptions given by name; raises ``InputError`` if it is unreadable.

    ``text``: the contents of the file, which is then not read. ``every``: a constant may be any number.
    """
    from mcheck.frontend import litmus

    try:
        program = litmus.load(path, every=every) if text is None else litmus.parse(text, path, every=every)
        return program.with_assumptions(assume)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except RecursionError:
        raise InputError(f"{path}: the text is nested too deeply") from None


# --- one file -------------------------------------------------------------------------------------------------


class Subject(Protocol):
    """What a result is about, as reports name it: a ``Program``, or a module with its launch."""

    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def model_span(self) -> Span | None: ...
    @property
    def condition(self) -> Condition: ...
    @property
    def expectation(self) -> Expectation: ...
    @property
    def warnings(self) -> tuple[tuple[str, Span | None], ...]: ...


R = TypeVar("R", bound=Subject)
S = TypeVar("S", bound=Subject)


class Inquiry(Protocol[R, S]):
    """What is asked about one file, and how the answer is reported.

    ``about``: what the answer has to be complete in. ``read`` gives what the file says, as far as reports need it;
    ``prepare`` adds what an engine needs, and raises what is wrong with it. ``ask`` gives the answer of the engines,
    ``report`` the result as the command reports it.
    """

    @property
    def about(self) -> Completeness: ...
    def read(self, case: Case, settings: Settings) -> R: ...
    def prepare(self, subject: R, settings: Settings) -> S: ...
    def ask(self, subject: S, model: Model, settings: Settings, within: Limit) -> Answer: ...
    def report(self, result: Result, subject: S, given: Answer) -> Result: ...


def answer_case(case: Case, settings: Settings, inquiry: Inquiry[R, S]) -> Result:
    """The result for one file; raises only ``KeyboardInterrupt``."""
    with processor_time() if settings.processor_time else nullcontext():
        return _answer_case(case, settings, inquiry)


def _answer_case(case: Case, settings: Settings, inquiry: Inquiry[R, S]) -> Result:
    started, within = perf_counter(), Limit(settings.timeout)
    known: Subject | None = None
    try:
        known = text = inquiry.read(case, settings)
        known = subject = inquiry.prepare(text, settings)
        model = choose_model(settings.model, subject.model, subject.path, subject.model_span)
        result = answer_subject(subject, model, settings, inquiry, within, started)
    except Exception as error:  # noqa: BLE001 - a crash in one file must not take the others with it
        return failed_result(case.path, known, error, settings, perf_counter() - started, inquiry.about)
    return replace(result, path=case.path, digest=model.digest)


def answer_subject(
    subject: S, model: Model, settings: Settings, inquiry: Inquiry[R, S], within: Limit, started: float
) -> Result:
    """The result for what was read; raises ``McheckError``."""
    progress.begin()
    with _handing_over(subject, model, settings, inquiry):
        given = inquiry.ask(subject, model, settings, within)
    reasons = with_total_time(given.reasons, settings.timeout)
    given = replace(given, reasons=with_progress(reasons, progress.describe()))
    return replace(conclude(subject, given, settings, inquiry), seconds=perf_counter() - started)


def _handing_over(subject: S, model: Model, settings: Settings, inquiry: Inquiry[R, S]) -> AbstractContextManager[None]:
    """While this process is a worker, hand over findings as they appear: they are an answer if it is stopped."""
    if inquiry.about is not Completeness.FINDINGS or not handover.is_open():
        return nullcontext()
    from mcheck.answers.result import Answer
    from mcheck.findings.partial import listen

    def heard(findings: Sequence[Finding], executions: int) -> None:
        given = Answer(
            verdict=Verdict.FINDING, complete=False, covered=False, findings=tuple(findings), executions=executions,
            engine="protocol", cut=True,
        )  # fmt: skip
        handover.hand_over(replace(conclude(subject, given, settings, inquiry), digest=model.digest))

    return listen(subject, heard)


def conclude(subject: S, given: Answer, settings: Settings, inquiry: Inquiry[R, S]) -> Result:
    """The result of an answer, as the inquiry reports it, with what the file expects."""
    result = Result(
        path=subject.path,
        name=subject.name,
        about=inquiry.about,
        condition=_condition(subject.condition),
        kind=subject.condition.kind,
        verdict=given.verdict,
        expected=subject.expectation.verdict,
        expected_kinds=subject.expectation.kinds,
        expectation_span=subject.expectation.span,
        model=settings.model or subject.model or DEFAULT_MODEL,
        outcomes=given.outcomes,
        complete=given.complete,
        undefined=given.undefined,
        ends=given.ends,
        findings=sort_by_cause(given.findings),
        executions=given.executions,
        engine=given.engine,
        chosen=given.chosen,
        reasons=given.reasons,
        warnings=subject.warnings,
        source=subject.source,
        notation=subject.condition.notation,
        assumptions=given.assumptions,
        cut=given.cut,
        covers=given.covers,
        ctas=given.ctas,
        launches=given.launches,
        filled_once=given.filled_once,
    )
    return inquiry.report(result, subject, given)


def _condition(condition: Condition) -> str:
    text = condition.text.strip()
    if condition.kind == "none" or text.startswith((condition.kind, "~", "not", "final")):
        return text
    return f"{condition.kind} {text}"


# --- failures -------------------------------------------------------------------------------------------------


def failed_result(
    path: str,
    subject: Subject | None,
    error: Exception,
    settings: Settings,
    seconds: float,
    about: Completeness = Completeness.STATES,
) -> Result:
    """The result for a file if an exception was raised; ``subject`` is what was known by then."""
    verdict, problem, debug = _failure(error, settings)
    failed = Result(
        path=path,
        name=stem_of(path),
        about=about,
        verdict=verdict,
        model=settings.model or DEFAULT_MODEL,
        seconds=seconds,
        reasons=(error_reason(problem),),
        problem=problem,
        debug=debug,
    )
    if subject is None:
        return failed
    return replace(
        failed,
        name=subject.name,
        condition=_condition(subject.condition),
        kind=subject.condition.kind,
        expected=subject.expectation.verdict,
        expected_kinds=subject.expectation.kinds,
        model=settings.model or subject.model or DEFAULT_MODEL,
        warnings=subject.warnings,
        source=subject.source,
    )


def _failure(error: Exception, settings: Settings) -> tuple[Verdict, McheckError, str]:
    """The verdict, the message and, for a bug of mcheck, the traceback if it is requested."""
    match error:
        case InputError():
            return Verdict.ERROR, error, ""
        case Unsupported():
            return Verdict.UNKNOWN, error, ""
        case MemoryError():
            return Verdict.UNKNOWN, out_of_memory(settings.memory), ""
        case RecursionError():
            return Verdict.UNKNOWN, Unsupported("the program is nested too deeply"), ""
    return Verdict.ERROR, crash_error(error), traceback_of(error)


def crashed_result(
    case: Case, settings: Settings, reason: Reason, seconds: float, about: Completeness = Completeness.STATES
) -> Result:
    """The result for a file whose process was stopped or died."""
    return Result(
        path=case.path,
        name=stem_of(case.path),
        about=about,
        verdict=Verdict.UNKNOWN,
        model=settings.model or DEFAULT_MODEL,
        seconds=seconds,
        reasons=(reason,),
        cut=True,
    )


def out_of_memory(limit: int | None) -> OutOfMemory:
    """The reason for an answer that the memory limit prevented."""
    from mcheck.checking.run.worker_limits import no_memory

    return OutOfMemory("out of memory" if limit is None else no_memory(limit))


def crash_error(error: BaseException) -> InternalError:
    """The one-line error for a bug of mcheck."""
    if isinstance(error, InternalError):
        return error
    return InternalError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def stem_of(path: str) -> str:
    """The name of a file without its suffix."""
    return os.path.splitext(os.path.basename(path))[0]


def traceback_of(error: BaseException) -> str:
    """The traceback, if ``MCHECK_DEBUG`` requests it."""
    if not os.environ.get("MCHECK_DEBUG"):
        return ""
    import traceback

    return "".join(traceback.format_exception(error))


# --- in words -------------------------------------------------------------------------------------------------


def format_located(problem: McheckError) -> str:
    """``path:line:column: message`` on one line, for the first of several errors."""
    return format_reasons((error_reason(problem),)) or ""


def list_reasons(reason: str | None, problem: McheckError | None) -> list[str]:
    """Why there is no answer: the reason, or all errors of a text that has several."""
    return [*([reason] if reason else []), *(format_located(other) for other in (problem.others if problem else ()))]
