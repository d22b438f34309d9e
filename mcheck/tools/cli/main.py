"""The command line. Commands live in ``mcheck.tools.cli``, one file each, and are imported when called.

Exit status: 0 as expected, 1 a mismatch, 2 usage, parse, model or system error (a full disk), 3 some
answer is unknown (2 beats 1 beats 3), 70 internal error, 130 interrupted, 141 the reader of the output left.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import click

from mcheck import __version__
from mcheck.base import streams
from mcheck.base.errors import InputError, InternalError, McheckError

USAGE = 2
INTERNAL = 70
INTERRUPTED = 130
UNREAD = 141
"""The reader of standard output has gone: as if by SIGPIPE, and no answer about the tests."""

COMMANDS = (
    "run",
    "check",
    "fences",
    "cuda",
    "outcomes",
    "exec",
    "doc",
    "compare",
    "generate",
    "models",
    "explain",
    "lsp",
    "serve",
    "playground",
    "cache",
)

EPILOG = """Exit status: 0 everything as expected; 1 a mismatch; 2 usage, parse, model or system error; 3 nothing wrong
found, but some answer is unknown (time-out, bound, unsupported instruction); 70 internal error. 2 beats 1 beats
3."""


class _Unread(Exception):
    """The reader of standard output has gone (head, less), which click reports as a failure."""


class _Commands(click.Group):
    """A command group that imports its commands by name from ``mcheck.tools.cli``."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            status: object = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise _Unread from None
        return status

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click gives it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click gives it
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"mcheck.tools.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            if args[0].endswith((".ptx", ".cu", ".litmus")) or os.path.exists(args[0]):
                wanted = "run" if args[0].endswith(".litmus") else "check"
                said = f"{error.message} The command is missing: mcheck {wanted} {args[0]}"
                raise click.UsageError(said, ctx) from None
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{near[0]}'?", ctx) from None


@click.group(cls=_Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="mcheck", message="%(prog)s %(version)s")
def cli() -> None:
    """Check NVIDIA's asynchronous copies against a formal memory model.

    mcheck reads PTX litmus tests, kernel sketches and PTX modules, explores the executions that the model allows, and
    reports reachable states, races, undefined behaviour and deadlocks.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit status. Every failure ends in a message, never in a traceback."""
    streams.prepare_streams()
    try:
        status = cli.main(arguments, prog_name="mcheck", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except _Unread:
        streams.discard_output()
        return UNREAD
    except Exception as error:  # noqa: BLE001 - last resort: no traceback for users
        with suppress(OSError):  # standard error may be the one that is full
            return _explain_failure(error)
        return USAGE


def _explain_failure(error: Exception) -> int:
    from mcheck.report.problems import show

    if isinstance(error, OSError):
        message = streams.describe_os_error(error)
        streams.discard_output()
        show(InputError(message))
        return USAGE
    if isinstance(error, MemoryError):
        show(InputError("out of memory"))
        return USAGE
    if isinstance(error, McheckError) and not isinstance(error, InternalError):
        show(error)
        return USAGE
    from mcheck.checking.run.single import crash_error, traceback_of

    show(crash_error(error), debug=traceback_of(error))
    return INTERNAL
