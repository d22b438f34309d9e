"""Aligned instructions: all threads of a warp execute the same ones, in the same order, or it is undefined (PTX ISA 9.0
sections 9.7.13.1 and 9.7.15). Threads that are not declared do whatever the declared ones do.
"""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Done, Rendezvous
from mcheck.engines.protocol.state.vector_clocks import join_clocks
from mcheck.ir.aligned_operations import Statement, aligned_statement, explain_divergent_wgmma, is_wgmma
from mcheck.ir.ops import Op


def warp_agents(m: Machine, agent: Agent) -> tuple[int, ...]:
    """The agents of a warp, the given one among them."""
    return m.setup.warps[agent.index]


# --- the same ones --------------------------------------------------------------------------------------------


def find_divergence(m: Machine, agent: Agent, op: Op) -> int | None:
    """The step at which another lane of the warp has executed another aligned barrier where this agent executes this
    one; ``None`` if none has.
    """
    other = _other(m, agent, op)
    if other is None:
        return None
    if not other[-1]:
        _tell_of_mate(m, agent, other, aligned_statement(op))
        return None
    lanes = [k for k in warp_agents(m, agent) if k != agent.index]
    return next(k for k, e in enumerate(m.trace) if e.agent in lanes and aligned_statement(e.op) == other)


def check_wgmma(m: Machine, agent: Agent, op: Op) -> None:
    """A wgmma instruction of an agent: reports it if other lanes of the warp do something else, or have exited."""
    lanes = [m.agents[k] for k in warp_agents(m, agent)]
    if len(lanes) == 1:
        return
    other = _other(m, agent, op)
    if other is not None or any(mate.status == "done" and mate.aligned < agent.aligned for mate in lanes):
        _tell(m, agent, op, other)


def check_exit(m: Machine, agent: Agent) -> None:
    """An agent has exited: reports the first wgmma instruction that another lane has executed, and it has not."""
    missing = m.aligned.get(m.warp_of(agent), [])[agent.aligned :]
    first = next((statement for statement in missing if not statement[-1]), None)
    if first is not None:
        _tell_of_mate(m, agent, first, None)


def _other(m: Machine, agent: Agent, op: Op) -> Statement | None:
    """The statement that stands where this one would have to, as far as the warp has come."""
    done = m.aligned.setdefault(m.warp_of(agent), [])
    statement = aligned_statement(op)
    agent.aligned += 1
    if agent.aligned > len(done):
        done.append(statement)
        return None
    found = done[agent.aligned - 1]
    return None if found == statement or _parted(m, agent) else found


def _parted(m: Machine, agent: Agent) -> bool:
    """Whether it is known of the warp that its lanes do not execute the same."""
    return ("parted", m.warp_of(agent)) in m.reported


def _tell(m: Machine, agent: Agent, op: Op, instead: Statement | None) -> None:
    """Once for each warp: what comes behind is out of step as well, and nobody waits for those who do not come."""
    if not _parted(m, agent):
        m.reported.add(("parted", m.warp_of(agent)))
        m.problem("UB307", explain_divergent_wgmma(instead), agent, op)
        meeting = m.meetings.get(_key(m, agent))
        if meeting is not None:
            _go_on(m, meeting)


def _tell_of_mate(m: Machine, agent: Agent, statement: Statement, instead: Statement | None) -> None:
    """Reports an instruction of wgmma that another lane than the agent's has executed."""
    for mate in [m.agents[k] for k in warp_agents(m, agent) if k != agent.index]:
        op = next((op for op in mate.code if is_wgmma(op) and aligned_statement(op) == statement), None)
        if op is not None and (instead is not None or mate.aligned > agent.aligned):
            _tell(m, mate, op, instead)


# --- together -------------------------------------------------------------------------------------------------


def meet_warp(m: Machine, agent: Agent, op: Op) -> bool:
    """Whether all lanes of the warp have come; if not, the agent stands and waits."""
    warp = warp_agents(m, agent)
    if agent.met or len(warp) == 1 or _parted(m, agent):
        agent.met = False
        return True
    key = _key(m, agent)
    meeting = m.meetings.get(key)
    if meeting is None:
        meeting = m.meetings[key] = Rendezvous(key, frozenset(warp))
    m.trace[-1].note = "arrives"
    event = m.emit_nothing(agent, op)
    meeting.here[agent.index] = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "arrive", 0)
    meeting.time = join_clocks(meeting.time, agent.now()) if meeting.time else agent.now()
    agent.status, agent.where = "standing", meeting
    complete_meeting(m, meeting)
    return False


def complete_meeting(m: Machine, meeting: Rendezvous) -> None:
    """Lets the lanes go on once all that have not exited are there."""
    if all(k in meeting.here or m.agents[k].status == "done" for k in meeting.members):
        _go_on(m, meeting)


def _key(m: Machine, agent: Agent) -> tuple[object, ...]:
    return ("warp", *m.warp_of(agent), "aligned")


def _go_on(m: Machine, meeting: Rendezvous) -> None:
    """The lanes that are there go on; what one of them had waited for, all have."""
    lanes = [m.agents[k] for k in meeting.here]
    before = 0
    for agent in lanes:
        before |= awaited_events(m, agent)
    for agent in lanes:
        add_awaited(m, agent, before)
        agent.met = True
        agent.time = join_clocks(agent.time, meeting.time)
        agent.status, agent.where = "run", None
    meeting.here, meeting.time = {}, []


def awaited_events(m: Machine, agent: Agent) -> int:
    """What the threads of an agent have waited for."""
    out = 0
    for thread in agent.shown:
        out |= m.waits_for.get(thread, 0)
    return out


def add_awaited(m: Machine, agent: Agent, before: int) -> None:
    """The threads of an agent have waited for these events."""
    for thread in agent.shown if before else ():
        m.waits_for[thread] = before
