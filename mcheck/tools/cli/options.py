"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from mcheck.tools.cli.configuration import is_on_command_line

if TYPE_CHECKING:
    from mcheck.checking.backends import Backend

ENGINES = ("auto", "explicit", "z3", "protocol", "both")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LEAST_MEMORY = 128 << 20
"""An interpreter with the engines and their libraries takes some 70 MiB."""
MOST_MEMORY = 1 << 62
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Several options of a command, in this order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A size in bytes from a number with a unit: 600M, 1.5G, 2GiB; at least what an engine needs to start."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([KMGT])(?:i?B)?", value, re.ASCII | re.IGNORECASE)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a size such as 600M or 2G", ctx, param)
    count = int(float(found[1]) * UNITS[found[2].upper()])
    if count < LEAST_MEMORY:
        raise click.BadParameter(f"{value} is too small: at least {LEAST_MEMORY >> 20}M", ctx, param)
    return min(count, MOST_MEMORY)


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds", ctx, param)
    return value


def _pass_names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Names of passes, each once."""
    if not value:
        return ()
    from mcheck.base.errors import InputError
    from mcheck.checking.policy.question import sort_pass_names

    try:
        return sort_pass_names(value)
    except InputError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise click.BadParameter(f"{error.message}{hint} Passes: {error.expected}", ctx, param) from None


def _models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click gives them
    """Shell completion: the shipped models and the .cat files of this folder."""
    import os

    from mcheck.cat.model_files import model_names

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
    help="Engine that explores the executions; both: two engines, which must agree.",
)
profile = click.option(
    "--profile",
    type=click.Choice(("strict", "ptx", "permissive")),
    default="ptx",
    show_default=True,
    help="Interpretation of disputed points of the specification.",
)
prop = click.option(
    "--property",
    "prop",
    type=click.Choice(("spec", "liveness")),
    default="spec",
    show_default=True,
    help="spec: the condition; liveness: every fair execution terminates.",
)


def time_limit(name: str, text: str, default: float | None = None) -> Decorator:
    """An option for a number of seconds, with a default that its help shows."""
    return click.option(
        name, type=click.FloatRange(min=0, min_open=True), callback=_finite, metavar="SECONDS", help=text,
        default=default, show_default=default is not None,
    )  # fmt: skip


timeout = time_limit("--timeout", "Limit per test; the answer is unknown after it.")
cpu_timeout = time_limit("--cpu-timeout", "Limit per test in seconds of the processor, the same on a busy machine.")
memory = click.option(
    "--memory",
    callback=_bytes,
    metavar="SIZE",
    help="Limit per test, such as 600M or 2G; the answer is unknown above it.",
)
unroll = click.option(
    "--unroll",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="Maximum unrollings of a loop with side effects.",
)
assume = click.option(
    "--assume",
    multiple=True,
    type=click.Choice(("converged",)),
    help="Assume behaviour that the PTX ISA does not guarantee. converged: lanes at one statement advance together.",
)
without = click.option(
    "--without",
    multiple=True,
    metavar="NAME",
    hidden=True,
    callback=_pass_names,
    help="Switch off a pass of the protocol engine or of the proofs (mcheck/engines/protocol/passes.py).",
)
cache = click.option(
    "--cache",
    metavar="DIR",
    help="Cache answers in DIR. See mcheck cache.",
)
resume = click.option(
    "--resume",
    metavar="DIR",
    help="Store results in DIR and resume from them: for long runs. Unlike --cache, stores answers cut by a limit too.",
)
scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS|local",
    help="Run tests on the workers of a Dask scheduler; local: a scheduler on this machine with --jobs workers.",
)
tls = click.option(
    "--tls",
    metavar="DIR",
    help="Folder with ca.pem, cert.pem and key.pem of this client, for --scheduler tls://...",
)
color = click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    show_default=True,
    help="Colour the output; auto honours NO_COLOR.",
)
target = click.option(
    "-o", "--output", "target", metavar="FILE", help="Write the report to FILE, atomically at the end."
)
sarif = click.option("--sarif", "sarif_file", metavar="FILE", help="Also write the findings to FILE as SARIF.")


def jobs(what: str) -> Decorator:
    """The option ``--jobs`` of a command; ``what`` it does at once."""
    return click.option(
        "-j", "--jobs", type=click.IntRange(min=1), metavar="N", help=f"{what} in parallel (default: one per core)."
    )


def format_(*choices: str) -> Decorator:
    """The option ``--format`` of a command with these ``choices``; the first is the default."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help="Format of the report.",
    )


def choose_limit(timeout: float | None, cpu_timeout: float | None) -> tuple[float | None, bool]:
    """The time limit, and whether it is one of processor time: what is on the command line before a configuration."""
    context = click.get_current_context()
    if cpu_timeout is None or timeout is None:
        return (timeout, False) if cpu_timeout is None else (cpu_timeout, True)
    if is_on_command_line(context, "timeout") == is_on_command_line(context, "cpu_timeout"):
        raise click.UsageError("--timeout and --cpu-timeout: give only one of them")
    return (cpu_timeout, True) if is_on_command_line(context, "cpu_timeout") else (timeout, False)


@contextmanager
def open_backend(
    jobs: int | None,
    cache: str | None,
    resume: str | None,
    scheduler: str | None,
    timeout: float | None,
    tls: str | None = None,
) -> Iterator[Backend]:
    """The backend, with its cache open, that the options describe."""
    from mcheck.checking.backends import Backend

    if cache is not None and resume is not None:
        raise click.UsageError("--resume includes --cache: give only one of them")
    if cache is None and resume is None:
        yield Backend(jobs=jobs, scheduler=scheduler, tls=tls, say=_say)
        return
    from mcheck.checking.cache.database import open_store

    with open_store(cache or resume, timeout=timeout, say=_warn) as store:
        yield Backend(jobs=jobs, scheduler=scheduler, tls=tls, store=store, resumes=resume is not None, say=_say)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _warn(text: str) -> None:
    from mcheck.report.problems import show_warning

    show_warning(text, None)
