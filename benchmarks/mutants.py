#!/usr/bin/env python3
"""Bugs planted in the code, and who notices: the fast tests, and a short run of the engines against each other.

    python -m benchmarks.mutants [--table FILE] [--only TEXT] [--tests PATH...] [--tier quick] [--day YYYY-MM-DD]
        [--programs N] [--engines NAMES] [-j N] [--json FILE]

Each mutant of the table is planted in a copy of its own. It is noticed if an engine differs or, where none does, a test
fails; the first that do are named. Before the mutants a copy is tried as it is: what fails there notices nothing, and
the mutants are tried without it. With --programs 0 tests alone are asked. The tier every-day is what the quick tier has
on any day: a mutant that it notices is noticed whatever the day. Exit status 1 if a mutant is not noticed.

-j N tries so many mutants side by side. They are printed in the order of the table, and are in the file of --json as
soon as they are done. Where pytest must not look for plugins (PYTEST_DISABLE_PLUGIN_AUTOLOAD=1), PYTEST_ADDOPTS names
them: -p pytest_timeout -p xdist.plugin.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "benchmarks" / "mutants.toml"
PARTS = ("mcheck", "models", "litmus", "tests", "benchmarks", "pyproject.toml")
"""What a copy needs."""

ABOUT_THE_TABLE = "tests/fuzz_tests/test_fuzz_comparisons.py::test_every_mutant_fits_the_code"
"""What fails wherever a mutant of the table is planted: its text stands there no more."""

TIERS = {
    "all": ("--tier", "all"),
    "quick": ("--tier", "quick"),
    "every-day": ("--tier", "quick", "-m", "not slow and not daily"),
}
"""The options of pytest for a tier."""

LIMIT = 900
"""Seconds for the tests of one mutant, or for the engines; a mutant that makes them hang is noticed."""

NEVER_END = "tests that never end"
NO_TESTS = 5
"""The exit status of pytest where none of a file's tests is in the tier."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old`` stands once in ``file``; the mutant has ``new`` there."""

    name: str
    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Net:
    """Who is asked about the mutants of a table: tests that are fast, and engines on so many random programs.

    ``options`` are pytest's: the tier, and what else says which of the tests. ``spoilt`` fails without a mutant too.
    """

    tests: tuple[str, ...]
    engines: str
    programs: int
    options: tuple[str, ...] = TIERS["all"]
    spoilt: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Notice:
    """Who noticed a mutant, the first of them, and the seconds that it took."""

    name: str
    file: str
    noticed: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        said = "; ".join(self.noticed) or "NOT NOTICED"
        return f"{self.seconds:>6.0f} s  {self.name} ({self.file}): {said}"


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


def link(source: str, target: str) -> None:
    """The same file at another place; a copy of it, where that is on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@contextmanager
def planted(mutant: Mutant | None) -> Iterator[Path]:
    """A copy of the checkout with the mutant in it; its bytecode too, where only that of the mutant is out of date.

    Its files are those of the checkout, but for the mutant's: no test writes to one.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder, ROOT.name)
        copy.mkdir()
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns(".*_cache"), copy_function=link)
            else:
                link(str(source), str(copy / part))
        if mutant is not None:
            path = copy / mutant.file
            text = path.read_text(encoding="utf-8")
            path.unlink()
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
    return done.returncode, done.stdout + done.stderr


def last_line(out: str) -> str:
    """What a program said at last, after a comma."""
    return "".join(f", {line}" for line in out.strip().splitlines()[-1:])


def by_tests(copy: Path, net: Net, failures: int = 3) -> list[str]:
    """The first tests that fail; with ``failures=0`` all of them."""
    options = ["-q", f"--maxfail={failures}", "--continue-on-collection-errors", "-p", "no:cacheprovider", *net.options]
    for known in (ABOUT_THE_TABLE, *sorted(net.spoilt)):
        options += [
            "--deselect" if "::" in known else "--ignore",
            known,
        ]  # a file that cannot be collected has no tests
    status, out = run(copy, ["pytest", *options, *net.tests])
    if status == -1:
        return [NEVER_END]
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", out, re.MULTILINE)
    return failed or ([f"pytest: {status}{last_line(out)}"] if status not in {0, NO_TESTS} else [])


def by_engines(copy: Path, net: Net) -> list[str]:
    """The differences between engines on random programs."""
    if not net.programs:
        return []
    options = ["--programs", str(net.programs), "--engines", net.engines, "--seed", "mutants"]
    status, out = run(copy, ["benchmarks.agreement", *options, "--timeout", "1", "--patience", "0"])
    if status == -1:
        return ["engines that never end"]
    found = re.findall(r"^(mutants-\d+: [^;\n]{1,80})", out, re.MULTILINE)
    return [each for each in found if each not in net.spoilt] or (
        [f"agreement: {status}"] if status and not found else []
    )


def parts(tests: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """The files of the tests, in so many parts."""
    files: list[str] = []
    for test in tests:
        folder = ROOT / test
        found = sorted(folder.rglob("test_*.py")) if folder.is_dir() else []
        files += [file.relative_to(ROOT).as_posix() for file in found] or [test]
    return [tuple(files[k::count]) for k in range(min(count, len(files)))]


def fails_without(net: Net, pool: ThreadPoolExecutor, jobs: int) -> list[str]:
    """What differs or fails where no mutant is planted."""
    with planted(None) as copy:
        engines = pool.submit(by_engines, copy, net)
        tests = [pool.submit(by_tests, copy, replace(net, tests=part), 0) for part in parts(net.tests, jobs)]
        return sorted({each for job in (engines, *tests) for each in job.result()})


def tried(mutant: Mutant, net: Net) -> Notice:
    """A mutant before the net."""
    started = time.perf_counter()
    with planted(mutant) as copy:
        noticed = by_engines(copy, net)[:2] or by_tests(copy, net)
    return Notice(mutant.name, mutant.file, tuple(noticed), round(time.perf_counter() - started, 1))


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose name or file contains it")
    parser.add_argument("--tests", nargs="*", help="the tests to run, instead of those that the table names")
    parser.add_argument("--tier", choices=TIERS, default="all", help="which of these tests (%(default)s)")
    parser.add_argument("--day", metavar="YYYY-MM-DD", help="the day of the quick tier (today)")
    parser.add_argument("--programs", type=int, help="random programs for the engines, likewise")
    parser.add_argument("--engines", help="the engines, likewise")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="mutants side by side (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write who noticed which, as it goes")
    return parser


def chosen(options: argparse.Namespace) -> Net:
    """The net of the table, but for what the options say."""
    net = net_of(options.table)
    return Net(
        net.tests if options.tests is None else tuple(options.tests),
        options.engines or net.engines,
        net.programs if options.programs is None else options.programs,
        TIERS[options.tier] + (("--day", options.day) if options.day else ()),
    )


def main() -> int:
    """The exit status."""
    options = arguments().parse_args()
    net = chosen(options)
    asked = [m for m in mutants(options.table) if options.only in f"{m.name} {m.file}"]
    with ThreadPoolExecutor(options.jobs) as pool:
        spoilt = fails_without(net, pool, options.jobs)
        if spoilt:
            print("without a mutant: " + ", ".join(spoilt), flush=True)
        if any(each == NEVER_END or each.startswith(("pytest:", "agreement:", "engines")) for each in spoilt):
            return 1
        jobs = [pool.submit(tried, m, replace(net, spoilt=frozenset(spoilt))) for m in asked]
        printed = 0
        for _ in as_completed(jobs):
            done = [job.result() for job in jobs if job.done()]
            if options.json:
                rows = [asdict(notice) for notice in done]
                text = json.dumps({"options": net.options, "without a mutant": spoilt, "mutants": rows}, indent=1)
                options.json.write_text(text + "\n", encoding="utf-8")
            while printed < len(jobs) and jobs[printed].done():
                print(jobs[printed].result(), flush=True)
                printed += 1
    missed = sum(not job.result().noticed for job in jobs)
    print(f"{len(jobs)} mutants, {missed} not noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
