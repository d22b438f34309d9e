"""The last operation of a phase, as far as stale waits depend on it.

The operations of one phase commute, with one exception: the one that completes the phase follows every wait that finds
the phase open (``phase-fr``; PTX ISA 9.0 section 9.7.13.15). A thread whose own arrival came last finds the phase
complete, and so does one that knows of the last operation by an acquire. Had another operation come last, of which the
thread knows by relaxed means alone or by an exit, which orders no memory (9.7.13.1), it might find the phase open: that
order is run, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations import mbarrier_reordering
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import SyncOperation
from mcheck.engines.protocol.state.vector_clocks import Vector

COMPLETING_KINDS = frozenset(("arrive", "complete"))
"""The operations that test for completion (9.7.13.15.6): expect-tx does not, nor does an arrival with .noComplete."""

Follows = Callable[[SyncOperation, SyncOperation], bool]


def may_come_last(phase: Sequence[SyncOperation], follows: Follows) -> list[SyncOperation]:
    """The operations of a phase, in order, that could have completed it instead of the last one, if only time orders
    others after them.
    """
    by_axiom = mbarrier_reordering.follows_by_axiom(follows)
    return [
        d
        for d in phase[:-1]
        if d.kind in COMPLETING_KINDS and any(d.effect) and not any(by_axiom(d, x) for x in phase if x is not d)
    ]


def may_precede_some(phase: Sequence[SyncOperation], time: Vector) -> bool:
    """Whether a thread with this vector clock could also precede some of the operations."""
    return any(not d.is_before(time) for d in phase)


def note_other_completions(
    m: Machine, agent: Agent, phase: Sequence[SyncOperation], free: Sequence[SyncOperation], follows: Follows
) -> None:
    """Note executions in which an operation that is ``free`` to follow a wait of the agent comes last. Where no order
    of the steps has one last, the model still may.
    """
    last = [d for d in free if not any(follows(d, x) for x in phase if x is not d)]
    for d in last:
        if d.agent == agent.index and d.signal < 0:  # by another lane
            raise Split([agent.threads[:1], agent.threads[1:]])
        m.note_postponement(d.position, tuple(x.position for x in phase if x is not d), now=False)
        m.agents_to_split.update(k for k in (d.agent, agent.index) if not m.agents[k].is_single_thread)
    if free and not last:
        follower = next(x for x in phase if x is not free[0] and follows(free[0], x))
        mbarrier_reordering.note_reordering(m, free[0].event, follower.event)
