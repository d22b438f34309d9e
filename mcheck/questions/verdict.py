"""What a finished run says: outcomes, findings, the verdict."""

from __future__ import annotations

from mcheck.answers.final import truth_of
from mcheck.answers.judgement import assumptions
from mcheck.answers.reports import describe
from mcheck.answers.result import Answer, Outcome, in_order
from mcheck.questions.endings import STOPPED, some_end, why_none_ends
from mcheck.questions.run import Run

CUT = "a loop whose state does not repeat was cut at the unrolling bound"
"""Of a loop with effects, or one that counts its tries."""


def conclude(run: Run, reason: str | None, *, witnesses: bool) -> Answer:
    """The answer of a run; ``reason`` says why it was not finished, if it was not, which is told also where the verdict
    is certain all the same.
    """
    program = run.program
    condition = program.condition
    none_ends = why_none_ends(run) if reason is None else None  # may find the wait that never ends
    found = tuple(sorted(run.findings.values(), key=lambda f: (f.code, f.message)))
    outcomes = tuple(
        Outcome(
            state=state,
            executions=reached.executions,
            witness=describe(reached.prepared, reached.candidate) if witnesses else (),
        )
        for state, reached in in_order(run.outcomes.items(), lambda pair: pair[0])
    )
    verdict, why = _verdict(run, reason)
    complete = run.complete and reason is None and not run.bounded
    lost = none_ends == STOPPED and run.findings_wanted and not found  # what is undefined should have been found
    forbidden = tuple(sorted(run.failed)) if condition.kind in ("exists", "~exists") else ()
    return Answer(
        verdict=verdict,
        outcomes=outcomes,
        complete=complete,
        covered=complete and not lost,
        assumptions=assumptions(program),
        undefined=run.undefined,
        findings=found,
        executions=run.executions,
        reason="; ".join(dict.fromkeys(filter(None, (why, reason)))) or none_ends or run.note,
        forbidden_by=forbidden,
        ends=condition.kind != "none" or run.prop == "liveness" or reason is not None or some_end(run),
    )


def _verdict(run: Run, reason: str | None) -> tuple[str, str | None]:
    condition = run.program.condition
    if run.prop == "liveness":
        if any(f.kind == "deadlock" for f in run.findings.values()):
            return "fail", "some execution never ends"
        if reason is not None:
            return "unknown", reason
        return ("unknown", CUT) if run.bounded else ("pass", None)
    if run.undefined:
        codes = sorted({f.code for f in run.findings.values() if f.severity == "error"})
        text = f"some execution is undefined ({', '.join(codes)}), so anything may happen"
        return (
            ("pass", text if condition.kind != "none" else None)
            if condition.kind in ("exists", "none")
            else ("fail", text)
        )
    if condition.kind == "none":
        return ("unknown", reason) if reason is not None else ("pass", None)
    truths = (truth_of(condition, s) for s in run.outcomes)
    if condition.kind == "forall":
        if any(False in t for t in truths):
            return "fail", None
    elif any(True in t for t in truths):
        return ("pass" if condition.kind == "exists" else "fail"), None
    if reason is not None:
        return "unknown", reason
    if run.bounded:
        return "unknown", CUT
    return ("fail" if condition.kind == "exists" else "pass"), None
