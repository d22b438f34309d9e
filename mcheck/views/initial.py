"""Whether a flag of a model may speak of initial writes, of which an execution that grows has only some.

A bound from the tape alone, by which base sets and relations an initial write may be in: it may say so of a flag that
never does.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcheck.algebra.tape import Instr, Tape
from mcheck.algebra.tapes import once_per_tape
from mcheck.cat.ast import Kind
from mcheck.cat.names import BASE

SETS = frozenset(("IW", "W", "M", "_"))
"""The sets that initial writes are in."""
FIRST = frozenset(("rf", "co"))
"""Relations that lead from them, but not to them."""
BOTH = frozenset(("id", "loc", "int", "ext"))


@dataclass(frozen=True, slots=True)
class Ends:
    """Whether an initial write may be the first or the second of a pair; ``every``: it is with everything.

    ``id``: it holds the identity. Of a set both ends are the member; ``every``: all initial writes are in it, ``all``:
    all events are.
    """

    first: bool = False
    second: bool = False
    id: bool = False
    every_first: bool = False
    every_second: bool = False
    set: bool = False
    all: bool = False


NEITHER = Ends()


@once_per_tape
def flag_of_initial_writes(tape: Tape) -> str | None:
    """The name of the first flag that may report a pair with an initial write."""
    ends: list[Ends] = []
    for instr in tape.code:
        ends.append(_ends(instr, ends))
    return next((x.name for x in tape.axioms if x.role == "flag" and (ends[x.node].first or ends[x.node].second)), None)


def _ends(i: Instr, known: list[Ends]) -> Ends:
    a = known[i.a] if i.a >= 0 else NEITHER
    b = known[i.b] if i.b >= 0 else NEITHER
    both = a.set and b.set
    match i.op:
        case "base":
            return _base(i.name)
        case "or":
            return Ends(
                a.first or b.first, a.second or b.second, a.id or b.id, a.every_first or b.every_first,
                a.every_second or b.every_second, both,
            )  # fmt: skip
        case "and":
            first, second = ((a.first or a.id) and (b.first or b.id)), ((a.second or a.id) and (b.second or b.id))
            every = a.every_first and b.every_first, a.every_second and b.every_second
            return Ends(first, second, a.id and b.id, *every, a.set or b.set)
        case "sub":
            return Ends(a.first and not b.every_first, a.second and not b.every_second, a.id, set=a.set)
        case "seq":
            first = (a.first and b.first) if a.set else a.first or (a.id and b.first)
            second = (a.second and b.second) if b.set else b.second or (b.id and a.second)
            return Ends(first, second, a.id and b.id, set=both)
        case "inv":
            return Ends(a.second, a.first, a.id, a.every_second, a.every_first, a.set)
        case "plus":
            return Ends(a.first, a.second, a.id)
        case "opt" | "star":
            return Ends(a.first, a.second, id=True)
        case "prod":
            return Ends(a.first, b.first, every_first=a.every_first and b.all, every_second=b.every_first and a.all)
        case "dom":
            return Ends(a.first, a.first, set=True)
        case "rng":
            return Ends(a.second, a.second, set=True)
        case "empty":
            return NEITHER
    return Ends(True, True, id=True)


def _base(name: str) -> Ends:
    if name in SETS:
        return Ends(True, True, every_first=True, every_second=True, set=True, all=name == "_")
    if name in FIRST:
        return Ends(True, False)
    return Ends(name in BOTH, name in BOTH, set=BASE[name].kind is Kind.SET)
