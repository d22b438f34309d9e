"""How wide a test may be: the verdicts of the scalable families with Z3 and with the explicit engine, and litmus/.

    python -m benchmarks.width [--families FILE.py] [--limit SECONDS] [--no-litmus] [--larger]

Each family's row is a process of its own (``mcheck run --verdict-only``), timed from start to end; BRANCH is of this
file: 4 threads that take N branches each on what they have read. Below the table: both engines over litmus/ in one
process, total and median per test. Exit status 1 if Z3 misses a verdict or takes more than 10 s for one.
"""

from __future__ import annotations

import argparse
import compileall
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.families import FAMILIES, ROOT, ask_mcheck
from benchmarks.families import load as load_families
from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer as explicit
from mcheck.engines.z3.engine import answer as solved
from mcheck.frontend.litmus import load

WIDTHS = {
    "SB": 24,
    "SBF": 12,
    "IRIW": 12,
    "COW": 16,
    "CORR2": 12,
    "CHAIN": 40,
    "22W": 24,
    "WR": 8,
    "RING": 12,
    "BRANCH": 3,
}
LARGER = {
    "SB": 64,
    "SBF": 24,
    "IRIW": 32,
    "COW": 32,
    "CORR2": 24,
    "CHAIN": 80,
    "22W": 48,
    "WR": 16,
    "RING": 24,
    "BRANCH": 5,
}
FORBIDDEN = {"SBF", "CORR2", "WR", "RING", "BRANCH"}
TARGET = 10.0
SKIPPED = {"kernels"}
"""Suites for the protocol engine."""


def measure(text: str, engine: str, limit: float) -> tuple[str, float, int]:
    """(verdict, seconds, peak memory in bytes) of one test in a process of its own."""
    done, test = ask_mcheck(text, limit, "--verdict-only", "--engine", engine)
    return test["verdict"] if test is not None else "none", done.wall, done.memory


def branches(n: int, threads: int = 4) -> str:
    """Threads that load a word and store to the next one where they find a number; their results are out of reach."""
    lines = ["PTX branches", "{ .global .u32 x = 0; .global .u32 y = 0; .global .u32 z = 0; }"]
    for t in range(threads):
        lines.append(f"P{t}@cta {t} {{")
        for k in range(n):
            read, written = "xyz"[(t + k) % 3], "xyz"[(t + k + 1) % 3]
            lines.append(f"  ld.relaxed.gpu.global.u32 r{k}, [{read}];")
            lines.append(f"  if (r{k} == {k}) {{ st.relaxed.gpu.global.u32 [{written}], {t + 1}; }}")
        lines.append("}")
    condition = " /\\ ".join(f"P{t}:r{n - 1} == {(t + 2) % threads + 1}" for t in range(threads))
    return "\n".join([*lines, f"exists ({condition})"])


def families(path: Path, widths: dict[str, int], limit: float) -> int:
    """Prints a row per family; how many miss their target."""
    module = load_families(path)
    print(f"{'family':<8}{'n':>4}  {'verdict':<8}{'z3':>8}{'MiB':>6}{'explicit':>10}")
    bad = 0
    for family, n in widths.items():
        text = branches(n) if family == "BRANCH" else module.test(family, n)
        verdict, seconds, memory = measure(text, "z3", limit)
        other, others, _ = measure(text, "explicit", limit)
        known = "fail" if family in FORBIDDEN else "pass"
        wrong = verdict != known or seconds >= TARGET or other not in (known, "none", "unknown")
        bad += wrong
        shown = f"{others:.2f}" if other == known else f"> {limit:g}" if other == "none" else other
        row = f"{family:<8}{n:>4}  {verdict:<8}{seconds:>8.2f}{memory >> 20:>6}{shown:>10}"
        print(row + ("  MISSED" if wrong else ""), flush=True)
    return bad


def suites() -> None:
    """Both engines over litmus/, in this process."""
    files = [f for f in sorted((ROOT / "litmus").rglob("*.litmus")) if f.parent.name not in SKIPPED]
    times: dict[str, list[float]] = {"explicit": [], "z3": []}
    for file in files:
        program = load(str(file))
        model = load_model(program.model or "ptx-9.0")
        for name, answer in (("explicit", explicit), ("z3", solved)):
            started = time.perf_counter()
            answer(program, model, timeout=60)
            times[name].append(time.perf_counter() - started)
    for name, found in times.items():
        print(f"litmus/ {name:<9}{len(found)} tests{sum(found):>8.2f} s  median {1000 * median(found):.1f} ms")


def main() -> int:
    """Prints the tables; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", type=Path, default=FAMILIES, metavar="FILE.py")
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--no-litmus", action="store_true")
    parser.add_argument("--larger", action="store_true", help="the families at about twice those widths")
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "mcheck", quiet=2)  # as its installation does, whatever Python is told of bytecode
    bad = 0
    if options.families.is_file():
        bad = families(options.families, LARGER if options.larger else WIDTHS, options.limit)
    else:
        print(f"no families: {options.families} is absent (--families FILE.py names another)")
    if not options.no_litmus:
        suites()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
