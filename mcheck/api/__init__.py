"""The Python API of mcheck, for scripts and notebooks.

::

    from mcheck.api import check, outcomes, run, suite

    run("MP.litmus").verdict
    outcomes("MP.litmus", forbidden=1).forbidden[0].axiom
    suite("litmus/classic").frame()

A test is a path, the text of a test (a string with a line break), or a program from ``load``. Limits are in seconds.
Errors in a test or a model raise ``mcheck.errors.InputError`` with their place; unsupported constructs raise
``mcheck.errors.Unsupported``. Names that are not documented here or in the reference may change without notice.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from mcheck.api.options import validate_options
from mcheck.api.results import CheckResult, FencesResult, Outcome, Outcomes, RunResult, State, SuiteResult
from mcheck.base.budget import Limit
from mcheck.base.errors import InputError
from mcheck.executions import executions

if TYPE_CHECKING:
    from mcheck.cat.ast import Model
    from mcheck.ir.program import Program

    Test = str | Path | Program

__all__ = [
    "CheckResult",
    "FencesResult",
    "Outcome",
    "Outcomes",
    "RunResult",
    "State",
    "SuiteResult",
    "check",
    "executions",
    "fences",
    "load",
    "outcomes",
    "run",
    "suite",
]


def load(test: Test) -> Program:
    """Load the program of a litmus test or a kernel sketch: its threads, memory and condition.

    Raises:
        InputError: The file cannot be read or has an error; the exception has its line and column.
    """
    return _load(test, every=False)


def _load(test: Test, *, every: bool) -> Program:
    """The program; with ``every`` it may have a constant ``const N = any``."""
    from mcheck.checking.run.single import load_program as read
    from mcheck.frontend.litmus import parse
    from mcheck.ir.program import Program

    if isinstance(test, Program):
        return test
    if isinstance(test, str) and "\n" in test:
        return parse(test, "test.litmus", every=every)
    return read(str(test), every=every)


def _model(name: str | None, program: Program) -> tuple[str, Model]:
    from mcheck.checking.run.case import DEFAULT_MODEL
    from mcheck.checking.run.single import choose_model

    found = choose_model(name, program.model, program.path, program.model_span)
    return name or program.model or DEFAULT_MODEL, found


def run(
    test: Test,
    *,
    model: str | None = None,
    engine: str = "auto",
    profile: str = "ptx",
    liveness: bool = False,
    unroll: int = 2,
    timeout: float | None = None,
) -> RunResult:
    """Decide the condition of a test and compute its final states: ``mcheck run``.

    Args:
        test: A path, a text or a program.
        model: The name of a shipped model or the path of a cat file; by default the model that the test names, or
            ``ptx-9.0``.
        engine: ``auto``, ``explicit``, ``z3``, ``protocol`` or ``both``.
        profile: ``strict``, ``ptx`` or ``permissive``.
        liveness: Check for executions that never terminate, instead of the condition.
        unroll: Maximum unrollings of loops with side effects.
        timeout: Limit in seconds, after which the verdict is ``unknown``.

    Raises:
        InputError: The test, the model or an option is invalid.
        Unsupported: The test uses constructs that mcheck does not support.
    """
    from mcheck.checking.run.case import Settings
    from mcheck.checking.run.inquiry import VerdictInquiry
    from mcheck.checking.run.single import answer_subject

    started, within = perf_counter(), Limit(timeout)
    validate_options(engine=engine, profile=profile, unroll=unroll, timeout=timeout)
    program = load(test)
    _, read = _model(model, program)
    prop = "liveness" if liveness else "spec"
    settings = Settings(model=model, engine=engine, prop=prop, profile=profile, unroll=unroll, timeout=timeout)
    return RunResult.from_result(answer_subject(program, read, settings, VerdictInquiry(), within, started))


def check(
    test: Test,
    *,
    model: str | None = None,
    engine: str = "auto",
    profile: str = "ptx",
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unroll: int = 2,
    timeout: float | None = None,
) -> CheckResult:
    """Find races, undefined behaviour and deadlocks of a test or a kernel sketch: ``mcheck check``.

    Args:
        test: A path, a text or a program.
        model: As for ``run``.
        engine: As for ``run``.
        profile: As for ``run``.
        select: Codes of findings, or their prefixes, to report exclusively.
        ignore: Codes, or their prefixes, to omit.
        unroll: As for ``run``.
        timeout: Limit in seconds, after which the verdict is ``unknown``.

    Raises:
        InputError: The program, the model or an option is invalid.
        Unsupported: The program uses constructs that mcheck does not support.
    """
    from mcheck.checking.check.inquiry import FindingsInquiry
    from mcheck.checking.run.case import Options, Settings
    from mcheck.checking.run.single import answer_subject

    started, within = perf_counter(), Limit(timeout)
    validate_options(engine=engine, profile=profile, unroll=unroll, timeout=timeout)
    program = _load(test, every=True)
    _, read = _model(model, program)
    options = Options(engine=engine, select=tuple(select), ignore=tuple(ignore))
    settings = Settings(model=model, profile=profile, unroll=unroll, timeout=timeout)
    return CheckResult.from_result(answer_subject(program, read, settings, FindingsInquiry(options), within, started))


def fences(
    test: str | Path, *, costs: str | None = None, trials: int | None = None, timeout: float | None = None
) -> FencesResult:
    """What a sketch can do without, or what fixes it: ``mcheck fences``.

    Args:
        test: A path or a text, in block form.
        costs: The path of a table of costs, in place of the shipped one.
        trials: Maximum number of changed programs that are checked for repairs.
        timeout: Limit in seconds for all checks.

    Raises:
        InputError: The file or the costs cannot be read, or an option is invalid.
    """
    from mcheck.base.files import read_text_file
    from mcheck.checking.fences.costs import read_costs
    from mcheck.checking.fences.examination import TRIALS, Limits, examine_text

    validate_options(unroll=0, timeout=timeout)
    written = isinstance(test, str) and "\n" in test
    path = "test.litmus" if written else str(test)
    try:
        text = str(test) if written else read_text_file(path)
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    limits = Limits(timeout=timeout, trials=trials or TRIALS)
    return FencesResult.from_examined(examine_text(path, text, read_costs(costs), limits))


def outcomes(
    test: Test,
    *,
    model: str | None = None,
    forbidden: int = 0,
    most: int = 100,
    profile: str = "ptx",
    unroll: int = 2,
    timeout: float | None = None,
) -> Outcomes:
    """Compute the final states of a test, each with an execution as picture and graph: ``mcheck outcomes``.

    Args:
        test: A path, a text or a program.
        model: As for ``run``.
        forbidden: Number of forbidden states to show, with the axioms that forbid them.
        most: Maximum number of executions to draw.
        profile: As for ``run``.
        unroll: As for ``run``.
        timeout: Limit in seconds, after which the states found so far are returned.

    Raises:
        InputError: The test, the model or an option is invalid.
        Unsupported: The test uses constructs that mcheck does not support.
    """
    from mcheck.checking.policy.executions import executions as shown
    from mcheck.checking.policy.question import Question
    from mcheck.report.trace import format_trace

    validate_options(profile=profile, unroll=unroll, timeout=timeout)
    program = load(test)
    named, read = _model(model, program)
    asked = Question(profile=profile, unroll=unroll, timeout=timeout, witnesses=True)
    found = shown(program, read, asked, forbidden=forbidden, drawn=most, networks=True)
    return Outcomes(
        name=program.name,
        model=named,
        allowed=tuple(
            Outcome(
                state=dict(outcome.state),
                executions=outcome.executions,
                witness=format_trace(outcome.witness),
                axiom=None,
                graph=found.networks.get(outcome.state),
                _drawn=found.allowed.get(outcome.state),
            )
            for outcome in found.answer.outcomes
        ),
        forbidden=tuple(
            Outcome(
                state=dict(f.state),
                executions=0,
                witness=f.cycle_steps,
                axiom=f.axiom,
                graph=f.network,
                _drawn=f.execution,
            )
            for f in found.forbidden
        ),
        complete=found.answer.complete,
        undefined=found.answer.undefined,
        findings=found.answer.findings,
    )


def suite(
    *paths: str | Path,
    expect: str | Path | None = None,
    model: str | None = None,
    engine: str = "auto",
    profile: str = "ptx",
    unroll: int = 2,
    timeout: float | None = None,
    memory: int | None = None,
    jobs: int = 1,
    cache: str | Path | None = None,
    scheduler: str | None = None,
) -> SuiteResult:
    """Run all tests of files and folders: ``mcheck run``. An error in one test does not end the run.

    Args:
        paths: Files or folders.
        expect: A table of rows ``path,1`` or ``path,0``, as for ``mcheck run --expect``.
        model: As for ``run``.
        engine: As for ``run``.
        profile: As for ``run``.
        unroll: As for ``run``.
        timeout: Limit in seconds per test.
        memory: Limit in bytes per test.
        jobs: Number of tests to run in parallel, each in its own process if more than 1.
        cache: A folder to cache answers in; if it is unusable (for instance on a full disk), a ``RuntimeWarning`` is
            issued and all answers are computed.
        scheduler: The address of a Dask scheduler whose workers run the tests, or ``local``.

    Raises:
        InputError: A file does not exist, or the model, an option, the table, the cache or the scheduler is invalid.
    """
    from mcheck.checking.backends import Backend
    from mcheck.checking.cache.database import open_store
    from mcheck.checking.run.case import Settings
    from mcheck.checking.run.collect import collect_tests
    from mcheck.checking.run.command import RUN
    from mcheck.checking.suite import answer_cases

    validate_options(engine=engine, profile=profile, unroll=unroll, timeout=timeout)
    settings = Settings(model=model, engine=engine, profile=profile, unroll=unroll, timeout=timeout, memory=memory)
    cases = collect_tests(map(str, paths), None if expect is None else str(expect))

    def say(text: str) -> None:
        warnings.warn(text, RuntimeWarning, stacklevel=2)

    with open_store(None if cache is None else str(cache), timeout=timeout, say=say) as store:
        backend = Backend(jobs=jobs, scheduler=scheduler, store=store)
        return SuiteResult(
            results=tuple(RunResult.from_result(result) for result in answer_cases(cases, settings, RUN, backend))
        )
