"""One file: load it, ask an engine or several, hold the answer against what the file expects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from mcheck.cat.ast import Model
from mcheck.check.agree import kinds_of
from mcheck.check.case import Checked, Options, Settings
from mcheck.check.suppress import apply
from mcheck.errors import InputError, InternalError, McheckError, Unsupported
from mcheck.findings.finding import Finding
from mcheck.program.ops import Atomic, Load, Store
from mcheck.program.program import Program
from mcheck.protocol.engine import Verdict, decides
from mcheck.run.case import DEFAULT_MODEL, Case
from mcheck.run.single import internal, load, located, model_of, traceback_of

SMALL = 40
"""Up to so many operations in all, ``auto`` lets the exhaustive engine look at a litmus test as well."""
EXPLICIT_SECONDS = 10.0
"""The time that ``auto`` gives the exhaustive engine."""

DISAGREE = "the engines disagree"


def task(options: Options) -> Callable[[Case, Settings], Checked]:
    """The function that checks one file with these options."""

    def run(case: Case, settings: Settings) -> Checked:
        return check_case(case, settings, options)

    return run


def check_case(case: Case, settings: Settings, options: Options) -> Checked:
    """The answer about one file; raises nothing but ``KeyboardInterrupt``."""
    started = perf_counter()
    program: Program | None = None
    try:
        program = load(case.path)
        name = settings.model or program.model or DEFAULT_MODEL
        given = ask(program, model_of(name, None if settings.model else program.model_span), settings, options)
    except InputError as error:
        return _failed(case, program, "error", started, error)
    except Unsupported as error:
        return _failed(case, program, "unknown", started, error)
    except MemoryError:
        return _failed(case, program, "unknown", started, Unsupported("out of memory"))
    except RecursionError:
        return _failed(case, program, "unknown", started, Unsupported("the program is nested too deeply"))
    except Exception as error:  # noqa: BLE001 - a crash in one file must not take the others with it
        return _failed(case, program, "error", started, internal(error), traceback_of(error))
    return conclude(case.path, program, given, options, perf_counter() - started)


def conclude(path: str, program: Program, given: Verdict, options: Options, seconds: float) -> Checked:
    """The answer without what is not asked for and what the file suppresses."""
    chosen = tuple(f for f in given.findings if _selected(f, options))
    kept, left, warnings = apply(chosen, program.source, program.path)
    assumptions = list(given.assumptions)
    assumptions += [f"{f.code} is suppressed in line {_line(f)}: {reason}" for f, reason in left]
    if len(chosen) < len(given.findings):
        codes = sorted({f.code for f in given.findings} - {f.code for f in chosen})
        assumptions.append(f"not selected: {', '.join(codes)}")
    verdict = given.verdict
    if verdict == "finding" and not any(map(decides, kept)):
        verdict = "bounded" if given.reason is not None else "proved"
    return Checked(
        path=path,
        name=program.name,
        verdict=verdict,
        findings=kept,
        suppressed=left,
        expected=program.expectation.kinds,
        expectation_span=program.expectation.span,
        assumptions=tuple(assumptions),
        executions=given.executions,
        engine=given.engine,
        seconds=seconds,
        reason=given.reason,
        warnings=(*program.warnings, *warnings),
        source=program.source,
    )


def _selected(finding: Finding, options: Options) -> bool:
    if options.select and not finding.code.startswith(options.select):
        return False
    return not (options.ignore and finding.code.startswith(options.ignore))


def _line(finding: Finding) -> int:
    return next((a.span.line for a in finding.accesses if a.span is not None), 0)


# --- engines ------------------------------------------------------------------------------------------------


def ask(program: Program, model: Model, settings: Settings, options: Options) -> Verdict:
    """What the engine of ``options`` says; ``auto`` takes the protocol engine, and the exhaustive one beside it for
    small litmus tests and where the other has no answer.
    """
    match options.engine:
        case "explicit" | "z3":
            return _exhaustive(program, model, settings, options.engine, settings.timeout)
        case "protocol":
            return _protocol(program, model, settings, options)
        case "both":
            return _both(program, model, settings, options)
    given = _protocol(program, model, settings, options)
    if given.verdict != "unknown" and (given.verdict == "finding" or not _wants_more(program)):
        return given
    other = _exhaustive(program, model, settings, "explicit", _least(settings.timeout, EXPLICIT_SECONDS))
    if given.verdict == "unknown":
        return other if other.verdict != "unknown" else given
    return other if other.verdict == "finding" else given


def _wants_more(program: Program) -> bool:
    """Whether this is a litmus test whose strong accesses are worth every execution of the model: what the protocol
    engine does not follow, reads from writes of the reader's future, shows there only.
    """
    if sum(len(t.code) for t in program.threads) > SMALL or len(program.threads) > 6:
        return False
    strong = {
        t.index
        for t in program.threads
        for op in t.code
        if (isinstance(op, Load | Store) and op.sem != "weak") or isinstance(op, Atomic)
    }
    return len(strong) > 1


def _least(a: float | None, b: float) -> float:
    return b if a is None else min(a, b)


def _protocol(
    program: Program, model: Model, settings: Settings, options: Options, *, thorough: bool = False
) -> Verdict:
    from mcheck.protocol.engine import MAX_EXECUTIONS, check

    return check(
        program,
        model,
        profile=settings.profile,
        unroll=settings.unroll,
        timeout=settings.timeout,
        limit=options.limit or MAX_EXECUTIONS,
        thorough=thorough,
    )


def _exhaustive(program: Program, model: Model, settings: Settings, engine: str, timeout: float | None) -> Verdict:
    """An engine over execution graphs, in the words of this command."""
    if engine == "z3":
        from mcheck.solve.engine import answer
    else:
        from mcheck.explore.engine import answer
    given = answer(program, model, unroll=settings.unroll, timeout=timeout, profile=settings.profile, findings=True)
    grave = any(map(decides, given.findings))
    wrong = any(f.severity == "error" for f in given.findings)
    certain = given.complete or given.undefined
    verdict = "finding" if wrong or (grave and certain) else "proved" if certain else "unknown"
    reason = None if verdict in ("finding", "proved") else given.reason or "not every execution was looked at"
    return Verdict(
        verdict=verdict,
        findings=given.findings,
        executions=given.executions,
        reason=reason,
        engine=engine,
        assumptions=(
            f"sizes as written: {len(program.threads)} threads, loops by their trip counts",
            "the scheduler is fair: whoever can go on does, and every write is seen at last",
        ),
    )


def _both(program: Program, model: Model, settings: Settings, options: Options) -> Verdict:
    """All engines; differing answers are an error of ours: one finds a kind (for review or worse) that another lacks.

    Each looks at everything, where the protocol engine alone stops a while after the first error. Where only one has an
    answer in full, that is said.
    """
    given = [_protocol(program, model, settings, options, thorough=True)]
    given += [_exhaustive(program, model, settings, engine, settings.timeout) for engine in ("explicit", "z3")]
    full = [v for v in given if v.reason is None]
    if len(full) < 2:
        best = next(iter(full), None) or next((v for v in given if v.verdict != "unknown"), given[0])
        others = "; ".join(f"{v.engine}: {v.reason}" for v in given if v is not best)
        note = f"only the {best.engine} engine answers this in full ({others})"
        return replace(best, assumptions=(*best.assumptions, note))
    first, *rest = full
    for other in rest:
        ours, theirs = (kinds_of(v.findings) for v in (first, other))
        if ours != theirs:
            names = [", ".join(sorted(kinds)) or "nothing" for kinds in (ours, theirs)]
            raise InternalError(f"{DISAGREE}: {first.engine} finds {names[0]}, {other.engine} finds {names[1]}")
    *names, last = (v.engine for v in full)
    return replace(first, engine=f"{', '.join(names)} and {last}")


# --- failures -------------------------------------------------------------------------------------------------


def _failed(
    case: Case, program: Program | None, verdict: str, started: float, problem: McheckError, debug: str = ""
) -> Checked:
    return Checked(
        path=case.path,
        name=program.name if program else case.path.rpartition("/")[2].rpartition(".")[0],
        verdict=verdict,
        expected=program.expectation.kinds if program else (),
        seconds=perf_counter() - started,
        reason=located(problem),
        warnings=program.warnings if program else (),
        problem=problem,
        debug=debug,
        source=program.source if program else "",
    )


def lost(path: str, reason: str | None, seconds: float) -> Checked:
    """The answer about a file whose process had to be stopped or died."""
    name = path.rpartition("/")[2].rpartition(".")[0]
    return Checked(path=path, name=name, verdict="unknown", reason=reason, seconds=seconds)
