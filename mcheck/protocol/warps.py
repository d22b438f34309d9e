"""wgmma, which the lanes of a warp execute as one operation (PTX ISA 9.0 section 9.7.15).

Its instructions are ``.sync.aligned``: the lanes wait for each other, which is an order in time and none of their
accesses. What precedes the ``wgmma.fence`` of any lane comes before the warp's reads, and the ``wait_group`` of any
lane comes after them.
"""

from __future__ import annotations

from mcheck.program import ops
from mcheck.program.ops import Op
from mcheck.protocol.clocks import Know, joined
from mcheck.protocol.history import View
from mcheck.protocol.machine import Agent, Machine, does
from mcheck.protocol.objects import Done, Rendezvous


def mates(m: Machine, agent: Agent) -> tuple[int, ...]:
    """The agents of a warp, the given one among them."""
    return m.setup.warps[agent.index]


def together(m: Machine, agent: Agent, op: Op) -> Know | None:
    """What the lanes of the warp know when all of them have come; ``None`` while the agent stands and waits."""
    warp = mates(m, agent)
    if len(warp) == 1:
        return agent.know()
    if agent.met is not None:
        know, agent.met = agent.met, None
        return know
    key = ("warp", *m.warp_of(agent), "aligned")
    meeting = m.meetings.get(key)
    if meeting is None:
        meeting = m.meetings[key] = Rendezvous(key, frozenset(warp))
    m.trace[-1].note = "arrives"
    event = m.emit_nothing(agent, op)
    meeting.here[agent.index] = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "arrive", 0)
    know = agent.know()
    meeting.know = know if meeting.know is None else meeting.know.join(know)
    meeting.time = joined(meeting.time, agent.now()) if meeting.time else agent.now()
    agent.status, agent.where = "standing", meeting
    complete(m, meeting)
    return None


def complete(m: Machine, meeting: Rendezvous) -> None:
    """Lets the lanes go on once all that have not exited are there."""
    if not meeting.here or any(k not in meeting.here and m.agents[k].status != "done" for k in meeting.members):
        return
    for k in meeting.here:
        agent = m.agents[k]
        agent.met = meeting.know
        agent.time = joined(agent.time, meeting.time)
        agent.status, agent.where = "run", None
    meeting.here, meeting.know, meeting.time = {}, None, []


@does(ops.WgmmaFence)
def wgmma_fence(m: Machine, agent: Agent, op: Op) -> None:
    """What precedes it in any lane of the warp is ordered before the reads of the wgmma that follow."""
    from mcheck.protocol.accesses import runs

    if not runs(m, agent, op):
        return
    know = together(m, agent, op)
    if know is not None:
        agent.wgmma = View(agent.index, agent.step, agent.single, know.causal, know.coverage, {})
        agent.pc += 1


def waited(m: Machine, agent: Agent, numbers: set[int]) -> None:
    """The wgmma with these numbers are over, for all lanes of the warp."""
    for k in mates(m, agent):
        mate = m.agents[k]
        for number in numbers:
            if number < len(mate.wgmma_reads):
                for record in mate.wgmma_reads[number]:
                    if not any(a == agent.index for a, _ in record.done):
                        record.done.append((agent.index, agent.step))
