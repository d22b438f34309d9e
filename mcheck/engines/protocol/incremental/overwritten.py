"""Which writes a new read cannot return, whichever others it may: those that have been overwritten before it.

Axioms of the form ``irreflexive ((... | fr | ...); r)`` say so: what a read returns does not put it before a write that
``r`` puts before the read. What it returns is left aside here; with that ``r`` holds all the more, as it grows with
what it is made of. Axioms of other forms are not asked, so there may be more such writes.
"""

from __future__ import annotations

from mcheck.cat.algebra.compiled_models import once_per_tape
from mcheck.cat.algebra.tape import Tape, union_operands


@once_per_tape
def overwriting_relations(tape: Tape) -> tuple[int, ...]:
    """The relations from the writes that a read cannot be before."""
    found = []
    for axiom in tape.axioms:
        node = tape.code[axiom.node]
        plain = axiom.role == "forbid" and axiom.test == "irreflexive" and axiom.monotone and not axiom.negated
        if plain and node.op == "seq" and any(_is_fr(tape, n) for n in union_operands(tape, node.a)):
            found.append(node.b)
    return tuple(found)


def _is_fr(tape: Tape, n: int) -> bool:
    """Whether a relation leads from reads to the writes that come after what they return."""
    i = tape.code[n]
    if i.op != "seq":
        return False
    back, order = tape.code[i.a], tape.code[i.b]
    return back.op == "inv" and tape.code[back.a].name == "rf" and order.op == "base" and order.name == "co"
