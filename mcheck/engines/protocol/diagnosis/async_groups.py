"""Groups of asynchronous operations in an execution: the wait that completes one, and whether it was executed
(9.7.9.25).
"""

from __future__ import annotations

from mcheck.answers.async_waits import count_closed_groups, family_of, wait_for_completion
from mcheck.engines.protocol.diagnosis.source_lines import entry_at_step, line_of
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Commit, Op, WaitGroup


def is_modification(old: Record) -> bool:
    """Return whether an access is to what its operation modifies, which ``.read`` does not wait for.

    A reduction also reads that.
    """
    op = old.event.op
    reduces = isinstance(op, ops.BulkCopy | ops.TensorCopy) and op.reduce is not None
    return old.write or (reduces and "global" in old.spaces)


def count_later_groups(m: Machine, old: Record, until: int) -> int | None:
    """Return how many groups were committed after an operation's own before a step, ``None`` if it was open."""
    behind = (e.op for e in m.trace[old.position : until] if e.agent == old.agent and e.signal < 0)
    return count_closed_groups(behind, old.event.op)


def wait_of_group(m: Machine, old: Record, until: int) -> tuple[str, int | None]:
    """Return the wait for an operation of a group before a step, and how many later groups it leaves pending."""
    later = count_later_groups(m, old, until)
    return wait_for_completion(old.event.op, write=is_modification(old), later=later) or "", later


def find_group_wait(m: Machine, issuer: Agent, old: Record) -> Op | None:
    """Return the wait of the issuing thread that completes an operation of a group, even if it is still to come."""
    done = entry_at_step(m, issuer, next((step for agent, step in old.waits if agent == issuer.index), 0))
    if done is not None:
        return done.op
    family = family_of(old.event.op)
    closed = isinstance(old.event.op, ops.Wgmma)
    for op in issuer.code[m.trace[old.position].pc + 1 :]:
        if isinstance(op, ops.Branch):
            break
        closed = closed or (isinstance(op, Commit) and op.family == family and op.guard is None)
        if not isinstance(op, WaitGroup) or op.family != family or op.guard is not None:
            continue
        if (closed or op.commits) and op.pending == Const(0) and not (op.read and is_modification(old)):
            return op
    return None


def find_wait_before_own_access(m: Machine, issuer: Agent, old: Record, op: Op, number: int, over: int) -> Op | None:
    """Return the wait for a group that the issuing thread executes before it executes ``op`` for the ``number``-th
    time itself: where another thread does so too early, no wait is missing, but what hands the bytes over. ``None`` if
    there is none, or the code has branches, or no group is committed between the release at the step ``over`` of the
    trace and the wait: then the wait has only to come before that release.
    """
    start = m.trace[old.position].pc + 1
    own = [k for k, other in enumerate(issuer.code) if other.span == op.span]
    if len(own) < number or any(isinstance(other, ops.Branch) for other in issuer.code[: own[number - 1]]):
        return None
    family = family_of(old.event.op)
    for k in range(start, own[number - 1]):
        wait = issuer.code[k]
        if not isinstance(wait, WaitGroup) or wait.family != family or wait.guard is not None:
            continue
        later = count_closed_groups(issuer.code[start:k], old.event.op)
        behind = issuer.code[m.trace[over].pc + 1 : k]
        if not any(isinstance(other, Commit) and other.family == family for other in behind):
            continue
        enough = isinstance(wait.pending, Const) and later is not None and later >= wait.pending.value
        if enough and not (wait.read and is_modification(old)):
            return wait
    return None


def explain_late_wait(m: Machine, issuer: Agent, old: Record, over: TraceEntry) -> str:
    """Explain that the issuing thread's next wait for the group comes after it has released the bytes."""
    family = family_of(old.event.op)
    for k, op in enumerate(issuer.code[m.trace[old.position].pc + 1 :], m.trace[old.position].pc + 1):
        if isinstance(op, ops.Branch):
            break
        if isinstance(op, WaitGroup) and op.family == family:
            return f"The wait at line {line_of(op)} comes after that." if k > over.pc else ""
    return ""


def is_committed(m: Machine, old: Record) -> bool:
    """Return whether the issuing thread committed a group after the operation."""
    family = family_of(old.event.op)
    behind = (e.op for e in m.trace[old.position :] if e.agent == old.agent)
    return any(isinstance(op, Commit) and op.family == family for op in behind)


def has_waited(m: Machine, issuer: Agent, old: Record, position: int) -> bool:
    """Return whether the issuing thread had waited for an operation of a group before a step of the trace."""
    return any(agent == issuer.index and step < m.trace[position].step for agent, step in old.waits)
