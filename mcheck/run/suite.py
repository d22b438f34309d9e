"""A whole suite: its results in order, counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from mcheck.run.case import Case, Result, Settings, Summary
from mcheck.run.pool import run_cases
from mcheck.run.single import lost, preload, run_case


def run_suite(
    cases: Sequence[Case], settings: Settings, jobs: int, each: Callable[[Result], None], started: float | None = None
) -> Summary:
    """Runs ``cases``, gives every result to ``each`` in the order of the cases, and counts.

    An unreadable model raises before any test runs.
    """
    started = perf_counter() if started is None else started
    preload(settings)
    counts = {"ok": 0, "mismatch": 0, "unknown": 0, "error": 0}
    crashes = unjudged = 0
    for result in run_cases(cases, settings, jobs, run_case, lost):
        counts[result.status] += 1
        crashes += result.crashed
        unjudged += result.was_read and result.expected is None and not result.expected_kinds
        each(result)
    return Summary(
        tests=len(cases),
        ok=counts["ok"],
        mismatch=counts["mismatch"],
        unknown=counts["unknown"],
        error=counts["error"],
        internal=crashes,
        unjudged=unjudged,
        seconds=perf_counter() - started,
    )
