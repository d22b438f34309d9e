"""Waits that an operation on tensor memory needs before another one accesses the same cells (PTX ISA 9.0 section
9.7.16.6).
"""

from __future__ import annotations

from mcheck.answers.advice.async_groups import WAITS_FOR_MOVES
from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import A_BARRIER, Code, Thing, say
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search.trials import IsFix
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.findings.fix import Advise, Await, Fix, Fixes, HandOver, Insert, Meet, Phase, Point, advise
from mcheck.ir import ops
from mcheck.ir.amendment import Insertion
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op

_COMMIT = Code("tcgen05.commit")


def suggest_wait(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Fixes:
    """Suggest the wait for the earlier one of two operations, before the later one.

    If the later step was ordered after an older store of the other thread, its operation is the earlier one, and that
    other thread has stored again too early.
    """
    if old.agent != new.agent and (freed := next((e for e in (old, new) if _frees(e.op)), None)) is not None:
        use = new if freed is old else old
        if isinstance(old.op, ops.TensorMove) and new.time[old.agent] >= old.step:
            return ()  # the barrier is there
        return (Fix((Meet(first=site_of(use.op), second=site_of(freed.op)),)),)
    if _observes_older_store(m, old, new) or _loads_before_all_writes(m, old, new):
        old, new = new, old
    match old.op:
        case ops.TensorMove():
            return _suggest_move_wait(m, old.op, old, new, is_fix)
        case ops.TensorCore(kind="mma" | "cp" | "shift"):
            return _suggest_commit_wait(m, old.op, old, new)
    return ()


def _frees(op: Op) -> bool:
    return isinstance(op, ops.TensorCore) and op.kind == "dealloc"


def _observes_older_store(m: Machine, old: TraceEntry, new: TraceEntry) -> bool:
    """Return whether a step knows of an older store of the other thread to tensor memory, and not of this one."""
    if old.agent == new.agent or not isinstance(old.op, ops.TensorMove) or not isinstance(new.op, ops.TensorCore):
        return False
    known = new.time[old.agent]
    mine = (e for e in m.trace if e.agent == old.agent and e.signal < 0 and isinstance(e.op, ops.TensorMove))
    stored = (e.step for e in mine if isinstance(e.op, ops.TensorMove) and e.op.family == "tcgen05.st")
    return known < old.step and any(step <= known for step in stored)


def _loads_before_all_writes(m: Machine, old: TraceEntry, new: TraceEntry) -> bool:
    """Return whether a load by another thread than that of a product comes before all that writes tensor memory: it is
    meant to see a product.
    """
    if old.agent == new.agent or not isinstance(old.op, ops.TensorMove) or old.op.family != "tcgen05.ld":
        return False
    if not isinstance(new.op, ops.TensorCore) or new.op.kind != "mma":
        return False
    before = (e for e in m.trace[: m.trace.index(old)] if e.signal < 0 and old.time[e.agent] >= e.step)
    return not any(_writes(e.op) for e in before)


def _writes(op: Op) -> bool:
    """Return whether an operation writes cells of tensor memory."""
    if isinstance(op, ops.TensorMove):
        return op.family == "tcgen05.st"
    return isinstance(op, ops.TensorCore) and op.kind in ("mma", "cp", "shift")


def _suggest_move_wait(m: Machine, op: ops.TensorMove, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Fixes:
    wait = ops.WaitGroup(family=op.family, pending=Const(0), commits=True, text=WAITS_FOR_MOVES[op.family])
    own = old.agent == new.agent
    for at in (
        (new.op, old.op) if own else (old.op,)
    ):  # right behind it, for other threads that the same statement lacks
        after = at is old.op
        assert at.span is not None
        insert = Insert(codes=(wait.text,), points=(Point(site_of(at), after=after),))
        if is_fix([Insertion(wait, after=after, span=at.span)]):
            return (Fix((insert,)),)
    if own:
        return ()
    there = any(e.agent == old.agent and e.step > old.step and isinstance(e.op, ops.WaitGroup) for e in m.trace)
    hand_over = HandOver(site_of(new.op), tensor=True)
    if there:
        return (Fix((Advise(say("After the wait for {}", site_of(old.op))), hand_over)),)
    return (Fix((insert, hand_over)),)


def _suggest_commit_wait(m: Machine, op: ops.TensorCore, old: TraceEntry, new: TraceEntry) -> Fixes:
    """Suggest a commit. Operations of one pipe are in order; for all others a commit signals completion."""
    code = m.agents[old.agent].code[old.pc + 1 :]
    commit = next((o for o in code if isinstance(o, ops.TensorCommit)), None)
    if isinstance(new.op, ops.TensorCore) and new.agent == old.agent and new.op.kind in ("mma", "cp", "shift"):
        return ()
    first, second = site_of(op), site_of(new.op)
    why = say("until then {} may still use these cells", first)
    if commit is None:
        wait = say("{} after {}, to an mbarrier, and wait for its phase before {}", _COMMIT, first, second)
        return (advise("Execute {}: {}", wait, why),)
    bar = m.thing_at(commit.address.value) if isinstance(commit.address, Const) else Thing("the mbarrier")
    return (Fix((Await(signal=site_of(commit), before=second, phases=(Phase(bar),), commit=True),), why=why),)


def suggest_alloc_barrier(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Fixes:  # noqa: ARG001 - one signature
    """Suggest a barrier after a tcgen05.alloc that writes its address to shared memory."""
    if not isinstance(old.op, ops.TensorCore) or old.op.kind != "alloc":
        return ()
    first, second = site_of(old.op), site_of(new.op)
    read = say("{}, which reads the address that {} writes", second, Code("tcgen05.alloc"))
    return (advise("Put {} between {} and {}", A_BARRIER, first, read),)
