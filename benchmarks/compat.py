"""The peers' suites, each table by a command of its own, cold start included: no mismatch, 2 s together.

    python -m benchmarks.compat [--folder FOLDER]

Beside the seconds by the clock stand those of the processor, of all processes. Exit status 1 if a table has a mismatch
or an unknown answer, or if the target, which is of the clock on an idle machine, is missed.
"""

from __future__ import annotations

import argparse
import compileall
import sys
from pathlib import Path

from benchmarks.processes import Finished, run_process

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT.parent / "shared" / "compat"
TARGET = 2.0


def ask_mcheck(table: Path, *more: str, quiet: bool = True) -> Finished:
    """What ``mcheck run`` says of a table, whose name has the model and the property."""
    model, _, prop = table.stem.rpartition("-")
    command = [sys.executable, "-m", "mcheck", "run", *(["-q"] if quiet else []), "--expect", str(table)]
    return run_process([*command, "--model", model, "--property", prop, *more], folder=ROOT, errors=None)


def main() -> int:
    """Prints a line per table; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    compileall.compile_dir(ROOT / "mcheck", quiet=2)  # as its installation does, whatever Python is told of bytecode
    tables = sorted(folder.glob("*.csv"))
    if not tables:
        print(f"nothing to run: no table in {folder} (--folder FOLDER names another)")
        return 0
    total = processor = 0.0
    wrong = 0
    for table in tables:
        done = ask_mcheck(table)
        total, processor, wrong = total + done.wall, processor + done.processor, wrong + (done.status != 0)
        both = f"{done.wall:>6.2f} s{done.processor:>6.2f} s"
        counts = done.output.splitlines()[-1] if done.output else "no report"
        print(f"{table.stem:<18}{both}{done.memory >> 20:>5} MiB  {counts}", flush=True)
    verdict = f"target {TARGET:g} s {'met' if total < TARGET else 'MISSED'}; {wrong} tables with a mismatch or worse"
    print(f"{'together':<18}{total:>6.2f} s{processor:>6.2f} s  {verdict}")
    return 1 if wrong or total >= TARGET else 0


if __name__ == "__main__":
    sys.exit(main())
