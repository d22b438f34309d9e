"""The examination of one file: all its checks share one time limit."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences.candidates import apply_edits
from mcheck.checking.fences.costs import Costs, read_costs
from mcheck.checking.fences.expectations import state_clean
from mcheck.checking.fences.removal import Removals, find_removals, is_proved
from mcheck.checking.fences.repairs import Repairs, find_repairs
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.result import Result

TRIALS = 400
"""As many programs are checked for repairs of one, unless the user says otherwise."""
LONGER = 8
LEAST = 2.0
"""One check of a changed program may take ``LONGER`` times as long as that of the program, at least so many seconds."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A file with the verdict on it as it is; ``removals`` of a proved one, or why there are none, ``repairs`` of one
    with findings, and its text.
    """

    path: str
    verdict: Verdict
    removals: Removals | None
    reason: str | None = None
    repairs: Repairs | None = None
    text: str = ""

    @property
    def fixed(self) -> str | None:
        """The text with the cheapest repair, or without what can go together; none if there is nothing to change."""
        if self.repairs is not None and self.repairs.found:
            return state_clean(self.repairs.found[0].text)
        if self.removals is not None and self.removals.together:
            return apply_edits(self.text, self.removals.together)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of the examination of a file: seconds, those of the processor or not, and trials of repairs."""

    timeout: float | None = None
    processor_time: bool = False
    trials: int = TRIALS


BLOCK = re.compile(r"@[^{}|;]*\{")
"""The beginning of a role in block form."""


def examine(path: str, timeout: float | None, costs: Costs | None = None, limits: Limits | None = None) -> Examined:
    """What the program at ``path`` can do without, or what mends it; ``timeout`` is for all checks of it together."""
    return examine_text(path, Path(path).read_text(encoding="utf-8"), costs, limits or Limits(timeout=timeout))


def examine_text(path: str, text: str, costs: Costs | None, limits: Limits) -> Examined:
    """What ``examine`` says, of a text."""
    clock = process_time if limits.processor_time else perf_counter
    started = clock()

    def left() -> float | None:
        return None if limits.timeout is None else limits.timeout - (clock() - started)

    def check(changed: str, most: float | None = None) -> Result:
        limit = min((max(each, 0.001) for each in (left(), most) if each is not None), default=None)
        settings = Settings(timeout=limit, processor_time=limits.processor_time or most is not None)
        return check_case(Case(path, text=changed), settings, Options())

    def run(changed: str, most: float) -> Result:
        return run_case(Case(path, text=changed), Settings(timeout=most, processor_time=True))

    began = process_time()
    first = check(text)
    each = max(LONGER * (process_time() - began), LEAST)

    def try_repair(changed: str) -> Result | None:
        remaining = left()
        if remaining is not None and remaining <= 0:
            return None
        result = check(changed, each)
        if result.verdict == Verdict.PROVED and asks and not run(state_clean(changed), each).ok:
            return replace(result, verdict=Verdict.UNKNOWN)
        return result

    asks = first.kind != "none" and run(text, each).expected is not None
    repairs = None
    reason = _reason(first, text)
    if first.verdict == Verdict.FINDING and BLOCK.search(text) is not None:
        repairs = find_repairs(first, text, try_repair, costs or read_costs(), limits.trials)
        reason = _unmended(repairs)
    removals = None if reason or repairs else find_removals(text, check)
    return Examined(path, first.verdict, removals, reason, repairs, text)


def _unmended(repairs: Repairs) -> str | None:
    """Why there is no repair, if there is none."""
    if repairs.found:
        return None
    tried = f"{repairs.trials} changed programs were checked, and none is proved"
    return f"{tried}: {repairs.limit}" if repairs.limit else tried


def _reason(first: Result, text: str) -> str | None:
    """Why a program is not examined, if it is not."""
    if not is_proved(first):
        return first.reason or "only what is proved without any finding is examined: see mcheck check"
    if BLOCK.search(text) is None:
        return "tests in columns are not examined, only roles in blocks"
    if first.kind != "none":
        return "a condition is not examined, only findings: without it, mcheck fences says what they need"
    return None
