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
    """Run every test under PATH with two models and show where their answers differ, each as soon as it is known, and
    the smallest difference at the end.

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
    from mcheck.report.lines import Printer
    from mcheck.report.output import output, wants_color
    from mcheck.report.progress import Bar

    cases = collect_tests(paths)
    settings = Settings(profile=profile, unroll=unroll, timeout=timeout, memory=memory)
    with output(target) as stream:
        printer = Printer(stream, color=wants_color(color, stream))
        shown = printer if form == "text" else None
        with Bar(len(cases), shown if target is None else None, enabled=sys.stderr.isatty()) as bar:

            def each(c: Comparison) -> None:
                verdict = (
                    "error" if c.problem else "differ" if c.differs else "unknown" if c.unknown or c.silent else "alike"
                )
                if shown is not None:
                    _row(c, first, second, shown, witness=len(cases) == 1, verbose=verbose)
                    stream.flush()
                bar.advance(verdict, ok=not c.problem)

            found = compare_all(cases, settings, first, second, jobs or default_jobs(), each)
        if form == "json":
            from mcheck.report.comparison import document

            stream.write(document(first, second, found))
        else:
            _end(found, first, second, printer, repeat=len(cases) > 1 and not verbose)
    if any(c.problem for c in found):
        return 2
    if any(c.differs for c in found):
        return 1
    return 3 if any(c.unknown or c.silent for c in found) else 0


def _row(c: Comparison, first: str, second: str, printer: Printer, *, witness: bool, verbose: bool) -> None:
    """What is said of a test as soon as it is known: that it differs, or why it could not be compared."""
    from mcheck.report.comparison import lines

    if c.differs:
        for line in lines(c, first, second, witness=witness, everything=verbose):
            printer.line(*line)
    elif c.problem or c.unknown:
        printer.line((c.path, "bold"), f": {c.problem or c.unknown}")


def _end(found: list[Comparison], first: str, second: str, printer: Printer, *, repeat: bool) -> None:
    """What is known at the end: the smallest difference once more, with an execution, and the counts."""
    from mcheck.report.comparison import describe_counts, describe_uncompared, lines

    smallest = next((c for c in found if c.differs and c.alone), None)
    if smallest is not None and repeat:
        printer.line()
        printer.line("the smallest difference:")
        for line in lines(smallest, first, second, witness=True):
            printer.line(*line)
    if any(c.differs for c in found):
        printer.line()
    for line in describe_uncompared(found):
        printer.line(*line)
    printer.line(*describe_counts(found, first, second))
