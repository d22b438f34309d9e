"""Static bounds of every node of a tape on one event structure: what must hold and what may hold.

A pair outside the upper bound is in no execution, a pair in the lower bound in every one; only the pairs between the
two
are computed for each candidate. A check that its upper bound satisfies can never fail here, and its nodes are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcheck.explore import bits
from mcheck.explore.bits import Rows
from mcheck.explore.tape import Instr, Tape

Bases = Callable[[str], tuple[Rows, Rows]]
"""name of a base -> (lower bound, upper bound)"""


@dataclass(slots=True)
class Bounds:
    """``low[n]`` and ``high[n]`` bound node n."""

    low: list[Rows]
    high: list[Rows]


def _apply(i: Instr, low: list[Rows], high: list[Rows], n: int) -> tuple[Rows, Rows]:
    a, b = i.a, i.b
    match i.op:
        case "or":
            return bits.union(low[a], low[b]), bits.union(high[a], high[b])
        case "and":
            return bits.meet(low[a], low[b]), bits.meet(high[a], high[b])
        case "sub":
            return bits.minus(low[a], high[b]), bits.minus(high[a], low[b])
        case "comp":
            return bits.complement(high[a]), bits.complement(low[a])
        case "compset":
            return bits.diagonal(bits.complement(high[a])), bits.diagonal(bits.complement(low[a]))
        case "empty":
            return bits.empty(n), bits.empty(n)
    pairs = []
    for side in (low, high):
        x = side[a]
        match i.op:
            case "seq":
                r = bits.compose(x, side[b])
            case "inv":
                r = bits.inverse(x)
            case "plus":
                r = bits.closure(x)
            case "opt":
                r = bits.union(x, bits.identity(n))
            case "star":
                r = bits.union(bits.closure(x), bits.identity(n))
            case "prod":
                r = bits.product(x, side[b])
            case "dom":
                r = bits.domain(x)
            case "rng":
                r = bits.codomain(x)
            case _:
                raise KeyError(i.op)
        pairs.append(r)
        if side is low and low[a] == high[a] and (b < 0 or low[b] == high[b]):
            return r, r
    return pairs[0], pairs[1]


def bound(tape: Tape, n: int, bases: Bases) -> Bounds:
    """The bounds of all nodes for n events."""
    size = len(tape.code)
    low: list[Rows] = [[]] * size
    high: list[Rows] = [[]] * size
    at = 0
    while at < size:
        i = tape.code[at]
        if i.op == "rec":
            group = tape.groups[tape.group_of[at]]
            start, end, _ = group[-1]
            for v, _, kind in group:
                if kind == 0:
                    low[v], high[v] = bits.empty(n), bits.empty(n)
            while True:
                for k in range(start, end):
                    j = tape.code[k]
                    if j.op == "base":
                        low[k], high[k] = bases(j.name)
                    elif j.op != "rec":
                        low[k], high[k] = _apply(j, low, high, n)
                changed = False
                for v, body, kind in group:
                    if kind == 0 and (low[v] != low[body] or high[v] != high[body]):
                        low[v], high[v] = bits.union(low[v], low[body]), bits.union(high[v], high[body])
                        changed = True
                if not changed:
                    break
            at = end
            continue
        if i.op == "base":
            low[at], high[at] = bases(i.name)
        else:
            low[at], high[at] = _apply(i, low, high, n)
        at += 1
    return Bounds(low, high)
