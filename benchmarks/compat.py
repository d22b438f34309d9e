#!/usr/bin/env python3
"""The peers' suites, each table by a command of its own, cold start included: no mismatch, 2 s together.

    python benchmarks/compat.py [--folder FOLDER]

Beside the seconds by the clock stand those of the processor, of all processes. Exit status 1 if a table has a mismatch
or an unknown answer, or if the target, which is of the clock on an idle machine, is missed.
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT.parent / "shared" / "compat"
TARGET = 2.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The line of counts, both kinds of seconds, the peak memory of the largest process in bytes, the exit status."""

    counts: str
    seconds: float
    processor: float
    memory: int
    status: int


def measure(table: Path) -> Measured:
    """Runs a table."""
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
    return Measured(
        counts=lines[-1] if lines else "no report",
        seconds=seconds,
        processor=usage.ru_utime + usage.ru_stime,
        memory=usage.ru_maxrss * scale,
        status=process.returncode,
    )


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
        m = measure(table)
        total, processor, wrong = total + m.seconds, processor + m.processor, wrong + (m.status != 0)
        both = f"{m.seconds:>6.2f} s{m.processor:>6.2f} s"
        print(f"{table.stem:<18}{both}{m.memory >> 20:>5} MiB  {m.counts}", flush=True)
    verdict = f"target {TARGET:g} s {'met' if total < TARGET else 'MISSED'}; {wrong} tables with a mismatch or worse"
    print(f"{'together':<18}{total:>6.2f} s{processor:>6.2f} s  {verdict}")
    return 1 if wrong or total >= TARGET else 0


if __name__ == "__main__":
    sys.exit(main())
