"""Do two engines answer generated tests alike?

    python -m benchmarks.generated [ALPHABET:SIZE[:STEP]...] [--jobs N] [--model NAME] [--state FILE] [--seconds N]

Each test goes to the explicit engine and to Z3; verdicts, states and findings have to be the same. Of a sample with a
step every so manieth cycle has its test; a text that came before is left out. With --state the counts are kept in the
file, and a run that was stopped goes on from them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mcheck.base.errors import InputError, InternalError
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from mcheck.tools.generate.alphabet import load
from mcheck.tools.generate.judge import generate
from tests.fuzz.record import Record, resume

ASYNCHRONOUS = (
    "async:2", "async:3", "async:4", "cluster:2", "cluster:3", "cluster:4", "tensor:2", "tensor:3", "reduce:3",
    "oneway:2", "oneway:3", "async:5:250", "cluster:5:250",
)  # fmt: skip
"""All tests of up to four edges, and a sample of those of five."""

BATCH = 32
"""Tests for each process between two looks at the clock."""


def chosen(samples: list[str]) -> Iterator[tuple[str, str]]:
    """Name and text of the tests of the samples, no text twice."""
    seen: set[int] = set()
    for sample in samples:
        name, size, *step = sample.split(":")
        for test in generate(load(name), int(size), int(step[0]) if step else 1):
            body = hash(test.text.partition("{")[2])
            if body not in seen:
                seen.add(body)
                yield f"{name}/{test.name}", test.text


@dataclass(frozen=True, slots=True)
class Both:
    """Asks both engines about a test: the verdict, or in what they differ, and the seconds of the processor."""

    model: str

    def __call__(self, test: tuple[str, str]) -> tuple[str, str, str, float]:
        name, text = test
        started = time.process_time()
        try:
            question = Question(about=Completeness.STATES, findings=True, timeout=60)
            given = ask(parse(text, name), load_model(self.model), question, "both")
        except InternalError as error:
            return name, "differ", str(error), time.process_time() - started
        alone = given.engine == "explicit" or given.engine == "z3"
        what = "alone" if alone else given.verdict
        return name, what, given.reason or "", time.process_time() - started


def run_items(record: Record, samples: list[str], both: Both, jobs: int, state: Path | None, until: float) -> None:
    """Asks about the tests that are left, as far as the time allows."""
    tests = islice(chosen(samples), record.done, None)
    with ProcessPoolExecutor(jobs) as processes:
        while time.monotonic() < until and (batch := list(islice(tests, BATCH * jobs))):
            started = time.monotonic()
            for name, what, why, seconds in processes.map(both, batch, chunksize=4):
                record.count("answers", what)
                record.count("processor", "seconds", seconds)
                if what == "differ":
                    record.differs(name, [why])
                if what in ("differ", "alone", "unknown"):
                    print(f"{what}: {name}: {why}", flush=True)
            record.done += len(batch)
            record.seconds += time.monotonic() - started
            if state is not None:
                record.save(state)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", nargs="*", default=list(ASYNCHRONOUS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--model", default="ptx-9.0")
    parser.add_argument("--state", type=Path, metavar="FILE", help="keep the counts here, and go on from them")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    given = parser.parse_args()
    about = {"compared": "generated tests", "samples": " ".join(given.samples), "model": given.model}
    try:
        record = resume(about, given.state)
    except InputError as error:
        raise SystemExit(error.message) from None
    until = time.monotonic() + given.seconds
    run_items(record, given.samples, Both(given.model), given.jobs, given.state, until)
    print(record.text())
    return bool(record.different)


if __name__ == "__main__":
    sys.exit(main())
