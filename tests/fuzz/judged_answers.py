"""The command of generators whose programs have a judge: what is said of random ones beside what is right."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import TypeVar

P = TypeVar("P")

Judged = tuple[P, str, str]
"""A program, what is said of it, and what is right: ``fine``, or what is wrong."""


def is_missed(found: str, right: str) -> bool:
    """Whether an answer says of a program that it is right, which is not so."""
    return found == "proved" and right != "fine"


def judged(
    generate: Callable[[Random], P], answer: Callable[[P], str], judge: Callable[[P], str], seed: int, programs: int
) -> Iterator[Judged[P]]:
    """So many random programs and both answers."""
    rng = Random(seed)
    for _ in range(programs):
        program = generate(rng)
        yield program, answer(program), judge(program)


def compare_judged(
    about: str | None,
    sample: Callable[[int, int], Iterable[Judged[P]]],
    is_wrong: Callable[[str, str], bool] = is_missed,
) -> int:
    """Compare the answers about a sample, which is made from a seed and a number; exit status 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print each answer")
    given = parser.parse_args()
    told, wrong = Counter[tuple[str, str]](), 0
    for program, found, right in sample(given.seed, given.programs):
        told[right, found] += 1
        if given.verbose:
            print(right, found, program, flush=True)
        if is_wrong(found, right):
            wrong += 1
            print("WRONG", right, program, flush=True)
    for (right, found), number in told.most_common():
        print(f"{number:5} {right:6} {found}")
    return int(wrong > 0)


def seed_parser(about: str, *, programs: int, seconds: float, limited: str = "module") -> argparse.ArgumentParser:
    """The options of generators that make a program from each seed."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--programs", type=int, default=programs, help="how many programs (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first program (%(default)s)")
    parser.add_argument("--seconds", type=float, default=seconds, help=f"for each {limited} (%(default)s)")
    return parser


def tell_outcomes(chosen: argparse.Namespace, compare: Callable[[int], tuple[str, str]], wrong: tuple[str, ...]) -> int:
    """Count the outcomes of the seeds, and print what there is to report of each; exit status 1 if one is wrong: if it
    begins with one of these words.
    """
    outcomes: Counter[str] = Counter()
    for seed in range(chosen.seed, chosen.seed + chosen.programs):
        outcome, said = compare(seed)
        outcomes[outcome] += 1
        if said:
            print(f"seed {seed}: {said}\n", flush=True)
    print(", ".join(f"{outcome} {number}" for outcome, number in sorted(outcomes.items())))
    return int(any(outcome.startswith(wrong) for outcome in outcomes))
