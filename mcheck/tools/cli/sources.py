"""Options of commands for sources in CUDA C++, and what is said about them on standard error."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mcheck.base.records import replace
from mcheck.tools.cli.configuration import ConfiguredCommand
from mcheck.tools.cli.options import together

if TYPE_CHECKING:
    from mcheck.base.errors import McheckError
    from mcheck.checking.check.cuda_sources import PreparedFile, SourceOptions
    from mcheck.checking.run.case import Case, Settings
    from mcheck.checking.run.result import Result

_PROGRAM = "mcheck.program"
_LAUNCHABLE = (".cu", ".ptx")


def read_target(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A target as nvcc names it, ``sm_90a``; people write ``90a`` as well."""
    if value is None:
        return None
    found = re.fullmatch(r"(?:sm_|compute_)?(\d{2,3}[af]?)", value.strip().lower())
    if found is None:
        raise click.BadParameter(f"{value!r} is no target: sm_80, sm_90a, sm_100a, ...", ctx, param)
    return f"sm_{found[1]}"


options = together(
    click.option(
        "--arch",
        callback=read_target,
        metavar="sm_90a",
        help="Target of .cu files (default: sm_90a, or sm_100a if they need it).",
    ),
    click.option(
        "--nvcc-flags", "flags", multiple=True, metavar="FLAGS", help="Further flags of nvcc, such as '-I include'."
    ),
    click.option("--no-run", is_flag=True, help="Do not run the main() of a .cu file to record its launches."),
)
"""The options for sources."""


class ProgramCommand(ConfiguredCommand):
    """A command whose arguments behind ``--`` are a program, if those before it name what a program launches."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the program apart."""
        end = args.index("--") if "--" in args else len(args)
        if any(word.lower().endswith(_LAUNCHABLE) for word in args[:end]):
            ctx.meta[_PROGRAM] = tuple(args[end + 1 :])
            args = args[:end]
        return super().parse_args(ctx, args)


def read_options(given: dict[str, Any]) -> SourceOptions:
    """What the options say about sources."""
    from mcheck.checking.check.cuda_sources import SourceOptions

    flags = tuple(flag for text in given["flags"] for flag in _split(text))
    program: tuple[str, ...] = click.get_current_context().meta.get(_PROGRAM, ())
    return SourceOptions(arch=given["arch"], flags=flags, program=program, run=not given["no_run"])


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise click.UsageError(f"--nvcc-flags {text}: {error}") from None


def named_by_sources(
    cases: list[Case], prepared: Mapping[str, PreparedFile]
) -> tuple[list[Case], Mapping[str, PreparedFile]]:
    """The cases and what was prepared, modules that ``mcheck cuda`` has recorded into the cache under the names of
    their sources.
    """
    names: Mapping[str, str] = click.get_current_context().obj or {}
    if not names:
        return cases, prepared
    from mcheck.checking.check.cuda_sources import PreparedFile

    recorded = {names[c.path]: PreparedFile(path=names[c.path], module=c.path) for c in cases if c.path in names}
    return [replace(c, path=names.get(c.path, c.path)) for c in cases], {**prepared, **recorded}


def prepared_cases(cases: Sequence[Case], prepared: Mapping[str, PreparedFile]) -> list[Case]:
    """The cases to answer: the modules that were made in place of the sources, without those that cannot be checked."""
    found = []
    for case in cases:
        file = prepared.get(case.path)
        if file is None:
            found.append(case)
        elif file.problem is None:
            found.append(replace(case, path=file.module))
    return found


def restored_results(
    cases: Sequence[Case], prepared: Mapping[str, PreparedFile], answers: Iterable[Result], settings: Settings
) -> Iterator[Result]:
    """The results for all cases, in their order, about the files as the user named them."""
    found = iter(answers)
    for case in cases:
        file = prepared.get(case.path)
        if file is None:
            yield next(found)
        elif file.problem is not None:
            yield file.failed(settings)
        else:
            yield file.restored(next(found))


def say_prepared(prepared: Mapping[str, PreparedFile]) -> None:
    """Say on standard error what was compiled and recorded: once of several files that were compiled alike."""
    alike: dict[str, list[str]] = {}
    for file in prepared.values():
        if file.compiled:
            alike.setdefault(file.compiled, []).append(file.path)
    for said, paths in alike.items():
        click.echo(f"{paths[0]}: {said}" if len(paths) == 1 else f"{len(paths)} sources {said}", err=True)
    for file in prepared.values():
        for note in file.notes:
            click.echo(note, err=True)


def say_before(problem: McheckError) -> None:
    """What belongs before the message of a problem: the compiler's own words."""
    from mcheck.frontend.cuda.nvcc import CompileError

    if isinstance(problem, CompileError):
        click.echo(problem.said.rstrip(), err=True)


def say_after(problem: McheckError) -> None:
    """What belongs behind the message of a problem: a launch file to fill in."""
    from mcheck.checking.check.cuda_sources import LaunchUnknown

    if isinstance(problem, LaunchUnknown) and problem.template:
        click.echo(f'\nThe launch file, with "?" where only you know:\n\n{problem.template}', err=True)
