"""Checks one file: loads it, asks one or several engines, compares the findings with what the file expects."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import is_decisive, verdict_of
from mcheck.base.budget import Limit
from mcheck.base.errors import InputError, McheckError, Unsupported
from mcheck.base.reasons import Cause, Reason, error_reason, with_total_time
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.case import Checked, Options, Settings, Subject
from mcheck.checking.check.selection import find_all, is_selected
from mcheck.checking.policy.ask import ask
from mcheck.checking.run.case import Case
from mcheck.checking.run.single import choose_model, crash_error, load_program, out_of_memory, traceback_of
from mcheck.findings.finding import Finding
from mcheck.findings.ordering import sort_by_cause
from mcheck.findings.suppress import apply_suppressions
from mcheck.ir.program import Program


def check_case(case: Case, settings: Settings, options: Options) -> Checked:
    """The result of checking one file; raises only ``KeyboardInterrupt``."""
    started, within = perf_counter(), Limit(settings.timeout)
    program: Program | None = None
    try:
        program = load_program(case.path, settings.assume, case.text, every=True)
        model = choose_model(settings.model, program.model, program.path, program.model_span)
        given = find_all(lambda asked: ask(program, model, asked, options.engine), program, settings, options, within)
        given = replace(given, reasons=with_total_time(given.reasons, settings.timeout))
    except Exception as error:  # noqa: BLE001 - a crash in one file must not take the others with it
        return failed_result(case.path, program, error, settings, perf_counter() - started)
    concluded = conclude(case.path, program, given, options, perf_counter() - started)
    return replace(concluded, digest=model.digest)


def conclude(path: str, program: Program | Subject, given: Answer, options: Options, seconds: float) -> Checked:
    """The result with deselected and suppressed findings set apart; they are still counted."""
    others, left, warnings = apply_suppressions(
        given.findings, program.source, program.path, all_found=given.verdict is not Verdict.FINDING or given.covered
    )
    kept = tuple(f for f in others if is_selected(f, options))
    suppressed = tuple((f, reason) for f, reason in left if is_selected(f, options))
    deselected = tuple(f for f in given.findings if not is_selected(f, options))
    assumptions = list(given.assumptions)
    assumptions += [f"{f.code} is suppressed in line {_line(f)}: {reason}" for f, reason in suppressed]
    if deselected:
        assumptions.append(f"not selected: {', '.join(sorted({f.code for f in deselected}))}")
    verdict, reasons = given.verdict, given.reasons
    if verdict is Verdict.FINDING and not given.covered and not any(map(is_decisive, kept)):
        reasons = reasons or (Reason(Cause.FIRST_ERRORS),)  # an engine stops soon after them, and gives no reason
        verdict, reasons = verdict_of(kept, covered=False, reasons=reasons)
    return Checked(
        path=path,
        name=program.name,
        verdict=verdict,
        findings=sort_by_cause(kept),
        suppressed=suppressed,
        deselected=deselected,
        expected=program.expectation.kinds,
        expectation_span=program.expectation.span,
        assumptions=tuple(assumptions),
        executions=given.executions,
        engine=given.engine,
        chosen=given.chosen,
        seconds=seconds,
        reasons=reasons,
        warnings=(*program.warnings, *warnings),
        source=program.source,
        cut=given.cut,
        covers=given.covers,
        launches=given.launches,
    )


def _line(finding: Finding) -> int:
    return next((a.span.line for a in finding.accesses if a.span is not None), 0)


# --- failures -------------------------------------------------------------------------------------------------


def failed_result(
    path: str, program: Program | Subject | None, error: Exception, settings: Settings, seconds: float
) -> Checked:
    """The result for a file if an exception was raised; ``program`` is what was known by then."""
    verdict, problem, debug = _failure(error, settings)
    return Checked(
        path=path,
        name=program.name if program else path.rpartition("/")[2].rpartition(".")[0],
        verdict=verdict,
        expected=program.expectation.kinds if program else (),
        seconds=seconds,
        reasons=(error_reason(problem),),
        warnings=program.warnings if program else (),
        problem=problem,
        debug=debug,
        source=program.source if program else "",
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


def crashed_check(case: Case, _: Settings, reason: Reason, seconds: float) -> Checked:
    """The result for a file whose process was stopped or died."""
    name = case.path.rpartition("/")[2].rpartition(".")[0]
    return Checked(
        path=case.path, name=name, verdict=Verdict.UNKNOWN, reasons=(reason,), seconds=seconds, cut=True
    )  # fmt: skip
