"""What an engine answers about one program under one model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mcheck.findings.finding import Finding

Value = int | Literal["unknown"]
State = tuple[tuple[str, Value], ...]
"""A final state: (label, value) pairs in the order of the condition's terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One final state, how many executions (up to equivalence) give it, and one of them in words, a line per event."""

    state: State
    executions: int = 1
    witness: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``verdict`` pass, fail or unknown, with the ``reason`` when it is not plain.

    ``outcomes`` are sorted; ``complete`` says that they are all. ``undefined``: some execution has undefined behaviour,
    so the verdict follows interface.md (``exists`` passes, the others fail). ``executions`` counts the executions
    looked at.
    """

    verdict: str
    outcomes: tuple[Outcome, ...] = ()
    complete: bool = True
    undefined: bool = False
    findings: tuple[Finding, ...] = ()
    executions: int = 0
    engine: str = "explicit"
    reason: str | None = None
    forbidden_by: tuple[str, ...] = field(default=())
