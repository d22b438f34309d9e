#!/usr/bin/env python3
"""Random programs put to both engines: the same states, findings and liveness.

    python -m benchmarks.agreement [--count 20000] [--seed 1] [--first 0] [--seconds S] [--save FOLDER] [--vectors]
    python -m benchmarks.agreement PATH...     the same for litmus tests: files, folders (but kernels, which are for the
                                               protocol engine), tables MODEL-PROPERTY.csv with their paths

Program k of a seed is always the same. Prints how many programs agreed, the seed, the mix of instructions and what
became of the programs; each difference with the program's number, and its text into FOLDER. --vectors makes Z3 treat
all values as bit-vectors, which it does by itself where many reads come together. Exit status 1 on a difference.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

from mcheck.cat import load_model
from mcheck.cat.ast import Model
from mcheck.engines import differences
from mcheck.errors import InputError
from mcheck.explore.engine import answer as explicit
from mcheck.program.program import Program
from mcheck.solve import values
from mcheck.solve.engine import answer as solved
from mcheck.syntax import load, parse
from mcheck.testing.programs import program

LIMIT = 5.0
"""Seconds for one answer."""

DEFAULT_MODEL = "ptx-9.0"


@cache
def model_of(name: str) -> Model:
    """The model of this name, read once."""
    return load_model(name)


@dataclass(slots=True)
class Tally:
    """What has been compared, and what came of it."""

    programs: int = 0
    answered: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    instructions: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    states: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"explicit": 0.0, "z3": 0.0})
    different: list[tuple[str, list[str]]] = field(default_factory=list)


def compare(p: Program, tally: Tally, name: str | None = None) -> list[str]:
    """In what the engines differ about a program: its states, findings, verdict alone, and liveness."""
    model = model_of(name or p.model or DEFAULT_MODEL)
    out: list[str] = []
    known = True
    for prop, verdict_only in (("spec", False), ("spec", True), ("liveness", False)):
        started = time.perf_counter()
        a = explicit(p, model, prop=prop, verdict_only=verdict_only, timeout=LIMIT)
        middle = time.perf_counter()
        b = solved(p, model, prop=prop, verdict_only=verdict_only, timeout=LIMIT)
        tally.seconds["explicit"] += middle - started
        tally.seconds["z3"] += time.perf_counter() - middle
        what = "liveness: " if prop == "liveness" else "verdict only: " if verdict_only else ""
        out += [what + d for d in differences(a, b, prop, verdict_only=verdict_only)]
        for answer in (a, b):
            if answer.verdict == "unknown":
                known = False
                tally.unknown[(answer.reason or "?").split(":")[0]] += 1
        if prop == "spec" and not verdict_only:
            tally.verdicts["undefined" if a.undefined else a.verdict] += 1
            tally.states += len(a.outcomes)
            tally.findings.update({f.code for f in a.findings})
        elif prop == "liveness":
            tally.findings["never ends"] += a.verdict == "fail"
    tally.answered += known
    return out


def tests(path: Path) -> list[tuple[Path, str | None]]:
    """(file, model) of the tests that a path names; no model: the file's own, or the default."""
    if path.is_dir():
        return [(f, None) for f in sorted(path.rglob("*.litmus")) if f.parent.name != "kernels"]
    if path.suffix != ".csv":
        return [(path, None)]
    model = path.stem.rpartition("-")[0]
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [(path.parent / row[0].strip(), model) for row in rows if row[0].strip().endswith(".litmus")]


def instructions(p: Program) -> set[str]:
    """The instructions of a program, by the first parts of their names."""
    words = {op.text.strip().removeprefix("await ") for thread in p.threads for op in thread.code}
    names = {re.match(r"(?:@!?%?\w+\s+)?([a-z][\w.]*)", word) for word in words}
    return {".".join(m[1].split(".")[:3]) for m in names if m}


def random_programs(seed: int, first: int, count: int) -> Iterator[tuple[str, str]]:
    """(name, text) of the programs of a seed."""
    for k in range(first, first + count):
        yield f"{seed}-{k}", program(Random(f"{seed}:{k}"))


def run(texts: Iterator[tuple[str, str]], tally: Tally, save: Path | None, until: float | None) -> None:
    """Compares the engines on all texts, or on what the time allows; Ctrl-C ends it with what has been compared."""
    try:
        _run(texts, tally, save, until)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)


def _run(texts: Iterator[tuple[str, str]], tally: Tally, save: Path | None, until: float | None) -> None:
    for name, text in texts:
        if until is not None and time.monotonic() > until:
            return
        try:
            p = parse(text, f"{name}.litmus")
        except InputError as error:
            raise SystemExit(f"the generator wrote an illegal program, {name}: {error.message}\n{text}") from None
        tally.programs += 1
        tally.instructions.update(instructions(p))
        try:
            found = compare(p, tally)
        except Exception as error:  # noqa: BLE001 - a crash of an engine is a difference too
            found = [f"{type(error).__name__}: {error}"]
        if found:
            tally.different.append((name, found))
            print(f"{name}: {'; '.join(found)}", flush=True)
            if save is not None:
                save.mkdir(parents=True, exist_ok=True)
                (save / f"{name}.litmus").write_text(text, encoding="utf-8")


def show(tally: Tally, seed: int | None) -> None:
    """The summary."""
    named = f"seed {seed}, " if seed is not None else ""
    print(f"{tally.programs} programs, {named}{len(tally.different)} differences")
    print(f"answered by both: {tally.answered}; final states compared: {tally.states}")
    print(f"time: explicit {tally.seconds['explicit']:.1f} s, z3 {tally.seconds['z3']:.1f} s")
    for title, counter in (
        ("verdicts", tally.verdicts),
        ("findings (programs)", tally.findings),
        ("instructions (programs)", tally.instructions),
        ("unknown (answers)", tally.unknown),
    ):
        print(f"{title}: " + ", ".join(f"{name} {n}" for name, n in counter.most_common() if n))


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--vectors", action="store_true")
    options = parser.parse_args()
    if options.vectors:
        values.LEAVES = 0
    tally = Tally()
    until = None if options.seconds is None else time.monotonic() + options.seconds
    if options.paths:
        for file, name in (pair for path in options.paths for pair in tests(path)):
            tally.programs += 1
            p = load(str(file))
            tally.instructions.update(instructions(p))
            found = compare(p, tally, name)
            if found:
                tally.different.append((str(file), found))
                print(f"{file}: {'; '.join(found)}", flush=True)
        show(tally, None)
    else:
        run(random_programs(options.seed, options.first, options.count), tally, options.save, until)
        show(tally, options.seed)
    return 1 if tally.different else 0


if __name__ == "__main__":
    sys.exit(main())
