"""Answers about random kernels that draw tiles, against those of a judge; and the command that counts them."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TypeVar

from mcheck.answers.result import Answer
from mcheck.base.verdicts import Verdict

P = TypeVar("P")
Compared = tuple[Answer | None, str, str]


def compare_with(found: Answer | None, why: str, error: str) -> Compared:
    """The answer, why there is none, "missed" if it proves what has an error, or "invented" if it finds one where there
    is none; and the error that is there.
    """
    if found is not None and found.verdict is Verdict.PROVED and error:
        why = "missed"
    if found is not None and found.verdict is Verdict.FINDING and not error:
        why = "invented"
    return found, why, error


def run(
    who: str, most: int, generate: Callable[[Random], P], compare: Callable[[P, int], Compared],
    judge: Callable[[P, int], str],
) -> int:  # fmt: skip
    """Compare the answers about kernels of 2 to ``most`` tiles, and print how many are what; the exit status is 1 if
    one is wrong.
    """
    parser = argparse.ArgumentParser(description=f"compares answers about random kernels whose {who} draw tiles")
    parser.add_argument("--programs", type=int, default=200, help="how many programs (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first program (%(default)s)")
    parser.add_argument("--tiles", type=int, default=0, help=f"how many tiles; 2 to {most} if not given")
    parser.add_argument("--only-right", action="store_true", help="leave out those that have an error")
    parser.add_argument("--verbose", action="store_true", help="print each answer")
    chosen = parser.parse_args()
    tally: Counter[str] = Counter()
    for seed in range(chosen.seed, chosen.seed + chosen.programs):
        plan, tiles = generate(Random(seed)), chosen.tiles or 2 + seed % (most - 1)
        if chosen.only_right and judge(plan, tiles):
            continue
        found, why, error = compare(plan, tiles)
        said = f"refused: {why}" if found is None else why or found.verdict.value
        kind = error.partition(" at ")[0] or "right"
        tally[f"{kind}: {said}"] += 1
        if chosen.verbose:
            print(f"seed {seed}: {error or 'right'}: {said}", flush=True)
        if why in ("missed", "invented"):
            print(f"seed {seed}, {tiles} tiles: {error}: {plan}", flush=True)
    for what, number in tally.most_common():
        print(f"{number:5} {what}")
    return int(any("missed" in what or "invented" in what for what in tally))
