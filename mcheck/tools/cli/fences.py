"""``mcheck fences``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mcheck.base.records import replace
from mcheck.tools.cli import launch, options, sources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcheck.checking.check.cuda_sources import PreparedFile
    from mcheck.checking.fences.examination import Examined
    from mcheck.checking.run.case import Case

STYLES = {"+": "green", "-": "red", "@": "cyan"}
"""The colours of the lines of a diff, by their first character."""


@click.command("fences", short_help="Show which fences, waits and orders a proof needs.", cls=sources.ProgramCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH... [-- PROGRAM ARGUMENT...]")
@options.timeout
@options.cpu_timeout
@options.model
@options.profile
@options.format_("text", "json", "sarif")
@click.option("--costs", metavar="FILE", help="Take the cycles of instructions from FILE (TOML), to order repairs.")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    metavar="N",
    help="Check at most N changed programs for repairs of a file (default: 400).",
)
@click.option("--fix", is_flag=True, help="Write the program with its cheapest repair, or without what can go.")
@click.option("-o", "--output", "target", metavar="FILE", help="With --fix: write the program to FILE, atomically.")
@click.option("--overwrite", is_flag=True, help="With --fix: FILE may be the program itself.")
@options.jobs("Checks")
@options.cache
@launch.options
@sources.options
@options.color
def command(
    paths: tuple[str, ...],
    timeout: float | None,
    cpu_timeout: float | None,
    model: str | None,
    profile: str,
    form: str,
    costs: str | None,
    trials: int | None,
    fix: bool,
    target: str | None,
    overwrite: bool,
    jobs: int | None,
    cache: str | None,
    color: str,
    **launched: Any,
) -> int:
    """Show which fences, barriers, waits, orders and scopes of a proved program can go or be weaker, and what fixes a
    sketch with findings.

    Each change is made in the text, and the program checked again: only a proof counts, and where a test has a
    condition, the same answer to it. Litmus tests, sketches, PTX modules and CUDA C++ are examined; modules and sources
    are launched as in mcheck check, and copies that the compiler made of an instruction go together. Limits of time are
    for all checks of a file together.
    """
    from mcheck.checking.check.files import collect_files, explain_skipped_modules
    from mcheck.checking.fences.costs import read_costs
    from mcheck.checking.fences.examination import TRIALS, Limits, examine
    from mcheck.checking.run.case import Options, Settings
    from mcheck.checking.run.pool import default_jobs
    from mcheck.checking.run.single import load_model
    from mcheck.report import fences
    from mcheck.report.formats import fences_sarif
    from mcheck.report.lines import Printer
    from mcheck.report.output import output, wants_color
    from mcheck.report.problems import show_warning

    said = launch.read_options(paths, launched)
    cases, bare = collect_files(paths, launched=said is not None)
    if bare:
        show_warning(f"{explain_skipped_modules(bare)}: skipped", None, color=color)
    _check_target([case.path for case in cases], fix=fix, target=target, overwrite=overwrite)
    limit, processor_time = options.choose_limit(timeout, cpu_timeout)
    limits = Limits(
        timeout=limit, processor_time=processor_time, trials=trials or TRIALS, jobs=jobs or default_jobs()
    )  # fmt: skip
    table = read_costs(costs)
    prepared = _prepare(cases, launched, has_launch=said is not None)
    launches = tuple((file.module, file.launch) for file in prepared.values() if file.launch is not None)
    chosen = Options(launch=said, launches=launches)
    settings = Settings(model=model, profile=profile)
    if model is not None:
        load_model(model)
    with options.open_backend(jobs, cache, None, None, limit) as backend:
        examined = [
            _examine(
                case.path,
                prepared.get(case.path),
                lambda path: examine(path, limits, table, chosen, settings, backend.store),
            )
            for case in cases
        ]
    with output(None) as stream:
        if form == "json":
            stream.write(fences.document(examined))
        elif form == "sarif":
            stream.write(fences_sarif.document(examined, _exit_status(examined)))
        else:
            printer = Printer(stream, color=wants_color(color, stream))
            for line in (line for each in examined for line in fences.lines(each)):
                style = STYLES.get(line.strip()[:1])
                printer.line(line if style is None else (line, style))
    if fix:
        _write(examined[0], str(target))
    return _exit_status(examined)


def _exit_status(examined: list[Examined]) -> int:
    verdicts = {str(each.verdict) for each in examined}
    return 2 if "error" in verdicts else 1 if "finding" in verdicts else 0 if verdicts <= {"proved"} else 3


def _prepare(cases: list[Case], launched: dict[str, Any], *, has_launch: bool) -> Mapping[str, PreparedFile]:
    """The modules that are made of sources, and modules whose launches a program makes."""
    from mcheck.checking.check.files import is_source

    about = sources.read_options(launched)
    if not (about.program or any(is_source(case.path) for case in cases)):
        return {}
    from mcheck.checking.check.cuda_sources import prepare_files

    prepared = prepare_files([case.path for case in cases], about, launched=has_launch)
    sources.say_prepared(prepared)
    return prepared


def _examine(path: str, file: PreparedFile | None, examine: Callable[[str], Examined]) -> Examined:
    from mcheck.base.verdicts import Verdict
    from mcheck.checking.fences.examination import Examined

    if file is None:
        return examine(path)
    if file.problem is not None:
        return Examined(path, Verdict.ERROR, None, file.problem.message)
    return replace(examine(file.module), path=path)


def _check_target(paths: list[str], *, fix: bool, target: str | None, overwrite: bool) -> None:
    """Refuses in advance what could not be written, or not without harm."""
    import os

    from mcheck.checking.check.files import is_source
    from mcheck.report.output import refuse_unwritable

    if not fix:
        if target is not None or overwrite:
            raise click.UsageError("-o and --overwrite are about the program that --fix writes")
        return
    if target is None:
        raise click.UsageError("--fix: say with -o FILE where the program is to be written")
    if len(paths) != 1:
        raise click.UsageError(f"--fix writes one program, and these are {len(paths)}")
    if is_source(paths[0]):
        raise click.UsageError(f"--fix changes PTX, and {paths[0]} is its source: the report has the lines to change")
    if os.path.exists(target) and os.path.samefile(target, paths[0]) and not overwrite:
        raise click.UsageError(f"{target} is the program itself: --overwrite replaces it")
    refuse_unwritable(target)


def _write(examined: Examined, target: str) -> None:
    """Writes the changed program, if there is a change."""
    from mcheck.report.output import replace_file

    if examined.fixed is None:
        click.echo(f"{examined.path}: nothing to change, so {target} is not written", err=True)
        return
    replace_file(target, examined.fixed.encode("utf-8"))
    click.echo(f"{target}: written", err=True)
