"""Execution barriers: bar, barrier.cta, barrier.cluster, bar.warp.sync (PTX ISA 9.0 sections 9.7.13.1 to 9.7.13.3).

A barrier with a count completes when that many threads have arrived, each warp counting 32; without one it waits for
every thread that has not exited. An arrival that falls into a later round than another, without being after it in
time, could have come first: that order is run too.
"""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.machine import Blocked, Machine, Undefined, executes
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.operations.aligned_instructions import find_divergence
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Done, Rendezvous
from mcheck.engines.protocol.state.vector_clocks import Vector, join_clocks
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.aligned_operations import DIVERGENT_BARRIERS
from mcheck.ir.ops import Op

WARP = 32
PARTED = "lanes of several warps part at a barrier with a count"


@executes(ops.Barrier)
def barrier(m: Machine, agent: Agent, op: Op) -> None:
    """``bar.sync``, ``bar.arrive``, ``bar.red``."""
    assert isinstance(op, ops.Barrier)
    if not evaluate_guard(m, agent, op):
        return
    number, count = m.known(agent, op.barrier), m.known(agent, op.count)
    if number is None or not 0 <= number <= 15:
        _wrong(m, agent, op, "UB302", f"barrier {number} is not one of 0 to 15")
    if count is not None and (count <= 0 or count % WARP):
        _wrong(m, agent, op, "UB301", f"{count} threads are not a positive multiple of the warp size")
    key = ("bar", agent.place[2], number)
    meeting = m.meetings.get(key)
    if meeting is None:
        inside = frozenset(a.index for a in m.agents if a.place[2] == agent.place[2])
        meeting = m.meetings[key] = Rendezvous(key, inside)
    _meet(m, agent, op, meeting, count, "red" if op.kind == "red" else "plain", op.kind != "arrive", op.aligned)


def _wrong(m: Machine, agent: Agent, op: Op, code: str, text: str) -> None:
    m.problem(code, text, agent, op)
    raise Undefined


def _meet(
    m: Machine, agent: Agent, op: Op, meeting: Rendezvous, count: int | None, kind: str, waits: bool, aligned: bool
) -> None:
    """The agent arrives, and stands there if it waits."""
    agent.effects += 1
    time = agent.now() if agent.single else agent.time
    event = m.emit_nothing(agent, op)
    done = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "arrive", meeting.round)
    m.trace[-1].begun = agent.time
    if aligned and (theirs := find_divergence(m, agent, op)) is not None:
        m.swap(theirs, len(m.trace) - 1)  # then it is that one which comes to another barrier
        _wrong(m, agent, op, "UB305", DIVERGENT_BARRIERS)
    if meeting.here and (meeting.count != count or kind not in meeting.kinds):
        meeting.failed.append(done)
        for other in meeting.here.values():
            m.reverse(other, agent.index, time, agent.single)
        if meeting.count is not None and _might_be_over(m, agent, meeting, meeting.count):
            m.unsure = PARTED
        text = "threads give one barrier different counts" if meeting.count != count else "bar.red meets another kind"
        _wrong(m, agent, op, "UB304", text)
    meeting.count = count
    meeting.kinds.add(kind)
    place = m.program.threads[agent.threads[0]].place
    if count is not None or _had_count(meeting):
        for other in meeting.before + meeting.failed:
            m.reverse(other, agent.index, time, agent.single)
    if count is not None:
        m.assigned.append((agent.index, agent.step, "round", meeting.key, meeting.round))
    arrived, _ = meeting.brought.get(agent.index, (0, m.zero))
    if agent.index in meeting.here:  # both count (Q22)
        meeting.again.setdefault(agent.index, []).append(done)
    else:
        meeting.here[agent.index] = done
    meeting.warps.setdefault(place.own_warp, set()).add(agent.index)
    common = {"rounds": meeting.last} if count is not None and meeting.last else None
    entries = m.put(agent, _event(agent, op, Tag.BARRIVE), common=common)
    arrived |= to_mask(entries)
    if isinstance(op, ops.Barrier) and op.src is not None:
        values = [m.term(agent, lane, op.src) for lane in range(len(agent.lanes))]
        meeting.votes[agent.index] = [v if isinstance(v, int) else None for v in values]
    meeting.brought[agent.index] = (arrived, agent.now())
    if waits:
        agent.status, agent.where = "standing", meeting
    else:
        agent.pc += 1
    try_complete(m, meeting, late=False)


def _had_count(meeting: Rendezvous) -> bool:
    """Whether the last round had a count: it need not have waited for whoever arrives without one now."""
    return any(getattr(done.event.op, "count", None) is not None for done in meeting.before[:1])


def _event(agent: Agent, op: Op, kind: Tag, *more: Tag, scope: str | None = None) -> Event:
    return Event((agent.threads[0], 0), op, frozenset((Tag.B, kind, *more)), 0, agent.step, agent.place[2], scope=scope)


def try_complete(m: Machine, meeting: Rendezvous, *, late: bool) -> bool:
    """Completes the round if all have come; ``late`` also if lanes of a warp that has arrived never will."""
    if not meeting.here:
        return False
    if meeting.count is None:
        if any(k not in meeting.here and m.agents[k].status != "done" for k in meeting.members):
            return False
        _complete(m, meeting, list(meeting.here))
        return True
    needed = meeting.count // WARP
    come = _come(m, meeting)
    if sum(come.values()) < needed and late:
        come = _come(m, meeting, late=True)
        if sum(come.values()) >= needed:
            m.unsure = PARTED  # it might have been over before: lanes that may come are waited for
    if sum(come.values()) < needed:
        return False
    more = any(_often(meeting, k) > often for warp, often in come.items() if often for k in meeting.warps[warp])
    if sum(come.values()) > needed or more:
        m.unsure, m.parted = PARTED, True  # some of these arrivals are for the next round, and which is not kept
    chosen: list[int] = []
    for warp, often in come.items():
        if needed > 0 and often:
            chosen += meeting.warps[warp]
            needed -= often
    _complete(m, meeting, chosen)
    return True


def _come(m: Machine, meeting: Rendezvous, *, late: bool = False) -> dict[tuple[int, int], int]:
    """How often each warp has arrived: as often as all of its lanes that may still come, or, if it is ``late``, as any
    one of them.
    """
    found = {}
    for warp, inside in meeting.warps.items():
        times = {k: _often(meeting, k) for k in m.setup.warps[next(iter(inside))]}
        waited_for = [n for k, n in times.items() if not late and _may_come(m, k, meeting)]
        found[warp] = min([max(times.values()), *waited_for])
    return found


def _might_be_over(m: Machine, agent: Agent, meeting: Rendezvous, count: int) -> bool:
    """Whether a round would have been over before an agent came to it, if lanes that may come never did."""
    come = _come(m, meeting, late=True)
    if agent.index not in meeting.here:  # of its own warp it is what was missing
        come.pop(m.warp_of(agent), None)
    return sum(come.values()) >= count // WARP


def _often(meeting: Rendezvous, k: int) -> int:
    """How often an agent has arrived."""
    return 1 + len(meeting.again.get(k, ())) if k in meeting.here else 0


def _may_come(m: Machine, k: int, meeting: Rendezvous) -> bool:
    """Whether an agent may still come to a barrier."""
    agent, number = m.agents[k], meeting.key[2]
    assert isinstance(number, int)
    stopped = agent.status in ("done", "undefined", "cut")
    return not stopped and m.setup.reading(k).may_reach_barrier(agent.pc, number)


def _complete(m: Machine, meeting: Rendezvous, chosen: list[int]) -> None:
    """The round of these agents is complete: those who stand at the barrier go on."""
    arrivals = 0
    time = exit_times(m, meeting) if meeting.count is None else m.zero
    gone_before = m.exits_of(meeting.members - set(meeting.here)) if meeting.count is None else 0
    for k in chosen:
        theirs, when = meeting.brought.pop(k)
        arrivals |= theirs
        time = join_clocks(time, when)
    m.absent = m.absent or (meeting.count is None and len(chosen) < len(meeting.members))
    votes = [v for k in chosen for v in meeting.votes.pop(k, ())]
    meeting.before = [meeting.here.pop(k) for k in chosen]
    meeting.before += [done for k in chosen for done in meeting.again.pop(k, ())]
    arrived = {done.agent: done.step for done in meeting.before}
    if meeting.count is not None:
        m.completed.append((meeting.key, tuple(meeting.before)))
    meeting.round += 1
    meeting.last = arrivals if meeting.count is not None else 0
    gone = set(chosen)
    meeting.warps = {w: left for w, inside in meeting.warps.items() if (left := inside - gone)}
    if not meeting.here:
        meeting.kinds, meeting.count = set(), None
    for k in chosen:
        agent = m.agents[k]
        if agent.where is not meeting:
            continue
        op = agent.code[agent.pc]
        common = {"barrier": arrivals}
        if gone_before:
            common["exited"] = gone_before
        m.depend(agent, m.put(agent, _event(agent, op, Tag.BWAIT), part=1, common=common))
        agent.time = join_clocks(agent.time, time)
        agent.left = arrived
        if isinstance(op, ops.Barrier) and op.dst is not None:
            _result(m, agent, op, votes)
        agent.status, agent.where = "run", None
        agent.pc += 1


def exit_times(m: Machine, meeting: Rendezvous) -> Vector:
    """When those who are no longer waited for had exited: what orders time, and no memory (9.7.13.1)."""
    time = m.zero
    for k in meeting.members:
        when = m.agents[k].exit_time
        if k not in meeting.here and when is not None:
            time = join_clocks(time, when)
    return time


def _result(m: Machine, agent: Agent, op: ops.Barrier, votes: list[int | None]) -> None:
    """What ``bar.red`` returns to every lane."""
    assert op.dst is not None
    value: int | None = None
    known = [v for v in votes if v is not None]
    if op.red_op == "popc" and len(known) == len(votes):
        value = sum(1 for v in known if v)
    elif op.red_op == "and":
        value = 0 if any(not v for v in known) else 1 if len(known) == len(votes) else None
    elif op.red_op == "or":
        value = 1 if any(known) else 0 if len(known) == len(votes) else None
    for lane in range(len(agent.lanes)):
        m.set(agent, lane, op.dst.name, "u32" if op.red_op == "popc" else "pred", value)


def complete_late(m: Machine) -> bool:
    """When nobody can go on: rounds whose missing lanes never come."""
    try:
        return any(try_complete(m, meeting, late=True) for meeting in list(m.meetings.values()))
    except Undefined:
        m.ended = "undefined"
        return False


@executes(ops.WarpSync)
def warp_sync(m: Machine, agent: Agent, op: Op) -> None:
    """``bar.warp.sync``: the declared lanes of the mask meet."""
    assert isinstance(op, ops.WarpSync)
    if not evaluate_guard(m, agent, op):
        return
    mask = (m.known(agent, op.mask) or 0) & 0xFFFFFFFF
    threads = m.program.threads
    inside = [bool(mask >> threads[t].place.lane & 1) for t in agent.threads]
    if not all(inside):
        if any(inside):
            groups = [
                tuple(t for t, i in zip(agent.threads, inside, strict=True) if i is want) for want in (True, False)
            ]
            raise Split(groups)
        _wrong(m, agent, op, "UB109", "the member mask of bar.warp.sync leaves out the executing lane")
    place = threads[agent.threads[0]].place
    key = ("warp", place.cta.number, place.warp, mask)
    meeting = m.meetings.get(key)
    if meeting is None:
        members = set()
        for other in m.agents:
            there = [threads[t].place for t in other.threads]
            lanes = [p for p in there if (p.cta.number, p.warp) == key[1:3] and mask >> p.lane & 1]
            if lanes and len(lanes) != len(there):
                raise Split(
                    [
                        tuple(t for t in other.threads if bool(mask >> threads[t].place.lane & 1) is want)
                        for want in (True, False)
                    ]
                )
            if lanes:
                members.add(other.index)
        meeting = m.meetings[key] = Rendezvous(key, frozenset(members))
    _meet(m, agent, op, meeting, None, "plain", True, False)


@executes(ops.ClusterBarrier)
def cluster_barrier(m: Machine, agent: Agent, op: Op) -> None:
    """``barrier.cluster.arrive`` and ``.wait``."""
    assert isinstance(op, ops.ClusterBarrier)
    if not evaluate_guard(m, agent, op):
        return
    agent.effects += 1
    key = ("cluster", *agent.place[:2])
    meeting = m.meetings.get(key)
    if meeting is None:
        inside = frozenset(a.index for a in m.agents if a.place[:2] == agent.place[:2])
        meeting = m.meetings[key] = Rendezvous(key, inside)
    if op.kind == "arrive":
        if agent.cluster_arrived is not None:
            _wrong(m, agent, op, "UB306", "a thread arrives twice at the cluster barrier without waiting")
        _cluster_arrive(m, agent, op, meeting)
        agent.pc += 1
        cluster_complete(m, meeting)
        return
    if agent.cluster_arrived is None:
        _wrong(m, agent, op, "UB306", "a thread waits at the cluster barrier without having arrived")
    _cluster_wait(m, agent, op)


def _cluster_arrive(m: Machine, agent: Agent, op: ops.ClusterBarrier, meeting: Rendezvous) -> None:
    event = m.emit_nothing(agent, op)
    meeting.here[agent.index] = Done(
        agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "arrive", meeting.round
    )
    agent.cluster_arrived = meeting
    meeting.time = join_clocks(meeting.time, agent.now()) if meeting.time else agent.now()
    sem = Tag.REL if op.sem == "release" else Tag.RLX
    meeting.arrivals |= to_mask(m.put(agent, _event(agent, op, Tag.BARRIVE, Tag.CLUSTERBAR, sem, scope="cluster")))


def cluster_complete(m: Machine, meeting: Rendezvous) -> None:
    """The round is complete when every thread of the cluster has arrived or exited."""
    if not meeting.here or any(k not in meeting.here and m.agents[k].status != "done" for k in meeting.members):
        return
    m.absent = m.absent or len(meeting.here) < len(meeting.members)
    time = join_clocks(meeting.time, exit_times(m, meeting))
    gone = m.exits_of(meeting.members - set(meeting.here))
    done = Rendezvous(meeting.key, round=meeting.round, arrivals=meeting.arrivals, time=time, last=gone)
    for k in meeting.here:
        agent = m.agents[k]
        agent.cluster_arrived = done
        if agent.status == "blocked" and agent.where is meeting:
            agent.status, agent.where = "run", None
    meeting.round += 1
    meeting.here, meeting.arrivals, meeting.time = {}, 0, []


def _cluster_wait(m: Machine, agent: Agent, op: Op) -> None:
    meeting = agent.cluster_arrived
    assert meeting is not None
    if agent.index in meeting.here:  # the round is not complete
        raise Blocked(meeting)
    event = _event(agent, op, Tag.BWAIT, Tag.CLUSTERBAR, Tag.ACQ, scope="cluster")
    common = {"barrier": meeting.arrivals}
    if meeting.last:
        common["exited"] = meeting.last
    m.depend(agent, m.put(agent, event, common=common))
    agent.time = join_clocks(agent.time, meeting.time)
    agent.cluster_arrived = None
    agent.pc += 1
