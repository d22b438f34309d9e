"""Problems as findings, with a short interleaving in columns per role."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.findings import catalogue
from mcheck.findings.finding import Finding
from mcheck.protocol.machine import Machine
from mcheck.protocol.problems import Problem, text_of

TRACE_LINES = 16
NARROWEST = 12
"""Characters of a lane."""


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


def trace(m: Machine, problem: Problem) -> tuple[str, ...]:
    """The last steps of the agents concerned, numbered as in the whole execution.

    Each agent has a lane. A step stands alone in its line, so that its text may go on over the lanes to its right.
    """
    chosen = [k for k in range(min(problem.until, len(m.trace))) if _concerns(m, problem, k)]
    start = [k for k in chosen if k == problem.since]
    tail = chosen[-TRACE_LINES:]
    if start and start[0] not in tail:
        tail = start + tail[1:]
    columns = list(dict.fromkeys(m.trace[k].agent for k in tail))
    if not columns:
        return ()
    names = [m.name(m.agents[c]) for c in columns]
    width = max(NARROWEST, *map(len, names)) + 2
    lines = ["step  " + "".join(name.ljust(width) for name in names).rstrip()]
    previous: int | None = None
    for k in tail:
        if previous is not None and k > previous + 1 and k == tail[1] and start:
            lines.append("  ...")
        lines.append(f"{k + 1:4d}  {' ' * (width * columns.index(m.trace[k].agent))}{_text(m, k)}")
        previous = k
    return tuple(lines)


def _concerns(m: Machine, problem: Problem, k: int) -> bool:
    return not problem.agents or m.trace[k].agent in problem.agents


def _text(m: Machine, k: int) -> str:
    entry = m.trace[k]
    text = text_of(entry.op)
    line = f"{entry.op.span.line}: " if entry.op.span is not None else ""
    return f"{line}({entry.note}) {text}" if entry.note else line + text
