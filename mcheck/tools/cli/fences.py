"""``mcheck fences``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcheck.tools.cli import options

if TYPE_CHECKING:
    from mcheck.checking.fences.examination import Examined

STYLES = {"+": "green", "-": "red", "@": "cyan"}
"""The colours of the lines of a diff, by their first character."""


@click.command("fences", short_help="Show which fences, waits and orders a proof needs.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@options.timeout
@options.cpu_timeout
@options.format_("text", "json")
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
@options.color
def command(
    paths: tuple[str, ...],
    timeout: float | None,
    cpu_timeout: float | None,
    form: str,
    costs: str | None,
    trials: int | None,
    fix: bool,
    target: str | None,
    overwrite: bool,
    color: str,
) -> int:
    """Show which fences, barriers, waits, orders and scopes of a proved sketch can go or be weaker, and what mends a
    sketch with findings.

    Each change is made in the text, and the program checked again: only a proof counts. Litmus files in block form are
    examined; modules and conditions are not. Limits of time are for all checks of a file together.
    """
    from mcheck.checking.fences.costs import read_costs
    from mcheck.checking.fences.examination import TRIALS, Limits, examine
    from mcheck.checking.run.collect import collect_tests
    from mcheck.report import fences
    from mcheck.report.output import output, wants_color

    found = [case.path for case in collect_tests(list(paths))]
    _check_target(found, fix=fix, target=target, overwrite=overwrite)
    limit, processor_time = options.choose_limit(timeout, cpu_timeout)
    limits = Limits(timeout=limit, processor_time=processor_time, trials=trials or TRIALS)
    table = read_costs(costs)
    examined = [examine(path, None, table, limits) for path in found]
    with output(None) as stream:
        if form == "json":
            stream.write(fences.document(examined))
        else:
            coloured = wants_color(color, stream)
            for line in (line for each in examined for line in fences.lines(each)):
                mark = line.strip()[:1]
                stream.write((click.style(line, fg=STYLES.get(mark)) if coloured and mark in STYLES else line) + "\n")
    if fix:
        _write(examined[0], str(target))
    verdicts = {str(each.verdict) for each in examined}
    return 2 if "error" in verdicts else 1 if "finding" in verdicts else 0 if verdicts <= {"proved"} else 3


def _check_target(paths: list[str], *, fix: bool, target: str | None, overwrite: bool) -> None:
    """Refuses in advance what could not be written, or not without harm."""
    import os

    from mcheck.report.output import refuse_unwritable

    if not fix:
        if target is not None or overwrite:
            raise click.UsageError("-o and --overwrite are about the program that --fix writes")
        return
    if target is None:
        raise click.UsageError("--fix: say with -o FILE where the program is to be written")
    if len(paths) != 1:
        raise click.UsageError(f"--fix writes one program, and these are {len(paths)}")
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
