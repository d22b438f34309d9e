"""``mcheck fences``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from mcheck.tools.cli import launch, sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcheck.checking.check.cuda_sources import PreparedFile
    from mcheck.checking.fences.examination import Examined
    from mcheck.checking.run.case import Options


@click.command("fences", short_help="Show which fences, waits and orders a proof needs.", cls=sources.ProgramCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH... [-- PROGRAM ARGUMENT...]")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Time for each file.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form.")
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Checks in parallel (default: one per core)."
)
@launch.options
@sources.options
def command(paths: tuple[str, ...], timeout: float | None, form: str, jobs: int | None, **launched: Any) -> int:
    """Show which fences, barriers, waits, orders and scopes of a proved program can go or be weaker.

    Each is removed or weakened in the text, and the program checked again: only a proof counts, and where a test has a
    condition, the same answer to it. Litmus tests, sketches, PTX modules and CUDA C++ are examined; modules and sources
    are launched as in mcheck check, and copies that the compiler made of an instruction go together.
    """
    from mcheck.checking.check.files import collect_files, explain_skipped_modules, is_source
    from mcheck.checking.run.case import Options
    from mcheck.checking.run.pool import default_jobs
    from mcheck.report import fences
    from mcheck.report.problems import show_warning

    said = launch.read_options(paths, launched)
    cases, bare = collect_files(paths, launched=said is not None)
    if bare:
        show_warning(f"{explain_skipped_modules(bare)}: skipped", None, color="auto")
    about = sources.read_options(launched)
    prepared: Mapping[str, PreparedFile] = {}
    if about.program or any(is_source(case.path) for case in cases):
        from mcheck.checking.check.cuda_sources import prepare_files

        prepared = prepare_files([case.path for case in cases], about, launched=said is not None)
        sources.say_prepared(prepared)
    launches = tuple((file.module, file.launch) for file in prepared.values() if file.launch is not None)
    options = Options(launch=said, launches=launches)
    workers = default_jobs() if jobs is None else jobs
    examined = [_examine(case.path, prepared.get(case.path), timeout, options, workers) for case in cases]
    if form == "json":
        click.echo(fences.document(examined), nl=False)
    else:
        for each in examined:
            click.echo("\n".join(fences.lines(each)))
    verdicts = {str(each.verdict) for each in examined}
    return 2 if "error" in verdicts else 1 if "finding" in verdicts else 0 if verdicts <= {"proved"} else 3


def _examine(path: str, file: PreparedFile | None, timeout: float | None, options: Options, jobs: int) -> Examined:
    from mcheck.base.verdicts import Verdict
    from mcheck.checking.fences.examination import Examined, examine

    if file is None:
        return examine(path, timeout, options, jobs)
    if file.problem is not None:
        return Examined(path, Verdict.ERROR, None, file.problem.message)
    return replace(examine(file.module, timeout, options, jobs), path=path)
