"""Fixes for the lifetime of an mbarrier object: what orders its init before its uses, and repeated inits."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.answers.advice.graph import line_of, site_of
from mcheck.base.phrase import Code, say
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Mbarrier
from mcheck.findings.fix import Fix, Fixes, Note, Publish, advise
from mcheck.ir import ops
from mcheck.ir.ops import Op


def suggest_publication(m: Machine, agent: Agent, bar: Mbarrier, op: Op) -> Fixes:
    """What orders the initialisation of an mbarrier before an operation of another thread."""
    began = bar.initialisation
    if began is None:
        return ()
    owner = m.agents[began.agent]
    init, use = began.event.op, site_of(op)
    if owner.placement[2] == agent.placement[2]:
        return (Fix((Publish(site_of(init), use),)),)
    fences = [(a, fence) for a in m.agents for fence in a.code if _of_inits(fence)]
    there = next((fence for a, fence in fences if a is owner and line_of(fence) > line_of(init)), None)
    if there is not None:
        return (Fix((Publish(site_of(there), use, cluster=True),)),)
    lacks_barrier = not (_meets(owner.code, init, after=True) and _meets(agent.code, op, after=False))
    last = site_of(_last_init(owner.code, init))
    publish = Fix((Publish(last, use, cluster=lacks_barrier, fence="fence.mbarrier_init.release.cluster"),))
    others = [
        Note(say("The one at {} is for the inits of its own thread, {}", site_of(f), m.name(a))) for a, f in fences
    ]
    return (publish.noted(*others[:1]),)


def _meets(code: Sequence[Op], op: Op, *, after: bool) -> bool:
    """Whether a thread comes to a cluster barrier after an operation, or before it."""
    at = next((k for k, other in enumerate(code) if other.span == op.span), 0)
    return any(isinstance(other, ops.ClusterBarrier) for other in (code[at:] if after else code[:at]))


def _last_init(code: Sequence[Op], init: Op) -> Op:
    """The last init of a thread before the next cluster barrier: a fence behind it covers all of them."""
    last = init
    for op in code[next((k for k, other in enumerate(code) if other.span == init.span), len(code)) :]:
        if isinstance(op, ops.ClusterBarrier):
            break
        last = op if isinstance(op, ops.MbarrierInit) else last
    return last


def _of_inits(op: Op) -> bool:
    return isinstance(op, ops.Fence) and op.restrict == "mbarrier_init"


def suggest_single_init(bar: Mbarrier, op: Op) -> Fixes:
    """The fix for an init of an object that exists."""
    again, invalidate = site_of(op), Code("mbarrier.inval")
    if bar.initialisation is None or bar.initialisation.event.op.span == op.span:
        return (advise("Let one thread execute {}, once, or {} before it is executed again", again, invalidate),)
    first = site_of(bar.initialisation.event.op)
    idle = say("when nothing on the object of {} is outstanding", first)
    return (advise("Execute {} before {}, {}", invalidate, again, idle),)
