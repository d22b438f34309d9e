"""Problems: what an execution found, from which findings are made."""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.findings.finding import Access


@dataclass(frozen=True, slots=True)
class Problem:
    """The raw form of a finding. ``agents`` are those whose steps the trace shows, from ``first_step`` to
    ``last_step``.
    """

    code: str
    message: str
    accesses: tuple[Access, ...]
    agents: tuple[int, ...]
    last_step: int
    first_step: int = 0
    missing: str = ""
    section: str = ""
    """The section of the instruction, for rules that its section states."""
    note: str = ""
    """A sentence that follows ``missing``."""
