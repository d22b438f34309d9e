"""``python -m tests.isa.agreement``: the table against NVIDIA's assembler, over five targets or the given ones.

Prints how many lines were asked per target, on how many both sides agree, and every disagreement with its reason.
Exit status 0 if every disagreement is meant, 1 if not, 3 if there is no assembler.
"""

from __future__ import annotations

import argparse
import sys

from mcheck.isa.targets import KNOWN
from tests.isa.agreement.compare import TARGETS, Comparison, compare
from tests.isa.agreement.lines import all_lines
from tests.isa.agreement.ptxas import VERSION, find


def _report(comparison: Comparison, brief: bool) -> None:
    meant = len(comparison.differences) - len(comparison.unmeant)
    out = sys.stdout.write
    out(
        f"{comparison.target}: {comparison.lines} lines, both accept {comparison.accepted}, both reject"
        f" {comparison.refused}, meant disagreements {meant}, others {len(comparison.unmeant)}\n"
    )
    for difference in comparison.differences:
        if difference.entry is not None and brief:
            continue
        reason = difference.entry.reason if difference.entry is not None else f"NOT MEANT: {difference.words}"
        out(f"  only {difference.accepts} accepts  {difference.line.text}\n      {reason}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.isa.agreement", description=__doc__)
    parser.add_argument("--target", action="append", choices=KNOWN, help="only this target (may be repeated)")
    parser.add_argument("--ptx", default=VERSION, help=f"the .version of the modules (default: {VERSION})")
    parser.add_argument("--family", action="append", default=[], help="only this instruction (may be repeated)")
    parser.add_argument("--limit", type=int, default=100, help="combinations of qualifiers per variant")
    parser.add_argument("--bases", type=int, default=3, help="legal spellings per variant whose neighbours are asked")
    parser.add_argument("--brief", action="store_true", help="leave out the disagreements that are meant")
    options = parser.parse_args(arguments)
    ptxas = find()
    if ptxas is None:
        sys.stderr.write("no ptxas: install the PyPI package nvidia-cuda-nvcc\n")
        return 3
    lines = all_lines(options.limit, options.bases, options.family)
    failed = False
    for target in options.target or TARGETS:
        comparison = compare(ptxas, lines, target, options.ptx)
        _report(comparison, options.brief)
        failed = failed or bool(comparison.unmeant)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
