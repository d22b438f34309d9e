"""Execution barriers: bar, barrier.cta, barrier.cluster, bar.warp.sync (PTX ISA 9.0 sections 9.7.13.1 to 9.7.13.3).

A barrier with a count completes when that many threads have arrived, each warp counting 32; one without a count waits
for every thread that has not exited. An arrival in a later generation than another that it does not follow in time
could have come first: that order is run too.
"""

from __future__ import annotations

from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import Phrase, say
from mcheck.base.records import replace
from mcheck.cat.tags import Tag
from mcheck.effects.generic_memory import lane_left_out, name_of
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.executors import Blocked, Undefined, executes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.operations.aligned_instructions import find_divergence
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import BarrierState, SyncOperation
from mcheck.engines.protocol.state.vector_clocks import Vector, join_clocks
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.aligned_operations import DIVERGENT_BARRIERS
from mcheck.ir.ops import Op

WARP = 32


@executes(ops.Barrier)
def execute_barrier(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``bar.sync``, ``bar.arrive`` or ``bar.red``."""
    assert isinstance(op, ops.Barrier)
    if not evaluate_guard(m, agent, op):
        return
    number, count = m.known_value(agent, op.barrier), m.known_value(agent, op.count)
    if number is None or not 0 <= number <= 15:
        _stop(m, agent, op, "UB302", f"barrier {number} is not one of 0 to 15")
    if count is not None and (count <= 0 or count % WARP):
        _stop(m, agent, op, "UB301", f"{count} threads are not a positive multiple of the warp size")
    key = ("bar", agent.placement[2], number)
    barrier = m.barriers.get(key)
    if barrier is None:
        inside = frozenset(a.index for a in m.agents if a.placement[2] == agent.placement[2])
        barrier = m.barriers[key] = BarrierState(key, inside)
    _arrive(m, agent, op, barrier, count, "red" if op.kind == "red" else "plain", op.kind != "arrive", op.aligned)


def _stop(m: Machine, agent: Agent, op: Op, code: str, said: str | Phrase) -> None:
    """Report undefined behaviour and stop the agent."""
    m.report_problem(code, said, agent, op)
    raise Undefined


def _arrive(
    m: Machine, agent: Agent, op: Op, barrier: BarrierState, count: int | None, kind: str, waits: bool, aligned: bool
) -> None:
    """Let the agent arrive, and wait if the operation waits."""
    agent.effect_count += 1
    time = agent.known_time()
    event = m.make_plain_event(agent, op)
    done = SyncOperation(
        agent.index, agent.step, len(m.trace) - 1, agent.current_time(), event, "arrive", barrier.generation
    )
    m.trace[-1].start_time = agent.time
    if aligned and (theirs := find_divergence(m, agent, op)) is not None:
        m.note_swap(theirs, len(m.trace) - 1)  # in the other order that lane diverges
        _stop(m, agent, op, "UB305", DIVERGENT_BARRIERS)
    if barrier.arrived and (barrier.count != count or kind not in barrier.kinds):
        barrier.failed_arrivals.append(done)
        for other in barrier.arrived.values():
            m.note_reversal(other, agent.index, time, agent.is_single_thread)
        if barrier.count is not None and _may_have_completed(m, agent, barrier, barrier.count):
            _leave_ambiguous(m, barrier)
        _report_clash(m, agent, op, barrier, count)
        raise Undefined
    barrier.count = count
    barrier.kinds.add(kind)
    place = m.program.threads[agent.threads[0]].place
    if count is not None or _had_count(barrier):
        for other in barrier.previous_arrivals + barrier.failed_arrivals:
            m.note_reversal(other, agent.index, time, agent.is_single_thread)
    if count is not None:
        m.decisions.append((agent.index, agent.step, "round", barrier.key, barrier.generation))
    arrived, _ = barrier.arrival_events.get(agent.index, (0, m.zero_clock))
    if agent.index in barrier.arrived:  # both count (Q22)
        barrier.repeated_arrivals.setdefault(agent.index, []).append(done)
    else:
        barrier.arrived[agent.index] = done
    barrier.warps.setdefault(place.own_warp, set()).add(agent.index)
    common = {"rounds": barrier.previous_events} if count is not None and barrier.previous_events else None
    entries = m.add_event(agent, _make_event(agent, op, Tag.BARRIVE), common=common)
    arrived |= to_mask(entries)
    if isinstance(op, ops.Barrier) and op.src is not None:
        values = [m.evaluate(agent, lane, op.src) for lane in range(len(agent.lanes))]
        barrier.votes[agent.index] = [v if isinstance(v, int) else None for v in values]
    barrier.arrival_events[agent.index] = (arrived, agent.current_time())
    if waits:
        agent.status, agent.blocked_on = "standing", barrier
    else:
        agent.pc += 1
    try_complete(m, barrier, give_up_missing=False)


def _report_clash(m: Machine, agent: Agent, op: Op, barrier: BarrierState, count: int | None) -> None:
    """Report two arrivals in one round with different counts, or of ``bar.red`` and another kind (9.7.13.1)."""
    first = next(iter(barrier.arrived.values()))
    mine = m.make_problem("UB304", "", agent, op)
    theirs = m.make_problem("UB304", "", m.agents[first.agent], first.event.op)
    ends = [(site_of(first.event.op), barrier.count, theirs.accesses), (site_of(op), count, mine.accesses)]
    ends.sort(key=lambda end: end[0].line)
    (one, some, accesses), (other, more, others) = ends
    if barrier.count == count:
        said = say("bar.red and another kind meet at barrier {}: {} and {}", str(barrier.key[-1]), one, other)
    else:
        counts = [f"{given} threads" if given is not None else "all threads of the CTA" for given in (some, more)]
        said = say("barrier {} counts {} at {}, but {} at {}", str(barrier.key[-1]), counts[0], one, counts[1], other)
    m.problems.append(replace(mine, said=said, accesses=accesses + others, agents=theirs.agents + mine.agents))


def _had_count(barrier: BarrierState) -> bool:
    """Whether the last generation had a count: it need not have waited for an arrival without one now."""
    return any(getattr(done.event.op, "count", None) is not None for done in barrier.previous_arrivals[:1])


def _make_event(agent: Agent, op: Op, kind: Tag, *more: Tag, scope: str | None = None) -> Event:
    return Event(
        (agent.threads[0], 0), op, frozenset((Tag.B, kind, *more)), 0, agent.step, agent.placement[2], scope=scope
    )


def try_complete(m: Machine, barrier: BarrierState, *, give_up_missing: bool) -> bool:
    """Complete the generation if all have arrived; with ``give_up_missing`` also if lanes of an arrived warp never
    will.
    """
    if not barrier.arrived:
        return False
    if barrier.count is None:
        if any(k not in barrier.arrived and m.agents[k].status != "done" for k in barrier.members):
            return False
        _complete_generation(m, barrier, list(barrier.arrived))
        return True
    needed = barrier.count // WARP
    come = _count_warp_arrivals(m, barrier)
    if sum(come.values()) < needed and give_up_missing:
        come = _count_warp_arrivals(m, barrier, give_up_missing=True)
        if sum(come.values()) >= needed:
            _leave_ambiguous(m, barrier)  # it might have completed earlier: lanes that may arrive are waited for
    if sum(come.values()) < needed:
        return False
    more = any(
        _count_agent_arrivals(barrier, k) > often for warp, often in come.items() if often for k in barrier.warps[warp]
    )
    if sum(come.values()) > needed or more:
        _leave_ambiguous(m, barrier)  # which arrivals belong to the next generation is not known
        m.ambiguous_arrivals = True
    chosen: list[int] = []
    for warp, often in come.items():
        if needed > 0 and often:
            chosen += barrier.warps[warp]
            needed -= often
    _complete_generation(m, barrier, chosen)
    return True


def _leave_ambiguous(m: Machine, barrier: BarrierState) -> None:
    """Leave open which arrivals complete the generation: each counts for a whole warp (9.7.13.1)."""
    lines = sorted({done.event.op.span.line for done in barrier.arrived.values() if done.event.op.span is not None})
    at = f" at line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}" if lines else ""
    m.not_followed = (
        f"the order in which lanes of one warp arrive at barrier {barrier.key[2]}{at} decides when it is complete, for "
        "each lane that arrives alone counts for its whole warp: let them meet before it (bar.warp.sync, __syncwarp())"
    )


def _count_warp_arrivals(
    m: Machine, barrier: BarrierState, *, give_up_missing: bool = False
) -> dict[tuple[int, int], int]:
    """How often each warp has arrived: as often as all its lanes that may still arrive, or with ``give_up_missing`` as
    any of its lanes.
    """
    found = {}
    for warp, inside in barrier.warps.items():
        times = {k: _count_agent_arrivals(barrier, k) for k in m.setup.warp_mates[next(iter(inside))]}
        waited_for = [n for k, n in times.items() if not give_up_missing and _may_arrive(m, k, barrier)]
        found[warp] = min([max(times.values()), *waited_for])
    return found


def _may_have_completed(m: Machine, agent: Agent, barrier: BarrierState, count: int) -> bool:
    """Whether a generation would have completed before an agent arrived, if lanes that may arrive never did."""
    come = _count_warp_arrivals(m, barrier, give_up_missing=True)
    if agent.index not in barrier.arrived:  # its own warp was incomplete without it
        come.pop(m.warp_of(agent), None)
    return sum(come.values()) >= count // WARP


def _count_agent_arrivals(barrier: BarrierState, k: int) -> int:
    """How often an agent has arrived."""
    return 1 + len(barrier.repeated_arrivals.get(k, ())) if k in barrier.arrived else 0


def _may_arrive(m: Machine, k: int, barrier: BarrierState) -> bool:
    """Whether an agent may still arrive at a barrier."""
    agent, number = m.agents[k], barrier.key[2]
    assert isinstance(number, int)
    stopped = agent.status in ("done", "undefined", "cut")
    return not stopped and m.setup.facts_of(k).may_reach_barrier(agent.pc, number)


def _complete_generation(m: Machine, barrier: BarrierState, chosen: list[int]) -> None:
    """Complete the generation with the arrivals of these agents, and release those that wait."""
    arrivals = 0
    time = exit_times(m, barrier) if barrier.count is None else m.zero_clock
    gone_before = m.exit_events(barrier.members - set(barrier.arrived)) if barrier.count is None else 0
    for k in chosen:
        events, time_of_arrival = barrier.arrival_events.pop(k)
        arrivals |= events
        time = join_clocks(time, time_of_arrival)
    m.exit_passed_barrier = m.exit_passed_barrier or (barrier.count is None and len(chosen) < len(barrier.members))
    votes = [v for k in chosen for v in barrier.votes.pop(k, ())]
    barrier.previous_arrivals = [barrier.arrived.pop(k) for k in chosen]
    barrier.previous_arrivals += [done for k in chosen for done in barrier.repeated_arrivals.pop(k, ())]
    arrived = {done.agent: done.step for done in barrier.previous_arrivals}
    if barrier.count is not None:
        m.completed_barriers.append((barrier.key, tuple(barrier.previous_arrivals)))
    barrier.generation += 1
    barrier.previous_events = arrivals if barrier.count is not None else 0
    released = set(chosen)
    barrier.warps = {w: left for w, inside in barrier.warps.items() if (left := inside - released)}
    if not barrier.arrived:
        barrier.kinds, barrier.count = set(), None
    if m.causality is not None:
        m.causality.add_meeting([m.agents[k] for k in chosen if m.agents[k].blocked_on is barrier])
    for k in chosen:
        agent = m.agents[k]
        if agent.blocked_on is not barrier:
            continue
        op = agent.code[agent.pc]
        common = {"barrier": arrivals}
        if gone_before:
            common["exited"] = gone_before
        m.add_dependency(agent, m.add_event(agent, _make_event(agent, op, Tag.BWAIT), part=1, common=common))
        agent.time = join_clocks(agent.time, time)
        agent.last_barrier_arrivals = arrived
        if isinstance(op, ops.Barrier) and op.dst is not None:
            _set_reduction_result(m, agent, op, votes)
        agent.status, agent.blocked_on = "run", None
        agent.pc += 1


def exit_times(m: Machine, barrier: BarrierState) -> Vector:
    """When the threads that are no longer waited for exited: an exit orders time, and no memory (9.7.13.1)."""
    time = m.zero_clock
    for k in barrier.members:
        when = m.agents[k].exit_time
        if k not in barrier.arrived and when is not None:
            time = join_clocks(time, when)
    return time


def _set_reduction_result(m: Machine, agent: Agent, op: ops.Barrier, votes: list[int | None]) -> None:
    """Set the result of ``bar.red`` in every lane."""
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
        m.set_register(agent, lane, op.dst.name, "u32" if op.red_op == "popc" else "pred", value)


def complete_stuck_barriers(m: Machine) -> bool:
    """Complete generations whose missing lanes never arrive, once no agent can continue."""
    try:
        return any(try_complete(m, barrier, give_up_missing=True) for barrier in list(m.barriers.values()))
    except Undefined:
        m.outcome = "undefined"
        return False


@executes(ops.WarpSync)
def execute_warp_sync(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``bar.warp.sync``: the declared lanes of the mask synchronise."""
    assert isinstance(op, ops.WarpSync)
    if not evaluate_guard(m, agent, op):
        return
    mask = (m.known_value(agent, op.mask) or 0) & 0xFFFFFFFF
    threads = m.program.threads
    inside = [bool(mask >> threads[t].place.lane & 1) for t in agent.threads]
    if not all(inside):
        if any(inside):
            groups = [
                tuple(t for t, i in zip(agent.threads, inside, strict=True) if i is want) for want in (True, False)
            ]
            raise Split(groups)
        _stop(m, agent, op, "UB109", lane_left_out(mask, name_of(op)))
    place = threads[agent.threads[0]].place
    key = ("warp", place.cta.number, place.warp, mask)
    barrier = m.barriers.get(key)
    if barrier is None:
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
        barrier = m.barriers[key] = BarrierState(key, frozenset(members))
    _arrive(m, agent, op, barrier, None, "plain", True, False)


@executes(ops.ClusterBarrier)
def execute_cluster_barrier(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``barrier.cluster.arrive`` or ``.wait``."""
    assert isinstance(op, ops.ClusterBarrier)
    if not evaluate_guard(m, agent, op):
        return
    agent.effect_count += 1
    key = ("cluster", *agent.placement[:2])
    barrier = m.barriers.get(key)
    if barrier is None:
        inside = frozenset(a.index for a in m.agents if a.placement[:2] == agent.placement[:2])
        barrier = m.barriers[key] = BarrierState(key, inside)
    if op.kind == "arrive":
        if agent.cluster_arrival is not None:
            _stop(m, agent, op, "UB306", "a thread arrives twice at the cluster barrier without waiting")
        _arrive_at_cluster(m, agent, op, barrier)
        agent.pc += 1
        complete_cluster_barrier(m, barrier)
        return
    if agent.cluster_arrival is None:
        _stop(m, agent, op, "UB306", "a thread waits at the cluster barrier without having arrived")
    _wait_for_cluster(m, agent, op)


def _arrive_at_cluster(m: Machine, agent: Agent, op: ops.ClusterBarrier, barrier: BarrierState) -> None:
    """Execute barrier.cluster.arrive."""
    event = m.make_plain_event(agent, op)
    barrier.arrived[agent.index] = SyncOperation(
        agent.index, agent.step, len(m.trace) - 1, agent.current_time(), event, "arrive", barrier.generation
    )
    agent.cluster_arrival = barrier
    barrier.time = join_clocks(barrier.time, agent.current_time()) if barrier.time else agent.current_time()
    sem = Tag.REL if op.sem == "release" else Tag.RLX
    barrier.arrivals |= to_mask(
        m.add_event(agent, _make_event(agent, op, Tag.BARRIVE, Tag.CLUSTERBAR, sem, scope="cluster"))
    )


def complete_cluster_barrier(m: Machine, barrier: BarrierState) -> None:
    """Complete the generation when every thread of the cluster has arrived or exited."""
    if not barrier.arrived or any(k not in barrier.arrived and m.agents[k].status != "done" for k in barrier.members):
        return
    m.exit_passed_barrier = m.exit_passed_barrier or len(barrier.arrived) < len(barrier.members)
    time = join_clocks(barrier.time, exit_times(m, barrier))
    gone = m.exit_events(barrier.members - set(barrier.arrived))
    done = BarrierState(
        barrier.key, generation=barrier.generation, arrivals=barrier.arrivals, time=time, previous_events=gone
    )
    for k in barrier.arrived:
        agent = m.agents[k]
        agent.cluster_arrival = done
        if agent.status == "blocked" and agent.blocked_on is barrier:
            agent.status, agent.blocked_on = "run", None
    barrier.generation += 1
    barrier.arrived, barrier.arrivals, barrier.time = {}, 0, []


def _wait_for_cluster(m: Machine, agent: Agent, op: Op) -> None:
    """Execute barrier.cluster.wait; block until the generation is complete."""
    barrier = agent.cluster_arrival
    assert barrier is not None
    if agent.index in barrier.arrived:  # the generation is not complete
        raise Blocked(barrier)
    event = _make_event(agent, op, Tag.BWAIT, Tag.CLUSTERBAR, Tag.ACQ, scope="cluster")
    common = {"barrier": barrier.arrivals}
    if barrier.previous_events:
        common["exited"] = barrier.previous_events
    m.add_dependency(agent, m.add_event(agent, event, common=common))
    agent.time = join_clocks(agent.time, barrier.time)
    agent.cluster_arrival = None
    agent.pc += 1
