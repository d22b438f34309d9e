"""The gap of a race: where in the code of a thread the one instruction that the fix asks for can stand."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, site_of
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
        return _lines(g, _own_way(g, until))
    waited = step.after if isinstance(step, HandOver) else None
    return _lines(g, _common_way(g, waited))


def _ends(step: Insert) -> Iterable[Site | None]:
    """The statements that the instruction has to precede."""
    yield step.at(Condition.BEFORE_HAND_OVER)
    yield from (point.site for point in step.points if not point.after)


def _own_way(g: ExecutionGraph, until: Site | None) -> list[Op]:
    """What the earlier access's thread executes from that on, to the last time at a place before the later access, or
    to that itself.
    """
    behind = g.steps[g.old.position : g.new.position]
    own = [e.op for e in behind if e.agent == g.old.agent and e.signal < 0]
    ends = [k for k, op in enumerate(own) if k and site_of(op) == until]
    return own[: ends[-1]] if ends else own if g.old.agent == g.new.agent else []


def _common_way(g: ExecutionGraph, waited: Site | None) -> Sequence[Op]:
    """What one of the two threads executes from the statement of the one access, or from the wait for it, to that of
    the other. Lanes that an instruction takes no address of do not have it in their code: then it is the way from the
    one access to the statement of the other that is still to come.
    """
    old, new = g.old, g.new
    first = next((op for op in g.agents[old.agent].code if waited is not None and site_of(op) == waited), old.op)
    done = old.step if first is old.op else next((step for agent, step in old.waits if agent == old.agent), None)
    before, behind = _executions(g, old.agent, first, done), _executions(g, new.agent, new.op, new.step)
    return (
        _executed_since(g, new, first.span, before)
        or _executed_since(g, old, new.op.span, behind)
        or _code_until(g, old, new.op.span, behind)
        or _code_until(g, new, first.span, before)
    )


def _executions(g: ExecutionGraph, agent: int, op: Op, last: int | None) -> int:
    """How often an agent has executed a statement up to a step, or up to one that is still to come."""
    steps = [e.step for e in g.own_steps(agent) if e.op.span == op.span]
    return len(steps) + 1 if last is None else max(sum(step <= last for step in steps), 1)


def _executed_since(g: ExecutionGraph, access: GraphAccess, span: Span | None, number: int) -> list[Op]:
    """What an access's thread has executed before that, from a statement for the ``number``-th time on."""
    own = [e.op for e in g.own_steps(access.agent) if e.step < access.step]
    since = _places(own, span)
    return own[since[number - 1] :] if len(since) >= number else []


def _code_until(g: ExecutionGraph, access: GraphAccess, span: Span | None, number: int) -> Sequence[Op]:
    """The code of an access's thread from that on, to a statement for the ``number``-th time; none with branches."""
    code = g.agents[access.agent].code
    own, until = _places(code, access.op.span), _places(code, span)
    done = g.executions(access.agent, access.op, access.step)
    if len(own) <= done or len(until) < number:
        return ()
    way = code[own[done] : until[number - 1]]
    return () if any(isinstance(op, ops.Branch) for op in way) else way


def _places(code: Sequence[Op], span: Span | None) -> list[int]:
    return [k for k, op in enumerate(code) if op.span == span]


def _lines(g: ExecutionGraph, way: Sequence[Op]) -> Gap:
    """The lines of statements that may have to do with memory (compilers move others), and of those between them that
    other lanes of the CTA execute: a matrix is loaded through the addresses of some lanes alone.
    """
    kept = [op.span.line for op in way if op.span is not None and _stays(op)]
    if not kept:
        return ()
    codes = {id(agent.code): agent.code for agent in g.agents if g.share_cta(agent.index, g.new.agent)}
    every = sorted({op.span.line for code in codes.values() for op in code if op.span is not None and _stays(op)})
    last = max(op.span.line for op in (g.old.op, g.new.op) if op.span is not None)
    steps = pairwise([*kept, max(last, kept[-1])])
    between = (every[bisect_right(every, k) : bisect_left(every, j)] for k, j in steps)
    return tuple(sorted({*kept, *chain.from_iterable(between)}))


def _stays(op: Op) -> bool:
    return not op.facets.computes and not isinstance(op, ops.Branch)
