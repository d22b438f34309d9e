"""Mutates PTX modules and launches as people, tools and transport get them wrong, and checks them: nothing may crash.

    python -m tests.simt.fuzz --count 20000 --seed 1 --state fuzz.json

A crash is an internal error, an error without a place, a report that cannot be written, a process that dies or takes
more of the processor's time than the limit that it was given and ``GRACE``, or more memory than ``MEMORY``. The modules
are those below ``tests/simt`` with a launch beside them, and two that stand alone: the quick ones most often, each now
and then. With ``--state`` a run goes on where the last one ended. ``tests/simt/mistakes.py`` has the mutations.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcheck.base.budget import processor_time
from mcheck.base.errors import InputError
from mcheck.checking.check.command import crashed_check
from mcheck.checking.check.modules import check_text
from mcheck.checking.policy.engines import preload
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.pool import run_cases
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import failed_result
from mcheck.frontend.ptx import launch_reader
from tests.checking.check.fuzz import Found, complaint
from tests.simt.mistakes import damaged, mutate

HERE = Path(__file__).parent
LIMITS = (0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.5, 0.5, 2.0)
"""Seconds of the processor that an answer is given, one of these: what there is to crash on comes early, mostly."""
GRACE = 1.0
"""Seconds of the processor beyond the limit: reading is not under it, but bounded, and the report comes after it."""
PATIENCE = 120.0
"""Seconds after which a process is stopped, whoever else wants the processor."""
MEMORY = 1 << 30
"""Bytes that the process of a module may take."""
LARGE = 12_000
"""Characters of a module that is taken as seldom as those that are ``SLOW``."""
SLOW = frozenset((
    "cluster_ring", "doubled", "gather_reduce", "hopper", "multicast", "remote_bins", "specialised", "split_sum",
    "tensor_reduce", "tensor_tiles", "volatile_flags",
))  # fmt: skip
"""Entries whose answers take more than a third of a second."""
OFTEN = 5
"""How much more often the others are taken."""
ALONE: dict[str, dict[str, Any]] = {
    "hand_over": {"grid": 1, "params": {"out": {"buffer": 256}, "rows": 1}},
    "every_form": {"grid": 2, "shared": 64},
}

# --- runs -----------------------------------------------------------------------------------------------------


Module = tuple[str, dict[str, Any]]
"""Its text and its launch."""


def modules(largest: int | None = None) -> list[Module]:
    """Modules and their launches."""
    found = [((HERE / f"{name}.ptx").read_text(encoding="utf-8"), launch) for name, launch in ALONE.items()]
    for path in sorted(HERE.rglob("*.json")):
        text = path.with_suffix(".ptx")
        if text.exists() and (largest is None or text.stat().st_size < largest):
            found.append((text.read_text(encoding="utf-8"), json.loads(path.read_text(encoding="utf-8"))))
    return found


def weight(module: Module) -> int:
    """How often a module is taken, as against others."""
    text, launch = module
    return 1 if len(text) > LARGE or launch.get("entry") in SLOW else OFTEN


def mutant(rng: random.Random, known: list[Module], weights: list[int]) -> tuple[str, str]:
    """A module and its launch with a mistake in at least one of them."""
    (module,) = rng.choices(known, weights)
    text, launch = module
    whole = json.dumps(launch, indent=1)
    while True:
        made = mutate(rng, text), damaged(rng, launch)
        if made != (text, whole):
            return made


def check(text: str, launch: str, settings: Settings, *, apart: bool) -> tuple[Result, float]:
    """The answer about a mutant, and the seconds of the processor that it took; ``apart``: of a process of its own.

    That is stopped where it takes more memory than it may, and not by time: that the answer keeps its time is asked.
    """

    def task(case: Case, settings: Settings) -> tuple[Result, float]:
        started = time.process_time()
        with processor_time():
            try:
                given = launch_reader.from_json(launch, "mutated.json")
            except InputError as error:
                result = failed_result(case.path, None, error, settings, 0.0)
            else:
                result = check_text(text, case.path, given, settings, Options())
        return result, time.process_time() - started

    def stopped(case: Case, settings: Settings, reason: str, seconds: float) -> tuple[Result, float]:
        return crashed_check(case, settings, reason, seconds), seconds

    case = Case("mutated.ptx", text=text)
    if not apart:
        return task(case, settings)
    outer = replace(settings, timeout=PATIENCE)
    return next(iter(run_cases([case], outer, 1, lambda case, _: task(case, settings), stopped)))


def wrong(result: Result, seconds: float, limit: float) -> str | None:
    """What is wrong with an answer that took so many seconds of the processor."""
    if seconds > limit + GRACE:
        return f"took {seconds:.1f} s of the processor, and {limit:g} s was the limit"
    if result.reason and ("of memory" in result.reason or "process that ran" in result.reason):
        return result.reason
    return complaint(result, 0.0)


def run(
    count: int,
    seed: int,
    first: int = 0,
    *,
    largest: int | None = None,
    apart: bool = False,
    found: Found | None = None,
    each: Callable[[int, Found], None] = lambda _, __: None,
) -> Found:
    """``count`` mutants from the ``first`` on; each has a generator of its own, so that it can be had alone.

    What comes of them is added to ``found``, and ``each`` hears of every one.
    """
    known = modules(largest)
    weights = [weight(module) for module in known]
    preload("protocol")
    found = found or Found()
    for number in range(first, first + count):
        rng = random.Random(f"{seed}:{number}")
        text, shape = mutant(rng, known, weights)
        limit = rng.choice(LIMITS)
        settings = Settings(profile=rng.choice(("ptx", "strict", "permissive")), timeout=limit, memory=MEMORY)
        result, seconds = check(text, shape, settings, apart=apart)
        said = wrong(result, seconds, limit)
        found.see(number, f"{seed}:{number}", result, said, seconds, f"{shape}\n{text}")
        each(number, found)
    return found


# --- the state ------------------------------------------------------------------------------------------------

FIELDS = ("verdicts", "errors", "crashes", "slowest", "slowest_text")


def load(path: Path, seed: int) -> tuple[int, Found]:
    """The number of the next mutant, and what came of those before it."""
    if not path.exists():
        return 0, Found(log=True)
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["seed"] != seed:
        raise SystemExit(f"{path} is of seed {kept['seed']}")
    crashes = [(name, text) for name, text in kept["crashes"]]
    found = Found(True, Counter(kept["verdicts"]), Counter(kept["errors"]), crashes)
    found.slowest, found.slowest_text = kept["slowest"], kept["slowest_text"]
    return kept["next"], found


def store(path: Path, seed: int, following: int, found: Found) -> None:
    """Writes the state in one step."""
    draft = path.with_name(f".{path.name}")
    kept = {name: getattr(found, name) for name in FIELDS}
    draft.write_text(json.dumps({"seed": seed, "next": following, **kept}), encoding="utf-8")
    draft.replace(path)


def main() -> int:
    """Prints the verdicts and the first crashes; exit status 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant, where there is no state")
    parser.add_argument("--state", type=Path, help="the file with what came of them, which a later run goes on from")
    options = parser.parse_args()
    kept: Path | None = options.state
    first, found = load(kept, options.seed) if kept else (options.first, Found(log=True))

    def each(number: int, found: Found) -> None:
        if kept and number % 20 == 19:
            store(kept, options.seed, number + 1, found)

    run(options.count - first if kept else options.count, options.seed, first, apart=True, found=found, each=each)
    if kept:
        store(kept, options.seed, max(first, options.count), found)
    return found.report(options.count, resource.RUSAGE_CHILDREN, shown=4000)


if __name__ == "__main__":
    sys.exit(main())
