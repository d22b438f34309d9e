"""The ring of ``benchmarks/scale.py`` under SPIN: ``spin/ring.pml`` generated, compiled and searched at a given size.

``spin`` and a C compiler have to be installed (Debian: ``spin``, ``gcc``); ``missing`` says what is not.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.processes import run_process

MODEL = Path(__file__).resolve().parent / "spin" / "ring.pml"
FLAGS = ("-DSAFETY", "-DVECTORSZ=16384")
"""Assertions and deadlocks, partial-order reduction (SPIN's default), every state stored whole: the fastest exact
search. ``-DCOLLAPSE`` halves the memory and doubles the time, and it is the time that runs out."""

STORED = re.compile(r"^\s*([\d.e+]+) states, stored", re.MULTILINE)
MEMORY = re.compile(r"^\s*([\d.]+)\s+total actual memory usage", re.MULTILINE)
ERRORS = re.compile(r"errors: (\d+)")


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search came to: ``why`` is empty where all states were visited, else why it stopped before. ``made`` are
    the seconds that generating and compiling the verifier took, ``wall`` those of it all by the clock.
    """

    states: int
    seconds: float
    mebibytes: float
    errors: int
    why: str = ""
    made: float = 0.0
    wall: float = 0.0


def missing(spin: str = "spin") -> str | None:
    """The first program that is needed and not installed."""
    return next((name for name in (spin, "cc") if shutil.which(name) is None), None)


def depth(sizes: dict[str, int]) -> int:
    """More steps than any path of the model has: each role's per round, and the copies that land."""
    rounds, ctas, consumers = sizes["K"], sizes.get("C", 1), sizes["W"]
    return rounds * ctas * (3 + consumers * (3 + ctas) + ctas) + 1000


def search(
    sizes: dict[str, int],
    words: tuple[str, ...],
    limit: float,
    mebibytes: int,
    model: Path = MODEL,
    optimise: str = "-O2",
    spin: str = "spin",
) -> Searched:
    """Searches the model with the macros ``sizes`` and ``words`` set, for ``limit`` seconds in so much memory.

    Raises:
        subprocess.CalledProcessError: the generator or the compiler fails.
    """
    defines = [f"-D{name}={value}" for name, value in sizes.items()] + [f"-D{word}" for word in words]
    compiling = ["cc", optimise, *FLAGS, f"-DMEMLIM={mebibytes}", "-o", "pan", "pan.c"]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        steps = ([spin, "-a", *defines, str(model.resolve())], compiling)
        made = sum(run_process(step, folder=Path(folder), check=True).processor for step in steps)
        said = Path(folder, "said")
        with said.open("wb") as sink:
            pan = subprocess.Popen(["./pan", f"-m{depth(sizes)}", "-w22"], cwd=folder, stdout=sink)
            late, seconds = watch(pan, limit)
        wall = time.perf_counter() - started
        return replace(read(said.read_text(), seconds, late=late), made=made, wall=wall)


def watch(pan: subprocess.Popen[bytes], limit: float) -> tuple[bool, float]:
    """Waits for the process, or interrupts it (on which it prints how far it came); whether so, and its seconds.

    The seconds are those that it computed: other load on the machine is not counted against it.
    """
    late = False
    pause = 0.01
    while True:
        pid, status, usage = os.wait4(pan.pid, os.WNOHANG)
        if pid:
            pan.returncode = os.waitstatus_to_exitcode(status)
            return late, usage.ru_utime + usage.ru_stime
        if not late and processor_time(pan.pid) > limit:
            late = True
            pan.send_signal(signal.SIGINT)
        time.sleep(pause)
        pause = min(1.5 * pause, 0.5)


def processor_time(pid: int) -> float:
    """Seconds that a process has computed so far."""
    return time.clock_gettime(~pid << 3 | 2)  # how Linux numbers that clock, see clock_getcpuclockid(3)


def read(out: str, seconds: float, *, late: bool) -> Searched:
    """What pan printed."""

    def figure(pattern: re.Pattern[str]) -> float:
        found = pattern.search(out)
        return float(found[1]) if found is not None else 0.0

    errors = int(figure(ERRORS))
    why = "time" if late else ""
    if "reached -DMEMLIM bound" in out or "out of memory" in out:
        why = "memory"
    elif "max search depth too small" in out:
        why = "depth"
    elif "pan: error" in out or not STORED.search(out):
        why = why or "error"
    return Searched(int(figure(STORED)), seconds, figure(MEMORY), errors, why)
