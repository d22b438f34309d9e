"""Conversion of problems to findings, with the relevant steps of the trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcheck.answers.step_text import step_of
from mcheck.base.phrase import Lack, say
from mcheck.base.records import replace
from mcheck.engines.protocol.diagnosis.iteration import iteration_at
from mcheck.engines.protocol.diagnosis.unknown_waits import explain_unknown_waits
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.sync_objects import Mbarrier
from mcheck.findings import catalogue
from mcheck.findings.finding import CompiledLine, Finding
from mcheck.findings.fix import Change, Fixes, Property
from mcheck.findings.trace import Step, StepPart, Trace
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op

MAX_TRACE_STEPS = 16
"""Maximum number of steps in a trace."""


def finding_key(problem: Problem | Finding) -> tuple[str, object]:
    """Return the key of a problem; problems with the same key are one finding."""
    ends = ((a.span, a.access, a.object.partition("@")[0]) for a in problem.accesses)
    return problem.code, frozenset(ends) if problem.code.startswith("RACE") else tuple(ends)


def repeats_deadlock(problem: Problem, findings: Iterable[Finding]) -> bool:
    """Return whether a deadlock has been found already, perhaps with other agents in other places."""
    if not problem.code.startswith("DEAD"):
        return False
    waits = {a.span for a in problem.accesses}
    return any(f.kind == "deadlock" and waits <= {a.span for a in f.accesses} for f in findings)


def build_finding(m: Machine, problem: Problem, profile: str) -> Finding:
    """Return the finding of a problem, with the steps that lead to it."""
    entry = catalogue.get(problem.code)
    return Finding(
        code=problem.code,
        kind=entry.kind,
        severity=entry.severity(profile),
        said=(*problem.said, *explain_unknown_waits(m, problem)),
        accesses=problem.accesses,
        fixes=with_cycle(problem.fixes or (entry.fix_for(problem.said),), problem),
        section=entry.section_for(problem.section),
        trace=build_trace(m, problem),
        waits=problem.waits,
        gap=tuple(map(CompiledLine, problem.gap)),
    )


def with_fixes(found: Finding, fixes: Fixes, problem: Problem) -> Finding:
    """The finding with fixes that were tried; a race that a wrong count leads to says which one."""
    wrong = [s for fix in fixes for s in fix.steps if isinstance(s, Change) and s.what is Property.COUNT]
    said = found.said
    if wrong and found.kind == "race" and not any(isinstance(part, Lack) for part in said):
        several = "threads arrive" if wrong[0].new != "1" else "thread arrives"
        clause = say("{} {} on {}, which counts {}", wrong[0].new, several, wrong[0].subject, wrong[0].old)
        said = (*said, ": ", Lack(clause))
    return replace(found, fixes=with_cycle(fixes, problem), said=said)


def with_cycle(fixes: Fixes, problem: Problem) -> Fixes:
    """Fixes of a deadlock with who has still to signal what."""
    return (*fixes[:-1], fixes[-1].noted(*problem.cycle)) if problem.cycle else fixes


def build_trace(m: Machine, problem: Problem) -> Trace:
    """Return the relevant steps, numbered as in the whole execution.

    Those are both accesses, the operations on the mbarriers that they signal or wait for, and what else orders
    something, the nearest to the accesses first.
    """
    last = min(problem.last_step, len(m.trace))
    bars = _find_mbarriers(m, problem, last)
    if problem.code.startswith("DEAD"):
        theirs = [k for k in range(last) if _involves(m, problem, k) or _uses_address(m.trace[k].op, bars)]
        ends = {max((k for k in theirs if m.trace[k].agent == a), default=-1) for a in problem.agents}
        nearest = {k: last - k for k in theirs}
    else:
        theirs = [k for k in range(problem.first_step, last) if _involves(m, problem, k)]
        ends = {problem.first_step, theirs[-1]} if problem.first_step and theirs else set(theirs[-1:])
        nearest = {k: min(k - problem.first_step, last - k) for k in theirs}
    ranks = {k: 0 if k in ends else 1 if _uses_address(m.trace[k].op, bars) else 2 for k in theirs}
    worth = [k for k in theirs if k in ends or _matters(m, problem, k)]
    kept = set(sorted(worth, key=lambda k: (ranks[k], nearest[k]))[:MAX_TRACE_STEPS])
    chosen = [k for k in theirs if k in kept or {k - 1, k + 1} <= kept]  # one step takes no more room than its absence
    befores = [k - 1 for k in chosen[:1]] + chosen
    return tuple(
        build_step(m, k, skipped=k - before - 1, observes=_find_observed(m, chosen, k))
        for before, k in zip(befores, chosen, strict=False)
    )


def _find_observed(m: Machine, chosen: list[int], k: int) -> tuple[int, ...]:
    """Return the numbers of the latest chosen steps of other agents of which step ``k`` is the first of its agent to
    know that they came before it: by what it read, by a barrier or by a phase, perhaps through others.
    """
    entry = m.trace[k]
    earlier = [j for j in chosen if j < k]
    before = next((m.trace[j].time for j in reversed(earlier) if m.trace[j].agent == entry.agent), None)
    found: dict[int, int] = {}
    for j in earlier:
        other = m.trace[j]
        known = other.step <= entry.time[other.agent] and (before is None or other.step > before[other.agent])
        if known and other.agent != entry.agent and other.signal < 0:
            found[other.agent] = j
    return tuple(sorted(j + 1 for j in found.values()))


def _find_mbarriers(m: Machine, problem: Problem, last: int) -> set[int]:
    """Return the addresses of the mbarriers that matter: those waited for, or signalled by an access."""
    if problem.code.startswith("DEAD"):
        waited = (m.agents[a].blocked_on for a in problem.agents)
        return {where.address for where in waited if isinstance(where, Mbarrier)}
    bases = {i.label: i.base for i in m.program.memory.instances}
    misused = {bases[a.object] + a.bytes[0] for a in problem.accesses if a.object in bases} & set(m.mbarriers)
    if misused:
        return misused
    spans = {a.span for a in problem.accesses}
    theirs = (e.op for e in m.trace[problem.first_step : last] if e.op.span in spans and e.agent in problem.agents)
    return {address for op in theirs for address in _operand_addresses(op)} & set(m.mbarriers)


def _uses_address(op: Op, addresses: set[int]) -> bool:
    return not addresses.isdisjoint(_operand_addresses(op))


def _operand_addresses(op: Op) -> Iterator[int]:
    """Yield the addresses of the object of an operation, and of what it signals."""
    inner = ops.performed_operation(op)
    for name in ("address", "mbar"):
        expr = getattr(inner, name, None)
        if isinstance(expr, Const):
            yield expr.value


def build_step(m: Machine, k: int, *, skipped: int = 0, observes: tuple[int, ...] = ()) -> Step:
    """Return a step of the machine's trace."""
    entry = m.trace[k]
    part = StepPart(entry.note) if entry.note else StepPart.EXECUTES
    name, turn = m.name(m.agents[entry.agent]), iteration_at(m, k)
    return step_of(name, entry.op, part=part, number=k + 1, skipped=skipped, observes=observes, iteration=turn)


def _involves(m: Machine, problem: Problem, k: int) -> bool:
    return not problem.agents or m.trace[k].agent in problem.agents


def _matters(m: Machine, problem: Problem, k: int) -> bool:
    """Return whether a step is anything but a weak access elsewhere, which orders nothing."""
    op = m.trace[k].op
    weak = isinstance(op, ops.ScalarAccess) and op.sem == "weak"
    return not weak or any(a.span == op.span for a in problem.accesses)
