"""``mcheck exec``."""

from __future__ import annotations

import click

from mcheck.tools.cli import options


@click.command("exec", short_help="Run one execution with real data and print memory and registers.")
@click.argument("path", metavar="PATH")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the schedule.")
@click.option(
    "--load", "loads", multiple=True, metavar="NAME=FILE", help="Initialise an object from a file: raw bytes or .npy."
)
@click.option(
    "--dump",
    "dumps",
    multiple=True,
    metavar="NAME=FILE",
    help="Write the final contents of an object: raw bytes or .npy.",
)
@click.option(
    "--behaviour",
    type=click.Choice(("documents", "sm_90")),
    default="documents",
    show_default=True,
    help="Follow the documents, or observations on an sm_90 chip where they differ.",
)
@click.option("--all", "everything", is_flag=True, help="Also show unchanged memory and all threads.")
@options.profile
@options.format_("text", "json")
@options.target
@options.timeout
@options.memory
@options.color
def command(
    path: str,
    seed: int,
    loads: tuple[str, ...],
    dumps: tuple[str, ...],
    behaviour: str,
    everything: bool,
    profile: str,
    form: str,
    target: str | None,
    timeout: float | None,
    memory: int | None,
    color: str,
) -> int:
    """Run one fair execution of the program PATH with real data.

    Threads are interleaved, and asynchronous copies are performed at some later point; --seed selects the schedule.
    Undefined behaviour and waits that never end are reported if this execution reaches them; mcheck check and
    mcheck run explore all executions.
    """
    from mcheck.base.errors import Unsupported
    from mcheck.checking.run.case import Settings
    from mcheck.checking.run.execute import ExecRequest, execute
    from mcheck.checking.run.isolation import run_isolated
    from mcheck.engines.concrete import array_files
    from mcheck.report import execution as report
    from mcheck.report.lines import Printer
    from mcheck.report.output import output, refuse_unwritable, replace_file, wants_color
    from mcheck.report.problems import show, show_warning

    wanted = ExecRequest(
        loads=tuple(array_files.pair(text, "--load") for text in loads),
        dumps=tuple(array_files.pair(text, "--dump") for text in dumps),
        seed=seed,
        profile=profile,
        behaviour=behaviour,
    )
    for _, file in wanted.dumps:
        refuse_unwritable(file)
    settings = Settings(timeout=timeout, memory=memory)
    try:
        done = run_isolated(path, settings, lambda: execute(path, wanted, timeout))
    except Unsupported as error:
        show(error, color=color)
        return 3
    for message, span in done.warnings:
        show_warning(message, span, color=color)
    for file, data in done.dumps:
        replace_file(file, data)
    with output(target) as stream:
        if form == "json":
            stream.write(report.document(done.execution))
        else:
            printer = Printer(stream, color=wants_color(color, stream))
            for line in report.lines(done.execution, everything=everything, width=printer.width):
                printer.line(*line)
    return int(any(f.severity == "error" for f in done.execution.findings))
