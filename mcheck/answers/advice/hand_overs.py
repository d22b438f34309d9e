"""A hand-over that is missing behind a wait: each thread, or one for others, waits for a copy before it reads what that
writes, and the access that races with the copy does not come after this wait.

No wait is missing then, nor is the one that is there too weak: what the wait has made visible to its own thread
(8.9.1.1) is not handed to the others before they read. So the question is whether a thread that may wait for the copy
has waited for it where it comes to the statement of the racing access itself, in the same round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcheck.answers.advice.async_groups import count_closed_groups, family_of
from mcheck.answers.advice.completion_signals import signalling_operation
from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, site_of
from mcheck.answers.advice.repeated_phases import is_mbarrier_at
from mcheck.answers.advice.unused_barriers import unused_barrier
from mcheck.base.errors import Span
from mcheck.base.phrase import A_BARRIER, Code
from mcheck.base.records import dataclass
from mcheck.findings.fix import Fix, HandOver, IdleWait, Instead
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op, WaitGroup

WARP = 32


@dataclass(frozen=True, slots=True)
class WaitBeforeRead:
    """A wait for a copy, at ``pc`` in the code of ``agent``, before that comes to the other access's statement."""

    op: Op
    agent: int
    pc: int


def find_wait_before_read(g: ExecutionGraph, copy: GraphAccess, access: GraphAccess) -> WaitBeforeRead | None:
    """The wait for a copy behind which a hand-over to the other ``access`` is missing; ``None`` if there is none, or
    the code that it is looked for in has branches.

    A group belongs to the issuing thread (9.7.9.25.3), whose own wait counts, or that of the access's thread for what
    this has copied in the same round: the code is that of both. A phase of an mbarrier may be awaited by any thread of
    the CTA.
    """
    number = g.executions(access.agent, access.op, access.step) + 1
    signal = signalling_operation(g, copy)
    if signal is None:
        agents = dict.fromkeys((copy.agent, access.agent)) if g.share_cta(copy.agent, access.agent) else ()
        return next((w for agent in agents for w in _group_waits(g, agent, copy, access, number)), None)
    bar = ops.mbarrier_of(signal)
    if not isinstance(bar, Const):
        return None
    others = [a.index for a in g.agents if a.index != access.agent and g.share_cta(a.index, access.agent)]
    phase = _phase_of(g, copy)
    return next((w for agent in others for w in _phase_waits(g, agent, bar.value, phase, access, number)), None)


def hand_over(g: ExecutionGraph, waited: WaitBeforeRead, access: GraphAccess, instead: Instead | None) -> Fix:
    """The fix that hands over to an access what a wait has completed, and what the wait does not do."""
    second, after = site_of(access.op), site_of(waited.op)
    mine = [a for a in g.agents if g.share_cta(a.index, access.agent)]
    everyone = all(any(site_of(op) == after for op in code) for code in {id(a.code): a.code for a in mine}.values())
    barrier = _barrier_of(g, access)
    step = HandOver(second, after, g.name(waited.agent), barrier=barrier, everyone=everyone and barrier == A_BARRIER)
    does = "makes the copies visible to its own thread, and no barrier hands them over"
    return Fix((step,), instead=instead).noted(IdleWait(after, (does,)))


# --- the wait -----------------------------------------------------------------------------------------------------


def _group_waits(
    g: ExecutionGraph, agent: int, copy: GraphAccess, access: GraphAccess, number: int
) -> Iterator[WaitBeforeRead]:
    """The waits for groups between the ``agent``'s copy of the same round and its own access for the ``number``-th time
    that complete this copy, and no barrier behind them hands that over.
    """
    code, family = g.agents[agent].code, family_of(copy.op)
    way = _way(code, copy.op.span, g.executions(copy.agent, copy.op, copy.step) + 1, access.op.span, number)
    for k in way:
        wait = code[k]
        if not isinstance(wait, WaitGroup) or wait.family != family or wait.guard is not None:
            continue
        later = count_closed_groups(code[way.start : k], copy.op)
        enough = isinstance(wait.pending, Const) and later is not None and later >= wait.pending.value
        if enough and not (wait.read and copy.is_modification) and not _has_barrier(code[k : way.stop]):
            yield WaitBeforeRead(wait, agent, k)


def _phase_waits(
    g: ExecutionGraph, agent: int, bar: int, phase: int, access: GraphAccess, number: int
) -> Iterator[WaitBeforeRead]:
    """The wait of an agent for a phase before its own access for the ``number``-th time: it waits for each phase of the
    mbarrier once.
    """
    code = g.agents[agent].code
    way = _way(code, None, 0, access.op.span, number)
    waits = [k for k in way if (w := _wait_of(code[k])) is not None and is_mbarrier_at(w.address, bar)]
    if len(waits) != phase + 1 or _has_barrier(code[waits[-1] : way.stop]):
        return
    last = _wait_of(code[waits[-1]])
    if last is not None and last.parity in (None, Const(phase % 2)):
        yield WaitBeforeRead(code[waits[-1]], agent, waits[-1])


def _phase_of(g: ExecutionGraph, copy: GraphAccess) -> int:
    """The phase that a copy completes; of one whose signal has not arrived, the number of those before it by the same
    statement for the same mbarrier.
    """
    if copy.signals:
        return max(s.phase for s in copy.signals)
    own = (e for e in g.own_steps(copy.agent) if e.step < copy.step and e.op.span == copy.op.span)
    return sum(ops.mbarrier_of(e.op) == ops.mbarrier_of(copy.op) for e in own)


def _wait_of(op: Op) -> ops.MbarrierWait | None:
    wait = ops.performed_operation(op)
    return wait if isinstance(wait, ops.MbarrierWait) else None


def _way(code: Sequence[Op], first: Span | None, count: int, last: Span | None, number: int) -> range:
    """The positions from behind a statement's execution ``count`` to the execution ``number`` of another one; from the
    start for the zeroth one. Empty if there are not so many, or branches decide.
    """
    starts = [k for k, op in enumerate(code) if count and op.span == first]
    ends = [k for k, op in enumerate(code) if op.span == last]
    if len(starts) < count or len(ends) < number:
        return range(0)
    start, end = starts[count - 1] + 1 if count else 0, ends[number - 1]
    return range(0) if any(isinstance(op, ops.Branch) for op in code[:end]) else range(start, end)


def _has_barrier(code: Sequence[Op]) -> bool:
    return any(isinstance(op, ops.Barrier | ops.ClusterBarrier) for op in code)


# --- the barrier --------------------------------------------------------------------------------------------------


def _barrier_of(g: ExecutionGraph, access: GraphAccess) -> Code:
    """A barrier of the threads that come to the statement of an access: of a part of the CTA a named one."""
    mine = [a for a in g.agents if g.share_cta(a.index, access.agent)]
    warps = {g.place(a.index).own_warp for a in mine}
    met = {g.place(a.index).own_warp for a in mine if any(op.span == access.op.span for op in a.code)}
    used = {op.barrier for a in mine for op in a.code if isinstance(op, ops.Barrier)}
    free = unused_barrier(used)
    return A_BARRIER if met == warps or free is None else Code(f"bar.sync {free}, {WARP * len(met)}")
