"""``mcheck models``."""

from __future__ import annotations

import re

import click

from mcheck.tools.cli import options


@click.command("models", short_help="List the memory models, or print one.")
@click.argument("name", required=False)
@options.color
def command(name: str | None, color: str) -> int:
    """List the shipped memory models; with NAME, print the full text of one, as a starting point for your own.

    \b
    mcheck models
    mcheck models ptx-9.0 > mine.cat
    """
    import sys

    from mcheck.cat.model_files import model_names, models_directory
    from mcheck.checking.run.case import DEFAULT_MODEL
    from mcheck.checking.run.collect import read_text
    from mcheck.report.lines import Printer
    from mcheck.report.output import wants_color

    if name is not None:
        from mcheck.cat import full_text

        click.echo(full_text(name), nl=False)
        return 0
    names = model_names()
    width = max(map(len, names), default=0)
    printer = Printer(sys.stdout, color=wants_color(color, sys.stdout))
    for model in names:
        about = headline(read_text(str(models_directory() / f"{model}.cat")))
        default = " (default)" if model == DEFAULT_MODEL else ""
        printer.line((f"{model:<{width}}", "bold"), f"  {about}{default}".rstrip())
    return 0


def headline(text: str) -> str:
    """The first sentence of a model's first comment, without its full stop."""
    paragraph = " ".join(leading_comment(text)).strip()
    return re.split(r"(?<=\w\))\. |(?<=\w)\. |\.$", paragraph)[0]


def leading_comment(text: str) -> list[str]:
    """The first comment of a model, line by line."""
    comment = re.search(r"\(\*(.*?)\*\)|//([^\n]*)", text, re.DOTALL)
    if comment is None:
        return []
    return [line.strip() for line in (comment[1] or comment[2] or "").strip().splitlines()]
