"""The repairs of one file: how it is asked whether a changed program is proved, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences.costs import Costs, read_costs
from mcheck.checking.fences.expectations import state_clean
from mcheck.checking.fences.outline import outline
from mcheck.checking.fences.repairs import Repairs, find_repairs
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.result import Result

TRIALS = 400
"""As many programs are checked for repairs of one, unless the user says otherwise."""
LONGER = 8
LEAST = 2.0
"""One check of a changed program may take ``LONGER`` times as long as that of the program, at least so many seconds of
the processor.
"""
Left = Callable[[], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How repairs are looked for: the costs, none for the shipped ones, and the most programs that are checked."""

    costs: Costs | None = None
    trials: int = TRIALS


def mend(path: str, first: Result, spent: float, left: Left, search: Search) -> Repairs | None:
    """The repairs of a program with findings, whose check took ``spent`` seconds of the processor; none if it is not in
    block form. ``left`` are the seconds for all of it.
    """
    text, most = first.source, max(LONGER * spent, LEAST)
    if outline(text) is None:
        return None
    settings = Settings(timeout=most, processor_time=True)
    asks = first.kind != "none" and run_case(Case(path, text=text), settings).expected is not None

    def check(changed: str) -> Result | None:
        result = answer(changed, Options(brief=True))
        if result is None or result.verdict is not Verdict.PROVED or not asks:
            return result
        ran = run_case(Case(path, text=state_clean(changed)), settings)
        return result if ran.ok else replace(result, verdict=Verdict.UNKNOWN)

    def answer(changed: str, options: Options) -> Result | None:
        rest = left()
        if rest is not None and rest <= 0:
            return None
        return check_case(Case(path, text=changed), settings, options)

    def explain(changed: str) -> Result | None:
        return answer(changed, Options())

    return find_repairs(first, text, check, explain, search.costs or read_costs(), search.trials)


def say_unmended(repairs: Repairs | None) -> str | None:
    """Why there is no repair, if there is none."""
    if repairs is None:
        return "only programs with roles in blocks are mended: see mcheck check"
    if repairs.found:
        return None
    tried = f"{repairs.trials} changed programs were checked, and none is proved"
    return f"{tried}: {repairs.limit}" if repairs.limit else tried
