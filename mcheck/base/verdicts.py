"""The verdicts of answers."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The verdict of an answer; in JSON it is its text.

    ``PASS`` and ``FAIL`` are about a final condition or liveness, ``PROVED``, ``BOUNDED`` and ``FINDING`` about races,
    undefined behaviour and deadlocks. ``UNKNOWN`` has reasons (``mcheck.base.reasons``); ``ERROR``: the input is
    wrong, so that nothing was checked.
    """

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    PROVED = "proved"
    BOUNDED = "bounded"
    FINDING = "finding"
    UNKNOWN = "unknown"
    ERROR = "error"

    @property
    def is_open(self) -> bool:
        """Whether nothing was found, but not everything was checked."""
        return self in (Verdict.UNKNOWN, Verdict.BOUNDED)

    @property
    def is_of_condition(self) -> bool:
        """Whether it is the verdict of a final condition, which a test can expect."""
        return self in (Verdict.PASS, Verdict.FAIL)
