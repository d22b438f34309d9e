"""The gap of a race: where in the code of a thread the one instruction that the fix asks for can stand."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, Step, site_of
from mcheck.base.errors import Span
from mcheck.base.phrase import Site
from mcheck.findings.fix import Condition, Fixes, HandOver, Insert
from mcheck.ir import ops
from mcheck.ir.ops import Op

Gap = tuple[int, ...]
"""The lines of the statements behind each of which the instruction orders the accesses."""


def gap_of(g: ExecutionGraph, fixes: Fixes) -> Gap:
    """Where the first step of the fix can stand; empty if that is not known.

    A wait or a proxy fence is executed by the thread of the earlier access, between that and what hands it over. A
    barrier comes, in the code that both threads execute, behind the statement of the one access and before that of the
    other: a thread that makes the later access has executed that of the earlier one itself, as often as the other one
    had.
    """
    if not fixes:
        return ()
    step = fixes[0].steps[0]
    if isinstance(step, Insert) and not step.codes[0].startswith("bar."):
        until = next((s for s in _ends(step) if s is not None), None)
        return _lines(_own_way(g, until))
    waited = step.after if isinstance(step, HandOver) else None
    return _lines(_common_way(g, waited))


def _ends(step: Insert) -> Iterable[Site | None]:
    """The statements that the instruction has to precede."""
    yield step.at(Condition.BEFORE_HAND_OVER)
    yield from (point.site for point in step.points if not point.after)


def _own_way(g: ExecutionGraph, until: Site | None) -> list[Step]:
    """The steps of the earlier access's thread from that on, to the last one at a place before the later access, or to
    that itself.
    """
    behind = g.steps[g.old.position : g.new.position]
    own = [e for e in behind if e.agent == g.old.agent and e.signal < 0]
    ends = [k for k, e in enumerate(own) if k and site_of(e.op) == until]
    return own[: ends[-1]] if ends else own if g.old.agent == g.new.agent else []


def _common_way(g: ExecutionGraph, waited: Site | None) -> list[Step]:
    """The steps of one of the two threads from the statement of the one access, or from the wait for it, to that of the
    other.
    """
    old, new = g.old, g.new
    first = next((op for op in g.agents[old.agent].code if waited is not None and site_of(op) == waited), old.op)
    done = old.step if first is old.op else next((step for agent, step in old.waits if agent == old.agent), None)
    number = _executions(g, old.agent, first, done)
    behind = _steps_since(g, new, first.span, number)
    return behind or _steps_since(g, old, new.op.span, _executions(g, new.agent, new.op, new.step))


def _executions(g: ExecutionGraph, agent: int, op: Op, last: int | None) -> int:
    """How often an agent has executed a statement up to a step, or up to one that is still to come."""
    steps = [e.step for e in g.own_steps(agent) if e.op.span == op.span]
    return len(steps) + 1 if last is None else max(sum(step <= last for step in steps), 1)


def _steps_since(g: ExecutionGraph, access: GraphAccess, span: Span | None, number: int) -> list[Step]:
    """The steps of an access's thread before that, from its execution of a statement for the ``number``-th time on."""
    own = [e for e in g.own_steps(access.agent) if e.step < access.step]
    since = [k for k, e in enumerate(own) if e.op.span == span]
    return own[since[number - 1] :] if len(since) >= number else []


def _lines(steps: Iterable[Step]) -> Gap:
    """The lines of steps that may have to do with memory: compilers move others."""
    kept = (e.op for e in steps if not e.op.facets.computes and not isinstance(e.op, ops.Branch))
    return tuple(sorted({op.span.line for op in kept if op.span is not None}))
