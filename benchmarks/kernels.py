"""The kernel sketches of litmus/kernels, each checked: what is expected, what is found, at which lines, how fast.

    python -m benchmarks.kernels [--engine NAME] [--only TEXT,…] [--timeout SECONDS] [--jobs N] [--wrong]

A row per file of ``litmus/kernels/index.csv``. A sketch of a bug wants a finding of its kind (severity error or review)
that names at least the lines of the index; a pattern or a fixed twin wants an answer without an error. Exit status 1 if
a row is not as expected, or if the whole index takes longer than the target of 30 s.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "litmus" / "kernels"
TARGET = 30.0
DEFAULT_MODEL = "ptx-9.0"
ENGINES = {
    "protocol": "mcheck.engines.protocol.findings_answer",
    "explicit": "mcheck.engines.explicit.engine",
    "z3": "mcheck.engines.z3.engine",
}
HEAD = f"{'id':<4} {'file':<62} {'expected':<10} {'got':<24} {'lines':<5} {'executions':>10} {'seconds':>8}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A sketch: the kinds it expects, and the sets of lines of which a finding should name one whole."""

    id: str
    file: str
    expected: str
    lines: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the engine said: ``lines`` is None where none are expected."""

    row: Row
    got: str
    ok: bool
    lines: bool | None
    executions: int
    seconds: float


def rows(index: Path = FOLDER / "index.csv") -> Iterator[Row]:
    """The sketches of the index and their twins; ``12+20|31`` is the two lines 12 and 20, or line 31."""
    with index.open(encoding="utf-8", newline="") as file:
        for entry in csv.DictReader(file):
            choices = [c for c in entry["lines"].split("|") if c]
            lines = tuple(frozenset(map(int, choice.split("+"))) for choice in choices)
            yield Row(id=entry["id"], file=entry["file"], expected=entry["expected"], lines=lines)
            if entry["twin"]:
                yield Row(id=entry["id"], file=entry["twin"], expected="clean")


def check(row: Row, engine: str, timeout: float) -> Checked:
    """The engine's answer about one sketch against the index."""
    from mcheck.cat import load_model
    from mcheck.frontend.litmus import load

    program = load(str(FOLDER / row.file))
    model = load_model(program.model or DEFAULT_MODEL)
    module = importlib.import_module(ENGINES[engine])
    ask = module.check if engine == "protocol" else partial(module.answer, findings=True)
    started = time.perf_counter()
    try:
        got = ask(program, model, timeout=timeout)
    except Exception as error:  # noqa: BLE001 - a crash on one sketch must not take the table with it
        seconds = time.perf_counter() - started
        return Checked(row=row, got=type(error).__name__, ok=False, lines=None, executions=0, seconds=seconds)
    seconds = time.perf_counter() - started
    return judge(row, got, seconds)


def judge(row: Row, answer: Any, seconds: float) -> Checked:
    """Whether the findings are those expected; an answer that is not certain is no clean one."""
    unsure = answer.verdict if answer.verdict in ("unknown", "bounded") else ""
    grave = [f for f in answer.findings if f.severity == "error"]
    relevant = grave if row.expected == "clean" else [f for f in answer.findings if f.severity != "advice"]
    kinds = sorted({f.kind for f in relevant})
    words = "|".join(kinds) or unsure or "clean"
    if row.expected == "clean":
        return Checked(
            row=row,
            got=words,
            ok=not grave and not unsure,
            lines=None,
            executions=answer.executions,
            seconds=seconds,
        )
    wanted = [f for f in relevant if f.kind in row.expected.split("|")]
    named = [{a.span.line for a in f.accesses if a.span is not None} for f in wanted]
    placed = any(choice <= found for choice in row.lines for found in named)
    return Checked(
        row=row,
        got=words,
        ok=bool(wanted) and placed,
        lines=placed,
        executions=answer.executions,
        seconds=seconds,
    )


def line(checked: Checked) -> str:
    """A row of the table."""
    row = checked.row
    lines = "-" if checked.lines is None else "yes" if checked.lines else "no"
    figures = f"{checked.executions:>10} {checked.seconds:>8.2f}"
    name = row.file.removesuffix(".litmus")
    mark = "" if checked.ok else "  WRONG"
    return f"{row.id:<4} {name:<62} {row.expected:<10} {checked.got:<24} {lines:<5} {figures}{mark}"


def main() -> int:
    """Prints the table and the totals; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="protocol")
    parser.add_argument("--only", default="", help="parts of file names, separated by commas")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds per sketch")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--wrong", action="store_true", help="print only rows that are not as expected")
    options = parser.parse_args()
    parts = [part for part in options.only.split(",") if part]
    chosen = [row for row in rows() if not parts or any(part in row.file for part in parts)]
    if not chosen:
        print("no sketch has such a name")
        return 2
    started = time.perf_counter()
    print(HEAD)
    ask = partial(check, engine=options.engine, timeout=options.timeout)
    wrong = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for checked in pool.map(ask, chosen):
            wrong += not checked.ok
            if not options.wrong or not checked.ok:
                print(line(checked), flush=True)
    total = time.perf_counter() - started
    late = not parts and total > TARGET
    print(f"{len(chosen)} sketches: {len(chosen) - wrong} as expected, {wrong} not; {total:.1f} s", end="")
    print(f", target {TARGET:g} s {'MISSED' if late else 'met'}" if not parts else "")
    return 1 if wrong or late else 0


if __name__ == "__main__":
    sys.exit(main())
