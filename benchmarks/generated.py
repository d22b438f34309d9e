"""Do two engines answer generated tests alike?

    python -m benchmarks.generated [ALPHABET:SIZE[:STEP]...] [--jobs N] [--model NAME]

Each test goes to the exhaustive engine and to Z3; verdicts, states and findings have to be the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from mcheck.cat import load_model
from mcheck.errors import InternalError
from mcheck.generate.alphabet import load
from mcheck.generate.judge import generate
from mcheck.policy.ask import ask
from mcheck.policy.question import About, Question
from mcheck.syntax import parse

ASYNCHRONOUS = (
    "async:2",
    "async:3",
    "async:4",
    "cluster:2",
    "cluster:3",
    "cluster:4",
    "tensor:2",
    "tensor:3",
    "reduce:3",
)


def chosen(samples: list[str]) -> Iterator[tuple[str, str]]:
    """Name and text of the tests of the samples."""
    for sample in samples:
        name, size, *step = sample.split(":")
        for number, test in enumerate(generate(load(name), int(size))):
            if number % int(step[0] if step else 1) == 0:
                yield f"{name}/{test.name}", test.text


@dataclass(frozen=True, slots=True)
class Both:
    """Asks both engines about a test: the verdict, or in what they differ."""

    model: str

    def __call__(self, test: tuple[str, str]) -> tuple[str, str, str]:
        name, text = test
        try:
            question = Question(about=About.STATES, findings=True, timeout=60)
            given = ask(parse(text, name), load_model(self.model), question, "both")
        except InternalError as error:
            return name, "differ", str(error)
        alone = given.engine == "explicit" or given.engine == "z3"
        return name, "alone" if alone else given.verdict, given.reason or ""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", nargs="*", default=ASYNCHRONOUS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--model", default="ptx-9.0")
    given = parser.parse_args()
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(given.jobs) as processes:
        for name, what, why in processes.map(Both(given.model), chosen(given.samples), chunksize=16):
            counts[what] += 1
            if what in ("differ", "alone", "unknown"):
                print(f"{what}: {name}: {why}", flush=True)
    print(
        f"{counts.total():,} tests in {time.perf_counter() - started:.0f} s with {given.jobs} processes: {dict(counts)}"
    )
    return bool(counts["differ"])


if __name__ == "__main__":
    sys.exit(main())
