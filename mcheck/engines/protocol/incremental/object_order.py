"""Which events have to come before a new one on the objects that they share.

The operations on one mbarrier are in an order (``phase-order``) that an execution chooses, as far as the axioms let it.
Two forms of axioms say what the choice has to keep to: a circle of the order itself (``acyclic (... | phase-order |
...)``), and one of the order and of another relation (``irreflexive ((... | phase-order | ...)+; r)``). What neither
puts before the new event might come after it, in another execution; axioms of other forms are not asked, so it may be
less than it seems. A look at an mbarrier is before what comes behind it by ``phase-fr`` alone: axioms without that
relation say nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcheck.cat.algebra.compiled_models import once_per_tape
from mcheck.cat.algebra.tape import Tape, dependencies, union_operands
from mcheck.cat.tags import Tag

ORDER = "phase-order"
OF_LOOKS = "phase-fr"


@dataclass(frozen=True, slots=True)
class Rule:
    """An axiom about the order: no ``way``, a closure that the order is part of, may lead back along one of ``back``,
    which the order is no part of. ``unless``: a set whose members' edges are no part of the way. ``looks``: whether the
    edges that leave looks are part of it.
    """

    way: int
    back: tuple[int, ...]
    unless: str | None
    looks: bool


@once_per_tape
def rules_of(tape: Tape) -> tuple[Rule, ...]:
    """What the axioms of a model say of the order."""
    found: list[Rule] = []
    for axiom in tape.axioms:
        node = tape.code[axiom.node]
        if axiom.role == "flag" or axiom.negated or axiom.test != "irreflexive" or node.op not in ("plus", "seq"):
            continue
        way = axiom.node if node.op == "plus" else node.a
        members = list(union_operands(tape, tape.code[way].a)) if tape.code[way].op == "plus" else []
        unless = [source for n in members if (source := _unless(tape, n)) is not None]
        if unless:
            back = members if node.op == "plus" else [node.b]
            free = tuple(n for n in back if ORDER not in dependencies(tape, n))
            found.append(Rule(way, free, min(unless) or None, OF_LOOKS in dependencies(tape, way)))
    return tuple(found)


def _unless(tape: Tape, n: int) -> str | None:
    """Whether a relation is the order (""), or the order but for the edges that leave a set, which is named."""
    i = tape.code[n]
    if i.op == "base":
        return "" if i.name == ORDER else None
    if i.op == "sub" and tape.code[i.a].name == ORDER and tape.code[i.b].op == "prod":
        source = tape.code[tape.code[i.b].a]
        return source.name if source.op == "base" else None
    return None


def needed_nodes(tape: Tape) -> tuple[int, ...]:
    """The nodes that ``find_unordered`` needs of a new event."""
    return tuple(n for rule in rules_of(tape) for n in rule.back)


def find_unordered(
    tape: Tape, told: dict[int, tuple[int, int]], kept: dict[int, list[int]], home: dict[int, int],
    sets: frozenset[str], events: int, new: int,
) -> int:  # fmt: skip
    """Those of some ``events`` that no axiom puts before the ``new`` one, a bit: ``told`` is what the nodes of
    ``needed_nodes`` have of it, ``kept`` the columns of closures, ``sets`` those that it is in. That it is behind them
    now is no reason.
    """
    backs: list[tuple[Rule, int]] = []
    for rule in rules_of(tape):
        if rule.unless not in sets and (rule.looks or Tag.WAIT not in sets):
            back = 0
            for n in rule.back:
                back |= told.get(n, (0, 0))[0]
            back ^= back & new  # the complement of a long set takes longer
            backs.append((rule, back))
            events ^= events & back
    for rule, back in backs if events else ():
        column = kept.get(home.get(rule.way, rule.way), [])
        while back and events and column:  # what is in the column of a member need not be looked up
            k = back.bit_length() - 1
            events ^= events & column[k]
            back ^= back & (column[k] | 1 << k)
    return events
