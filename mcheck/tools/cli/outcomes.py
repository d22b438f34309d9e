"""``mcheck outcomes``."""

from __future__ import annotations

import click

from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.tools.cli import options


@click.command("outcomes", short_help="Print every allowed final state of a test, with a witness.")
@click.argument("path", metavar="PATH")
@options.model
@options.engine
@options.profile
@options.format_("text", "json")
@options.target
@click.option(
    "--graph",
    type=click.IntRange(min=1),
    metavar="N",
    help="Draw outcome N to the FILE of -o, which ends in .svg, .pdf, .tikz, .dot or .graphml.",
)
@click.option(
    "--forbidden",
    is_flag=True,
    help="Print the states that no execution reaches, with the axiom and cycle that forbid each; --graph N draws one.",
)
@options.cache
@options.timeout
@options.memory
@options.unroll
@options.assume
@options.color
def command(
    path: str,
    model: str | None,
    engine: str,
    profile: str,
    form: str,
    target: str | None,
    graph: int | None,
    forbidden: bool,
    cache: str | None,
    timeout: float | None,
    memory: int | None,
    unroll: int,
    assume: tuple[str, ...],
    color: str,
) -> int:
    """Print every allowed final state of the test PATH with an execution that ends in it.

    Also reports whether any execution is undefined. A state consists of the registers and locations that the condition
    and `locations` name.

    \b
    mcheck outcomes MP.litmus
    mcheck outcomes MP.litmus --graph 2 -o second.svg
    mcheck outcomes MP.litmus --forbidden
    mcheck outcomes MP.litmus --graph 1 --forbidden -o why-not.svg
    """
    from mcheck.checking.run.case import Case, Settings

    settings = Settings(model=model, profile=profile, unroll=unroll, timeout=timeout, memory=memory, assume=assume)
    if graph is not None:
        from mcheck.tools.cli.graph import write_graph

        return write_graph(path, target, graph, settings, forbidden=forbidden)
    if forbidden:
        from mcheck.tools.cli.forbidden import write_forbidden

        return write_forbidden(path, target, form, settings, color=color)
    from mcheck.checking.run.collect import find_test
    from mcheck.checking.run.command import RUN
    from mcheck.checking.suite import answer_cases
    from mcheck.report.lines import Printer
    from mcheck.report.output import output, wants_color
    from mcheck.report.problems import show, show_warning

    case = Case(find_test(path).path)
    asked = replace(settings, engine=engine, witnesses=True)
    with options.open_backend(1, cache, None, None, timeout) as backend:
        (result,) = answer_cases([case], asked, RUN, backend)
    for message, span in result.warnings:
        show_warning(message, span, color=color)
    if result.problem is not None:
        show(result.problem, color=color, debug=result.debug)
    if result.verdict is Verdict.ERROR:
        return 70 if result.crashed else 2
    if not result.was_read and form == "text":
        if result.problem is None:
            click.echo(f"unknown: {result.reason}", err=True)
        return 3
    with output(target) as stream:
        if form == "json":
            from mcheck.report.formats.json_ import outcomes_document

            stream.write(outcomes_document(path, result))
        else:
            from mcheck.report.outcomes import write

            write(result, Printer(stream, color=wants_color(color, stream)))
    if result.complete:
        return 0
    if result.problem is None and not result.observes_nothing:
        click.echo(f"not all states are known: {result.reason or 'the exploration stopped early'}", err=True)
    return 3
