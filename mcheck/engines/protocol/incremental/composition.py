"""What ``a; b`` of a new event is made of: the columns of ``a`` of the earlier events that ``b`` relates to it.

Where ``b`` is a closure that leads forward, what it relates to one of those events is among them: with the column of
``a; b`` itself kept, only the latest of them count.
"""

from __future__ import annotations

from typing import NamedTuple

from mcheck.cat.algebra.tape import Tape
from mcheck.engines.protocol.incremental.kinds import FORWARD, NOTHING, SET


class Parts(NamedTuple):
    """A relation as a union: of the identity on some ``sets`` (on all events, if it is ``reflexive``), and of the
    ``rest``, a node, or -1.
    """

    sets: tuple[int, ...]
    reflexive: bool
    rest: int


def parts_of(tape: Tape, kind: list[str], n: int) -> Parts:
    """The parts of a node that leads forward: of a set nothing has to be kept but who is in it."""
    i = tape.code[n]
    if kind[n] == NOTHING:
        return Parts((), False, -1)
    if kind[n] == SET:
        return Parts((n,), False, -1)
    if kind[n] == FORWARD and i.op == "opt":
        inner = parts_of(tape, kind, i.a)
        return inner._replace(reflexive=True)
    if kind[n] == FORWARD and i.op == "or" and not {kind[i.a], kind[i.b]} <= {FORWARD}:
        first, second = parts_of(tape, kind, i.a), parts_of(tape, kind, i.b)
        if -1 in (first.rest, second.rest):
            rest = max(first.rest, second.rest)
            return Parts((*first.sets, *second.sets), first.reflexive or second.reflexive, rest)
    return Parts((), False, n)


def chains(tape: Tape, kind: list[str], turned: set[int], needed: set[int]) -> dict[int, int]:
    """The nodes ``a; b`` with ``b`` such a closure: each with the node of the closure that is kept."""
    found: dict[int, int] = {}
    for n in needed:
        i = tape.code[n]
        if i.op != "seq" or kind[i.a] != FORWARD or kind[i.b] != FORWARD:
            continue
        past = tape.code[i.b].a if tape.code[i.b].op == "opt" else i.b
        closure = tape.code[past].op in ("plus", "star") and kind[past] == FORWARD
        if closure and parts_of(tape, kind, i.a).rest >= 0 and not turned & {n, i.a, past}:
            found[n] = past
    return found
