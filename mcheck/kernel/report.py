"""Problems as findings, with the steps that lead to them."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.answers.steps import step_of
from mcheck.findings import catalogue
from mcheck.findings.finding import Finding
from mcheck.findings.trace import Happening, Step, Trace
from mcheck.kernel.machine import Machine
from mcheck.kernel.problems import Problem
from mcheck.program import ops

TRACE_LINES = 16
"""Steps of a trace."""


def key_of(problem: Problem) -> object:
    """Problems with the same key are one finding."""
    ends = ((a.span, a.access, a.object.partition("@")[0]) for a in problem.accesses)
    return problem.code, frozenset(ends) if problem.code.startswith("RACE") else tuple(ends)


def says_less(problem: Problem, findings: Iterable[Finding]) -> bool:
    """Whether a deadlock is one that was found already, perhaps with others who stand elsewhere."""
    if not problem.code.startswith("DEAD"):
        return False
    waits = {a.span for a in problem.accesses}
    return any(f.kind == "deadlock" and waits <= {a.span for a in f.accesses} for f in findings)


def finding_of(m: Machine, problem: Problem, profile: str) -> Finding:
    """The finding of a problem, with the steps that lead to it."""
    entry = catalogue.get(problem.code)
    return Finding(
        code=problem.code,
        kind=entry.kind,
        severity=entry.severity(profile),
        message=problem.message,
        accesses=problem.accesses,
        missing=problem.missing or entry.remedy,
        section=entry.section,
        trace=trace(m, problem),
    )


def trace(m: Machine, problem: Problem) -> Trace:
    """The steps that matter, numbered as in the whole execution: those of the agents concerned since the earlier access
    of the two, or their last ones.
    """
    theirs = [k for k in range(problem.since, min(problem.until, len(m.trace))) if _concerns(m, problem, k)]
    kept = {k for k in theirs if _matters(m, problem, k)}
    chosen = [k for k in theirs if k in kept or {k - 1, k + 1} <= kept]  # one step takes no more room than its absence
    tail = chosen[-TRACE_LINES:]
    if problem.since and problem.since in chosen:
        tail[0] = problem.since
    befores = [k - 1 for k in tail[:1]] + tail
    return tuple(step(m, k, skipped=k - before - 1) for before, k in zip(befores, tail, strict=False))


def step(m: Machine, k: int, *, skipped: int = 0) -> Step:
    """A step of the machine's trace."""
    entry = m.trace[k]
    happening = Happening(entry.note) if entry.note else Happening.EXECUTES
    return step_of(m.name(m.agents[entry.agent]), entry.op, happening=happening, number=k + 1, skipped=skipped)


def _concerns(m: Machine, problem: Problem, k: int) -> bool:
    return not problem.agents or m.trace[k].agent in problem.agents


def _matters(m: Machine, problem: Problem, k: int) -> bool:
    """Whether a step is other than a weak access elsewhere, which orders nothing."""
    op = m.trace[k].op
    weak = isinstance(op, ops.Load | ops.Store) and op.sem == "weak"
    return not weak or any(a.span == op.span for a in problem.accesses)
