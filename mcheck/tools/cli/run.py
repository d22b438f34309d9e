"""``mcheck run``."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import IO, TYPE_CHECKING

import click

from mcheck.base.verdicts import Verdict
from mcheck.tools.cli import options
from mcheck.tools.cli.configuration import ConfiguredCommand

if TYPE_CHECKING:
    from mcheck.checking.backends import Backend
    from mcheck.checking.run.case import Case, Settings
    from mcheck.checking.run.result import Result
    from mcheck.checking.run.summary import Summary
    from mcheck.report.lines import Printer


@click.command(
    "run", short_help="Run litmus tests and compare the verdicts with the expected ones.", cls=ConfiguredCommand
)
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--expect",
    metavar="FILE.csv",
    help="Expected verdicts: rows path,1 (pass) or path,0 (fail), relative to FILE. Without PATH, run these rows.",
)
@click.option("--shipped", is_flag=True, help="Run the shipped suites.")
@options.model
@options.engine
@options.prop
@options.profile
@options.format_("text", "json", "junit", "sarif", "github", "herd")
@options.target
@options.sarif
@click.option("--verdict-only", is_flag=True, help="Stop once the verdict is certain; the states may be incomplete.")
@options.jobs("Tests run")
@options.cache
@options.resume
@options.scheduler
@options.tls
@options.timeout
@options.cpu_timeout
@options.memory
@options.unroll
@options.assume
@options.without
@click.option("-W", "--warnings-as-errors", is_flag=True, help="Treat warnings as errors.")
@options.color
@click.option(
    "-v", "--verbose", is_flag=True, help="Show the states and findings of every test, and times on standard error."
)
@click.option("-q", "--quiet", is_flag=True, help="Show only tests that are not ok, and the counts.")
def command(
    paths: tuple[str, ...],
    expect: str | None,
    shipped: bool,
    model: str | None,
    engine: str,
    prop: str,
    profile: str,
    form: str,
    target: str | None,
    sarif_file: str | None,
    verdict_only: bool,
    jobs: int | None,
    cache: str | None,
    resume: str | None,
    scheduler: str | None,
    tls: str | None,
    timeout: float | None,
    cpu_timeout: float | None,
    memory: int | None,
    unroll: int,
    assume: tuple[str, ...],
    without: tuple[str, ...],
    warnings_as_errors: bool,
    color: str,
    verbose: bool,
    quiet: bool,
) -> int:
    """Run litmus tests and compare the verdicts with those that the tests, or FILE.csv, expect. PATH is a file, or a
    folder with *.litmus files.

    States and findings are shown for a single test; for several, only for those that are not as expected (-v: all).

    \b
    mcheck run MP.litmus
    mcheck run litmus --model ptx-9.3 -q
    mcheck run --expect suite.csv --property liveness --format junit -o report.xml
    """
    from mcheck.checking.run.case import Settings
    from mcheck.checking.run.collect import collect_tests
    from mcheck.report.output import open_second_output, output, wants_color

    started = perf_counter()
    timeout, by_processor = options.choose_limit(timeout, cpu_timeout)
    if shipped:
        from mcheck.base.resources import litmus

        paths = (*paths, litmus())
    if not paths and expect is None:
        raise click.UsageError("nothing to run: give a PATH, --expect FILE.csv, or --shipped")
    cases = collect_tests(paths, expect)
    details = verbose or (len(cases) == 1 and not quiet)
    only_unexpected = form == "text" and not details and sarif_file is cache is resume is None
    settings = Settings(
        model=model,
        engine=engine,
        prop=prop,
        profile=profile,
        verdict_only=verdict_only,
        unroll=unroll,
        timeout=timeout,
        processor_time=by_processor,
        memory=memory,
        fixes_where_expected=not only_unexpected,
        warnings_as_errors=warnings_as_errors,
        assume=assume,
        without=without,
    )
    how = options.open_backend(jobs, cache, resume, scheduler, timeout, tls)
    with how as backend, open_second_output(sarif_file) as second, output(target) as stream:
        from mcheck.report.lines import Printer

        printer = Printer(stream, color=form == "text" and wants_color(color, stream))
        summary = _report(
            cases, settings, backend, form, printer, stream, second, started, color,
            details=details, verbose=verbose, quiet=quiet,
        )  # fmt: skip
    if verbose or sys.stderr.isatty():
        click.echo(f"{summary.seconds:.2f} s", err=True)
    return summary.exit_status


def _report(
    cases: list[Case],
    settings: Settings,
    backend: Backend,
    form: str,
    printer: Printer,
    stream: IO[str],
    second: IO[str] | None,
    started: float,
    color: str,
    *,
    details: bool,
    verbose: bool,
    quiet: bool,
) -> Summary:
    from mcheck.checking.run.case import DEFAULT_MODEL
    from mcheck.checking.run.command import RUN
    from mcheck.checking.run.summary import Counter
    from mcheck.checking.suite import answer_cases
    from mcheck.report.problems import show, show_warning
    from mcheck.report.progress import Bar
    from mcheck.report.text import TextReport

    text: TextReport | None = None
    if form == "text":
        text = TextReport(
            printer, details=details, quiet=quiet, states=None if verbose else 40, alone=stream is not sys.stdout
        )
    results: list[Result] = []
    counts = Counter()
    visible = stream.isatty() and text is not None
    with Bar(len(cases), printer if visible else None, enabled=sys.stderr.isatty()) as bar:
        for result in answer_cases(cases, settings, RUN, backend):
            counts.add(result)
            for message, span in result.warnings:
                if not settings.warnings_as_errors:
                    show_warning(message, span, color=color)
            if result.problem is not None and result.verdict is Verdict.ERROR:
                show(result.problem, color=color, debug=result.debug)
            if text is not None:
                text.result(result)
            if text is None or second is not None:
                results.append(result)
            if verbose and len(cases) > 1:
                click.echo(f"{result.seconds:9.3f} s  {result.path}", err=True)
            bar.advance(result.verdict, ok=result.ok)
    summary = counts.summary(perf_counter() - started)
    if text is not None:
        if len(cases) > 1 or summary.ok != 1:
            text.finish(summary)
    else:
        stream.write(_document(form, settings.model or DEFAULT_MODEL, results, summary))
    if second is not None:
        second.write(_document("sarif", settings.model or DEFAULT_MODEL, results, summary))
    return summary


def _document(form: str, model: str, results: list[Result], summary: Summary) -> str:
    if form == "json":
        from mcheck.report.formats.json_ import run_document

        return run_document(model, results, summary)
    if form == "junit":
        from mcheck.report.formats import junit

        return junit.document(results)
    if form == "herd":
        from mcheck.report.formats import herd

        return herd.document(results)
    if form == "sarif":
        from mcheck.report.formats import sarif_run

        return sarif_run.document(results, summary)
    from mcheck.report.formats import github

    return github.document(results, summary)
