"""Bounds on the relations of a model: the kinds of pairs that they may hold in any execution, from the tape alone.

A growing execution has only some of the initial writes, and accesses without a common byte are not compared in it: a
check that speaks of those would be missed. Two reads are compared where a flag may speak of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from mcheck.base.records import dataclass
from mcheck.cat.algebra.tape import Instr, Tape
from mcheck.cat.ast import Kind
from mcheck.cat.names import BASE

INITIAL, WRITE, READ, OTHER = "initial write", "write", "read", "no access"
KINDS = (INITIAL, WRITE, READ, OTHER)
ACCESSES = (INITIAL, WRITE, READ)

SAME, COMMON, APART = "one event", "common bytes", "no common byte"
"""How two events stand to each other; where one of them is no access, all but one event is ``COMMON``."""

Pair = tuple[str, str, str]
"""The kinds of two events, and how their bytes overlap."""
Pairs = frozenset[Pair]


def _pairs(first: Iterable[str], second: Iterable[str], how: Iterable[str] = (SAME, COMMON, APART)) -> Pairs:
    return frozenset(
        (a, b, h)
        for a, b, h in product(first, second, how)
        if (a == b if h == SAME else h == COMMON or (a in ACCESSES and b in ACCESSES))
    )


EVERY = _pairs(KINDS, KINDS)
NONE: Pairs = frozenset()
OF_THREADS = KINDS[1:]


@dataclass(frozen=True, slots=True)
class Bound:
    """Bounds of a relation: ``may`` are the kinds of pairs that can be in it, ``must`` those that always are.

    A set is a subset of the identity.
    """

    may: Pairs
    must: Pairs = NONE


NOTHING, ANYTHING = Bound(NONE), Bound(EVERY)
SETS = {"IW": (INITIAL,), "W": (INITIAL, WRITE), "R": (READ,), "M": ACCESSES, "_": KINDS}
"""The sets of which the kind of an event decides whether it is a member."""
HERE = _pairs(KINDS, KINDS, (SAME,))
PLACES = _pairs(ACCESSES, ACCESSES, (SAME, COMMON))
BASES = {
    "id": Bound(HERE, HERE),
    "loc": Bound(PLACES, PLACES),
    "overlap": Bound(PLACES, PLACES),
    "vloc": Bound(PLACES & _pairs(OF_THREADS, OF_THREADS)),
    "complete-overlap": Bound(PLACES & _pairs(OF_THREADS, OF_THREADS)),
    "int": Bound(_pairs(OF_THREADS, OF_THREADS) | _pairs((INITIAL,), (INITIAL,)), HERE),
    "ext": Bound(EVERY - HERE - _pairs((INITIAL,), (INITIAL,))),
    "rf": Bound(_pairs((INITIAL, WRITE), (READ,), (COMMON,))),
    "co": Bound(_pairs((INITIAL, WRITE), (WRITE,), (COMMON,))),
    "rmw": Bound(_pairs((READ,), (WRITE,), (COMMON,))),
    "object-access": Bound(_pairs((OTHER,), (WRITE, READ))),
}
"""Any other relation may hold whatever two events of threads."""


def bounds_of(tape: Tape, absent: frozenset[str] = frozenset()) -> list[Bound]:
    """Return the bound of each node; ``absent`` are base relations that are empty."""
    known = [NOTHING] * len(tape.code)
    inside = {v for group in tape.groups for v, _, kind in group if kind == 0}
    for n, i in enumerate(tape.code):
        if n not in inside:
            known[n] = NOTHING if i.op == "base" and i.name in absent else _bound(i, known)
        if (group := _last_of(tape, n)) is not None:
            _grow(tape, group, known, absent)
    return known


def _last_of(tape: Tape, n: int) -> int | None:
    """Return the group of recursive definitions that ends with a node."""
    return next((g for g, group in enumerate(tape.groups) if group and group[-1][1] - 1 == n), None)


def _grow(tape: Tape, group: int, known: list[Bound], absent: frozenset[str]) -> None:
    """Compute recursive definitions from the empty relation; lower bounds are not tracked."""
    *variables, (start, end, _) = tape.groups[group]
    while True:
        before = [known[v] for v, _, _ in variables]
        for v, body, _ in variables:
            known[v] = Bound(known[v].may | known[body].may)
        if before == [known[v] for v, _, _ in variables]:
            return
        for n in range(start, end):
            i = tape.code[n]
            if i.op != "rec":
                known[n] = NOTHING if i.op == "base" and i.name in absent else _bound(i, known)


def _bound(i: Instr, known: list[Bound]) -> Bound:
    a = known[i.a] if i.a >= 0 else NOTHING
    b = known[i.b] if i.b >= 0 else NOTHING
    match i.op:
        case "base":
            return _base(i.name)
        case "or":
            return Bound(a.may | b.may, a.must | b.must)
        case "and":
            return Bound(a.may & b.may, a.must & b.must)
        case "sub":
            return Bound(a.may - b.must, a.must - b.may)
        case "seq":
            return Bound(_steps(a.may, b.may), _filtered(a, b))
        case "inv":
            return Bound(_turned(a.may), _turned(a.must))
        case "plus":
            return Bound(_closed(a.may), a.must)
        case "star":
            return Bound(_closed(a.may) | HERE, a.must | HERE)
        case "opt":
            return Bound(a.may | HERE, a.must | HERE)
        case "prod":
            return Bound(_product(a.may, b.may), _product(a.must, b.must))
        case "dom":
            return Bound(frozenset((x, x, SAME) for x, _, _ in a.may))
        case "rng":
            return Bound(frozenset((x, x, SAME) for _, x, _ in a.may))
        case "comp":
            return Bound(EVERY - a.must, EVERY - a.may)
        case "compset":
            return Bound(HERE - a.must, HERE - a.may)
        case "empty":
            return NOTHING
    return ANYTHING


def _base(name: str) -> Bound:
    if name in SETS:
        members = _pairs(SETS[name], SETS[name], (SAME,))
        return Bound(members, members)
    if name in BASE and BASE[name].kind is Kind.SET:
        return Bound(_pairs(OF_THREADS, OF_THREADS, (SAME,)))
    return BASES.get(name, Bound(_pairs(OF_THREADS, OF_THREADS)))


def _steps(first: Pairs, second: Pairs) -> Pairs:
    """Return the pairs that a composition may hold."""
    found: set[Pair] = set()
    behind: dict[str, list[Pair]] = {}
    for pair in second:
        behind.setdefault(pair[0], []).append(pair)
    for pair in first:
        for then in behind.get(pair[1], ()):
            if pair[2] == SAME:
                found.add(then)
            elif then[2] == SAME:
                found.add(pair)
            else:
                found |= _pairs((pair[0],), (then[1],))
    return frozenset(found)


def _filtered(a: Bound, b: Bound) -> Pairs:
    """Return the pairs that a composition must hold, one operand being a set."""
    if a.may <= HERE:
        return frozenset(p for p in b.must if (p[0], p[0], SAME) in a.must)
    if b.may <= HERE:
        return frozenset(p for p in a.must if (p[1], p[1], SAME) in b.must)
    return NONE


def _closed(may: Pairs) -> Pairs:
    while (more := may | _steps(may, may)) != may:
        may = more
    return may


def _turned(pairs: Pairs) -> Pairs:
    return frozenset((b, a, how) for a, b, how in pairs)


def _product(first: Pairs, second: Pairs) -> Pairs:
    return _pairs({x for x, _, _ in first}, {x for x, _, _ in second})
