"""Problems: what an execution found, from which findings are made."""

from __future__ import annotations

from mcheck.base.phrase import Phrase
from mcheck.base.records import dataclass
from mcheck.findings.finding import Access
from mcheck.findings.fix import Fixes, Note, ToCome
from mcheck.findings.waits import Wait


@dataclass(frozen=True, slots=True)
class Problem:
    """The raw form of a finding. ``agents`` are those whose steps the trace shows, from ``first_step`` to
    ``last_step``; ``gap`` is that of the finding.
    """

    code: str
    said: Phrase
    accesses: tuple[Access, ...]
    agents: tuple[int, ...]
    last_step: int
    first_step: int = 0
    fixes: Fixes = ()
    gap: tuple[int, ...] = ()
    section: str = ""
    """The section of the instruction, for rules that its section states."""
    waits: tuple[Wait, ...] = ()
    cycle: tuple[ToCome | Note, ...] = ()
    """Of a deadlock, who has still to signal what: a remark for whichever fix it gets."""
