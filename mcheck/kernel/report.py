"""Problems as findings, with the steps that lead to them."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.answers.steps import step_of
from mcheck.findings import catalogue
from mcheck.findings.finding import Finding
from mcheck.findings.trace import Happening, Step, Trace
from mcheck.kernel.machine import Machine
from mcheck.kernel.problems import Problem

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
    """The last steps of the agents concerned, numbered as in the whole execution."""
    chosen = [k for k in range(min(problem.until, len(m.trace))) if _concerns(m, problem, k)]
    tail = chosen[-TRACE_LINES:]
    if problem.since in chosen and problem.since not in tail:
        gap = tail[1] - problem.since - 1
        return (step(m, problem.since), step(m, tail[1], skipped=gap), *(step(m, k) for k in tail[2:]))
    return tuple(step(m, k) for k in tail)


def step(m: Machine, k: int, *, skipped: int = 0) -> Step:
    """A step of the machine's trace."""
    entry = m.trace[k]
    happening = Happening(entry.note) if entry.note else Happening.EXECUTES
    return step_of(m.name(m.agents[entry.agent]), entry.op, happening=happening, number=k + 1, skipped=skipped)


def _concerns(m: Machine, problem: Problem, k: int) -> bool:
    return not problem.agents or m.trace[k].agent in problem.agents
