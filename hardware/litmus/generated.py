"""The generated tests that went to the chip: which sizes of which alphabets, and every how many of a large one.

python -m hardware.litmus.generated --out BUNDLE
python -m hardware.litmus.generated async:4 scopes:4:3 --unseen --out BUNDLE    # others, but what has run already
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from hardware.litmus.observe import observed
from hardware.litmus.plan import bundle, tell, unseen
from mcheck.ir.program import Program
from mcheck.tools.generate.alphabet import load
from mcheck.tools.generate.judge import generate

SAMPLES = (
    ("families", 4, 1), ("families", 5, 1), ("families", 6, 1), ("async", 2, 1), ("async", 3, 1), ("cluster", 2, 1),
    ("cluster", 3, 1), ("tensor", 2, 1), ("tensor", 3, 1), ("classic", 3, 1), ("classic", 4, 1), ("async", 4, 12),
    ("cluster", 4, 8), ("scopes", 4, 9), ("oneway", 2, 1), ("oneway", 3, 1),
)  # fmt: skip
"""Alphabet, size, and of how many tests one was taken: the most telling first."""


def sampled(samples: Iterable[tuple[str, int, int]] = SAMPLES) -> Iterator[tuple[str, Program]]:
    """The tests by name, each text once."""
    seen: set[str] = set()
    for name, size, step in samples:
        for number, test in enumerate(generate(load(name), size)):
            code = test.text.split("{", 1)[1]
            if number % step == 0 and code not in seen:
                seen.add(code)
                yield f"{name}/{test.name}", observed(test.program())


def sample(text: str) -> tuple[str, int, int]:
    """The sample ``ALPHABET:SIZE[:STEP]``."""
    name, size, *step = text.split(":")
    return name, int(size), int(step[0]) if step else 1


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", nargs="*", type=sample, metavar="ALPHABET:SIZE[:STEP]")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ms", type=int, default=15, help="time of a test beyond one launch for each setting")
    parser.add_argument("--unseen", action="store_true", help="leave out what the committed results have")
    given = parser.parse_args()
    tests = sampled(given.samples or SAMPLES)
    tell(bundle(unseen(tests) if given.unseen else tests, given.out, milliseconds=given.ms))


if __name__ == "__main__":
    main()
