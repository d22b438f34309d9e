"""Checks of a model that incremental evaluation would miss: refused by name, unless the program cannot trigger them."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.cat.algebra.compiled_models import once_per_tape
from mcheck.cat.algebra.tape import Tape
from mcheck.cat.names import BASE
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.incremental.compilation import find_deferred_nodes
from mcheck.engines.protocol.incremental.kinds import DYNAMIC, SET, Shown, is_set, kinds_of
from mcheck.engines.protocol.incremental.pairs import APART, COMMON, INITIAL, READ, Pair, bounds_of
from mcheck.engines.protocol.incremental.state import checks_of
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

UNSUPPORTED_PAIRS: tuple[tuple[str, Callable[[Pair], bool]], ...] = (
    ("initial writes", lambda p: INITIAL in p),
    ("accesses without a common byte", lambda p: p[2] == APART),
)
"""Pairs of events that the engine does not compare."""

ALL = Shown(frozenset(filter(is_set, BASE)), DYNAMIC, frozenset())
"""Everything that growing executions ever show."""

ASYNC_TAGS = frozenset(
    (
        Tag.ASYNC,
        Tag.TMAP,
        Tag.PIPE,
        Tag.CPASYNC,
        Tag.WGMMA,
        Tag.COMMIT,
        Tag.GROUPWAIT,
        Tag.PROXYWAIT,
        "issue",
        "complete",
    )
)
"""Tags that only asynchronous operations have, and what orders or completes them."""


def find_absent_relations(program: Program) -> frozenset[str]:
    """Return base relations that are empty for a program, as far as its kinds of operations show."""
    return ASYNC_TAGS if all(map(is_synchronous, program.operations)) else frozenset()


def is_synchronous(op: Op) -> bool:
    """Return whether an operation is known to be complete when its thread continues, and to have no ``ASYNC_TAGS``."""
    op = ops.performed_operation(op)
    facets = op.facets
    if facets.computes or facets.synchronises or (facets.mbarrier is not None and not facets.asynchronous):
        return True
    return isinstance(op, ops.Branch | ops.Exit | ops.ScalarAccess | ops.Fence | ops.MbarrierPending)


def find_unsupported_check(tape: Tape, absent: frozenset[str] = frozenset()) -> str | None:
    """Return why some check of the model would be missed in a program with some empty base relations."""
    return _find_unsupported(tape) and _explain_unsupported(tape, absent)


@once_per_tape
def flags_two_reads(tape: Tape) -> bool:
    """Return whether some flag of the model may relate two reads with common bytes."""
    bounds = bounds_of(tape)
    return any(check.role == "flag" and (READ, READ, COMMON) in bounds[check.node].may for check in checks_of(tape))


@once_per_tape
def _find_unsupported(tape: Tape) -> str | None:
    return _explain_unsupported(tape, frozenset())


def _explain_unsupported(tape: Tape, absent: frozenset[str]) -> str | None:
    bounds = bounds_of(tape, absent)
    kinds = kinds_of(tape, ALL)
    late = find_deferred_nodes(tape, kinds)
    for check in checks_of(tape):
        name = f"the {'flag' if check.role == 'flag' else 'axiom'} {check.name} of the model"
        if check.node in late and (check.role != "flag" or kinds[check.node] != SET):  # sets are looked at at the end
            return f"{name} depends on later events"
        for what, is_unheard in UNSUPPORTED_PAIRS if check.role == "flag" else ():
            if any(map(is_unheard, bounds[check.node].may)):
                return f"{name} may relate {what}"
    return None
