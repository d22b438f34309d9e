"""``mcheck cuda``."""

from __future__ import annotations

import click

from mcheck.tools.cli.sources import read_target

_PROGRAM = "mcheck.program"


class _Recorded(click.Command):
    """A command whose arguments are a program, behind ``--`` if options stand before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the program apart; what stands before it are options, of this command or of ``mcheck check``."""
        if "--" in args:
            end = args.index("--")
            ctx.meta[_PROGRAM] = tuple(args[end + 1 :])
            args = args[:end]
        elif args and not args[0].startswith("-"):
            ctx.meta[_PROGRAM] = tuple(args)
            args = []
        return super().parse_args(ctx, args)


@click.command(
    "cuda",
    short_help="Check the launches of a CUDA program, without a GPU.",
    cls=_Recorded,
    options_metavar="[OPTIONS OF check]",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.option("--keep", "folder", metavar="DIR", help="Write the modules and their launch files to DIR.")
@click.option(
    "--arch", callback=read_target, metavar="sm_90a", help="The target that the program sees (default: sm_90)."
)
@click.pass_context
def command(ctx: click.Context, folder: str | None, arch: str | None) -> int:
    """Run a program without a GPU, record the kernels that it launches, and check them: `mcheck cuda -- ./a.out`, or
    `mcheck cuda -- make run`.

    The CUDA runtime and the driver are replaced; kernels do not run, so results are not those of a GPU. The kernels are
    checked as the PTX that nvcc put into the program; what is compiled meanwhile gets -lineinfo, for lines of the
    source. Options before `--` are those of mcheck check.

    \b
    mcheck cuda -- ./a.out 4096
    mcheck cuda --keep launches --format github -- make run
    """
    from mcheck.checking.check.cuda_programs import record_program
    from mcheck.tools.cli import check

    program: tuple[str, ...] = ctx.meta.get(_PROGRAM, ())
    if not program:
        raise click.UsageError("name the program after --: mcheck cuda -- ./a.out")
    recorded = record_program(program, folder, arch)
    for note in recorded.notes:
        click.echo(note, err=True)
    arguments = [*ctx.args, *recorded.paths]
    status = check.command.main(arguments, prog_name="mcheck cuda", standalone_mode=False, obj=recorded.sources)
    return status if isinstance(status, int) else 0
