"""``mcheck generate``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from mcheck.commands import options

if TYPE_CHECKING:
    from mcheck.generate.judge import Generated
    from mcheck.report.lines import Printer


@click.command("generate", short_help="Write litmus tests from cycles of relations.")
@click.option(
    "--edges",
    metavar="FILE.toml|NAME",
    required=True,
    help="The alphabet: a file, or a shipped one: async, classic, cluster, families, oneway, reduce, scopes, tensor.",
)
@click.option(
    "--size", type=click.IntRange(min=2), metavar="N", help="Edges of a cycle (default: the alphabet's sizes)."
)
@click.option("-o", "directory", type=click.Path(file_okay=False), metavar="DIR", help="Write a file per test.")
@click.option("--differs", nargs=2, metavar="MODEL MODEL", help="Keep the tests about which two models differ.")
@click.option("--every", type=click.IntRange(min=1), default=1, metavar="K", help="A sample: every K-th test.")
@options.model
@options.format_("text", "json")
@options.timeout
@options.color
def command(
    edges: str,
    size: int | None,
    directory: str | None,
    differs: tuple[str, str] | None,
    every: int,
    model: str | None,
    form: str,
    timeout: float | None,
    color: str,
) -> int:
    """Write each cycle of N edges over an alphabet once, as a litmus test that expects what the model says of it.

    The name of a test says its cycle, as diy's names do where they apply; a forbidden one says which axiom forbids it.
    With --differs the smallest come first, and expect what the second model says.

    \b
    mcheck generate --edges classic --size 4 -o generated
    mcheck generate --edges async --size 3 --format json
    mcheck generate --edges tensor --differs ptx-9.0 ptx-9.3
    """
    import sys

    from mcheck.cat import load_model
    from mcheck.generate import choose
    from mcheck.generate.alphabet import load
    from mcheck.report.lines import Printer
    from mcheck.report.output import wants_color
    from mcheck.run.case import DEFAULT_MODEL

    alphabet = load(edges)
    sample = choose.sample(alphabet, (size,) if size is not None else alphabet.sizes, every)
    chosen = model or DEFAULT_MODEL
    if differs:
        found = choose.different(sample, (load_model(differs[0]), load_model(differs[1])), timeout)
    else:
        found = choose.judged_all(sample, load_model(chosen), timeout)
    if directory is not None:
        os.makedirs(directory, exist_ok=True)
    printer = Printer(sys.stdout, color=form == "text" and wants_color(color, sys.stdout))
    rows: list[dict[str, Any]] = []
    unknown = 0
    for test in found:
        path = _save(directory, test)
        rows.append(_row(test, path, differs))
        unknown += test.verdict == "unknown"
        if form == "text":
            _show(printer, test)
    if form == "json":
        click.echo(_document(edges, differs[1] if differs else chosen, rows), nl=False)
    else:
        printer.line(f"{len(rows)} {'test' if len(rows) == 1 else 'tests'}")
    return 3 if unknown else 0


def _save(directory: str | None, test: Generated) -> str | None:
    if directory is None:
        return None
    path = os.path.join(directory, f"{test.name}.litmus")
    with open(path, "w", encoding="utf-8") as file:
        file.write(test.text)
    return path


def _show(printer: Printer, test: Generated) -> None:
    verdict = f"{test.other or ''}{' | ' if test.other else ''}{test.verdict}"
    why = f"  {test.axiom}" if test.axiom else f"  {' '.join(test.codes)}" if test.codes else ""
    if test.other and test.other_codes != test.codes:
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


def _document(edges: str, model: str, rows: list[dict[str, Any]]) -> str:
    import json

    from mcheck import __version__

    head = {"schema": 1, "tool": "mcheck", "version": __version__, "model": model, "edges": edges}
    return json.dumps({**head, "tests": rows, "summary": {"tests": len(rows)}}, indent=1) + "\n"
