"""``mcheck generate``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from mcheck.base.verdicts import Verdict
from mcheck.tools.cli import options

if TYPE_CHECKING:
    from mcheck.report.lines import Printer
    from mcheck.tools.generate.choose import Search
    from mcheck.tools.generate.judge import Generated


@click.command("generate", short_help="Generate litmus tests from cycles of relations.")
@click.option(
    "--edges",
    metavar="FILE.toml|NAME",
    help="The alphabet of edges: a file, or a shipped one: async, classic, cluster, families, oneway, reduce, scopes, "
    "tensor.  [default with --differs: the shipped ones]",
)
@click.option(
    "--size",
    type=click.IntRange(min=2, max=32),
    metavar="N",
    help="Number of edges of a cycle (default: the sizes of the alphabet).",
)
@click.option(
    "-o", "directory", type=click.Path(file_okay=False), metavar="DIR", help="Write one file per test to DIR."
)
@click.option("--differs", nargs=2, metavar="MODEL MODEL", help="Keep only tests on which two models differ.")
@click.option("--every", type=click.IntRange(min=1), default=1, metavar="K", help="Sample: only every K-th test.")
@click.option("--limit", type=click.IntRange(min=1), metavar="K", help="Stop after K tests.")
@options.model
@options.format_("text", "json")
@options.timeout
@options.color
def command(
    edges: str | None,
    size: int | None,
    directory: str | None,
    differs: tuple[str, str] | None,
    every: int,
    limit: int | None,
    model: str | None,
    form: str,
    timeout: float | None,
    color: str,
) -> int:
    """Generate each cycle of N edges over an alphabet once, as a litmus test that expects the verdict of the model.

    Tests are named after their cycle, by diy's conventions where they apply; a forbidden test names the axiom that
    forbids it. With --differs the smallest tests come first, and expect the verdict of the second model; without
    --edges the shipped alphabets are searched for cycles of 2 edges, 3 edges and so on, until such a test is found.
    A long search reports its progress on standard error.

    \b
    mcheck generate --edges classic --size 4 -o generated
    mcheck generate --edges async --size 3 --format json
    mcheck generate --differs ptx-9.0 ptx-9.3
    """
    import sys
    from itertools import islice

    from mcheck.base.errors import InputError
    from mcheck.cat import load_model
    from mcheck.checking.run.case import DEFAULT_MODEL
    from mcheck.report.lines import Printer
    from mcheck.report.output import wants_color
    from mcheck.report.progress import SearchProgress
    from mcheck.tools.generate import choose
    from mcheck.tools.generate.alphabet import load

    if edges is None and not differs:
        raise click.UsageError("give an alphabet: --edges FILE.toml or NAME")
    rows: list[dict[str, Any]] = []
    chosen = differs[1] if differs else model or DEFAULT_MODEL
    models = (load_model(differs[0]), load_model(chosen)) if differs else None
    progress = SearchProgress(sys.stderr)

    def watch(alphabet: str, size: int, number: int) -> None:
        shown = f"{len(rows):,} {'differ' if differs else 'written' if directory else 'listed'}"
        progress.update(f"cycles of {size} edges over {alphabet}: number {number:,}; {shown} so far")

    searched = choose.Search(watch=watch)
    if edges is None:
        assert models is not None
        found = choose.find_smallest_differences(models, size, every, timeout, searched)
    else:
        alphabet = load(edges)
        sample = choose.sample(alphabet, (size,) if size is not None else alphabet.sizes, every)
        sample = choose.report_progress(sample, alphabet.name, watch)
        found = (
            choose.find_differences(sample, models, timeout)
            if models
            else choose.judge_all(sample, load_model(chosen), timeout)
        )
    if directory is not None:
        try:
            os.makedirs(directory, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to folder {directory}: {error.strerror or error}") from None
    printer = Printer(sys.stdout, color=form == "text" and wants_color(color, sys.stdout))
    unknown = 0
    for test in islice(found, limit):
        path = _save(directory, test)
        rows.append(_row(test, path, differs))
        unknown += test.verdict is Verdict.UNKNOWN
        progress.clear()
        if form == "text":
            _show(printer, test)
    progress.clear()
    if form == "json":
        click.echo(_document(edges or searched.alphabet, chosen, rows), nl=False)
    else:
        printer.line(_count(len(rows)) + (_where(searched) if edges is None else ""))
    return 3 if unknown else 0


def _count(tests: int) -> str:
    return f"{tests:,} {'test' if tests == 1 else 'tests'}"


def _where(searched: Search) -> str:
    """The alphabet and size of the tests, and the number of tests before them on which the models agree."""
    agreed = f"the models agree on {_count(searched.agreed)}"
    if not searched.alphabet:
        return f": {agreed} of the shipped alphabets"
    before = f"; {agreed} before" if searched.agreed else ""
    return f" of {searched.size} edges over {searched.alphabet}{before}"


def _save(directory: str | None, test: Generated) -> str | None:
    if directory is None:
        return None
    from mcheck.report.output import replace_file

    path = os.path.join(directory, f"{test.name}.litmus")
    replace_file(path, test.text.encode())
    return path


def _show(printer: Printer, test: Generated) -> None:
    verdict = f"{test.other or ''}{' | ' if test.other else ''}{test.verdict}"
    why = f"  {test.axiom}" if test.axiom else f"  {' '.join(test.codes)}" if test.codes else ""
    if test.other_codes is not None and test.other_codes != test.codes:
        why = f"  {' '.join(test.other_codes) or 'clean'} | {' '.join(test.codes) or 'clean'}"
    printer.line(f"{verdict:8} {test.name}{why}")


def _row(test: Generated, path: str | None, differs: Iterable[str] | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": test.name,
        "size": test.size,
        "edges": list(test.edges),
        "verdict": test.verdict,
        "axiom": test.axiom or None,
        "codes": list(test.codes),
        "reason": test.reason or None,
        "path": path,
    }
    if differs:
        first, second = differs
        row["verdicts"] = {first: test.other, second: test.verdict}
    return row


def _document(edges: str | None, model: str, rows: list[dict[str, Any]]) -> str:
    import json

    from mcheck import __version__

    head = {"schema": 1, "tool": "mcheck", "version": __version__, "model": model, "edges": edges}
    return json.dumps({**head, "tests": rows, "summary": {"tests": len(rows)}}, indent=1) + "\n"
