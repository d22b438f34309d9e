"""A whole suite: its results in order, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from mcheck.run.case import DEFAULT_MODEL, Case, Result, Settings, Summary
from mcheck.run.once import Memory, once
from mcheck.run.pool import run_cases
from mcheck.run.single import lost, model_of, preload, run_case

if TYPE_CHECKING:
    from mcheck.store.database import Store


def run_suite(
    cases: Sequence[Case],
    settings: Settings,
    jobs: int,
    each: Callable[[Result], None],
    started: float | None = None,
    store: Store | None = None,
) -> Summary:
    """Runs ``cases``, gives every result to ``each`` in the order of the cases, and counts."""
    started = perf_counter() if started is None else started
    counts = {"ok": 0, "mismatch": 0, "unknown": 0, "error": 0}
    crashes = unjudged = 0
    for result in results(cases, settings, jobs, store):
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


def results(cases: Sequence[Case], settings: Settings, jobs: int, store: Store | None = None) -> Iterator[Result]:
    """The results of ``cases`` in their order; what ``store`` has is not run. An unreadable model raises at once."""
    model_of(settings.model or DEFAULT_MODEL)
    memory: Memory[Result] | None = None if store is None else Memory(store, "run", settings)

    def compute(these: Sequence[Case]) -> Iterator[Result]:
        if not these:
            return iter(())
        preload(settings)
        return run_cases(these, settings, jobs, run_case, lost)

    answers = zip(cases, once(cases, memory, compute), strict=True)
    return (answer if case.expected is None else replace(answer, expected=case.expected) for case, answer in answers)
