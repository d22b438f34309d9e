"""Commands that a time-out cuts, with a cache, and again with time: does the cache ever hold what the time-out left?

    python -m benchmarks.cut [--commands 200] [--seed 1] [--state cut.jsonl] [--only N]

Each command runs or checks a litmus test, a sketch, one of any number of rounds, or a PTX module. It is asked without a
cache, then with an empty one under a time-out that is anywhere from a fiftieth of what that took to one and a half
times as much, then with the same cache and time enough. The third answer has to be that of the first, to the field.
Answers that the time cuts even so are counted, and not compared.

Every command has a number and a generator of its own. With ``--state`` each is written down, and a later run goes on
behind the last one. Exit status 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.abuse import Input, attempt, warm
from benchmarks.any_number import sketch
from tests.simt.fuzz import modules

ROOT = Path(__file__).resolve().parents[1]
ENOUGH = 30.0
"""Seconds of a command that is not cut."""
LARGEST = 8000
"""Characters of a module or a test."""
ENGINES = ("auto", "auto", "auto", "auto", "protocol", "explicit", "z3")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a command: the ``same`` each time, ``cut`` and then whole, ``open`` with time enough too, or
    something that ``differs``.
    """

    number: int
    kind: str
    command: str
    seconds: float
    limit: float
    what: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


def made(seed: int, number: int) -> Input:
    """The command of this number, always the same one."""
    rng = random.Random(f"{seed}:{number}")
    kind = rng.choice(("litmus", "litmus", "kernel", "any number", "any number", "module"))
    engine = ("--engine", "auto" if kind == "any number" else rng.choice(ENGINES))
    if kind == "module":
        text, launch = rng.choice(modules(LARGEST))
        files = {"k.ptx": text.encode(), "l.json": json.dumps(launch).encode()}
        return Input(kind, ("check", "k.ptx", "--launch", "l.json"), files)
    if kind == "any number":
        return Input(kind, ("check", "a.litmus", *engine), {"a.litmus": sketch(rng).encode()})
    folder = ROOT / "litmus"
    paths = sorted((folder / "kernels" if kind == "kernel" else folder).rglob("*.litmus"))
    path = rng.choice([p for p in paths if p.stat().st_size < LARGEST])
    command = "check" if kind == "kernel" else rng.choice(("run", "check"))
    return Input(kind, (command, "a.litmus", *engine), {"a.litmus": path.read_bytes()})


def outcome(seed: int, number: int) -> Outcome:
    """Gives the command without a cache, with one in too short a time, and with the same one and time enough."""
    given = made(seed, number)
    rng = random.Random(f"{seed}:{number}:limit")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def answer(limit: float, *more: str) -> dict[str, Any]:
            arguments = (*given.arguments, *more, "--jobs", "1", "--timeout", f"{limit:.4f}")
            attempt(Input(given.kind, (*arguments, "--format", "json", "-o", "answer.json"), given.files), folder)
            document = json.loads((folder / "answer.json").read_text())
            (found,) = document.get("tests") or document["results"]
            return {key: value for key, value in found.items() if key != "seconds"}

        started = time.monotonic()
        before = answer(ENOUGH)
        seconds = time.monotonic() - started
        limit = max(seconds * 10 ** rng.uniform(-1.7, 0.2), 0.001)
        first = answer(limit, "--cache", "kept")
        after = answer(ENOUGH, "--cache", "kept")
    what = "open" if before.get("cut") or after.get("cut") else "same" if before == after else "differs"
    if what == "same" and first != after:
        what = "cut"
    told = (before, after) if what == "differs" else (None, None)
    return Outcome(number, given.kind, " ".join(given.arguments), round(seconds, 3), round(limit, 4), what, *told)


def main() -> int:
    """Prints the counts and what differs; exit status 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--state", type=Path, help="a file with a line for each command, which a later run goes on from"
    )
    parser.add_argument("--only", type=int, metavar="N", help="one command")
    parser.add_argument("--nice", type=int, default=19)
    options = parser.parse_args()
    os.nice(options.nice)
    found: list[Outcome] = []
    if options.state is not None and options.state.exists():
        rows = options.state.read_text().splitlines()
        found = [Outcome(**json.loads(row)) for row in rows if row.endswith("}")]
    warm()
    numbers = range(len(found), options.commands) if options.only is None else (options.only,)
    for number in numbers:
        found.append(outcome(options.seed, number))
        if options.state is not None:
            with options.state.open("a") as file:
                file.write(json.dumps(asdict(found[-1])) + "\n")
        if options.only is not None or found[-1].what == "differs":
            print(json.dumps(asdict(found[-1]), indent=1), flush=True)
    for kind in sorted({f.kind for f in found}):
        counts = Counter(f.what for f in found if f.kind == kind)
        print(f"{kind}: " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    wrong = sum(f.what == "differs" for f in found)
    print(f"{len(found)} commands, {sum(f.what == 'cut' for f in found)} cut and whole again, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
