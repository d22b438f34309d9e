"""What the cache saves, what an edit costs, and whether many processes at one cache leave it sound.

    python -m benchmarks.cache [--suite litmus] [--processes 8] [--seconds 60]

Prints the seconds of a first and a second run of the suite, how many answers are computed again after an edit of a
test, of a model and of a file that a model includes, and what became of a cache that processes ran at, checked, pruned
and were killed at. Exit status 1 if the second run takes 1.5 s or more, says something else than the first one, more is
computed than an edit touches, or the cache is not sound.
"""

from __future__ import annotations

import argparse
import compileall
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mcheck.checking.cache.database import FILE, Store
from mcheck.checking.cache.keys import version

ROOT = Path(__file__).resolve().parents[1]
MCHECK = [sys.executable, "-m", "mcheck"]
SECOND_RUN = 1.5
MODEL = 'include "mine-parts.cat"\nacyclic (po | rf | co | fr) as Order\nempty rmw & (fr; co) as Atomicity\n'
PARTS = "let fr = (rf^-1; co)\n"


def mcheck(*arguments: object) -> tuple[int, str, float]:
    """Exit status, standard output and seconds of a command line."""
    started = time.perf_counter()
    done = subprocess.run([*MCHECK, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=ROOT)
    return done.returncode, done.stdout, time.perf_counter() - started


def answers(cache: Path) -> int:
    """How many answers a cache holds."""
    with closing(Store(str(cache), version())) as store:
        return store.contents().answers


# --- a second run -------------------------------------------------------------------------------------------------


def second_run(suite: str, cache: Path) -> list[str]:
    """Runs a suite twice; what is wrong with that."""
    _, before, first = mcheck("run", suite, "--cache", cache)
    again = [mcheck("run", suite, "--cache", cache)[1:] for _ in range(3)]
    second = min(seconds for _, seconds in again)
    print(f"{suite}: {answers(cache)} answers; first run {first:.2f} s, second run {second:.2f} s")
    wrong = [] if second < SECOND_RUN else [f"the second run takes {second:.2f} s"]
    return wrong if all(out == before for out, _ in again) else [*wrong, "the second run says something else"]


# --- edits --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edit:
    """A file of the work that is edited, and how many answers that touches."""

    what: str
    file: str
    touches: int


def edits(folder: Path) -> list[str]:
    """Edits a test, a model and an included file, and runs again after each; what was computed wrongly."""
    tests = sorted((ROOT / "litmus" / "classic").glob("*.litmus"))[:20]
    (folder / "suite").mkdir()
    for path in tests:
        shutil.copy(path, folder / "suite")
    own = sum("\nmodel " in path.read_text() for path in tests)
    (folder / "mine.cat").write_text(MODEL)
    (folder / "mine-parts.cat").write_text(PARTS)
    cache = folder / "cache"

    def run() -> int:
        mcheck("run", folder / "suite", "--cache", cache)
        mcheck("run", folder / "suite", "--cache", cache, "--model", folder / "mine.cat")
        return answers(cache)

    wrong = []
    there = run()
    print(f"edits: {len(tests)} tests under two models, {there} answers; {own} tests name their model")
    for edit in (
        Edit("nothing", "mine.cat", 0),
        Edit("a test", f"suite/{tests[3].name}", 2),
        Edit("the model", "mine.cat", len(tests)),
        Edit("a file that it includes", "mine-parts.cat", len(tests)),
    ):
        path = folder / edit.file
        if edit.touches:
            path.write_text(path.read_text() + "\n// edited\n")
        now = run()
        print(f"    after an edit of {edit.what}: {now - there} computed")
        if now - there != edit.touches:
            wrong.append(f"an edit of {edit.what} computes {now - there}, not {edit.touches}")
        there = now
    return wrong


# --- many processes -----------------------------------------------------------------------------------------------


def crowd(folder: Path, processes: int, seconds: float, seed: int = 1) -> list[str]:
    """Processes that run, check, prune and are killed at one cache for some time; what is wrong with it afterwards."""
    rng = random.Random(seed)
    cache = folder / "crowd"
    tests = sorted((ROOT / "litmus" / "classic").glob("*.litmus"))
    expected = {str(path): line for path, line in zip(tests, _lines(tests), strict=True)}
    until = time.monotonic() + seconds
    running: list[tuple[subprocess.Popen[str], list[str]]] = []
    done = killed = pruned = 0
    wrong: list[str] = []
    while running or time.monotonic() < until:
        while len(running) < processes and time.monotonic() < until:
            if rng.random() < 0.1:
                pruned += 1
                arguments, paths = ["cache", str(cache), "--clear" if rng.random() < 0.5 else "--others"], []
            else:
                paths = [str(path) for path in rng.sample(tests, 12)]
                arguments = ["run", *paths, "--cache", str(cache)]
            process = subprocess.Popen(
                [*MCHECK, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
            )
            running.append((process, paths))
        process, paths = running.pop(0)
        if rng.random() < 0.1:
            killed += 1
            time.sleep(rng.random() * 0.3)
            process.kill()
            process.communicate()
            continue
        out, err = process.communicate(timeout=120)
        done += 1
        if paths and (err or [expected[path] for path in paths] != out.splitlines()[:-1]):
            wrong.append(f"a run said: {(err or out)[:200]}")
        elif process.returncode and "there is no cache" not in err:
            wrong.append(f"mcheck cache said: {err[:200]}")
    with closing(sqlite3.connect(cache / FILE)) as file:
        (said,) = file.execute("PRAGMA integrity_check").fetchone()
    _, told, _ = mcheck("cache", cache, "--check")
    print(f"crowd: {processes} processes, {done} ended, {killed} killed, {pruned} prunes; integrity_check: {said}")
    print("    " + told.strip().replace("\n", "; "))
    return wrong if (said, told.strip()[-5:]) == ("ok", "valid") else [*wrong, f"integrity_check: {said}; {told}"]


def _lines(tests: list[Path]) -> list[str]:
    return mcheck("run", *tests)[1].splitlines()[:-1]


def main() -> int:
    """Prints the three; exit status 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="litmus", help="what is run twice")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0, help="of many processes at one cache")
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "mcheck", quiet=2)  # as its installation does, whatever Python is told of bytecode
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wrong = second_run(options.suite, folder / "twice")
        wrong += edits(folder)
        wrong += crowd(folder, options.processes, options.seconds)
    for what in wrong:
        print("wrong:", what)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
