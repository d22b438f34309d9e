"""``mcheck outcomes --graph``: the picture of one outcome."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from mcheck.base.records import dataclass

if TYPE_CHECKING:
    from mcheck.checking.run.case import Settings


def write_graph(
    path: str,
    target: str | None,
    number: int,
    settings: Settings,
    *,
    forbidden: bool,
) -> int:
    """Draw outcome ``number``, or the forbidden state of that number, to a file and return the exit status."""
    from mcheck.base.errors import InputError, Unsupported
    from mcheck.checking.run.collect import find_test
    from mcheck.checking.run.command import preload
    from mcheck.checking.run.isolation import run_isolated
    from mcheck.report.output import output, refuse_unwritable, replace_file
    from mcheck.report.picture.formats import SUFFIXES
    from mcheck.report.problems import show

    if target is None:
        which = f"{'why-not' if forbidden else 'outcome'}-{number}{SUFFIXES[0]}"
        typed = f"mcheck outcomes {shlex.quote(path)} --graph {number}{' --forbidden' if forbidden else ''} -o {which}"
        raise click.UsageError(f"--graph needs an output file: {typed} (or {', '.join(SUFFIXES[1:])})")
    if not target.endswith(SUFFIXES):
        raise click.UsageError(f"-o {target} is not a picture file: with --graph it must end in {', '.join(SUFFIXES)}")
    case = find_test(path)
    preload(settings)
    try:
        drawn = run_isolated(path, settings, lambda: _draw(case.path, target, number, forbidden, settings))
    except Unsupported as error:
        show(error)
        return 3
    if drawn.content is None:
        if drawn.reason:
            click.echo(f"not all states are known: {drawn.reason}", err=True)
            return 3
        kind = "forbidden state" if forbidden else "outcome"
        if not drawn.count:
            raise InputError(f"{path} has no {kind}")
        raise InputError(f"{path} has no {kind} {number}", expected=f"1 to {drawn.count}")
    if isinstance(drawn.content, bytes):
        refuse_unwritable(target)
        replace_file(target, drawn.content)
        return 0
    with output(target) as stream:
        stream.write(drawn.content)
    return 0


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A picture; or, if there is none of that number, how many there are and why there may be more."""

    content: str | bytes | None
    count: int
    reason: str | None


def _draw(path: str, target: str, number: int, forbidden: bool, settings: Settings) -> _Drawn:
    from mcheck.base.reasons import format_reasons, with_total_time
    from mcheck.report.picture.formats import picture
    from mcheck.tools.cli.exploring import explore

    _, explored = explore(path, settings, forbidden=number if forbidden else 0, drawn=0 if forbidden else number)
    if forbidden:
        executions = [f.execution for f in explored.forbidden if f.execution is not None]
    else:
        executions = list(explored.allowed.values())
    if len(executions) >= number:
        return _Drawn(picture(executions[number - 1], target), len(executions), None)
    reasons = () if explored.answer.complete else with_total_time(explored.answer.reasons, settings.timeout)
    return _Drawn(None, len(executions), format_reasons(reasons))
