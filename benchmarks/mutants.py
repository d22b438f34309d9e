#!/usr/bin/env python3
"""Bugs planted in the code, and who notices: the fast tests, and a short run of the engines against each other.

    python -m benchmarks.mutants [--table FILE] [--only TEXT] [--tests PATH...] [--tier quick] [--programs N]
        [--engines NAMES]

Each mutant of the table is planted in a copy of its own. It is noticed if an engine differs or, where none does, a test
fails; the first that do are named. Before the mutants the copy is tried as it is: what fails there notices nothing.
Exit status 1 if a mutant is not noticed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "benchmarks" / "mutants.toml"
PARTS = ("mcheck", "models", "litmus", "tests", "benchmarks", "pyproject.toml")
"""What a copy needs."""

ABOUT_THE_TABLE = "tests/fuzz_tests/test_fuzz_comparisons.py::test_every_mutant_fits_the_code"
"""What fails wherever a mutant of the table is planted: its text stands there no more."""

LIMIT = 900
"""Seconds for the tests of one mutant; a mutant that makes them hang is noticed."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old`` stands once in ``file``; the mutant has ``new`` there."""

    name: str
    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Net:
    """Who is asked about the mutants of a table: tests that are fast, and engines on so many random programs."""

    tests: tuple[str, ...]
    engines: str
    programs: int


def net_of(table: Path) -> Net:
    """The net that a table names."""
    named = tomllib.loads(table.read_text(encoding="utf-8"))["net"]
    return Net(tuple(named["tests"]), named["engines"], named["programs"])


def mutants(table: Path) -> list[Mutant]:
    """The mutants of a table; one that does not fit the code is an error."""
    rows = tomllib.loads(table.read_text(encoding="utf-8"))["mutant"]
    found = [Mutant(**row) for row in rows]
    for m in found:
        times = (ROOT / m.file).read_text(encoding="utf-8").count(m.old)
        if times != 1 or m.old == m.new:
            raise SystemExit(f"'{m.name}' does not fit: its text stands {times} times in {m.file}")
    return found


@contextmanager
def planted(mutant: Mutant | None) -> Iterator[Path]:
    """A copy of the checkout with the mutant in it; its bytecode too, where only that of the mutant is out of date."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder, ROOT.name)
        copy.mkdir()
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns(".*_cache"))
            else:
                shutil.copy2(source, copy / part)
        if mutant is not None:
            path = copy / mutant.file
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        yield copy


def run(copy: Path, command: Sequence[str]) -> tuple[int, str]:
    """The exit status and output of a module of Python in the copy; -1 if it never ended."""
    paths = os.pathsep.join(filter(None, (str(copy), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, ""
    return done.returncode, done.stdout


def by_tests(copy: Path, tests: Sequence[str], tier: str = "all") -> list[str]:
    """The first tests of a tier that fail."""
    options = ["-q", "--maxfail=3", "-p", "no:cacheprovider", "--tier", tier, "--deselect", ABOUT_THE_TABLE]
    status, out = run(copy, ["pytest", *options, *tests])
    if status == -1:
        return ["tests that never end"]
    return re.findall(r"^(?:FAILED|ERROR) (\S+)", out, re.MULTILINE) or ([f"pytest: {status}"] if status else [])


def by_engines(copy: Path, programs: int, engines: str) -> list[str]:
    """The first differences between engines on random programs."""
    if not programs:
        return []
    options = [
        "--programs",
        str(programs),
        "--engines",
        engines,
        "--seed",
        "mutants",
        "--timeout",
        "1",
        "--patience",
        "0",
    ]
    status, out = run(copy, ["benchmarks.agreement", *options])
    if status == -1:
        return ["engines that never end"]
    found = re.findall(r"^(mutants-\d+: [^;\n]{1,80})", out, re.MULTILINE)[:2]
    return found or ([f"agreement: {status}"] if status else [])


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose name or file contains it")
    parser.add_argument("--tests", nargs="*", help="the tests to run, instead of those that the table names")
    parser.add_argument("--tier", choices=("quick", "all"), default="all", help="which of these tests (%(default)s)")
    parser.add_argument("--programs", type=int, help="random programs for the engines, likewise")
    parser.add_argument("--engines", help="the engines, likewise")
    options = parser.parse_args()
    net = net_of(options.table)
    tests = net.tests if options.tests is None else options.tests
    programs = net.programs if options.programs is None else options.programs
    engines = options.engines or net.engines
    chosen = [m for m in mutants(options.table) if options.only in f"{m.name} {m.file}"]
    with planted(None) as copy:
        before = [*by_tests(copy, tests, options.tier), *by_engines(copy, programs, engines)]
    if before:
        print("without a mutant: " + ", ".join(before))
        return 1
    missed = 0
    for m in chosen:
        started = time.perf_counter()
        with planted(m) as copy:
            noticed = by_engines(copy, programs, engines) or by_tests(copy, tests, options.tier)
        missed += not noticed
        said = "; ".join(noticed) or "NOT NOTICED"
        print(f"{time.perf_counter() - started:>6.0f} s  {m.name} ({m.file}): {said}", flush=True)
    print(f"{len(chosen)} mutants, {missed} not noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
