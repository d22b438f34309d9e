"""Runs a suite: results in order, and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter

from mcheck.checking.backends import Backend, compute_cases
from mcheck.checking.result_cache import compute_uncached, open_result_cache
from mcheck.checking.run.case import DEFAULT_MODEL, Case, Result, Settings, Summary
from mcheck.checking.run.single import crashed_result, load_model, preload, run_case


def run_suite(
    cases: Sequence[Case],
    settings: Settings,
    means: Backend,
    each: Callable[[Result], None],
    started: float | None = None,
) -> Summary:
    """Runs ``cases``, passes every result to ``each`` in the order of the cases, and counts."""
    started = perf_counter() if started is None else started
    counts = {"ok": 0, "mismatch": 0, "unknown": 0, "error": 0}
    crashes = unjudged = found = 0
    for result in compute_results(cases, settings, means):
        counts[result.status] += 1
        crashes += result.crashed
        found += result.headline == "found"
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
        found=found,
        seconds=perf_counter() - started,
    )


def compute_results(cases: Sequence[Case], settings: Settings, means: Backend) -> Iterator[Result]:
    """The results of ``cases`` in their order. An unreadable model raises at once."""
    load_model(settings.model or DEFAULT_MODEL)

    def fresh(these: Sequence[Case]) -> Iterator[Result]:
        return compute_cases(these, settings, means, run_case, crashed_result, lambda: preload(settings))

    answers = zip(cases, compute_uncached(cases, open_result_cache(means, Result, "run", settings), fresh), strict=True)
    return (answer if case.expected is None else replace(answer, expected=case.expected) for case, answer in answers)
