"""Writes that a new read cannot return because they have been overwritten before it.

Axioms of the form ``irreflexive ((... | fr | ...); r)`` say so: the write that a read returns is not overwritten by a
write that ``r`` orders before the read. The read's own rf edge is left out here; with it ``r`` can only grow. Axioms of
other forms are not used, so there may be more such writes.
"""

from __future__ import annotations

from mcheck.cat.algebra.compiled_models import once_per_tape
from mcheck.cat.algebra.tape import Tape, union_operands


@once_per_tape
def overwriting_relations(tape: Tape) -> tuple[int, ...]:
    """Return the relations from writes to the reads that cannot precede them."""
    found = []
    for axiom in tape.checks:
        node = tape.code[axiom.node]
        plain = axiom.role == "forbid" and axiom.test == "irreflexive" and axiom.monotone and not axiom.negated
        if plain and node.op == "seq" and any(_is_fr(tape, n) for n in union_operands(tape, node.a)):
            found.append(node.b)
    return tuple(found)


def _is_fr(tape: Tape, n: int) -> bool:
    """Return whether a relation leads from reads to the writes that overwrite what they return."""
    i = tape.code[n]
    if i.op != "seq":
        return False
    back, order = tape.code[i.a], tape.code[i.b]
    return back.op == "inv" and tape.code[back.a].name == "rf" and order.op == "base" and order.name == "co"
