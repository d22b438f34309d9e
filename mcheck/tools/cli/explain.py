"""``mcheck explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcheck.tools.cli import options

if TYPE_CHECKING:
    from mcheck.findings.entry import Entry
    from mcheck.report.lines import Printer


@click.command("explain", short_help="Explain a finding's code or a model.")
@click.argument("code", required=False, metavar="[CODE|MODEL]")
@options.color
def command(code: str | None, color: str) -> int:
    """Explain the finding CODE: the rule, its section, an incorrect and a correct program.

    With the name of a model, explain the model. Without an argument, list all codes.

    \b
    mcheck explain RACE004
    mcheck explain ptx-9.0
    """
    import sys

    from mcheck.cat.model_files import model_names
    from mcheck.findings import catalogue
    from mcheck.report.lines import Printer
    from mcheck.report.output import wants_color

    printer = Printer(sys.stdout, color=wants_color(color, sys.stdout))
    if code is None:
        width = max(len(entry.code) for entry in catalogue.all())
        for entry in catalogue.all():
            printer.line((f"{entry.code:<{width}}", "bold"), f"  {entry.kind:<9}  {entry.level:<6}  {entry.name}")
    elif code in model_names():
        _model(code, printer)
    else:
        _entry(catalogue.get(code), printer)
    return 0


def _entry(entry: Entry, printer: Printer) -> None:
    from mcheck.findings.entry import PROFILES

    printer.line((f"{entry.code} {entry.name}", "bold"))
    severities = {profile: entry.severity(profile) for profile in PROFILES}
    if len(set(severities.values())) == 1:
        printer.line(f"{entry.kind}, {entry.level}")
    else:
        printer.line(f"{entry.kind}, {', '.join(f'{level} under {profile}' for profile, level in severities.items())}")
    printer.line(f"section: {entry.section}")
    for heading, body in (
        ("", entry.explanation),
        ("fix", entry.all_remedies),
        ("after this finding", f"{entry.consequence}."),
        ("incorrect", entry.bad),
        ("correct", entry.good),
    ):
        printer.line()
        if heading:
            printer.line((heading, "bold"))
        for line in body.rstrip().splitlines():
            printer.line(f"  {line}" if heading else line)


def _model(name: str, printer: Printer) -> None:
    """Print the description of a model and its axioms."""
    from mcheck.cat import load_model
    from mcheck.cat.ast import Check
    from mcheck.checking.run.collect import read_text
    from mcheck.tools.cli.models import leading_comment

    model = load_model(name)
    printer.line((name, "bold"))
    for line in leading_comment(read_text(model.path)):
        printer.line(line)
    printer.line()
    printer.line(("axioms", "bold"))
    for statement in model.statements:
        if isinstance(statement, Check):
            flag = "flag " if statement.flag else ""
            printer.line(f"  {flag}{'~' * statement.negated}{statement.test} {statement.name}")
