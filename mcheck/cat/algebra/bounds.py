"""Static bounds of every node of a tape on an event structure: the pairs that must hold and that may hold.

A pair outside the upper bound is in no execution, a pair in the lower bound in every one; only the pairs between the
two are computed for each candidate. A check that its upper bound satisfies can never fail here, and its nodes are
skipped.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.records import dataclass
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.tape import Tape

Bases = Callable[[str], tuple[Rows, Rows]]
"""name of a base -> (lower bound, upper bound)"""


SMALL = 128
"""Events up to which all nodes are bounded in some milliseconds, and time is looked at once."""


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


def _is_nothing(op: str, no_first: bool, no_second: bool) -> bool:
    """Whether the result of an operation is empty because operands are."""
    if no_first:
        return op in bits.EMPTY_FROM_EMPTY or (no_second and op == "or")
    return no_second and op in bits.EMPTY_FROM_EITHER


def compute_bounds(tape: Tape, n: int, bases: Bases, deadline: Callable[[], None] = lambda: None) -> Bounds:
    """The bounds of all nodes for n events; ``deadline`` raises when time is up (a closure of thousands takes long)."""
    size = len(tape.code)
    zero = bits.empty(n)
    low: list[Rows] = [zero] * size
    high: list[Rows] = [zero] * size

    nothing = (zero, zero)
    deadline()

    def node(k: int) -> None:
        i = tape.code[k]
        if i.op == "base":
            given = bases(i.name)
            low[k], high[k] = given if any(given[1]) else nothing
            return
        first = (low[i.a], high[i.a]) if i.a >= 0 else nothing
        second = (low[i.b], high[i.b]) if i.b >= 0 else nothing
        if _is_nothing(i.op, first[0] is zero and first[1] is zero, second[0] is zero and second[1] is zero):
            low[k] = high[k] = zero  # most of a model is about instructions that a test does not have
            return
        if n > SMALL:
            deadline()
        low[k], high[k] = _apply(i.op, first, second, zero)

    found = Bounds(low, high)
    bound_nodes(tape, found, node, zero)
    return found


def bound_nodes(tape: Tape, bounds: Bounds, node: Callable[[int], None], zero: Rows) -> None:
    """Has ``node`` bound every node of the tape in turn, those of a recursion until nothing is added to them.

    What a node is depends on its operands alone: in the later rounds of a recursion it is bounded again if one of them
    has changed.
    """
    low, high, code = bounds.low, bounds.high, tape.code
    at = 0
    while at < len(code):
        if code[at].op != "rec":
            node(at)
            at += 1
            continue
        group = tape.groups[tape.group_of[at]]
        start, end, _ = group[-1]
        bindings = [(v, body) for v, body, kind in group if kind == 0]
        for v, _ in bindings:
            low[v] = high[v] = zero
        for k in range(start, end):
            if code[k].op != "rec":
                node(k)
        while any(low[v] != low[body] or high[v] != high[body] for v, body in bindings):
            changed = set()
            for v, body in bindings:
                before = low[v], high[v]
                low[v], high[v] = _apply("or", before, (low[body], high[body]), zero)
                if before != (low[v], high[v]):
                    changed.add(v)
            for k in range(start, end):
                if code[k].op != "rec" and (code[k].a in changed or code[k].b in changed):
                    before = low[k], high[k]
                    node(k)
                    if before != (low[k], high[k]):
                        changed.add(k)
        at = end
