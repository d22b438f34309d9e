"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import click

ENGINES = ("auto", "explicit", "z3", "protocol", "both")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds", ctx, param)
    return value


def _models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click gives them
    """For the shell: the shipped models and the .cat files here."""
    import os

    from mcheck.cat.library import model_names

    files = sorted(name for name in os.listdir(".") if name.endswith(".cat"))
    return [name for name in [*model_names(), *files] if name.startswith(incomplete)]


model = click.option(
    "--model",
    shell_complete=_models,
    metavar="NAME|FILE.cat",
    help="The memory model (default: the file's own, else ptx-9.0). See mcheck models.",
)
engine = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="auto",
    show_default=True,
    help="How executions are found; both: two engines, which must agree.",
)
profile = click.option(
    "--profile",
    type=click.Choice(("strict", "ptx", "permissive")),
    default="ptx",
    show_default=True,
    help="How disputed points of the specification are taken.",
)
prop = click.option(
    "--property",
    "prop",
    type=click.Choice(("spec", "liveness")),
    default="spec",
    show_default=True,
    help="spec: the condition; liveness: no fair execution runs or waits for ever.",
)
timeout = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    callback=_finite,
    metavar="SECONDS",
    help="Per test; one that takes longer is unknown.",
)
unroll = click.option(
    "--unroll",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="How often a loop with an effect is unrolled.",
)
color = click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    show_default=True,
    help="NO_COLOR is honoured by auto.",
)
target = click.option(
    "-o", "--output", "target", metavar="FILE", help="Write the report to FILE (in one step at the end)."
)


def format_(*choices: str) -> Decorator:
    """``--format`` for a command that knows ``choices``; the first is the default."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help="Form of the report.",
    )
