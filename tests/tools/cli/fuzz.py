"""Mutates whole statements of the shipped suites and runs them from the text to the report: nothing may crash.

    python tests/tools/cli/fuzz.py --count 20000 --seed 1

Where the fuzzer of the containers breaks the text, this one keeps most of it legal: the engine gets programs that
nobody meant.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.result import Result
from mcheck.checking.run.summary import Summary
from mcheck.report.formats import json_, junit
from mcheck.report.lines import Printer
from mcheck.report.text import TextReport

LITMUS = Path(__file__).parents[3] / "litmus"
NUMBER = re.compile(r"\b\d+\b")
NUMBERS = ("0", "1", "2", "3", "7", "15", "16", "24", "100", "1048575", "4294967295", "99999999999999999999")
MODELS = ("ptx-9.0", "ptx-9.0", "ptx-9.0", "ptx-9.3", "ptx-7.5", "sc")


@dataclass(slots=True)
class Tally:
    """Verdicts, and the texts that crashed with what they said."""

    verdicts: Counter[str] = field(default_factory=Counter)
    crashes: list[tuple[str, str]] = field(default_factory=list)


def mutate(rng: random.Random, text: str, others: list[str]) -> str:
    """``text`` with one to three changes of a statement or a number."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        here, there = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                del lines[here]
            case 1:
                lines.insert(here, lines[there])
            case 2:
                lines[here], lines[there] = lines[there], lines[here]
            case 3:
                statements = [line for line in rng.choice(others).split("\n") if line.strip().endswith(";")]
                lines.insert(here, rng.choice(statements or [""]))
            case _:
                numbers = list(NUMBER.finditer(lines[here]))
                if numbers:
                    found = rng.choice(numbers)
                    lines[here] = lines[here][: found.start()] + rng.choice(NUMBERS) + lines[here][found.end() :]
        text = "\n".join(lines)
    return text


def run(count: int, seed: int) -> Tally:
    """``count`` mutated tests, each run and reported in every form."""
    rng = random.Random(seed)
    texts = [path.read_text(encoding="utf-8") for path in sorted(LITMUS.rglob("*.litmus"))]
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mutated.litmus")
        for _ in range(count):
            text = mutate(rng, rng.choice(texts), texts)
            path.write_text(text, encoding="utf-8")
            settings = Settings(
                model=rng.choice(MODELS),
                prop=rng.choice(("spec", "spec", "liveness")),
                profile=rng.choice(("ptx", "strict", "permissive")),
                verdict_only=rng.random() < 0.3,
                timeout=5.0,
            )
            result = run_case(Case(str(path)), settings)
            if result.crashed:
                tally.crashes.append((result.reason or "", text))
            tally.verdicts[result.verdict] += 1
            report(result)
    return tally


def report(result: Result) -> None:
    """Every form of the report, for whatever the result is."""
    summary = Summary(tests=1, ok=0, mismatch=0, unknown=0, error=0)
    TextReport(Printer(io.StringIO(), color=False), details=True).result(result)
    json_.run_document(result.model, [result], summary)
    junit.document([result])


def main() -> int:
    """Prints the verdicts and the first crashes; exit status 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tally = run(options.count, options.seed)
    for said, text in tally.crashes[:5]:
        print(f"--- {said}\n{text}")
    print(f"{options.count} mutations: {dict(tally.verdicts)}, {len(tally.crashes)} crashes")
    return 1 if tally.crashes else 0


if __name__ == "__main__":
    sys.exit(main())
