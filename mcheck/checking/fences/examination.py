"""The examination of one file: all its checks share one time limit."""

from __future__ import annotations

import re
from pathlib import Path
from time import perf_counter

from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences.removal import Removals, find_removals, is_proved
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result


@dataclass(frozen=True, slots=True)
class Examined:
    """A file with the verdict on it as it is; ``removals`` of a proved one, or why there are none."""

    path: str
    verdict: Verdict
    removals: Removals | None
    reason: str | None = None


BLOCK = re.compile(r"@[^{}|;]*\{")
"""The beginning of a role in block form."""


def examine(path: str, timeout: float | None) -> Examined:
    """What the program at ``path`` can do without; ``timeout`` is for all checks of it together."""
    text, started = Path(path).read_text(encoding="utf-8"), perf_counter()

    def check(changed: str) -> Result:
        left = None if timeout is None else max(timeout - (perf_counter() - started), 0.001)
        return check_case(Case(path, text=changed), Settings(timeout=left), Options())

    first = check(text)
    reason = _reason(first, text)
    return Examined(path, first.verdict, None if reason else find_removals(text, check), reason)


def _reason(first: Result, text: str) -> str | None:
    """Why a program is not examined, if it is not."""
    if not is_proved(first):
        return first.reason or "only what is proved without any finding is examined: see mcheck check"
    if BLOCK.search(text) is None:
        return "tests in columns are not examined, only roles in blocks"
    if first.kind != "none":
        return "a condition is not examined, only findings: without it, mcheck fences says what they need"
    return None
