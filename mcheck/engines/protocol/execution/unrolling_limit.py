"""The limit on loop iterations: small for loops without an exit, which nothing else ends."""

from __future__ import annotations

from operator import itemgetter

from mcheck.base.errors import Span
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.ir.ops import Branch, Exit
from mcheck.ir.program import Thread

MAX_ITERATIONS = 10_000
"""Maximum iterations of a loop with an exit."""
LONG_LOOP = 100
"""Iterations from which on a time-out names the loop."""
MAX_ENDLESS_ITERATIONS = 8
"""Maximum iterations of a loop without an exit."""


def max_iterations(thread: Thread, head: int) -> int:
    """The maximum iterations of the loop with this head."""
    return MAX_ITERATIONS if _can_reach_end(thread, head) else MAX_ENDLESS_ITERATIONS


def _can_reach_end(thread: Thread, head: int) -> bool:
    """Whether a thread at this place in the code can reach the end of its code."""
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
    """The source position of the loop with this head."""
    return next((op.span for op in thread.code[head:] if op.span is not None), None)


def format_line(span: Span | None) -> str:
    """A source position as a suffix of a message."""
    return f" at line {span.line}" if span is not None else ""


def describe_iterations(thread: Thread, head: int, rounds: int) -> str:
    """Describe a number of iterations of the loop with this head."""
    where = format_line(loop_span(thread, head))
    return f"{rounds} iterations of the loop{where}{', which has no exit' if rounds == MAX_ENDLESS_ITERATIONS else ''}"


def describe_longest_loop(m: Machine) -> str:
    """Describe the loop with the most iterations and its agent; empty if no loop runs long."""
    found = max(
        ((n, a, head) for a in m.agents for head, n in a.loop_iterations.items()), key=itemgetter(0), default=None
    )
    if found is None or found[0] < LONG_LOOP:
        return ""
    rounds, agent, head = found
    where = loop_span(m.program.threads[agent.threads[0]], head)
    return f"{m.name(agent)} is in iteration {rounds} of the loop{format_line(where)}"
