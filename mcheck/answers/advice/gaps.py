"""The gap of a race: where in the code of a thread the one instruction that the fix asks for can stand."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, site_of
from mcheck.answers.advice.proxy_fences import is_release
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
    if isinstance(step, Insert) and not step.codes[0].startswith(("bar.", "barrier.")):
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
    to that itself, which is the last one.
    """
    if g.old.agent == g.new.agent:
        return min((_steps_between(g, old, new, until) for old, new in _closer_pairs(g)), key=len)
    return _steps_between(g, g.old, g.new, until, there=False)


def _steps_between(
    g: ExecutionGraph, old: GraphAccess, new: GraphAccess, until: Site | None, *, there: bool = True
) -> list[Op]:
    """What the thread of an access executes from that on, to the last time at a place before another one and the last
    hand-over behind that, or to that one itself if the thread makes it, ``there``.
    """
    own = [e for e in g.steps[old.position : new.position] if e.agent == old.agent and e.signal < 0]
    ends = [k for k, e in enumerate(own) if k and site_of(e.op) == until]
    if not ends:
        return [*(e.op for e in own), new.op] if there else []
    over = (k for k, e in enumerate(own) if k > ends[-1] and is_release(e) and g.is_known(e))
    return [e.op for e in own[: max(over, default=ends[-1]) + 1]]


def _closer_pairs(g: ExecutionGraph) -> Iterator[tuple[GraphAccess, GraphAccess]]:
    """The two accesses, and others of the same statements, threads and byte that are not farther apart: in loops the
    two may be rounds apart, and what orders them has to order the rounds between as well.
    """
    olds = [g.old, *(a for a in g.others if _is_alike(a, g.old) and a.step > g.old.step)]
    news = [g.new, *(a for a in g.others if _is_alike(a, g.new) and a.step < g.new.step)]
    apart = g.old.agent != g.new.agent
    yield from ((old, new) for old in olds for new in news if apart or old.position < new.position)


def _is_alike(one: GraphAccess, other: GraphAccess) -> bool:
    return one.agent == other.agent and one.op.span == other.op.span and one.write == other.write


def _common_way(g: ExecutionGraph, waited: Site | None) -> Sequence[Op]:
    """What one of the two threads executes from the statement of the one access, or from the wait for it, to that of
    the other, which is the last one. Lanes that an instruction takes no address of do not have it in their code: then
    it is the way from the one access to the statement of the other that is still to come.
    """
    ends = [
        (*_executed(g, old, waited), new, _executions(g, new.agent, new.op, new.step)) for old, new in _closer_pairs(g)
    ]
    return (
        _shortest(_executed_since(g, new, first.span, before) for _, first, before, new, _ in ends)
        or _shortest(_executed_since(g, old, new.op.span, behind) for old, _, _, new, behind in ends)
        or _shortest(_code_until(g, old, new.op.span, behind) for old, _, _, new, behind in ends[:1])
        or _shortest(_code_until(g, new, first.span, before) for _, first, before, new, _ in ends[:1])
    )


def _shortest(ways: Iterable[Sequence[Op]]) -> Sequence[Op]:
    """The shortest way of those that there are."""
    return min(filter(None, ways), key=len, default=())


def _executed(g: ExecutionGraph, old: GraphAccess, waited: Site | None) -> tuple[GraphAccess, Op, int]:
    """An access; its operation, or the wait for it; and how often its thread has executed that."""
    first = next((op for op in g.agents[old.agent].code if waited is not None and site_of(op) == waited), old.op)
    done = old.step if first is old.op else next((step for agent, step in old.waits if agent == old.agent), None)
    return old, first, _executions(g, old.agent, first, done)


def _executions(g: ExecutionGraph, agent: int, op: Op, last: int | None) -> int:
    """How often an agent has executed a statement up to a step, or up to one that is still to come."""
    steps = [e.step for e in g.own_steps(agent) if e.op.span == op.span]
    return len(steps) + 1 if last is None else max(sum(step <= last for step in steps), 1)


def _executed_since(g: ExecutionGraph, access: GraphAccess, span: Span | None, number: int) -> list[Op]:
    """What an access's thread has executed before that, from a statement for the ``number``-th time on."""
    own = [e.op for e in g.own_steps(access.agent) if e.step < access.step]
    since = _places(own, span)
    return [*own[since[number - 1] :], access.op] if len(since) >= number else []


def _code_until(g: ExecutionGraph, access: GraphAccess, span: Span | None, number: int) -> Sequence[Op]:
    """The code of an access's thread from that on, to a statement for the ``number``-th time; none with branches."""
    code = g.agents[access.agent].code
    own, until = _places(code, access.op.span), _places(code, span)
    done = g.executions(access.agent, access.op, access.step)
    if len(own) <= done or len(until) < number:
        return ()
    way = code[own[done] : until[number - 1] + 1]
    return () if any(isinstance(op, ops.Branch) for op in way) else way


def _places(code: Sequence[Op], span: Span | None) -> list[int]:
    return [k for k, op in enumerate(code) if op.span == span]


def _lines(g: ExecutionGraph, way: Sequence[Op]) -> Gap:
    """The lines of the statements before the last that may have to do with memory (compilers move others), and of those
    between them that other lanes of the CTA execute: a matrix is loaded through the addresses of some lanes alone.
    """
    kept = [op.span.line for op in way[:-1] if op.span is not None and _stays(op)]
    if not kept:
        return ()
    codes = {id(agent.code): agent.code for agent in g.agents if g.share_cta(agent.index, g.new.agent)}
    every = sorted({op.span.line for code in codes.values() for op in code if op.span is not None and _stays(op)})
    steps = pairwise(
        [*kept, way[-1].span.line if way[-1].span is not None else kept[-1]]
    )  # none where a loop goes back
    between = (every[bisect_right(every, k) : bisect_left(every, j)] for k, j in steps)
    return tuple(sorted({*kept, *chain.from_iterable(between)}))


def _stays(op: Op) -> bool:
    return not op.facets.computes and not isinstance(op, ops.Branch)
