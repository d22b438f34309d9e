#!/usr/bin/env python3
"""Random programs, and sketches of any number of rounds, with all passes and without each one of them.

    python -m benchmarks.passes [--programs N] [--seed S] [--first K] [--only NAME,…]

Item k of a seed is always the same. Where both answers are known they have to be the same: the verdict, the codes and,
if they are complete, the final states. Prints a line per difference, and at the end for each pass how many answers were
compared, on how many of these programs it changed the number of executions, and how many differ. Exit status 1 if some
do.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from benchmarks.any_number import sketch
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut, processor_time
from mcheck.base.errors import McheckError
from mcheck.base.verdicts import Verdict
from mcheck.cat import load_model
from mcheck.engines.protocol.final_states import answer
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import ALL_PASSES, Pass, Passes, find_pass
from mcheck.frontend.litmus import parse
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.proofs.parametric_proof import prove
from mcheck.proofs.state_recurrence import FOUND
from tests.fuzz.themes import themed

SECONDS = 1.0
"""Processor time for one answer."""
EVERY = 4
"""One item of so many is a sketch of any number of rounds."""
MODEL = load_model("ptx-9.0")

Told = tuple[object, int]
"""An answer, ``None`` where it is not known, and its executions."""
Asker = Callable[[str, Passes], Told]


def findings(text: str, passes: Passes) -> Told:
    """The verdict on a program, with the codes."""
    given = check(parse(text, "random.litmus"), MODEL, timeout=SECONDS, passes=passes)
    known = given.verdict is not Verdict.UNKNOWN
    return ((given.verdict, _codes(given)) if known else None), given.executions


def states(text: str, passes: Passes) -> Told:
    """The verdict on the condition of a program, with the final states."""
    given = answer(parse(text, "random.litmus"), MODEL, timeout=SECONDS, passes=passes)
    known = given.complete and given.verdict is not Verdict.UNKNOWN
    return ((given.verdict, frozenset(o.state for o in given.outcomes)) if known else None), given.executions


def every_number(text: str, passes: Passes) -> Told:
    """What a proof for every number says: the verdict with the codes, or that something is found."""
    program = parse(text, "random.litmus", every=True)
    try:
        proof = prove(program, MODEL, "ptx", 2, Limit(SECONDS), passes=passes)
    except Aperiodic as error:
        return ("found" if str(error).startswith(FOUND) else None), 0
    except TimeOut:
        return None, 0
    return (proof.answer.verdict, _codes(proof.answer)), proof.first


def _codes(given: Answer) -> frozenset[str]:
    return frozenset(f.code for f in given.findings)


def compare(number: int, text: str, ask: Asker, passes: Sequence[Pass], counts: Counter[tuple[Pass, str]]) -> None:
    """Ask about one program with all passes and without each one; count and print the differences."""
    given, executions = ask(text, ALL_PASSES)
    for one in passes if given is not None else ():
        told, more = ask(text, ALL_PASSES - {one})
        if told is None:
            continue
        counts[one, "compared"] += 1
        counts[one, "changed"] += more != executions
        if told != given:
            counts[one, "different"] += 1
            print(f"{number} {ask.__name__} without {one}: {told} instead of {given}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=lambda names: [find_pass(name) for name in names.split(",")], default=list(Pass))
    given = parser.parse_args()
    counts: Counter[tuple[Pass, str]] = Counter()
    for number in range(given.first, given.first + given.programs):
        random = Random(f"{given.seed}:{number}")
        family = number % EVERY == EVERY - 1
        text = sketch(random) if family else themed(random).text()
        passes = [one for one in given.only if family or not one.module.startswith("mcheck.proofs.")]
        for ask in (every_number,) if family else (findings, states):
            try:
                with processor_time():
                    compare(number, text, ask, passes, counts)
            except McheckError:  # no program, or nothing for this engine
                continue
    for one in given.only:
        compared, changed, different = (counts[one, what] for what in ("compared", "changed", "different"))
        print(f"{one:<24}{compared:>6} compared{changed:>6} with other executions{different:>4} different")
    return int(any(what == "different" for _, what in counts))


if __name__ == "__main__":
    sys.exit(main())
