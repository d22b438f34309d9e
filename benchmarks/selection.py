#!/usr/bin/env python3
"""Selections of codes against the answer without one: a selection filters, and loses nothing.

    python benchmarks/selection.py [--programs N] [--seed S] [--kernels] [--limit SECONDS]

Random programs of every family, and with ``--kernels`` the kernel sketches of ``litmus/kernels``, are checked without a
selection, with every family of codes alone (``--select``), with each family that has findings left out (``--ignore``)
and under the other profiles. What comes without a selection has to come with the selections that want it. Where the
search ended soon after an error, a selection that leaves this error out looks on and may find more, which is counted.
Exit status 1 if anything is lost, if more is found although everything was looked at without a selection, or if a
selection says `proved` of what has a finding.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from mcheck.frontend.litmus import load, parse
from mcheck.ir.program import Program
from tests.fuzz.programs import FAMILIES as KINDS
from tests.fuzz.programs import program
from tests.fuzz.selections import FAMILIES, held

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=500, metavar="N", help="random programs (default 500)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the first one's number (default 1)")
    parser.add_argument("--kernels", action="store_true", help="the kernel sketches as well")
    parser.add_argument("--limit", type=float, default=5.0, metavar="SECONDS", help="of the processor, for an answer")
    given = parser.parse_args()
    return report(tests(given.programs, given.seed, kernels=given.kernels), given.limit)


def tests(number: int, seed: int, *, kernels: bool) -> Iterator[tuple[str, Program]]:
    """Random programs by their number, sketches by their file."""
    for k in range(seed, seed + number):
        yield f"program {k}", parse(program(Random(k), tuple(KINDS)), f"program-{k}.litmus")
    for path in sorted((ROOT / "litmus" / "kernels").rglob("*.litmus")) if kernels else ():
        yield str(path.relative_to(ROOT)), load(str(path), every=True)


def report(programs: Iterator[tuple[str, Program]], seconds: float) -> int:
    """Says what was lost where, then the counts."""
    counts: Counter[str] = Counter()
    wrong = 0
    for name, one in programs:
        result = held(one, seconds)
        counts["programs"] += 1
        counts["answers with a selection"] += result.selections
        counts["findings without a selection"] += result.findings
        counts["programs with findings"] += bool(result.findings)
        counts["programs whose search ended at an error"] += result.cut and bool(result.findings)
        counts["findings that only a selection looked on to"] += len(result.more)
        counts["answers without enough time"] += len(result.open)
        lost = [f"{way} loses {', '.join(sorted({code for code, _ in some}))}" for way, some in result.lost.items()]
        said = [way for way in result.lost if way not in result.open]
        if lost:
            print(f"{name}: {'; '.join(lost)}", flush=True)
        if result.proved:
            print(f"{name}: proved with {', '.join(result.proved)}", flush=True)
        if result.more and not result.cut:
            print(f"{name}: found with a selection only: {sorted({code for code, _ in result.more})}", flush=True)
        counts["answers that lose findings"] += len(said)
        wrong += len(said) + len(result.proved) + bool(result.more and not result.cut)
    print(f"families of codes: {', '.join(FAMILIES)}")
    for what, count in counts.items():
        print(f"{count:8} {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
