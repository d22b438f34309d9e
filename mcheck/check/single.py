"""One file: load it, ask an engine or several, hold the answer against what the file expects."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

from mcheck.answers.judgement import NOT_ALL, decides
from mcheck.answers.result import Answer
from mcheck.check.case import Checked, Options, Settings, Subject
from mcheck.check.selection import answered, selected
from mcheck.errors import InputError, McheckError, Unsupported
from mcheck.findings.finding import Finding
from mcheck.findings.order import by_cause
from mcheck.findings.suppress import apply
from mcheck.limit import of_all_the_time
from mcheck.policy.ask import ask
from mcheck.program.program import Program
from mcheck.run.case import DEFAULT_MODEL, Case
from mcheck.run.single import internal, load, located, model_of, out_of_memory, traceback_of


def check_case(case: Case, settings: Settings, options: Options) -> Checked:
    """The answer about one file; raises nothing but ``KeyboardInterrupt``."""
    started = perf_counter()
    program: Program | None = None
    try:
        program = load(case.path, settings.assume, case.text, every=True)
        name = settings.model or program.model or DEFAULT_MODEL
        model = model_of(name, None if settings.model else program.model_span)
        given = answered(lambda asked: ask(program, model, asked, options.engine), program, settings, options, started)
        given = replace(given, reason=of_all_the_time(given.reason, settings.timeout))
    except Exception as error:  # noqa: BLE001 - a crash in one file must not take the others with it
        return failed(case.path, program, error, settings, perf_counter() - started)
    concluded = conclude(case.path, program, given, options, perf_counter() - started)
    return replace(concluded, digest=model.digest)


def conclude(path: str, program: Program | Subject, given: Answer, options: Options, seconds: float) -> Checked:
    """The answer without what is not asked for and what the file suppresses, which it still counts."""
    others, left, warnings = apply(
        given.findings, program.source, program.path, all_found=given.verdict != "finding" or given.covered
    )
    kept = tuple(f for f in others if selected(f, options))
    suppressed = tuple((f, reason) for f, reason in left if selected(f, options))
    deselected = tuple(f for f in given.findings if not selected(f, options))
    assumptions = list(given.assumptions)
    assumptions += [f"{f.code} is suppressed in line {_line(f)}: {reason}" for f, reason in suppressed]
    if deselected:
        assumptions.append(f"not selected: {', '.join(sorted({f.code for f in deselected}))}")
    verdict = given.verdict
    reason = given.reason
    if verdict == "finding" and not any(map(decides, kept)):
        verdict, reason = ("finding", None) if given.covered else ("bounded", reason or NOT_ALL)
    return Checked(
        path=path,
        name=program.name,
        verdict=verdict,
        findings=by_cause(kept),
        suppressed=suppressed,
        deselected=deselected,
        expected=program.expectation.kinds,
        expectation_span=program.expectation.span,
        assumptions=tuple(assumptions),
        executions=given.executions,
        engine=given.engine,
        chosen=given.chosen,
        seconds=seconds,
        reason=reason,
        warnings=(*program.warnings, *warnings),
        source=program.source,
        cut=given.cut,
    )


def _line(finding: Finding) -> int:
    return next((a.span.line for a in finding.accesses if a.span is not None), 0)


# --- failures -------------------------------------------------------------------------------------------------


def failed(
    path: str, program: Program | Subject | None, error: Exception, settings: Settings, seconds: float
) -> Checked:
    """The answer about a file where something was raised; ``program`` is what was known of it."""
    verdict, problem, debug = _failure(error, settings)
    return Checked(
        path=path,
        name=program.name if program else path.rpartition("/")[2].rpartition(".")[0],
        verdict=verdict,
        expected=program.expectation.kinds if program else (),
        seconds=seconds,
        reason=located(problem),
        warnings=program.warnings if program else (),
        problem=problem,
        debug=debug,
        source=program.source if program else "",
    )


def _failure(error: Exception, settings: Settings) -> tuple[str, McheckError, str]:
    """The verdict, the problem in words, and the traceback of an error of ours where it is asked for."""
    match error:
        case InputError():
            return "error", error, ""
        case Unsupported():
            return "unknown", error, ""
        case MemoryError():
            return "unknown", out_of_memory(settings.memory), ""
        case RecursionError():
            return "unknown", Unsupported("the program is nested too deeply"), ""
    return "error", internal(error), traceback_of(error)


def lost(case: Case, _: Settings, reason: str, seconds: float) -> Checked:
    """The answer about a file whose process had to be stopped or died."""
    name = case.path.rpartition("/")[2].rpartition(".")[0]
    return Checked(path=case.path, name=name, verdict="unknown", reason=reason, seconds=seconds, cut=True)
