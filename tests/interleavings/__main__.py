"""Random programs put to the interleavings and to the engines: what interleavings show, every engine has to tell.

    python -m tests.interleavings [--programs 300] [--seed 1] [--families looping,pipeline,spinning,counted]

Families are those of ``benchmarks.agreement``, ``looping`` and ``pipeline``. Prints the counts, and each contradiction
with its program, made small with ``--small``. What an engine leaves open is not judged. Exit status 1 on a
contradiction.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import Random

from mcheck.base.errors import McheckError
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.fuzz.damage import mutate
from tests.fuzz.differential import DEFAULT_MODEL, ENGINES, model_of, run_engine
from tests.fuzz.draft import Draft
from tests.fuzz.minimise import minimise
from tests.fuzz.programs import FAMILIES, draft, legal
from tests.interleavings.judge import contradictions
from tests.interleavings.loops import looping
from tests.interleavings.pipelines import pipeline
from tests.interleavings.search import Found, explore
from tests.interleavings.state import NotCovered

DEFAULT = ("looping", "pipeline", "spinning", "counted")


def program(random: Random, families: tuple[str, ...]) -> Draft:
    """A random program of one of the families."""
    family = random.choice(families)
    if family == "pipeline":
        return pipeline(random)
    if family != "looping":
        return draft(random, (family,))
    made = looping(random)
    changed = mutate(random, made, 1) if random.random() < 0.2 else made
    return changed if legal(changed) else made


def judged(read: Program, found: Found, engine: str, timeout: float, tally: Counter[str]) -> list[str]:
    """What interleavings of a program show and an engine does not tell."""
    heard = run_engine(engine, read, model_of(read.model or DEFAULT_MODEL), timeout)
    tally[f"{engine}: left open"] += heard.open
    tally[f"{engine}: judged"] += not heard.open
    tally[f"{engine}: states judged"] += heard.states is not None and heard.undefined is False
    return contradictions(read, found, heard)


def small(made: Draft, engine: str, what: str, options: argparse.Namespace) -> Draft:
    """The program made small, with a contradiction of the same sort."""

    def shows(smaller: Draft) -> bool:
        try:
            read = parse(smaller.text(), f"{smaller.name}.litmus")
            wrong = judged(read, explore(read, options.budget), engine, options.timeout, Counter())
        except (NotCovered, McheckError):
            return False
        return any(text.startswith(what) for text in wrong)

    return minimise(made, shows, seconds=options.patience)


def one(number: int, options: argparse.Namespace, tally: Counter[str]) -> None:
    """One program before the interleavings and the engines."""
    made = program(Random(f"{options.seed}:{number}"), tuple(options.families.split(",")))
    tally["programs"] += 1
    read = parse(made.text(), f"{made.name}.litmus")
    began = time.process_time()
    try:
        found = explore(read, options.budget)
    except NotCovered as why:
        tally[f"not covered: {why}"] += 1
        return
    tally["milliseconds of interleavings"] += int(1000 * (time.process_time() - began))
    tally["covered"] += 1
    tally["states"] += found.states
    tally["more states than the budget"] += not found.whole
    tally["with a race"] += bool(found.races)
    tally["with a misuse"] += bool(found.misuses)
    tally["with a deadlock"] += found.dead is not None
    tally["with final states"] += bool(found.finals)
    for engine in options.engines.split(","):
        began = time.process_time()
        wrong = judged(read, found, engine, options.timeout, tally)
        tally[f"milliseconds of {engine}"] += int(1000 * (time.process_time() - began))
        if wrong:
            tally["contradictions"] += 1
            print(f"--- {options.seed}:{number} {engine}", *wrong, sep="\n", flush=True)
            text = small(made, engine, wrong[0].split(" ")[0], options) if options.small else made
            print(text.text(), flush=True)


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--families", default=",".join(DEFAULT), help=f"some of looping,pipeline,{','.join(FAMILIES)}")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--budget", type=int, default=5000, help="states of a program that are looked at")
    parser.add_argument("--timeout", type=float, default=1.0, help="seconds of the processor for one answer")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--small", action="store_true", help="make what differs small")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds for that")
    options = parser.parse_args()
    tally: Counter[str] = Counter()
    until = time.monotonic() + options.seconds
    for number in range(options.first, options.first + options.programs):
        if time.monotonic() > until:
            break
        one(number, options, tally)
    print("\n".join(f"{count:8} {what}" for what, count in sorted(tally.items()) if count))
    return 1 if tally["contradictions"] else 0


if __name__ == "__main__":
    sys.exit(main())
