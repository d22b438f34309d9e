"""How an execution ends: threads that leave, threads that wait for ever, what is left undone."""

from __future__ import annotations

from mcheck.graph.event import Event
from mcheck.program.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.protocol import warps
from mcheck.protocol.barriers import cluster_complete, try_complete
from mcheck.protocol.clocks import Vector
from mcheck.protocol.deadlocks import deadlock
from mcheck.protocol.history import Record
from mcheck.protocol.machine import Agent, Machine
from mcheck.protocol.mbarriers import _unannounced, early
from mcheck.protocol.objects import Done, Mbarrier


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
    _outlived(m)
    for bar in m.mbarriers.values():
        if bar.state is not None and not bar.state.pending:
            early(m, bar, ended=True)  # an expectation keeps a phase open that could be complete before it
    if lost or any(a.status == "undefined" for a in m.agents) or m.ended == "undefined":
        m.ended = "undefined"  # somebody stopped where the rules do: that others wait for it says nothing
        return
    if stuck:
        m.ended = "stuck"
        m.problems.append(deadlock(m, stuck))
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


def _outlived(m: Machine) -> None:
    """Uses of a CTA's shared memory that nothing makes sure are over before it ends: by another CTA (UB502), by a bulk
    copy of its own (UB504).
    """
    alive = {a.place[2] for a in m.agents if a.status != "done"}
    exits: dict[int, list[Vector]] = {}
    for a in m.agents:
        if a.exit_time is not None:
            exits.setdefault(a.place[2], []).append(a.exit_time)
    for (owner, who, _), (thing, event) in m.remote.items():
        if owner not in alive and not _over(thing, who, exits[owner]):
            text = f"may use {_object_of(m, event)} after its CTA has ended"
            m.problem("UB502", text, m.agents[who], event.op)
    for record, event in m.copies:
        owner = (event.address - SHARED_BASE) // SHARED_WINDOW
        if owner == record.cta and owner not in alive and not _over(record, record.agent, exits[owner]):
            text = f"copies to {_object_of(m, event)}, whose CTA may end before the copy is complete"
            m.problem("UB504", text, m.agents[record.agent], event.op)


def _over(thing: Record | Done, who: int, exits: list[Vector]) -> bool:
    """Whether an access comes before one of these exits in time."""
    if isinstance(thing, Record) and thing.asynchronous:
        signalled = any(t[c] > p for t in exits for c, p in thing.signals)
        return signalled or any(t[a] >= s for t in exits for a, s in thing.done)
    return any(t[who] >= thing.step for t in exits)


def _object_of(m: Machine, event: Event) -> str:
    instance = m.program.memory.find(event.address if event.size else event.mbarrier.address if event.mbarrier else 0)
    return instance.label if instance is not None else "shared memory"
