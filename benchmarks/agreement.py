#!/usr/bin/env python3
"""The engines held against each other: the same kinds and codes of findings, verdicts and states, or a bug.

    python -m benchmarks.agreement [--programs N]   random programs, every engine
    python -m benchmarks.agreement --metamorphic N  pairs of random programs whose answers are related
    python -m benchmarks.agreement --edited N       edited cat models over tests of litmus/
    python -m benchmarks.agreement --modules N      random programs, each as a litmus test and as a PTX module
    python -m benchmarks.agreement PATH...          litmus tests: files, folders (but kernels), tables MODEL-NAME.csv
    python -m benchmarks.agreement --table FILE...  the counts that were kept with --state, as a table

Item k of a seed is always the same. Prints the counts, and each difference with its item; with --save FOLDER the
programs that differ, as they are and made small. With --state FILE the counts are kept there and an interrupted run
goes on from them. An engine that leaves something open (unknown, bounded) is counted by its reason and is no
difference. --vectors makes Z3 treat all values as bit-vectors, which it does by itself where many reads come together.
Exit status 1 on a difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mcheck.base.errors import InputError
from mcheck.engines.z3 import value_literals
from mcheck.frontend.litmus import load
from tests.fuzz import edited_models
from tests.fuzz.comparisons import Plan, account, compare_pair, compare_program
from tests.fuzz.differential import DEFAULT_MODEL, ENGINES, LIMIT, contradictions, model_of, run_engines
from tests.fuzz.programs import FAMILIES
from tests.fuzz.record import Record, kept, resume, run_items, table
from tests.fuzz.two_forms import compare_forms

SUITES = Path(__file__).resolve().parent.parent / "litmus"


def tests(path: Path) -> list[tuple[Path, str | None]]:
    """(file, model) of the tests that a path names; no model: the file's own, or the default."""
    if path.is_dir():
        return [(f, None) for f in sorted(path.rglob("*.litmus")) if f.parent.name != "kernels"]
    if path.suffix != ".csv":
        return [(path, None)]
    model = path.stem.rpartition("-")[0]
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [(path.parent / row[0].strip(), model) for row in rows if row[0].strip().endswith(".litmus")]


def compare_file(files: list[tuple[Path, str | None]], plan: Plan, number: int, record: Record) -> None:
    """A test before all engines."""
    path, name = files[number]
    program = load(str(path))
    heard = run_engines(program, plan.engines, model_of(name or program.model or DEFAULT_MODEL), plan.timeout)
    account(heard, record)
    found = contradictions(heard)
    for d in found:
        record.count("differences", f"{'/'.join(d.pair)} {d.what}")
    if found:
        record.differs(str(path), [str(d) for d in found])


def chosen(options: argparse.Namespace) -> tuple[str, int, Callable[[Plan, int, Record], None]]:
    """What is compared: its name, how many items, and the comparison of one."""
    if options.paths:
        files = [pair for path in options.paths for pair in tests(path)]
        return "tests", len(files), partial(compare_file, files)
    if options.metamorphic is not None:
        return "metamorphic pairs", options.metamorphic, compare_pair
    if options.edited is not None:
        return "edited models", options.edited, edited_models.comparison(edited_models.suites(SUITES))
    if options.modules is not None:
        return "modules", options.modules, compare_forms
    return "random programs", options.programs, compare_program


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--programs", type=int, default=20000, metavar="N")
    which.add_argument("--metamorphic", type=int, metavar="N")
    which.add_argument("--edited", type=int, metavar="N")
    which.add_argument("--modules", type=int, metavar="N")
    which.add_argument("--table", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--families", default="", help=f"some of {','.join(FAMILIES)}")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="begin with item K, where no state says so")
    parser.add_argument("--timeout", type=float, default=LIMIT, help="seconds of the processor for one answer")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds for making a program small")
    parser.add_argument("--state", type=Path, help="keep the counts here, and go on from them")
    parser.add_argument("--save", type=Path, help="folder for the programs that differ")
    parser.add_argument("--thorough", action="store_true", help="explicit and z3: verdicts alone, and liveness, too")
    parser.add_argument("--vectors", action="store_true")
    return parser


def names(given: str, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    """The names in a list, all of them known."""
    listed = tuple(name for name in given.split(",") if name)
    unknown = [name for name in listed if name not in known]
    if unknown:
        raise SystemExit(f"no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    return listed


def main() -> int:
    """The exit status."""
    options = arguments().parse_args()
    if options.table:
        print(table(map(kept, options.table)))
        return 0
    if options.vectors:
        value_literals.LEAVES = 0
    plan = Plan(
        seed=options.seed,
        families=names(options.families, tuple(FAMILIES), "family"),
        engines=names(options.engines, ENGINES, "engine"),
        timeout=options.timeout,
        save=options.save,
        patience=options.patience,
        thorough=options.thorough,
    )
    what, count, compare = chosen(options)
    about = {
        what: ",".join(map(str, options.paths)),
        "seed": plan.seed,
        "families": ",".join(plan.families),
        "engines": ",".join(plan.engines),
        "first": str(options.first or ""),
    }
    about = {"compared": what} | {key: value for key, value in about.items() if value}
    try:
        record = resume(about, options.state)
    except InputError as error:
        raise SystemExit(error.message) from None

    def step(number: int, record: Record) -> None:
        before = len(record.different)
        compare(plan, options.first + number, record)
        for name, texts in record.different[before:]:
            print(f"{name}: {'; '.join(texts)}", flush=True)

    until = None if options.seconds is None else time.monotonic() + options.seconds
    run_items(record, count, step, options.state, until)
    print(record.text())
    return 1 if record.different else 0


if __name__ == "__main__":
    sys.exit(main())
