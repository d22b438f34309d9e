"""Composition ``a; b`` for a new event: the union of the columns of ``a`` over the events that ``b`` relates to it.

Where ``b`` is a closure that leads forward, the events that it relates to one of these are among them: with the column
of ``a; b`` itself stored, only the latest of them count.
"""

from __future__ import annotations

from typing import NamedTuple

from mcheck.cat.algebra.tape import Tape
from mcheck.engines.protocol.incremental.kinds import FORWARD, NOTHING, SET


class Parts(NamedTuple):
    """A relation as a union of the identity on ``sets`` and a ``rest``.

    ``reflexive``: the identity is that on all events. ``rest`` is a node, or -1 if there is none.
    """

    sets: tuple[int, ...]
    reflexive: bool
    rest: int


def split_relation(tape: Tape, kind: list[str], n: int) -> Parts:
    """Split a forward relation into identities on sets, of which only the members are stored, and a rest."""
    i = tape.code[n]
    if kind[n] == NOTHING:
        return Parts((), False, -1)
    if kind[n] == SET:
        return Parts((n,), False, -1)
    if kind[n] == FORWARD and i.op == "opt":
        inner = split_relation(tape, kind, i.a)
        return inner._replace(reflexive=True)
    if kind[n] == FORWARD and i.op == "or" and not {kind[i.a], kind[i.b]} <= {FORWARD}:
        first, second = split_relation(tape, kind, i.a), split_relation(tape, kind, i.b)
        if -1 in (first.rest, second.rest):
            rest = max(first.rest, second.rest)
            return Parts((*first.sets, *second.sets), first.reflexive or second.reflexive, rest)
    return Parts((), False, n)


def find_chains(tape: Tape, kind: list[str], turned: set[int], needed: set[int]) -> dict[int, int]:
    """Return the nodes ``a; b`` whose ``b`` is a forward closure, each with the node of the closure that is stored."""
    found: dict[int, int] = {}
    for n in needed:
        i = tape.code[n]
        if i.op != "seq" or kind[i.a] != FORWARD or kind[i.b] != FORWARD:
            continue
        past = tape.code[i.b].a if tape.code[i.b].op == "opt" else i.b
        closure = tape.code[past].op in ("plus", "star") and kind[past] == FORWARD
        if closure and split_relation(tape, kind, i.a).rest >= 0 and not turned & {n, i.a, past}:
            found[n] = past
    return found
