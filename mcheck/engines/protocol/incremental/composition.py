"""Composition ``a; b`` for a new event: the union of the columns of ``a`` over the events that ``b`` relates to it.

Where ``b`` is a closure that leads forward, the events that it relates to one of these are among them: with the column
of ``a; b`` itself stored, only the latest of them count.
"""

from __future__ import annotations

from typing import NamedTuple

from mcheck.cat.algebra.tape import Tape
from mcheck.engines.protocol.incremental.kinds import FORWARD, NOTHING, SET


class Parts(NamedTuple):
    """A relation as a union of the identity on ``sets`` and the nodes of ``rest``.

    ``reflexive``: the identity is that on all events.
    """

    sets: tuple[int, ...]
    reflexive: bool
    rest: tuple[int, ...]


def split_relation(tape: Tape, kind: list[str], n: int) -> Parts:
    """Split a forward relation into identities on sets, of which only the members are stored, and a rest.

    A restricted closure is a member of its own: mostly the restriction leaves out nothing, and the columns are shared.
    """
    i = tape.code[n]
    if kind[n] == NOTHING:
        return Parts((), False, ())
    if kind[n] == SET:
        return Parts((n,), False, ())
    if kind[n] == FORWARD and i.op == "opt":
        inner = split_relation(tape, kind, i.a)
        return inner._replace(reflexive=True)
    if kind[n] == FORWARD and i.op == "or":
        first, second = split_relation(tape, kind, i.a), split_relation(tape, kind, i.b)
        alone = any(_is_restricted_closure(tape, x) for x in (i.a, i.b))
        if alone or not first.rest or not second.rest:
            sets, rest = (*first.sets, *second.sets), (*first.rest, *second.rest)
            return Parts(sets, first.reflexive or second.reflexive, rest)
    return Parts((), False, (n,))


SCOPES = {"scta": "cta", "scluster": "cluster", "sgpu": "gpu"}
"""Base relations between the events of threads of one group, and the group."""


def split_scope(tape: Tape, kind: list[str], n: int) -> tuple[int, str] | None:
    """Return the relation and the group of its intersection with one of ``SCOPES``, if a node is that.

    Its columns need not be stored: they are those of the relation within the group of the event.
    """
    i = tape.code[n]
    if i.op == "and" and kind[n] == FORWARD:
        for inner, scope in ((i.a, tape.code[i.b].name), (i.b, tape.code[i.a].name)):
            if scope in SCOPES and kind[inner] == FORWARD:
                return inner, SCOPES[scope]
    return None


def _is_restricted_closure(tape: Tape, n: int) -> bool:
    """Whether a node is an intersection of a transitive closure with something else."""
    i = tape.code[n]
    return i.op == "and" and any(tape.code[x].op == "plus" for x in (i.a, i.b))


def find_chains(tape: Tape, kind: list[str], turned: set[int], needed: set[int]) -> dict[int, int]:
    """Return the nodes ``a; b`` whose ``b`` is a forward closure, each with the node of the closure that is stored."""
    found: dict[int, int] = {}
    for n in needed:
        i = tape.code[n]
        if i.op != "seq" or kind[i.a] != FORWARD or kind[i.b] != FORWARD:
            continue
        past = tape.code[i.b].a if tape.code[i.b].op == "opt" else i.b
        closure = tape.code[past].op in ("plus", "star") and kind[past] == FORWARD
        rest = split_relation(tape, kind, i.a).rest
        whole = len(rest) == 1 and split_scope(tape, kind, rest[0]) is None
        if closure and whole and not turned & {n, i.a, past}:
            found[n] = past
    return found
