"""An acquire that may come before the release that it is meant to see: both are there, and nothing waits (8.8)."""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, line_of
from mcheck.answers.advice.scope_mismatch import acquires, releases
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op


def suggest_check_of_acquire(g: ExecutionGraph) -> str:
    """To reach an access only after what a load acquired is the release of the other one, where the load may also
    return an earlier value. Empty if there are no such release and load.
    """
    for giver, taker in ((g.old, g.new), (g.new, g.old)):
        for load in _acquiring_loads(g, taker):
            release = _release_to(g, giver, load)
            if release is not None:
                first, second = line_of(load), line_of(taker.op)
                return (
                    f"Let line {second} run only if line {first} has read what is released at line {line_of(release)}, "
                    f"by an await or a branch: line {first} may also read an earlier value."
                )
    return ""


def _acquiring_loads(g: ExecutionGraph, access: GraphAccess) -> list[Op]:
    """The loads before an access, in its thread, that acquire and do not wait; the last one first."""
    behind = [e.op for e in g.own_steps(access.agent) if e.step < access.step]
    return [op for op in reversed(behind) if isinstance(op, ops.Load) and acquires(op)]


def _release_to(g: ExecutionGraph, access: GraphAccess, load: Op) -> Op | None:
    """The release store of an access's thread behind the access, to the place of a load."""
    place = getattr(load, "address", None)
    behind = g.agents[access.agent].code[g.steps[access.position].pc + 1 :]
    same = (op for op in behind if isinstance(op, ops.Store) and releases(op) and op.address == place)
    return next(same, None) if isinstance(place, Const) else None
