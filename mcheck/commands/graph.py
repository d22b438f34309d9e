"""``mcheck outcomes --graph``: the picture of one outcome."""

from __future__ import annotations

import click


def write_graph(
    path: str,
    target: str | None,
    number: int | None,
    *,
    forbidden: bool,
    model: str | None,
    profile: str,
    timeout: float | None,
    unroll: int,
) -> int:
    """Writes the picture of outcome ``number``, or of the forbidden state of that number; the exit status."""
    from mcheck.errors import InputError
    from mcheck.explore.exploration import explore
    from mcheck.report.output import output
    from mcheck.report.picture.formats import SUFFIXES, picture
    from mcheck.run.case import DEFAULT_MODEL
    from mcheck.run.collect import collect
    from mcheck.run.single import load, model_of

    if number is None:
        raise click.UsageError("--forbidden goes with --graph N")
    if target is None or not target.endswith(SUFFIXES):
        raise click.UsageError(f"--graph wants -o FILE, and FILE ends in {', '.join(SUFFIXES)}")
    cases = collect([path])
    if len(cases) != 1:
        raise InputError(f"{path} holds {len(cases)} tests", expected="one test")
    program = load(cases[0].path)
    explored = explore(
        program,
        model_of(model or program.model or DEFAULT_MODEL),
        profile=profile,
        unroll=unroll,
        timeout=timeout,
        forbidden=number if forbidden else 0,
        drawn=0 if forbidden else number,
    )
    if forbidden:
        executions = [f.execution for f in explored.forbidden if f.execution is not None]
        kind = "forbidden state"
    else:
        executions = list(explored.allowed.values())
        kind = "outcome"
    if len(executions) < number:
        if explored.answer.reason and not explored.answer.complete:
            click.echo(f"not all states are known: {explored.answer.reason}", err=True)
            return 3
        count = f"{len(executions)} {kind}{'' if len(executions) == 1 else 's'}"
        raise InputError(f"{path} has no {kind} {number}", expected=f"1 to {len(executions)}" if executions else count)
    with output(target) as stream:
        stream.write(picture(executions[number - 1], target))
    return 0
