#!/usr/bin/env python3
"""Loops that run any number of times, or 4,096 times: what is proved by the period, and what shows late.

    python -m benchmarks.rounds [--only NAME] [--most SECONDS]

Prints a row per sketch and number of rounds: seconds of the processor, peak memory, executions, and the verdict; first
of sketches that are right, then of those whose mistake shows in no round before the thirtieth
(``tests/engines/protocol/late.py``).

Exit status 1 if what is right is not proved, if one of the mistakes is not found, or if a written number takes more
than 1.2 times what all numbers together take.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from time import process_time

from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from tests.engines.protocol.late import LATE
from tests.engines.protocol.unbounded import GUARDED, PING_PONG, TENSOR, TWO_PIPELINES, gemm, ring

RIGHT = {
    "ring": ring(4), "ping-pong": PING_PONG, "two pipelines": TWO_PIPELINES, "tiles": TENSOR, **GUARDED,
    **{f"product, {n} CTAs": gemm(n) for n in (2, 4, 8)},
}  # fmt: skip
MORE = 1.2
"""So much more than all numbers a written one may take."""
SHORT = 2.0
"""Seconds below which nothing is said of that."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one sketch with one number took."""

    seconds: float
    mebibytes: float
    executions: int
    verdict: str


def measure(text: str, seconds: float) -> Row:
    """Asks about one sketch; meant for a process of its own."""
    start = process_time()
    program = parse(text, "rounds.litmus", every=True)
    given = ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=seconds))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10))
    return Row(process_time() - start, peak, given.executions, given.verdict)


def alone(name: str, text: str, number: str, seconds: float) -> Row:
    """``measure`` in a fresh process, printed."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        row = pool.submit(measure, text.replace("N = any", f"N = {number}"), seconds).result()
    print(
        f"{name:<28} {number:>6} {row.seconds:8.2f} {row.mebibytes:6.0f} {row.executions:>11}  {row.verdict}",
        flush=True,
    )
    return row


def main() -> int:
    """Measures everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="sketches with this in their names")
    parser.add_argument("--most", type=float, default=120.0, help="seconds that a row may take")
    options = parser.parse_args()
    wrong = []
    print(f"{'sketch':<28} {'rounds':>6} {'seconds':>8} {'MiB':>6} {'executions':>11}  verdict")
    for name, text in RIGHT.items():
        if options.only in name:
            every, one = (alone(name, text, number, options.most) for number in ("any", "4096"))
            wrong += [name] if {every.verdict, one.verdict} != {"proved"} else []
            wrong += [f"{name} (4096 rounds)"] if one.seconds > max(MORE * every.seconds, SHORT) else []
    for name, text in LATE.items():
        if options.only in name:
            rows = [alone(name, text, number, options.most) for number in ("any", "300")]
            wrong += [name] if {row.verdict for row in rows} != {"finding"} else []
    if wrong:
        print(f"\nnot as it should be: {', '.join(wrong)}", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
