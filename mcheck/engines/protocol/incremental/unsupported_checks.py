"""Checks of a model that an execution which grows cannot hear of: they are refused by name, unless the program has
nothing that they might speak of.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.cat.algebra.compiled_models import once_per_tape
from mcheck.cat.algebra.tape import Tape
from mcheck.cat.names import BASE
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.incremental.compilation import late_nodes
from mcheck.engines.protocol.incremental.kinds import DYNAMIC, SET, Shown, is_set, kinds_of
from mcheck.engines.protocol.incremental.pairs import APART, COMMON, INITIAL, READ, Pair, bounds_of
from mcheck.engines.protocol.incremental.state import checks_of
from mcheck.ir import ops
from mcheck.ir.program import Program

UNHEARD: tuple[tuple[str, Callable[[Pair], bool]], ...] = (
    ("initial writes", lambda p: INITIAL in p),
    ("accesses without a common byte", lambda p: p[2] == APART),
)
"""What the engine does not hold against each other."""

ALL = Shown(frozenset(filter(is_set, BASE)), DYNAMIC, frozenset())
"""All that executions which grow ever show."""

AT_ONCE = (
    ops.Alu | ops.Label | ops.Branch | ops.Exit | ops.Load | ops.Store | ops.Atomic | ops.Fence | ops.Barrier
    | ops.ClusterBarrier | ops.WarpSync | ops.MbarrierInit | ops.MbarrierInval | ops.MbarrierArrive | ops.MbarrierWait
    | ops.MbarrierPending
)  # fmt: skip
"""Operations that are over when their thread goes on, and none of the asynchronous proxy."""
LATER = frozenset(
    (Tag.ASYNC, Tag.TMAP, Tag.PIPE, Tag.CPASYNC, Tag.WGMMA, Tag.COMMIT, Tag.GROUPWAIT, "issue", "complete")
)
"""What only other operations bring."""


def absent_from(program: Program) -> frozenset[str]:
    """Base relations in which no event of a program can be, as far as its operations say at once."""
    return LATER if all(isinstance(ops.performed_operation(op), AT_ONCE) for op in program.operations) else frozenset()


def find_unsupported_check(tape: Tape, absent: frozenset[str] = frozenset()) -> str | None:
    """Why some check of the model would go unheard in a program that has nothing in some base relations."""
    return _unheard(tape) and _why(tape, absent)


@once_per_tape
def flags_two_reads(tape: Tape) -> bool:
    """Whether some flag of the model may speak of two reads with common bytes."""
    bounds = bounds_of(tape)
    return any(check.role == "flag" and (READ, READ, COMMON) in bounds[check.node].may for check in checks_of(tape))


@once_per_tape
def _unheard(tape: Tape) -> str | None:
    return _why(tape, frozenset())


def _why(tape: Tape, absent: frozenset[str]) -> str | None:
    bounds = bounds_of(tape, absent)
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
