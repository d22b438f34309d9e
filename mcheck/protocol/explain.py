"""What would order two accesses, and why the fence that is there does not count."""

from __future__ import annotations

from mcheck.findings import catalogue
from mcheck.program import ops
from mcheck.program.ops import Op
from mcheck.protocol.history import Record
from mcheck.protocol.machine import Agent, Machine

NEEDS_FENCE = frozenset(("RACE004", "RACE006", "RACE007"))


def missing(m: Machine, code: str, old: Record, new: Record) -> str:
    """The remedy of the catalogue, with what is wrong with the fences of this execution."""
    remedy = catalogue.get(code).remedy
    if code in NEEDS_FENCE:
        why = _idle_fences(m, old, new)
        return f"{remedy} {why}" if why else remedy
    if code == "RACE003":
        why = _half_waits(m, old)
        return f"{remedy} {why}" if why else remedy
    return remedy


def _idle_fences(m: Machine, old: Record, new: Record) -> str:
    """Why no proxy fence of this execution lies on the path between the two."""
    space = "global" if "global" in old.spaces else "shared"
    writer, issuer = m.agents[old.agent], m.agents[new.agent]
    remarks: list[str] = []
    for entry in m.trace[old.position :]:
        op = entry.op
        if not isinstance(op, ops.ProxyFence) or op.kind != "async" or op.span is None:
            continue
        agent = m.agents[entry.agent]
        where = f"the fence.proxy.async at line {op.span.line}"
        if not _names(op, space):
            remarks.append(f"{where} is for {', '.join(sorted(op.spaces)) or 'another space'}, not for these bytes")
        elif agent is writer:
            release = _release_between(m, agent, old.position, entry.step)
            if release is not None and release.span is not None:
                remarks.append(f"{where} comes after the hand-over at line {release.span.line}")
        elif agent is not issuer:
            remarks.append(f"{where} is executed by {m.name(agent)}, which is not on the path between the two")
    unique = list(dict.fromkeys(remarks))[:2]
    return "; ".join(unique)[:1].upper() + "; ".join(unique)[1:] + "." if unique else ""


def _names(op: ops.ProxyFence, space: str) -> bool:
    spaces = op.spaces | ({op.restrict} if op.restrict else set())
    return not spaces or any(str(s).startswith(space) for s in spaces)


def _release_between(m: Machine, agent: Agent, position: int, step: int) -> Op | None:
    """The first operation of the agent after ``position`` and before ``step`` that hands its accesses over."""
    for entry in m.trace[position:]:
        if (
            entry.agent == agent.index
            and entry.step < step
            and isinstance(entry.op, ops.MbarrierArrive | ops.Barrier | ops.ClusterBarrier | ops.WarpSync)
        ):
            return entry.op
    return None


def _half_waits(m: Machine, old: Record) -> str:
    """Whether a wait of the issuing thread, or of another one, was meant for this operation and does not cover it."""
    if not old.asynchronous:
        return ""
    for entry in m.trace[old.position :]:
        op = entry.op
        if isinstance(op, ops.WaitGroup) and op.span is not None and op.family in ("bulk", "cp.async", "wgmma"):
            where = f"the wait at line {op.span.line}"
            if entry.agent != old.agent:
                who = m.name(m.agents[entry.agent])
                return f"The {where[4:]} is executed by {who}; groups belong to the issuing thread."
            if op.read and old.write:
                return f"The {where[4:]} has .read: it waits until the source has been read, not for the writes."
    return ""
