"""The examination of one file: all its checks share one time limit."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences.removal import Removals, find_removals
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result


@dataclass(frozen=True, slots=True)
class Examined:
    """A file with the verdict on it as it is; ``removals`` of a proved one."""

    path: str
    verdict: Verdict
    removals: Removals | None


def examine(path: str, timeout: float | None) -> Examined:
    """What the program at ``path`` can do without; ``timeout`` is for all checks of it together."""
    text, started = Path(path).read_text(encoding="utf-8"), perf_counter()

    def check(changed: str) -> Result:
        left = None if timeout is None else max(timeout - (perf_counter() - started), 0.001)
        return check_case(Case(path, text=changed), Settings(timeout=left), Options())

    return Examined(path, check(text).verdict, find_removals(text, check))
