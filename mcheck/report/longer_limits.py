"""What would help where a limit of time or memory cut an answer."""

from __future__ import annotations

import re

from mcheck.base.reasons import Cause, Reason
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result

_LOOP = re.compile(r"^\s*(?:for\s+\w+\s+in|const\s+\w+\s*=)", re.MULTILINE)
_EVERY = re.compile(r"^\s*const\s+\w+\s*=\s*any\b", re.MULTILINE)


def suggest_limits(result: Result) -> str:
    """What would help, as text; empty for a result that no limit cut."""
    causes = {reason.cause for reason in _all(result.reasons)}
    if result.verdict is not Verdict.UNKNOWN and result.verdict is not Verdict.BOUNDED:
        return ""
    limits = [
        option for cause, option in ((Cause.TIME, "a longer --timeout"), (Cause.MEMORY, "more --memory"))
        if cause in causes and not all(r.own for r in _all(result.reasons) if r.cause is cause)
    ]  # fmt: skip
    options = [*limits, *_smaller(result)]
    return f"may help: {', '.join(options[:-1])} or {options[-1]}" if limits else ""


def _all(reasons: tuple[Reason, ...]) -> list[Reason]:
    return [one for reason in reasons for one in (reason, *_all(reason.because))]


def _smaller(result: Result) -> list[str]:
    """How the program could be smaller."""
    if not result.path.endswith(".litmus"):
        grid = result.covers is not None and result.covers.total > 1
        return [*(["a smaller grid"] if grid else []), 'fewer rounds by the launch\'s parameters (or "any" for one)']
    if _EVERY.search(result.source):
        return ["a constant number of rounds"]
    return ["fewer rounds (or `any` for their number)"] if _LOOP.search(result.source) else ["fewer threads"]
