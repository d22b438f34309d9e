"""Many tests on a cluster of Dask: how much faster, and what is left of a run whose workers, scheduler and client die.

    python -m benchmarks.machines [--tests 2000] [--workers 2] [--every 20] [--folder DIR]

Random programs (`tests.fuzz`) are run by one process, by a local cluster, and by a scheduler with workers of its
own while a worker is killed every so many seconds, the scheduler is killed and started again at a third of the tests,
and the client is interrupted at two thirds and resumed. Prints a table of what happened. Exit status 1 if an answer is
missing or different, or the cluster is not 1.6 times as fast per two workers as one process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO, Any

from mcheck.base.errors import InputError
from mcheck.checking.cache.database import Store
from mcheck.checking.cache.keys import version
from mcheck.tools.cli.main import INTERRUPTED
from tests.fuzz.programs import program

ROOT = Path(__file__).resolve().parents[1]
PYTHON = [sys.executable]
FAMILIES = ("proxies",)
"""What takes milliseconds, whatever comes up."""
SPEED = 1.6
"""Times the speed of one process that two workers have to have."""
AT_ONCE = 1000
"""Files in a folder."""


def write_tests(folder: Path, count: int) -> None:
    """Writes random programs, the same for the same number."""
    for k in range(count):
        place = folder / f"{k // AT_ONCE:03}"
        if k % AT_ONCE == 0:
            place.mkdir(parents=True)
        (place / f"{k:06}.litmus").write_text(program(Random(f"machines {k}"), FAMILIES), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that ended by itself."""

    answers: dict[str, Any]
    seconds: float
    processor: float = 0.0
    """Seconds of the processor, of all processes; 0 where nobody tells."""


def command(tests: Path, report: Path, *more: object) -> list[str]:
    """The command line of a run."""
    return [*PYTHON, "-m", "mcheck", "run", str(tests), "--format", "json", "-o", str(report), *map(str, more)]


def ran(tests: Path, report: Path, *more: object) -> Ran:
    """Runs all tests."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as log:
        done = subprocess.Popen(
            command(tests, report, *more), stdout=subprocess.DEVNULL, stderr=log, cwd=ROOT, start_new_session=True
        )
        spent: dict[str, float] = {}
        while done.poll() is None:
            spent |= _spent(done.pid)
            time.sleep(0.1)
        seconds = time.perf_counter() - started
        if done.returncode not in (0, 1, 3):
            log.seek(0)
            raise SystemExit(f"status {done.returncode}: {log.read()[-2000:]}")
    return Ran(read(report), seconds, sum(spent.values()))


def _spent(session: int) -> dict[str, float]:
    """The seconds of the processor that each process of a session has had so far."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                found[place.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def read(report: Path) -> dict[str, Any]:
    """The answers of a report by path, without what differs from run to run."""
    tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
    return {test["path"]: {k: v for k, v in test.items() if k != "seconds"} for test in tests}


# --- a cluster that is mistreated ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Cluster:
    """A scheduler and workers as processes of their own, each started again when it has ended."""

    workers: int
    log: IO[str]
    port: int = 0
    scheduler: subprocess.Popen[str] | None = None
    nannies: list[subprocess.Popen[str] | None] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.nannies = [None] * self.workers
        self.look_after()

    def look_after(self) -> None:
        """Starts what is not running."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            arguments = ("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
            self.scheduler = self._started(*arguments)
        for k, nanny in enumerate(self.nannies):
            if nanny is None or nanny.poll() is not None:
                if nanny is not None:
                    self.count("workers started again")
                self.nannies[k] = self._started(
                    "worker", self.address, "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"
                )

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def kill_worker(self, random: Random) -> None:
        """Kills a worker under its nanny, or with it."""
        nanny = random.choice([n for n in self.nannies if n is not None])
        children = [int(pid) for pid in _children(nanny.pid)]
        if children and random.random() < 0.5:
            for pid in children:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.count("workers killed")
        else:
            nanny.kill()
            nanny.wait()
            self.count("workers killed with their nannies")

    def kill_scheduler(self) -> None:
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()
        self.count("schedulers killed")

    def stop(self) -> None:
        for process in (*self.nannies, self.scheduler):
            if process is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _started(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PYTHON, "-m", "dask", *arguments], stdout=self.log, stderr=self.log, cwd=ROOT, start_new_session=True,
            text=True,
        )  # fmt: skip


def _children(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return []


def answered(store: Path) -> int:
    """How many answers have been kept so far."""
    try:
        with closing(Store(str(store), version())) as there:
            return there.contents().answers
    except InputError:
        return 0


def mistreated(tests: Path, count: int, folder: Path, workers: int, every: float, seed: int = 1) -> tuple[Ran, Cluster]:
    """Runs all tests while the cluster, and the client, are killed."""
    random = Random(seed)
    report, store = folder / "mistreated.json", folder / "resume"
    with open(folder / "cluster.log", "w", encoding="utf-8") as log:
        cluster = Cluster(workers, log)
        cluster.start()
        line = command(tests, report, "--scheduler", cluster.address, "--resume", store)
        started = time.perf_counter()
        client = subprocess.Popen(line, stdout=log, stderr=log, cwd=ROOT, text=True)
        killed = started
        try:
            while (status := client.poll()) is None:
                time.sleep(0.2)
                cluster.look_after()
                done = answered(store)
                if time.perf_counter() - killed > every:
                    killed = time.perf_counter()
                    cluster.kill_worker(random)
                if done > count / 3 and not cluster.counts.get("schedulers killed"):
                    cluster.kill_scheduler()
                if done > count * 2 / 3 and not cluster.counts.get("clients interrupted"):
                    client.send_signal(signal.SIGINT)
                    if (status := client.wait()) != INTERRUPTED:
                        raise SystemExit(f"the client that was interrupted ended with status {status}")
                    cluster.count("clients interrupted")
                    cluster.counts["answers there when it was resumed"] = answered(store)
                    client = subprocess.Popen(line, stdout=log, stderr=log, cwd=ROOT, text=True)
        finally:
            client.kill()
            client.wait()
            cluster.stop()
    if status not in (0, 1, 3):
        raise SystemExit(f"the client ended with status {status}: {(folder / 'cluster.log').read_text()[-3000:]}")
    return Ran(read(report), time.perf_counter() - started), cluster


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The tests whose answers are not the same."""
    return [path for path in one if one[path] != other.get(path)] + [path for path in other if path not in one]


def main() -> int:
    """Prints the table; exit status 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two workers that are killed")
    parser.add_argument("--folder", type=Path, help="a folder for the tests and what is left of the runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        return measure(options.folder or Path(place), options.tests, options.workers, options.every)


def measure(folder: Path, count: int, workers: int, every: float) -> int:
    """The three runs."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins without, as its children
    tests = folder / "tests"
    started = time.perf_counter()
    write_tests(tests, count)
    print(f"{count} random programs, written in {time.perf_counter() - started:.0f} s", flush=True)
    one = ran(tests, folder / "one.json", "--jobs", 1)
    print(f"one process          {one.seconds:9.1f} s  {count / one.seconds:8.1f} tests/s", flush=True)
    many = ran(tests, folder / "local.json", "--scheduler", "local", "--jobs", workers)
    ratio = one.seconds / many.seconds
    print(f"local, {workers} workers     {many.seconds:9.1f} s  {count / many.seconds:8.1f} tests/s  {ratio:.2f} times")
    if many.processor:
        most = workers * one.processor / many.processor
        print(f"    seconds of the processor: {one.processor:.1f} by one process, {many.processor:.1f} by the cluster,")
        print(f"    so at most {most:.2f} times on {workers} idle cores")
    wrong = [f"local: {path}" for path in differences(one.answers, many.answers)]
    if ratio < SPEED * workers / 2:
        wrong.append(f"{ratio:.2f} times the speed of one process")
    last, cluster = mistreated(tests, count, folder, workers, every)
    print(f"mistreated           {last.seconds:9.1f} s  {count / last.seconds:8.1f} tests/s")
    for what, number in cluster.counts.items():
        print(f"    {what:<36}{number:9}")
    different = differences(one.answers, last.answers)
    missing = [path for path in one.answers if path not in last.answers]
    print(f"    {'answers missing':<36}{len(missing):9}\n    {'answers different':<36}{len(different):9}")
    wrong += [f"mistreated: {path}" for path in different]
    for what in wrong[:20]:
        print("wrong:", what)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
