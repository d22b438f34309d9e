"""Runs one test: loads it, asks the engine, and turns any error into a result."""

from __future__ import annotations

import os
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from mcheck.base.budget import Limit
from mcheck.base.errors import InputError, InternalError, McheckError, OutOfMemory, Span, Unsupported
from mcheck.base.reasons import Reason, error_reason, format_reasons, with_total_time
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.case import DEFAULT_MODEL, Case, Result, Settings
from mcheck.findings.ordering import sort_by_cause

if TYPE_CHECKING:
    from mcheck.answers.result import Answer
    from mcheck.cat.ast import Model
    from mcheck.checking.policy.question import Question
    from mcheck.ir.program import Program


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


def preload(settings: Settings) -> None:
    """Imports what every test needs and reads the model, before workers are forked."""
    import mcheck.frontend.litmus  # noqa: F401 - imported for the workers
    from mcheck.checking.policy import engines

    engines.preload()
    load_model(settings.model or DEFAULT_MODEL)


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


def run_case(case: Case, settings: Settings) -> Result:
    """The result of one test; raises only ``KeyboardInterrupt``."""
    from mcheck.checking.policy.ask import ask

    started = perf_counter()
    model = settings.model or DEFAULT_MODEL
    within = Limit(settings.timeout)
    program: Program | None = None
    try:
        program = load_program(case.path, settings.assume, case.text)
        model = settings.model or program.model or DEFAULT_MODEL
        if settings.warnings_as_errors and program.warnings:
            message, span = program.warnings[0]
            raise InputError(message, span, hint="a warning, treated as an error by --warnings-as-errors")
        named = choose_model(settings.model, program.model, program.path, program.model_span)
        asked = make_question(program, replace(settings, timeout=within.left()))
        given = ask(program, named, asked, settings.engine)
        given = replace(given, reasons=with_total_time(given.reasons, settings.timeout))
    except InputError as error:
        return _failed(case, program, model, Verdict.ERROR, started, error)
    except Unsupported as error:
        return _failed(case, program, model, Verdict.UNKNOWN, started, error)
    except MemoryError:
        return _failed(case, program, model, Verdict.UNKNOWN, started, out_of_memory(settings.memory))
    except Exception as error:  # noqa: BLE001 - a crash in one test must not take the suite with it
        return _failed(case, program, model, Verdict.ERROR, started, crash_error(error), traceback_of(error))
    concluded = conclude(case.path, program, given, model, perf_counter() - started)
    return replace(concluded, digest=named.digest)


def conclude(path: str, program: Program, given: Answer, model: str, seconds: float) -> Result:
    """The result: the answer with the test's expectation."""
    return Result(
        path=path,
        name=program.name,
        condition=_condition(program),
        kind=program.condition.kind,
        verdict=given.verdict,
        expected=program.expectation.verdict,
        expected_kinds=program.expectation.kinds,
        expectation_span=program.expectation.span,
        model=model,
        outcomes=given.outcomes,
        complete=given.complete,
        undefined=given.undefined,
        ends=given.ends,
        findings=sort_by_cause(given.findings),
        executions=given.executions,
        engine=given.engine,
        chosen=given.chosen,
        seconds=seconds,
        reasons=given.reasons,
        warnings=program.warnings,
        source=program.source,
        notation=program.condition.notation,
        assumptions=program.assumptions.describe(),
        cut=given.cut,
    )


def out_of_memory(limit: int | None) -> OutOfMemory:
    """The reason for an answer that the memory limit prevented."""
    from mcheck.checking.run.worker_limits import no_memory

    return OutOfMemory("out of memory" if limit is None else no_memory(limit))


def make_question(program: Program, settings: Settings) -> Question:
    """The question about a test. Findings are included if the file expects some; then the engine may not stop at the
    verdict.
    """
    from mcheck.checking.policy.question import Completeness, Question

    short = settings.verdict_only and not program.expectation.kinds
    about = (
        Completeness.LIVENESS if settings.prop == "liveness" else Completeness.VERDICT if short else Completeness.STATES
    )
    return Question(
        about=about,
        profile=settings.profile,
        unroll=settings.unroll,
        timeout=settings.timeout,
        witnesses=settings.witnesses,
        without=frozenset(settings.without),
    )


def crash_error(error: BaseException) -> InternalError:
    """The one-line error for a bug of mcheck."""
    if isinstance(error, InternalError):
        return error
    return InternalError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def crashed_result(case: Case, settings: Settings, reason: Reason, seconds: float) -> Result:
    """The result of a test whose process was stopped or died."""
    return Result(
        path=case.path,
        name=_stem(case.path),
        verdict=Verdict.UNKNOWN,
        model=settings.model or DEFAULT_MODEL,
        seconds=seconds,
        reasons=(reason,),
        cut=True,
    )


def _failed(
    case: Case,
    program: Program | None,
    model: str,
    verdict: Verdict,
    started: float,
    problem: McheckError,
    debug: str = "",
) -> Result:
    return Result(
        path=case.path,
        name=program.name if program else _stem(case.path),
        condition=_condition(program) if program else "",
        kind=program.condition.kind if program else "none",
        verdict=verdict,
        expected=program.expectation.verdict if program else None,
        expected_kinds=program.expectation.kinds if program else (),
        model=model,
        seconds=perf_counter() - started,
        reasons=(error_reason(problem),),
        warnings=program.warnings if program else (),
        problem=problem,
        debug=debug,
        source=program.source if program else "",
    )


def format_located(problem: McheckError) -> str:
    """``path:line:column: message`` on one line, for the first of several errors."""
    return format_reasons((error_reason(problem),)) or ""


def list_reasons(reason: str | None, problem: McheckError | None) -> list[str]:
    """Why there is no answer: the reason, or all errors of a text that has several."""
    return [*([reason] if reason else []), *(format_located(other) for other in (problem.others if problem else ()))]


def _condition(program: Program) -> str:
    condition = program.condition
    text = condition.text.strip()
    if condition.kind == "none" or text.startswith((condition.kind, "~", "not", "final")):
        return text
    return f"{condition.kind} {text}"


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def traceback_of(error: BaseException) -> str:
    """The traceback, if ``MCHECK_DEBUG`` requests it."""
    if not os.environ.get("MCHECK_DEBUG"):
        return ""
    import traceback

    return "".join(traceback.format_exception(error))
