"""``mcheck outcomes --forbidden``: the states that no execution reaches, each with what forbids it."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import click

from mcheck.records import dataclass

if TYPE_CHECKING:
    from mcheck.answers.exploration import Forbidden
    from mcheck.program.condition import Notation
    from mcheck.run.case import Settings

MOST = 100
"""States that are listed."""


def write_forbidden(path: str, target: str | None, form: str, settings: Settings, *, color: str) -> int:
    """Writes the forbidden states of a test, as text or as JSON; the exit status."""
    from mcheck.errors import InputError, Unsupported
    from mcheck.report import forbidden
    from mcheck.report.lines import Printer
    from mcheck.report.output import output, wants_color
    from mcheck.report.picture.formats import SUFFIXES
    from mcheck.report.problems import show
    from mcheck.run.apart import apart
    from mcheck.run.collect import collect
    from mcheck.run.single import preload

    if target is not None and target.endswith(SUFFIXES):
        raise click.UsageError(f"-o {target} is a picture: --graph N says of which forbidden state")
    cases = collect([path])
    if len(cases) != 1:
        raise InputError(f"{path} holds {len(cases)} tests", expected="one test")
    preload(settings)
    try:
        found = apart(path, settings, lambda: _explore(cases[0].path, settings))
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
    """``complete``: these are all the states that could be thought of; ``reason``: why it is not known which are."""

    name: str
    model: str
    states: tuple[Forbidden, ...]
    complete: bool
    notation: tuple[tuple[str, Notation], ...]
    reason: str | None


def _explore(path: str, settings: Settings) -> _Found:
    from mcheck.policy.question import Question
    from mcheck.policy.show import executions as explore
    from mcheck.reasons import in_words, of_all_the_time
    from mcheck.run.case import DEFAULT_MODEL
    from mcheck.run.single import left, load, model_for

    started = perf_counter()
    program = load(path, settings.assume)
    model = settings.model or program.model or DEFAULT_MODEL
    asked = Question(profile=settings.profile, unroll=settings.unroll, timeout=left(settings.timeout, started))
    explored = explore(
        program,
        model_for(settings.model, program.model, program.path, program.model_span),
        asked,
        forbidden=MOST,
        drawn=0,
    )
    given = explored.answer
    why = in_words(of_all_the_time(given.reasons, settings.timeout)) or "the exploration stopped early"
    return _Found(
        name=program.name,
        model=model,
        states=explored.forbidden,
        complete=explored.all_forbidden,
        notation=program.condition.notation,
        reason=None if given.complete else why,
    )
