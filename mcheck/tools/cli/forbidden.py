"""``mcheck outcomes --forbidden``: the unreachable states, each with the axiom and cycle that forbid it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcheck.base.records import dataclass

if TYPE_CHECKING:
    from mcheck.answers.exploration import Forbidden
    from mcheck.checking.run.case import Settings
    from mcheck.ir.condition import Notation

MOST = 100
"""The maximum number of states listed."""


def write_forbidden(path: str, target: str | None, form: str, settings: Settings, *, color: str) -> int:
    """Write the forbidden states of a test, as text or JSON, and return the exit status."""
    from mcheck.base.errors import Unsupported
    from mcheck.checking.run.collect import find_test
    from mcheck.checking.run.command import preload
    from mcheck.checking.run.isolation import run_isolated
    from mcheck.report import forbidden
    from mcheck.report.lines import Printer
    from mcheck.report.output import output, wants_color
    from mcheck.report.picture.formats import SUFFIXES
    from mcheck.report.problems import show

    if target is not None and target.endswith(SUFFIXES):
        raise click.UsageError(f"-o {target} is a picture: select the forbidden state with --graph N")
    case = find_test(path)
    preload(settings)
    try:
        found = run_isolated(path, settings, lambda: _explore(case.path, settings))
    except Unsupported as error:
        show(error, color=color)
        return 3
    if found.reason:
        click.echo(f"not all states are known: {found.reason}", err=True)
        return 3
    with output(target) as stream:
        if form == "json":
            stream.write(forbidden.document(path, found.model, found.states, complete=found.complete))
        else:
            printer = Printer(stream, color=wants_color(color, stream))
            for line in forbidden.lines(
                found.name, found.model, found.states, notation=found.notation, complete=found.complete
            ):
                printer.line(*line)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Forbidden states. ``complete``: all that the values of the test allow; ``reason``: why they are unknown."""

    name: str
    model: str
    states: tuple[Forbidden, ...]
    complete: bool
    notation: tuple[tuple[str, Notation], ...]
    reason: str | None


def _explore(path: str, settings: Settings) -> _Found:
    from mcheck.base.reasons import format_reasons, with_total_time
    from mcheck.checking.run.case import DEFAULT_MODEL
    from mcheck.tools.cli.exploring import explore

    program, explored = explore(path, settings, forbidden=MOST, drawn=0)
    given = explored.answer
    why = format_reasons(with_total_time(given.reasons, settings.timeout)) or "the exploration stopped early"
    return _Found(
        name=program.name,
        model=settings.model or program.model or DEFAULT_MODEL,
        states=explored.forbidden,
        complete=explored.all_forbidden,
        notation=program.condition.notation,
        reason=None if given.complete else why,
    )
