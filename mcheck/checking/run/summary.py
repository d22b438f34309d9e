"""Counts of results, and the exit status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of files: by status (``ok``, ``mismatch``, ``unknown``, ``error``), and others.

    ``mismatch``: also those that are not as expected because of a finding. ``internal``: errors that are bugs of
    mcheck. ``unjudged``: files without expectations, ``found`` of them with errors. By verdict: ``proved``,
    ``findings`` and ``open``; ``ignored``: files with findings that are all ignored.
    """

    tests: int
    ok: int
    mismatch: int
    unknown: int
    error: int
    internal: int = 0
    unjudged: int = 0
    found: int = 0
    proved: int = 0
    findings: int = 0
    open: int = 0
    ignored: int = 0
    seconds: float = 0.0

    @property
    def exit_status(self) -> int:
        """0, 1, 2 or 3; 2 beats 1 beats 3, and an internal error (70) beats all."""
        if self.internal:
            return 70
        if self.error:
            return 2
        if self.mismatch:
            return 1
        return 3 if self.unknown else 0


class Counter:
    """Counts results one by one."""

    def __init__(self) -> None:
        self._counts = {f.name: 0 for f in fields(Summary) if f.name != "seconds"}

    def add(self, result: Result) -> None:
        """Counts a result."""
        holds = {
            "tests": True,
            "mismatch" if result.status == "finding" else result.status: True,
            "internal": result.crashed,
            "unjudged": result.was_read and result.expected is None and not result.expected_kinds,
            "found": result.headline == "found",
            "proved": result.verdict is Verdict.PROVED,
            "findings": result.verdict is Verdict.FINDING,
            "open": result.verdict.is_open,
            "ignored": result.headline == "ignored",
        }
        for name, counts in holds.items():
            self._counts[name] += counts

    def summary(self, seconds: float) -> Summary:
        """The counts so far, after so many seconds."""
        return Summary(**self._counts, seconds=seconds)


def summarize(results: Iterable[Result], seconds: float = 0.0) -> Summary:
    """The counts of some results."""
    counter = Counter()
    for result in results:
        counter.add(result)
    return counter.summary(seconds)
