#!/usr/bin/env python3
"""The peers' suites, each table by a command of its own, cold start included: no mismatch, 3 s together.

    python benchmarks/compat.py [--folder FOLDER]

Exit status 1 if a table has a mismatch or an unknown answer, or if the target is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT.parent / "shared" / "compat"
TARGET = 3.0


def measure(table: Path) -> tuple[str, float, int, int]:
    """The line of counts, seconds, the peak memory of the largest process in bytes, and the exit status."""
    model, _, prop = table.stem.rpartition("-")
    command = [sys.executable, "-m", "mcheck", "run", "-q", "--expect", str(table), "--model", model]
    command += ["--property", prop]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    report = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    lines = report.splitlines()
    scale = 1 if sys.platform == "darwin" else 1024
    return (lines[-1] if lines else "no report"), seconds, usage.ru_maxrss * scale, process.returncode


def main() -> int:
    """Prints a line per table; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    tables = sorted(folder.glob("*.csv"))
    if not tables:
        print(f"nothing to run: no table in {folder} (--folder FOLDER names another)")
        return 0
    total, wrong = 0.0, 0
    for table in tables:
        counts, seconds, memory, status = measure(table)
        total, wrong = total + seconds, wrong + (status != 0)
        print(f"{table.stem:<18}{seconds:>6.2f} s{memory >> 20:>5} MiB  {counts}", flush=True)
    verdict = "met" if total < TARGET else "MISSED"
    print(f"{'together':<18}{total:>6.2f} s  target {TARGET:g} s {verdict}; {wrong} tables with a mismatch or worse")
    return 1 if wrong or total >= TARGET else 0


if __name__ == "__main__":
    sys.exit(main())
