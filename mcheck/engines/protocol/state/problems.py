"""What an execution found, before it is put into words: the raw material of findings."""

from __future__ import annotations

from dataclasses import dataclass

from mcheck.findings.finding import Access


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding in the making. ``agents`` are those whose steps the trace should show, ``until`` the last step."""

    code: str
    message: str
    accesses: tuple[Access, ...]
    agents: tuple[int, ...]
    last_step: int
    first_step: int = 0
    missing: str = ""
    section: str = ""
    """That of the instruction, for rules that stand there."""
    note: str = ""
    """What is said behind what is missing."""
