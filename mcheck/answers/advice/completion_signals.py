"""What signals an mbarrier when an asynchronous operation is complete, and the wait for another one of its ring."""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, site_of
from mcheck.answers.advice.repeated_phases import is_mbarrier_at
from mcheck.base.phrase import say
from mcheck.findings.fix import Fix, IdleWait, advise
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op


def signalling_operation(g: ExecutionGraph, access: GraphAccess) -> Op | None:
    """The operation that signals an mbarrier when an access is complete: its own or, of a ``cp.async``, the next
    ``cp.async.mbarrier.arrive`` of its thread, if no group takes it up before (9.7.13.15.17).
    """
    if getattr(access.op, "mbar", None) is not None:
        return access.op
    if not isinstance(access.op, ops.CpAsync):
        return None
    behind = g.agents[access.agent].code[g.steps[access.position].pc + 1 :]
    taken = (op for op in behind if isinstance(op, ops.CpAsyncArrive | ops.Commit | ops.WaitGroup))
    first = next((op for op in taken if isinstance(op, ops.CpAsyncArrive) or op.family == "cp.async"), None)
    return first if isinstance(first, ops.CpAsyncArrive) else None


def suggest_next_stage(g: ExecutionGraph, access: GraphAccess, signal: Op) -> Fix | None:
    """To go on to the next stage of the ring, if the last wait of a thread before its access is for a phase of another
    mbarrier in it, for which the thread has waited already.
    """
    idle = explain_wait_for_other_stage(g, access, signal)
    if idle is None:
        return None
    waits = [op for op in _waits_before(g, access) if isinstance(op.parity, Const)]
    same = [op for op in waits if op.address == waits[-1].address]
    if len(same) < 2 or same[-1].parity != same[-2].parity or not isinstance(same[-1].address, Const):
        return None
    bar = g.thing_at(same[-1].address.value)
    text = "Go on to the next stage before {}: it waits for the phase of {} that it has waited for already"
    return advise(text, idle.at, bar).noted(idle)


def _waits_before(g: ExecutionGraph, access: GraphAccess) -> list[ops.MbarrierWait]:
    """The waits for mbarriers that a thread has executed before its access."""
    done = (ops.performed_operation(e.op) for e in g.own_steps(access.agent) if e.step < access.step)
    return [op for op in done if isinstance(op, ops.MbarrierWait)]


def explain_wait_for_other_stage(g: ExecutionGraph, access: GraphAccess, signal: Op) -> IdleWait | None:
    """That the last wait of a thread before its access is for another mbarrier of the ring than the copy signals."""
    bar = ops.mbarrier_of(signal)
    waits = _waits_before(g, access)
    if not waits or not isinstance(bar, Const) or not isinstance(asked := waits[-1].address, Const):
        return None
    meant, other = g.thing_at(bar.value), g.thing_at(asked.value)
    if is_mbarrier_at(asked, bar.value) or meant.ring != other.ring:
        return None
    return IdleWait(site_of(waits[-1]), say("is for {}, and {} signals {}", other, site_of(signal), meant))
