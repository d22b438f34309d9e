"""``mcheck check``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from mcheck.base.verdicts import Verdict
from mcheck.tools.cli import baseline, launch, options, sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from mcheck.checking.check.cuda_sources import PreparedFile
    from mcheck.checking.run.case import Case
    from mcheck.checking.run.result import Result
    from mcheck.checking.run.summary import Summary

ENGINES = ("auto", "explicit", "z3", "protocol", "both")


def _codes(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Comma-separated codes or prefixes of codes; each must match at least one finding."""
    from mcheck.findings import catalogue

    found = []
    for part in ",".join(value).split(","):
        code = part.strip().upper()
        if not code:
            continue
        if not any(entry.code.startswith(code) for entry in catalogue.all()):
            raise click.BadParameter(f"no finding code starts with {part.strip()!r}; see mcheck explain", ctx, param)
        found.append(code)
    return tuple(found)


@click.command("check", short_help="Find races, undefined behaviour and deadlocks.", cls=sources.ProgramCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH... [-- PROGRAM ARGUMENT...]")
@options.model
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="auto",
    show_default=True,
    help="protocol: stateless model checking of whole warps; explicit: enumerates every execution; z3: solves for "
    "executions; both: all engines that support the test must agree.",
)
@options.profile
@options.format_("text", "concise", "json", "sarif", "github", "junit", "gitlab")
@options.target
@options.sarif
@click.option(
    "--select", multiple=True, metavar="CODES", callback=_codes, help="Report only these codes or prefixes (RACE,UB2)."
)
@click.option("--ignore", multiple=True, metavar="CODES", callback=_codes, help="Omit these codes or prefixes.")
@click.option(
    "--max-executions",
    "limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum executions of the protocol engine.",
)
@options.jobs("Files checked")
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
@launch.options
@sources.options
@baseline.options
@click.option("--emit-sketch", "emitted", metavar="FILE", help="Write the sketch of one PTX module to FILE.")
@options.color
@click.option("--all", "every", is_flag=True, help="Show each finding, not one for each bug.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Show all bugs of every file, with schedules, instructions and assumptions."
)
@click.option("-q", "--quiet", is_flag=True, help="Show only files that are not as expected, and the counts.")
def command(
    paths: tuple[str, ...],
    model: str | None,
    engine: str,
    profile: str,
    form: str,
    target: str | None,
    sarif_file: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    limit: int | None,
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
    emitted: str | None,
    color: str,
    every: bool,
    verbose: bool,
    quiet: bool,
    **launched: Any,
) -> int:
    """Find races, undefined behaviour and deadlocks in kernel sketches, litmus tests, PTX modules and CUDA C++. PATH is
    a file or a folder.

    The launch of K.ptx or K.cu is read from --launch, or from K.json or K.launch.json in the same folder; --entry,
    --grid, --block, --cluster, --shared and --param override the file. Or PROGRAM is run without a GPU, and its
    launches are checked; without any of these, main() of K.cu is. nvcc compiles K.cu (PATH, CUDA_HOME, or the package
    nvidia-cuda-nvcc).

    A finding that the file expects counts as expected. The comment `// mcheck: ignore CODE reason` suppresses findings
    at its line. Exit status: 0 nothing found, 1 a finding of severity error, 2 usage or parse error, 3 not everything
    could be checked.

    \b
    mcheck check ring.litmus
    mcheck check kernel.ptx --launch kernel.json
    mcheck check kernel.cu -- ./program 4096
    mcheck check kernels --format sarif -o findings.sarif
    """
    from mcheck.checking.check.command import check_command
    from mcheck.checking.check.files import (
        collect_files,
        explain_skipped_modules,
        hint_for_skipped,
        is_module,
        is_source,
    )
    from mcheck.checking.run.case import DEFAULT_MODEL, Options, Settings
    from mcheck.checking.run.summary import summarize
    from mcheck.checking.suite import answer_cases
    from mcheck.report.checked import TextReport
    from mcheck.report.lines import Printer
    from mcheck.report.output import open_second_output, output, wants_color
    from mcheck.report.problems import show, show_warning
    from mcheck.report.progress import Bar

    started = perf_counter()
    timeout, by_processor = options.choose_limit(timeout, cpu_timeout)
    said = launch.read_options(paths, launched)
    cases, bare = collect_files(paths, launched=said is not None)
    if bare:
        hint = hint_for_skipped(bare)
        more = f"; {hint}" if hint else ""
        show_warning(f"{explain_skipped_modules(bare)}: skipped{more}", None, color=color)
    about = sources.read_options(launched)
    known = baseline.BaselineFile(launched, scheduler)
    prepared: Mapping[str, PreparedFile] = {}
    if about.program or any(is_source(case.path) for case in cases):
        from mcheck.checking.check.cuda_sources import prepare_files

        prepared = prepare_files([case.path for case in cases], about, launched=said is not None)
        if not quiet:
            sources.say_prepared(prepared)
    cases, prepared = sources.named_by_sources(cases, prepared)
    todo = sources.prepared_cases(cases, prepared)
    if emitted is not None and (len(todo) != 1 or not is_module(todo[0].path)):
        raise click.UsageError("--emit-sketch needs exactly one PTX module")
    settings = Settings(
        model=model,
        profile=profile,
        unroll=unroll,
        timeout=timeout,
        processor_time=by_processor,
        memory=memory,
        assume=assume,
        without=without,
    )
    launches = tuple((f.module, f.launch) for f in prepared.values() if f.launch is not None)
    chosen = Options(
        engine=engine, select=select, ignore=ignore, limit=limit, launch=said, launches=launches,
        baseline=known.known_in(cases, {f.path: f.module for f in prepared.values()}), thorough=known.thorough,
    )  # fmt: skip
    results: list[Result] = []
    how = options.open_backend(jobs, cache, resume, scheduler, timeout, tls)
    with how as backend, open_second_output(sarif_file) as second, output(target) as stream:
        printer = Printer(stream, color=form == "text" and wants_color(color, stream))
        details = verbose or (len(cases) == 1 and not quiet)
        text = (
            TextReport(
                printer, details=details, quiet=quiet, every=every, verbose=verbose, alone=stream is not sys.stdout
            )
            if form == "text"
            else None
        )
        shown = printer if stream.isatty() and text is not None else None
        alone = _show_progress(cases, limited=timeout is not None) if not quiet else nullcontext()
        with alone, Bar(len(cases), shown, enabled=sys.stderr.isatty()) as bar:
            answers = answer_cases(todo, settings, check_command(chosen), backend)
            for result in sources.restored_results(cases, prepared, answers, settings):
                for message, span in result.warnings:
                    show_warning(message, span, color=color)
                if result.problem is not None and result.verdict is Verdict.ERROR:
                    sources.say_before(result.problem)
                    show(result.problem, color=color, debug=result.debug)
                    sources.say_after(result.problem)
                if text is not None:
                    text.result(result)
                results.append(result)
                bar.advance(result.headline, ok=result.status == "ok")
        counts = summarize(results, perf_counter() - started)
        if text is not None:
            if len(cases) > 1:
                text.finish(counts)
        else:
            stream.write(_document(form, settings.model or DEFAULT_MODEL, profile, results, counts))
        if second is not None:
            second.write(_document("sarif", settings.model or DEFAULT_MODEL, profile, results, counts))
    written = known.finish(results)
    if emitted is not None and results[0].verdict is not Verdict.ERROR:
        from mcheck.checking.check.skeleton import skeleton

        text_of_sketch = skeleton(todo[0], settings, chosen, wrong=results[0].verdict is Verdict.FINDING)
        with output(emitted) as stream:
            stream.write(text_of_sketch)
    if verbose or sys.stderr.isatty():
        click.echo(f"{counts.seconds:.2f} s", err=True)
    return 0 if written and counts.exit_status == 1 else counts.exit_status


def _show_progress(cases: Sequence[Case], *, limited: bool) -> AbstractContextManager[object]:
    """Says meanwhile how far the check of a single file has come; of several each result does."""
    from mcheck.report.progress import CheckProgress

    if len(cases) != 1:
        return nullcontext()
    hint = "" if limited else "; with --timeout SECONDS what was found by then is reported"
    return CheckProgress(sys.stderr, cases[0].path, hint)


def _document(form: str, model: str, profile: str, results: list[Result], counts: Summary) -> str:
    from mcheck.report import checked
    from mcheck.report.formats import sarif

    match form:
        case "concise":
            return checked.concise(results)
        case "json":
            return checked.document(model, profile, results, counts)
        case "sarif":
            return sarif.document(results, counts.exit_status)
        case "gitlab":
            from mcheck.report.formats import gitlab

            return gitlab.document(results)
        case "github":
            return checked.github(results, counts)
    return checked.junit(results)
