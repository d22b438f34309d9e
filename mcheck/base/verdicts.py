"""The verdicts: what an answer comes to, as programs compare it."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The verdict of an answer; in JSON it is its text.

    ``PASS`` and ``FAIL`` are about a final condition or liveness, ``PROVED``, ``BOUNDED`` and ``FINDING`` about races,
    undefined behaviour and deadlocks. ``UNKNOWN`` has reasons (``mcheck.base.reasons``); ``ERROR``: nothing could be
    asked.
    """

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    PROVED = "proved"
    BOUNDED = "bounded"
    FINDING = "finding"
    UNKNOWN = "unknown"
    ERROR = "error"

    @property
    def open(self) -> bool:
        """Whether something may be found that was not looked at, nothing having been found."""
        return self in (Verdict.UNKNOWN, Verdict.BOUNDED)

    @property
    def judges(self) -> bool:
        """Whether it is the verdict of a final condition, which a test can expect."""
        return self in (Verdict.PASS, Verdict.FAIL)
