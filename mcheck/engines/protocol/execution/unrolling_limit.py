"""How many rounds of a loop are followed: few of one that nothing leaves, for nothing ends them."""

from __future__ import annotations

from operator import itemgetter

from mcheck.base.errors import Span
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.ir.ops import Branch, Exit
from mcheck.ir.program import Thread

MAX_ITERATIONS = 10_000
"""Rounds of a loop that something leaves."""
LONG_LOOP = 100
"""Rounds after which a loop is worth a word when the time is over."""
MAX_ENDLESS_ITERATIONS = 8
"""Rounds of a loop that nothing leaves."""


def max_iterations(thread: Thread, head: int) -> int:
    """The rounds of the loop with this head."""
    return MAX_ITERATIONS if _can_reach_end(thread, head) else MAX_ENDLESS_ITERATIONS


def _can_reach_end(thread: Thread, head: int) -> bool:
    """Whether a thread that has come to a place can come to the end of its code."""
    code, found, todo = thread.code, set[int](), [head]
    while todo:
        at = todo.pop()
        if at >= len(code) or isinstance(code[at], Exit):
            return True
        if at in found:
            continue
        found.add(at)
        op = code[at]
        if isinstance(op, Branch):
            todo.append(thread.labels[op.target])
        if not isinstance(op, Branch) or op.guard is not None or op.condition is not None:
            todo.append(at + 1)
    return False


def loop_span(thread: Thread, head: int) -> Span | None:
    """Where the loop with this head stands."""
    return next((op.span for op in thread.code[head:] if op.span is not None), None)


def format_line(span: Span | None) -> str:
    """Where something stands, as results say it."""
    return f" at line {span.line}" if span is not None else ""


def describe_iterations(thread: Thread, head: int, rounds: int) -> str:
    """So many rounds of the loop with this head."""
    where = format_line(loop_span(thread, head))
    return f"{rounds} rounds of the loop{where}{', which nothing leaves' if rounds == MAX_ENDLESS_ITERATIONS else ''}"


def describe_longest_loop(m: Machine) -> str:
    """Which loop has run most often, and by whom; nothing if none runs long."""
    found = max(
        ((n, a, head) for a in m.agents for head, n in a.loop_iterations.items()), key=itemgetter(0), default=None
    )
    if found is None or found[0] < LONG_LOOP:
        return ""
    rounds, agent, head = found
    where = loop_span(m.program.threads[agent.threads[0]], head)
    return f"{m.name(agent)} is in round {rounds} of the loop{format_line(where)}"
