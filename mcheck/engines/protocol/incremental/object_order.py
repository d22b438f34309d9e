"""Events that the axioms order before a new one on an mbarrier that they share.

The operations on one mbarrier are in an order (``phase-order``) that an execution chooses within the axioms. Two forms
of axioms constrain the choice: a cycle of the order itself (``acyclic (... | phase-order | ...)``), and one of the
order and another relation (``irreflexive ((... | phase-order | ...)+; r)``). What neither orders before the new event
might come after it in another execution. Axioms of other forms are not used, so the result may be less than what they
imply. A test of an mbarrier is before later operations by ``phase-fr`` alone: axioms without that relation say nothing
of it.
"""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.cat.algebra.compiled_models import once_per_tape
from mcheck.cat.algebra.tape import Tape, dependencies, union_operands
from mcheck.cat.tags import Tag

ORDER = "phase-order"
WAIT_ORDER = "phase-fr"


@dataclass(frozen=True, slots=True)
class Rule:
    """An axiom about the order: no ``way``, a closure that contains the order, may return along one of ``back``.

    ``back`` does not contain the order. ``unless``: a set whose members' edges are not part of the closure. ``tests``:
    the edges that leave tests of an mbarrier are part of it.
    """

    way: int
    back: tuple[int, ...]
    unless: str | None
    tests: bool


@once_per_tape
def find_order_rules(tape: Tape) -> tuple[Rule, ...]:
    """Return what the axioms of a model require of the order."""
    found: list[Rule] = []
    for axiom in tape.checks:
        node = tape.code[axiom.node]
        if axiom.role == "flag" or axiom.negated or axiom.test != "irreflexive" or node.op not in ("plus", "seq"):
            continue
        way = axiom.node if node.op == "plus" else node.a
        members = list(union_operands(tape, tape.code[way].a)) if tape.code[way].op == "plus" else []
        unless = [source for n in members if (source := _unless(tape, n)) is not None]
        if unless:
            back = members if node.op == "plus" else [node.b]
            free = tuple(n for n in back if ORDER not in dependencies(tape, n))
            found.append(Rule(way, free, min(unless) or None, WAIT_ORDER in dependencies(tape, way)))
    return tuple(found)


def _unless(tape: Tape, n: int) -> str | None:
    """Return "" if a relation is the order, or the name of the set whose outgoing edges it leaves out."""
    i = tape.code[n]
    if i.op == "base":
        return "" if i.name == ORDER else None
    if i.op == "sub" and tape.code[i.a].name == ORDER and tape.code[i.b].op == "prod":
        source = tape.code[tape.code[i.b].a]
        return source.name if source.op == "base" else None
    return None


def needed_nodes(tape: Tape) -> tuple[int, ...]:
    """Return the nodes that ``find_unordered`` needs of a new event."""
    return tuple(n for rule in find_order_rules(tape) for n in rule.back)


def find_unordered(
    tape: Tape, told: dict[int, tuple[int, int]], kept: dict[int, list[int]], home: dict[int, int],
    sets: frozenset[str], events: int, new: int,
) -> int:  # fmt: skip
    """Return the ``events`` that no axiom orders before the ``new`` one.

    ``told`` is the output of the nodes of ``needed_nodes`` for it, ``kept`` the stored columns of closures, ``sets``
    those that contain it. That they precede it in the current execution is no reason.
    """
    backs: list[tuple[Rule, int]] = []
    for rule in find_order_rules(tape):
        if rule.unless not in sets and (rule.tests or Tag.WAIT not in sets):
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
