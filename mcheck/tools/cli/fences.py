"""``mcheck fences``."""

from __future__ import annotations

import click


@click.command("fences", short_help="Show which fences, waits and orders a proof needs.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Time for each file.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form.")
def command(paths: tuple[str, ...], timeout: float | None, form: str) -> int:
    """Show which fences, barriers, waits, orders and scopes of a proved sketch can go or be weaker.

    Each is removed or weakened in the text, and the program checked again: only a proof counts. Litmus files in block
    form are examined; repairs of findings, modules and conditions are not.
    """
    from mcheck.checking.fences.examination import examine
    from mcheck.checking.run.collect import collect_tests
    from mcheck.report import fences

    examined = [examine(case.path, timeout) for case in collect_tests(list(paths))]
    if form == "json":
        click.echo(fences.document(examined), nl=False)
    else:
        for each in examined:
            click.echo("\n".join(fences.lines(each)))
    verdicts = {str(each.verdict) for each in examined}
    return 2 if "error" in verdicts else 1 if "finding" in verdicts else 0 if verdicts <= {"proved"} else 3
