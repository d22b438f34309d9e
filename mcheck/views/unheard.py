"""Checks of a model that an execution which grows cannot hear of: they are refused by name."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.algebra.tape import Tape
from mcheck.algebra.tapes import once_per_tape
from mcheck.cat.names import BASE
from mcheck.views.compile import late_nodes
from mcheck.views.kinds import DYNAMIC, SET, Shown, is_set, kinds_of
from mcheck.views.pairs import APART, INITIAL, READ, SAME, Pair, bounds_of
from mcheck.views.state import checks_of

UNHEARD: tuple[tuple[str, Callable[[Pair], bool]], ...] = (
    ("initial writes", lambda p: INITIAL in p),
    ("two reads", lambda p: p[:2] == (READ, READ) and p[2] != SAME),
    ("accesses without a common byte", lambda p: p[2] == APART),
)
"""What the engine does not hold against each other."""

ALL = Shown(frozenset(filter(is_set, BASE)), DYNAMIC - {"regardless"}, frozenset())
"""All that executions which grow ever show."""


@once_per_tape
def unheard(tape: Tape) -> str | None:
    """Why some check of the model would go unheard."""
    bounds = bounds_of(tape)
    kinds = kinds_of(tape, ALL)
    late = late_nodes(tape, kinds)
    for check in checks_of(tape):
        name = f"the {'flag' if check.role == 'flag' else 'axiom'} {check.name} of the model"
        if check.node in late and (check.role != "flag" or kinds[check.node] != SET):  # sets are looked at at the end
            return f"{name} asks what later events make of earlier ones"
        for what, is_unheard in UNHEARD if check.role == "flag" else ():
            if any(map(is_unheard, bounds[check.node].may)):
                return f"{name} may speak of {what}"
    return None
