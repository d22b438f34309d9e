"""``mcheck compare``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mcheck.tools.cli import options

if TYPE_CHECKING:
    from mcheck.checking.run.compare import Comparison
    from mcheck.report.lines import Printer


@click.command("compare", short_help="Show where two models differ, with the smallest witness.")
@click.argument("first", metavar="MODEL")
@click.argument("second", metavar="MODEL")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@options.profile
@options.format_("text", "json")
@options.target
@options.jobs("Tests run")
@options.timeout
@options.memory
@options.unroll
@options.color
@click.option("-v", "--verbose", is_flag=True, help="Show an execution for every state that only one model allows.")
def command(
    first: str,
    second: str,
    paths: tuple[str, ...],
    profile: str,
    form: str,
    target: str | None,
    jobs: int | None,
    timeout: float | None,
    memory: int | None,
    unroll: int,
    color: str,
    verbose: bool,
) -> int:
    """Run every test under PATH with two models and show where their answers differ, smallest difference first.

    A state that only one model allows is shown with an execution and the axiom by which the other model forbids it.
    Exit status: 0 the models agree on these tests, 1 they differ, 2 usage, parse or model error, 3 some test could not
    be compared, for instance because a model does not cover its instructions.

    \b
    mcheck compare ptx-7.5 ptx-9.0 litmus/fences
    mcheck compare ptx-9.0 mine.cat litmus --format json -o differences.json
    """
    from mcheck.checking.run.case import Settings
    from mcheck.checking.run.collect import collect_tests
    from mcheck.checking.run.compare import compare_all
    from mcheck.checking.run.pool import default_jobs
    from mcheck.report.output import output, wants_color
    from mcheck.report.progress import Bar

    cases = collect_tests(paths)
    settings = Settings(profile=profile, unroll=unroll, timeout=timeout, memory=memory)
    with Bar(len(cases), None, enabled=sys.stderr.isatty()) as bar:

        def each(c: Comparison) -> None:
            verdict = (
                "error" if c.problem else "differ" if c.differs else "unknown" if c.unknown or c.silent else "alike"
            )
            bar.advance(verdict, ok=not c.problem)

        found = compare_all(cases, settings, first, second, jobs or default_jobs(), each)
    with output(target) as stream:
        if form == "json":
            from mcheck.report.comparison import document

            stream.write(document(first, second, found))
        else:
            from mcheck.report.lines import Printer

            _text(found, first, second, Printer(stream, color=wants_color(color, stream)), verbose=verbose)
    if any(c.problem for c in found):
        return 2
    if any(c.differs for c in found):
        return 1
    return 3 if any(c.unknown or c.silent for c in found) else 0


def _text(found: list[Comparison], first: str, second: str, printer: Printer, *, verbose: bool) -> None:
    from mcheck.report.comparison import describe_counts, describe_uncompared, lines

    for k, comparison in enumerate(c for c in found if c.differs):
        for line in lines(comparison, first, second, witness=k == 0, everything=verbose):
            printer.line(*line)
        printer.line()
    for comparison in found:
        if comparison.problem or (comparison.unknown and not comparison.differs):
            printer.line((comparison.path, "bold"), f": {comparison.problem or comparison.unknown}")
    for line in describe_uncompared(found):
        printer.line(*line)
    printer.line(*describe_counts(found, first, second))
