"""Diagnosis of incomplete synchronisation: what one thread knows of another, and which half is missing (8.8)."""

from __future__ import annotations

from mcheck.answers.scope_mismatch import RELEASES, acquires, narrowest_common_scope, releases
from mcheck.answers.step_text import text_of
from mcheck.engines.protocol.diagnosis.source_lines import entry_at_step, line_of
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Place
from mcheck.ir.scopes import WIDTH


def explain_known_order(m: Machine, issuer: Agent, owner: Agent, old: Record) -> str:
    """Explain how far ``issuer`` knows what ``owner`` did, and why that is too little for the access ``old``."""
    one, other = m.name(issuer), m.name(owner)
    last = entry_at_step(m, owner, issuer.time[owner.index])
    if last is None:
        return f"Nothing that {other} did is handed to {one}."
    where = f"line {line_of(last.op)} ({text_of(last.op)}, step {m.trace.index(last) + 1})"
    if last.step < old.step:
        return f"What {one} knows of {other} ends with {where}.{_explain_failed_test(m, owner, old)}"
    if last.step == old.step and owner.status == "done":
        return f"{one} comes after the end of {other} in time alone: an exit hands nothing over."
    return f"{one} comes after {where} of {other} in time alone: {_explain_missing_half(m, issuer, owner, old, last)}."


def _explain_failed_test(m: Machine, owner: Agent, old: Record) -> str:
    """Explain that the last wait of an agent before an access was a test, which does not block (9.7.13.15.16)."""
    behind = (e.op for e in reversed(m.trace[: old.position]) if e.agent == owner.index and e.signal < 0)
    wait = next((op for op in behind if isinstance(ops.performed_operation(op), ops.MbarrierWait)), None)
    if not isinstance(wait, ops.MbarrierWait):
        return ""
    line, access = line_of(wait), line_of(old.event.op)
    if line >= access:
        return ""
    return f" The test at line {line} may answer false, and line {access} then comes too early."


def _explain_missing_half(m: Machine, issuer: Agent, owner: Agent, old: Record, last: TraceEntry) -> str:
    """Explain which half is missing, where the other agent knows of the step ``last`` after the access."""
    if isinstance(last.op, ops.CpAsyncArrive):
        return "it tracks the cp.async before it, and nothing else"
    if last.op.facets.signals and last.op.facets.asynchronous and last.op.facets.writes:  # not cumulative (8.9.1.1)
        return "its completion covers its own accesses, and nothing before them"
    if isinstance(last.op, ops.Collective):
        return "lanes only wait for each other there; bar.warp.sync also orders memory"
    fences = [
        e for e in m.trace[old.position :] if e.agent == owner.index and e.signal < 0 and is_releasing_fence(e.op)
    ]
    writer, reader = _place(m, owner), _place(m, issuer)
    idle = [
        text for e in fences for text in [explain_idle_fence(m, e, last, old.event.address, writer, reader)] if text
    ]
    if releases(last.op) or len(idle) < len(fences):
        return f"the release is there, {_explain_missing_acquire(m, issuer, last)}"
    way = "memory is handed over by a release there, or a release fence before it, and an acquire where that is seen"
    return "; ".join([way, *dict.fromkeys(idle[:2])])


def _explain_missing_acquire(m: Machine, issuer: Agent, last: TraceEntry) -> str:
    """Explain what is wrong with the acquire of a release, the step ``last`` of another agent (8.9.2 and 8.8)."""
    behind = m.trace[m.trace.index(last) + 1 :]
    taken = [e.op for e in behind if e.agent == issuer.index and e.signal < 0 and acquires(e.op)]
    if not taken:
        return "and an acquire is missing where it is seen, or behind that a fence that acquires"
    return (
        f"but the acquire at line {line_of(taken[-1])} takes over something else: what it reads or waits for has to be "
        "that, or made of it by atomics whose scopes include each other's threads"
    )


def is_releasing_fence(op: Op) -> bool:
    """Return whether a fence releases, possibly for another proxy (8.8, 9.7.13.4)."""
    return (isinstance(op, ops.Fence) and op.sem in RELEASES) or (
        isinstance(op, ops.ProxyFence) and op.half == "release"
    )


def explain_idle_fence(
    m: Machine, fence: TraceEntry, last: TraceEntry, address: int | None, writer: Place, reader: Place
) -> str:  # fmt: skip
    """Explain why a releasing fence does not release a write of its thread; empty if it does.

    ``last`` is the step that hands the bytes over.
    """
    op = fence.op
    assert isinstance(op, ops.Fence | ops.ProxyFence)
    where = f"the fence at line {line_of(op)}"
    if fence.step > last.step:
        return f"{where} comes after it"
    if op.restrict is not None and address is not None:
        instance = m.program.memory.find(address)
        home = instance.cta if instance is not None else None
        if home is None or (op.restrict == "shared::cta" and home != writer.cta):
            return f"{where} is for {op.restrict}, not for these bytes"
    if op.scope is not None and WIDTH[op.scope] < WIDTH[narrowest_common_scope(writer, reader)]:
        return f"{where} has scope .{op.scope}, and needs .{narrowest_common_scope(writer, reader)}"
    return ""


def _place(m: Machine, agent: Agent) -> Place:
    return m.program.threads[agent.threads[0]].place
