"""The answer of a finished run: outcomes, findings, the verdict."""

from __future__ import annotations

from mcheck.answers.final_states import truth_of
from mcheck.answers.left_open import reason_of
from mcheck.answers.result import Answer, Outcome, sort_by_state
from mcheck.answers.verdict_rules import assumptions, makes_undefined
from mcheck.answers.witnesses import describe_execution
from mcheck.base.reasons import Cause, Reason, Reasons, unique_reasons
from mcheck.base.verdicts import Verdict
from mcheck.engines.search.no_executions import STOPPED, some_end, why_none_ends
from mcheck.engines.search.search import Run
from mcheck.findings.finding import Finding

UNROLLED = Reason(Cause.UNROLLING)
"""The reason for a loop with side effects, or one that counts its attempts."""


def conclude(run: Run, reason: Reason | None, *, witnesses: bool) -> Answer:
    """The answer of a run. ``reason``: why it was not finished, which is reported even if the verdict is certain."""
    program = run.program
    condition = program.condition
    none_ends = why_none_ends(run) if reason is None else None  # may find the wait that never ends
    found = tuple(sorted(_independent(run), key=lambda f: (f.code, f.message)))
    left_open = reason_of(run.left_open) if run.left_open else None
    outcomes = tuple(
        Outcome(
            state=state,
            executions=reached.executions,
            witness=describe_execution(reached.prepared, reached.candidate) if witnesses else (),
        )
        for state, reached in sort_by_state(run.outcomes.items(), lambda pair: pair[0])
    )
    if left_open is not None and run.undefined and not any(map(makes_undefined, found)):
        run.undefined, reason = False, reason or left_open
    verdict, why = _verdict(run, reason)
    complete = run.complete and reason is None and not run.bounded
    lost = none_ends is STOPPED and run.findings_wanted and not found  # what is undefined should have been found
    forbidden = tuple(sorted(run.failed)) if condition.kind in ("exists", "~exists") else ()
    return Answer(
        verdict=verdict,
        outcomes=outcomes,
        complete=complete,
        covered=complete and not lost and left_open is None,
        assumptions=assumptions(program),
        undefined=run.undefined,
        findings=found,
        executions=run.executions,
        reasons=unique_reasons(r for r in (why, reason, left_open) if r is not None) or _remarks(none_ends, run),
        forbidden_by=forbidden,
        ends=condition.kind != "none" or run.prop == "liveness" or reason is not None or some_end(run),
    )


def _independent(run: Run) -> list[Finding]:
    """The findings that do not depend on what is left open: races, which the model tells apart. None if what a weak
    read returns is left open, and may have led to them.
    """
    if run.uses_left_open:
        return []
    return [f for f in run.findings.values() if not run.left_open or f.code.startswith("RACE")]


def _remarks(none_ends: Reason | None, run: Run) -> Reasons:
    """Reasons that accompany a complete answer."""
    return (none_ends,) if none_ends is not None else run.note


def _verdict(run: Run, reason: Reason | None) -> tuple[Verdict, Reason | None]:
    condition = run.program.condition
    if run.prop == "liveness":
        if any(f.kind == "deadlock" for f in run.findings.values()):
            return Verdict.FAIL, Reason(Cause.ENDLESS)
        if reason is not None:
            return Verdict.UNKNOWN, reason
        return (Verdict.UNKNOWN, UNROLLED) if run.bounded else (Verdict.PASS, None)
    if run.undefined:
        codes = sorted({f.code for f in run.findings.values() if f.severity == "error"})
        if condition.kind == "none":
            return Verdict.PASS, None
        undefined = Reason(Cause.UNDEFINED, ", ".join(codes))
        return (Verdict.PASS if condition.kind == "exists" else Verdict.FAIL), undefined
    if condition.kind == "none":
        return (Verdict.UNKNOWN, reason) if reason is not None else (Verdict.PASS, None)
    truths = (truth_of(condition, s) for s in run.outcomes)
    if condition.kind == "forall":
        if any(False in t for t in truths):
            return Verdict.FAIL, None
    elif any(True in t for t in truths):
        return (Verdict.PASS if condition.kind == "exists" else Verdict.FAIL), None
    if reason is not None:
        return Verdict.UNKNOWN, reason
    if run.bounded:
        return Verdict.UNKNOWN, UNROLLED
    return (Verdict.FAIL if condition.kind == "exists" else Verdict.PASS), None
