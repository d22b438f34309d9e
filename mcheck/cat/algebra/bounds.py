"""Static bounds of every node of a tape on an event structure: the pairs that must hold and that may hold.

A pair outside the upper bound is in no execution, a pair in the lower bound in every one; only the pairs between the
two are computed for each candidate. A check that its upper bound satisfies can never fail here, and its nodes are
skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.tape import Tape

Bases = Callable[[str], tuple[Rows, Rows]]
"""name of a base -> (lower bound, upper bound)"""


@dataclass(slots=True)
class Bounds:
    """``low[n]`` and ``high[n]`` bound node n."""

    low: list[Rows]
    high: list[Rows]


Both = tuple[Rows, Rows]


def _apply(op: str, a: Both, b: Both, zero: Rows) -> Both:
    """Bounds of an operation's result; where nothing is open both are one object, and computed once."""
    fixed = a[0] is a[1] and b[0] is b[1]
    match op:
        case "sub":
            low = bits.apply_operation(op, a[0], b[1], zero)
            high = low if fixed else bits.apply_operation(op, a[1], b[0], zero)
        case "comp" | "compset":
            low = bits.apply_operation(op, a[1], zero, zero)
            high = low if fixed else bits.apply_operation(op, a[0], zero, zero)
        case _:
            low = bits.apply_operation(op, a[0], b[0], zero)
            high = low if fixed else bits.apply_operation(op, a[1], b[1], zero)
    return (low, low) if low == high else (low, high)


def compute_bounds(tape: Tape, n: int, bases: Bases, deadline: Callable[[], None] = lambda: None) -> Bounds:
    """The bounds of all nodes for n events; ``deadline`` raises when time is up (a closure of thousands takes long)."""
    size = len(tape.code)
    zero = bits.empty(n)
    low: list[Rows] = [zero] * size
    high: list[Rows] = [zero] * size

    def node(k: int) -> None:
        deadline()
        i = tape.code[k]
        if i.op == "base":
            given = bases(i.name)
            low[k], high[k] = given if any(given[1]) else (zero, zero)
        else:
            second = (low[i.b], high[i.b]) if i.b >= 0 else (zero, zero)
            first = (low[i.a], high[i.a]) if i.a >= 0 else (zero, zero)
            low[k], high[k] = _apply(i.op, first, second, zero)

    found = Bounds(low, high)
    bound_nodes(tape, found, node, zero)
    return found


def bound_nodes(tape: Tape, bounds: Bounds, node: Callable[[int], None], zero: Rows) -> None:
    """Has ``node`` bound every node of the tape in turn, those of a recursion until nothing is added to them."""
    low, high = bounds.low, bounds.high
    at = 0
    while at < len(tape.code):
        if tape.code[at].op != "rec":
            node(at)
            at += 1
            continue
        group = tape.groups[tape.group_of[at]]
        start, end, _ = group[-1]
        bindings = [(v, body) for v, body, kind in group if kind == 0]
        for v, _ in bindings:
            low[v] = high[v] = zero
        while True:
            for k in range(start, end):
                if tape.code[k].op != "rec":
                    node(k)
            if all(low[v] == low[body] and high[v] == high[body] for v, body in bindings):
                break
            for v, body in bindings:
                low[v], high[v] = _apply("or", (low[v], high[v]), (low[body], high[body]), zero)
        at = end
