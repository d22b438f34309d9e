"""How an execution ends: threads that leave, threads that wait for ever, what is left undone."""

from __future__ import annotations

from mcheck.findings import catalogue
from mcheck.findings.finding import Access
from mcheck.program import ops
from mcheck.program.ops import Op
from mcheck.protocol import warps
from mcheck.protocol.barriers import cluster_complete, try_complete
from mcheck.protocol.history import Record
from mcheck.protocol.machine import Agent, Machine
from mcheck.protocol.mbarriers import _unannounced
from mcheck.protocol.objects import Mbarrier, Rendezvous, Word
from mcheck.protocol.problems import Problem, text_of


def left(m: Machine, agent: Agent) -> None:
    """A thread has exited: barriers no longer wait for it (exiting orders nothing)."""
    agent.exit_time = agent.now()
    for lane, state in enumerate(agent.lanes):
        for uid in state.unfinished():
            record = agent.of_event.get((lane, uid))
            op = state.events[uid[1]].op
            text = "exits without waiting until this copy has read its source in shared memory"
            m.problem("UB501", text, agent, op)
            del record
    for meeting in list(m.meetings.values()):
        if agent.index in meeting.members:
            if meeting.key[0] == "cluster":
                cluster_complete(m, meeting)
            elif meeting.key[-1] == "aligned":
                warps.complete(m, meeting)
            else:
                try_complete(m, meeting, late=False)
    for other in list(m.meetings.values()):
        if other.count is not None:
            try_complete(m, other, late=False)


def finish(m: Machine) -> None:
    """Nobody can go on: all have ended, or some wait for ever."""
    if any(a.status == "cut" for a in m.agents):
        m.ended = "cut"
        return
    stuck = [a for a in m.agents if a.status in ("blocked", "standing")]
    lost = any(isinstance(a.where, Mbarrier) and a.where.state is None for a in stuck)
    _remote(m)
    if lost or any(a.status == "undefined" for a in m.agents) or m.ended == "undefined":
        m.ended = "undefined"  # somebody stopped where the rules do: that others wait for it says nothing
        return
    if stuck:
        m.ended = "stuck"
        _deadlock(m, stuck)
    for bar in m.mbarriers.values():
        _unannounced(m, bar)
        _unwaited(m, bar)


def _unwaited(m: Machine, bar: Mbarrier) -> None:
    """Phases for which no wait returned true although an arrive of the next phase follows (9.7.13.15.4)."""
    for phase, event in bar.arrived.items():
        if phase > 0 and phase - 1 not in bar.waited:
            agent = m.agents[m.names[event.uid[0]]]
            text = f"arrives in phase {phase} of {bar.label} although no wait has returned true for phase {phase - 1}"
            m.problem("UB212", text, agent, event.op, event)


def _remote(m: Machine) -> None:
    """Uses of another CTA's shared memory that nothing makes sure are over before that CTA ends (UB502)."""
    alive = {a.place[2] for a in m.agents if a.status != "done"}
    for (owner, who, _), (thing, event) in m.remote.items():
        if owner in alive:
            continue
        exits = [a.exit_time for a in m.agents if a.place[2] == owner and a.exit_time is not None]
        agent = m.agents[who]
        if isinstance(thing, Record) and thing.asynchronous:
            if any(t[c] > p for t in exits for c, p in thing.signals) or any(
                t[a] >= s for t in exits for a, s in thing.done
            ):
                continue
        elif any(t[who] >= thing.step for t in exits):
            continue
        instance = m.program.memory.find(
            event.address if event.size else event.mbarrier.address if event.mbarrier else 0
        )
        label = instance.label if instance is not None else "shared memory"
        m.problem("UB502", f"may use {label} after its CTA has ended", agent, event.op)


# --- deadlocks ------------------------------------------------------------------------------------------------


def _deadlock(m: Machine, stuck: list[Agent]) -> None:
    """Who waits for what, and who could still help and why not."""
    codes: list[str] = []
    parts: list[str] = []
    accesses: list[Access] = []
    for agent in stuck:
        op = agent.code[min(agent.pc, len(agent.code) - 1)]
        code, text = _reason(m, agent, op)
        codes.append(code)
        parts.append(f"{m.name(agent)} at {text_of(op)}: {text}")
        accesses.append(_place(m, agent, op))
    code = codes[0]
    helpers = _helpers(m, stuck)
    message = "wait for ever: " + "; ".join(parts[:6]) + (f"; and {len(parts) - 6} more" if len(parts) > 6 else "")
    m.problems.append(
        Problem(
            code,
            message,
            tuple(accesses),
            tuple(a.index for a in stuck)[:6],
            len(m.trace),
            max(len(m.trace) - 40, 0),
            f"{catalogue.get(code).remedy} {helpers}",
        )
    )


def _place(m: Machine, agent: Agent, op: Op) -> Access:
    where = agent.where
    label, bytes_ = "", (0, 0)
    if isinstance(where, Mbarrier | Word):
        instance = m.program.memory.find(where.address)
        size = 8 if isinstance(where, Mbarrier) else where.size
        if instance is not None:
            label, bytes_ = instance.label, (where.address - instance.base, where.address - instance.base + size)
    return Access(thread=m.name(agent), instruction=text_of(op), span=op.span, object=label, bytes=bytes_)


def _reason(m: Machine, agent: Agent, op: Op) -> tuple[str, str]:
    where = agent.where
    if isinstance(where, Mbarrier) and where.state is not None:
        state = where.state
        inner = op.inner if isinstance(op, ops.Await) else op
        parity = (
            m.uniform(agent, inner.parity) if isinstance(inner, ops.MbarrierWait) and inner.parity is not None else None
        )
        wanted = f"parity {parity}, " if parity is not None else ""
        text = (
            f"{where.label} is in phase {state.phase} ({wanted}{state.pending} of {state.expected} arrivals pending, "
            f"expected {where.expected_bytes} bytes, got {where.got_bytes})"
        )
        return "DEAD003", text
    if isinstance(where, Rendezvous):
        missing = [m.name(m.agents[k]) for k in sorted(where.members - set(where.here)) if m.agents[k].status != "done"]
        if where.key[0] == "cluster":
            return "DEAD005", f"the cluster barrier lacks {', '.join(missing[:4]) or 'nobody'}"
        if where.count is not None:
            return "DEAD002", f"barrier {where.key[-1]} has {32 * len(where.warps)} of {where.count} threads"
        if where.key[-1] == "aligned":
            return (
                "DEAD002",
                f"all lanes of the warp execute it together; it lacks {', '.join(missing[:4]) or 'nobody'}",
            )
        what = f"barrier {where.key[-1]}" if where.key[0] == "bar" else "bar.warp.sync"
        return "DEAD002", f"{what} lacks {', '.join(missing[:4]) or 'nobody'}"
    if isinstance(where, Word):
        code = "DEAD004" if isinstance(op, ops.Await) else "DEAD001"
        return code, f"{m.label(where.address)} keeps the value {where.writes[-1].value}"
    return "DEAD001", "the loop repeats itself: nobody changes what it reads"


def _helpers(m: Machine, stuck: list[Agent]) -> str:
    """For every mbarrier that somebody waits for: whose code still holds an operation on it, and why it does not
    come.
    """
    remarks = []
    for agent in stuck:
        bar = agent.where
        if not isinstance(bar, Mbarrier):
            continue
        able = [b for b in stuck if b is not agent and _signals_later(b, bar)]
        if able:
            names = ", ".join(f"{m.name(b)} (waits itself)" for b in able[:3])
            remarks.append(f"Still to signal {bar.label}: {names}.")
        else:
            remarks.append(f"Nobody is left who would signal {bar.label}: all others have ended or never do.")
    return " ".join(dict.fromkeys(remarks))


def _signals_later(agent: Agent, bar: Mbarrier) -> bool:
    for op in agent.code[agent.pc + 1 :]:
        for name in ("address", "mbar"):
            expr = getattr(op, name, None)
            if getattr(expr, "value", None) == bar.address and not isinstance(op, ops.Await | ops.MbarrierWait):
                return True
    return False
