"""An acquire that may come before the release that it is meant to see: both are there, and nothing waits (8.8)."""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, site_of
from mcheck.answers.advice.scope_mismatch import acquires, releases
from mcheck.base.phrase import say
from mcheck.findings.fix import Fix, advise
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op


def suggest_check_of_acquire(g: ExecutionGraph) -> Fix | None:
    """To reach an access only after what a load acquired is the release of the other one, where the load may also
    return an earlier value. ``None`` if there are no such release and load.
    """
    for giver, taker in ((g.old, g.new), (g.new, g.old)):
        for load in _acquiring_loads(g, taker):
            release = _release_to(g, giver, load)
            if release is not None:
                first, second = site_of(load), site_of(taker.op)
                only = say("Let {} run only if {} has read what is released at {}", second, first, site_of(release))
                return advise("{}, by an await or a branch: {} may also read an earlier value", only, first)
    return None


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
