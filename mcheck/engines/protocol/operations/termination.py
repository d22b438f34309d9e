"""How an execution ends: threads that leave, threads that wait forever, what is left undone."""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.delayed_waits import REASON
from mcheck.engines.protocol.analysis.non_interleaving import ANY_WORD, word_of
from mcheck.engines.protocol.diagnosis.source_lines import line_of
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.unrolling_limit import format_place
from mcheck.engines.protocol.operations import aligned_instructions, mbarrier_reordering, wgmma
from mcheck.engines.protocol.operations.deadlocks import deadlock, names
from mcheck.engines.protocol.operations.execution_barriers import cluster_complete, try_complete
from mcheck.engines.protocol.operations.failed_attempts import enter_failed_reads
from mcheck.engines.protocol.operations.mbarrier_updates import UNTIL_IT_ENDS, find_unannounced_bytes
from mcheck.engines.protocol.operations.mbarrier_waits import enter_endless_wait
from mcheck.engines.protocol.operations.phase_deferral import note_deferrable
from mcheck.engines.protocol.operations.races import use_of_object
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Mbarrier, Word
from mcheck.events.event import Event
from mcheck.events.paths import exits_matter
from mcheck.findings import catalogue
from mcheck.ir import ops
from mcheck.ir.ops import Exit


def leave_barriers(m: Machine, agent: Agent) -> None:
    """A thread has exited: barriers no longer wait for it (exiting orders nothing)."""
    agent.exit_time = agent.now()
    aligned_instructions.check_exit(m, agent)
    if exits_matter(m.program):
        op = agent.code[-1] if agent.code else Exit()
        agent.step += 1
        event = Event((agent.threads[0], 0), op, frozenset((Tag.EXIT,)), 0, agent.step, agent.place[2])
        for entry in m.put(agent, event):
            m.exits[agent.index] = m.exits.get(agent.index, 0) | entry.bit
    for state in agent.lanes:
        for uid in state.unfinished():
            op = state.events[uid[1]].op
            text = "exits without waiting until this copy has read its source in shared memory"
            m.problem("UB501", text, agent, op)
    m.wake(wgmma.GROUPS)
    for meeting in list(m.meetings.values()):
        if agent.index in meeting.members:
            if meeting.key[0] == "cluster":
                cluster_complete(m, meeting)
            elif meeting.key[-1] == "aligned":
                aligned_instructions.complete_meeting(m, meeting)
            elif meeting.key[0] == "lanes":
                wgmma.exchange(m, meeting)
            else:
                try_complete(m, meeting, late=False)
    stop_thread(m)


def stop_thread(m: Machine) -> None:
    """A thread goes no further: no barrier with a count waits for the lanes of a warp that no longer come to it."""
    for meeting in list(m.meetings.values()):
        if meeting.count is not None:
            try_complete(m, meeting, late=False)


def finish(m: Machine) -> None:
    """Nobody can go on: all have ended, or some wait forever."""
    if any(a.status == "cut" for a in m.agents):
        m.ended = "cut"
        return
    stuck = [a for a in m.agents if a.status in ("blocked", "standing")]
    other = next((a for a in stuck if _otherwise(a)), None)
    if other is not None:
        m.up_to(f"one way of going on{format_place(other.code[other.pc].span)}")
        m.ended = "cut"
        return
    lost = [a for a in stuck if isinstance(a.where, Mbarrier) and a.where.state is None]
    for agent in lost:
        assert isinstance(agent.where, Mbarrier)
        text = f"{m.label(agent.where.address)} holds no mbarrier"
        m.problem("UB201", text, agent, ops.performed_operation(agent.code[agent.pc]))
        if _still_to_come(stuck, ops.MbarrierInit, agent.where, agent):
            mbarrier_reordering.note_lost_object(m, agent.code[agent.pc], "made")
    for bar in m.mbarriers.values():
        _found_too_early(m, bar, stuck)
    mbarrier_reordering.note_unordered_init(m)
    for signal in m.signals.values():
        text = f"{m.label(signal.address)} holds no mbarrier"
        m.problem("UB201", text, m.agents[signal.agent], signal.event.op, signal.event)
    for agent in stuck:
        if isinstance(agent.where, Mbarrier) and agent not in lost:
            enter_endless_wait(m, agent, agent.where)
        elif isinstance(agent.where, Word):
            enter_failed_reads(m, agent)
    _late(m)
    for bar in m.mbarriers.values():
        if bar.state is not None:
            note_deferrable(m, bar, ended=True)  # an expectation keeps a phase open that could be complete before it
    if lost or m.signals or any(a.status == "undefined" for a in m.agents) or m.ended == "undefined":
        m.ended = "undefined"  # somebody stopped where the rules do: that others wait for it says nothing
        return
    if stuck and m.parted:
        m.ended = "cut"  # what they wait for may have come
        return
    if stuck:
        m.ended = "stuck"
        m.problems.append(deadlock(m, stuck))
    for bar in m.mbarriers.values():
        m.problems += bar.unannounced + find_unannounced_bytes(m, bar)
        _unwaited(m, bar)


def _found_too_early(m: Machine, bar: Mbarrier, stuck: list[Agent]) -> None:
    """What is undefined for there was an object, or none, and might find it otherwise behind what waits forever now,
    perhaps for what would come behind the undefined operation.
    """
    for done in bar.failed:
        if done.kind == UNTIL_IT_ENDS and _still_to_come(stuck, ops.MbarrierInval, bar):
            mbarrier_reordering.note_lost_object(m, done.event.op, "gone")
        elif done.phase < 0 and _still_to_come(stuck, ops.MbarrierInit, bar):
            mbarrier_reordering.note_lost_object(m, done.event.op, "made")


def _still_to_come(
    stuck: list[Agent], kind: type[ops.MbarrierInit | ops.MbarrierInval], bar: Mbarrier, but: Agent | None = None
) -> bool:
    """Whether one of some agents has an operation of a kind on an object before it."""
    rest = (op for agent in stuck if agent is not but for op in agent.code[agent.pc :] if isinstance(op, kind))
    return any(word_of(op.address) in (bar.address, ANY_WORD) for op in rest)


def _otherwise(agent: Agent) -> bool:
    """Whether an agent goes a way that is not in the program."""
    op = agent.code[agent.pc] if agent.pc < len(agent.code) else None
    return isinstance(op, ops.Await) and op.followed


def _unwaited(m: Machine, bar: Mbarrier) -> None:
    """Phases for which no wait returned true although an arrive of the next phase follows (9.7.13.15.4)."""
    for (life, phase), event in bar.arrived.items():
        if phase == 0 or (life, phase - 1) in bar.waited:
            continue
        if (life, phase - 1) in bar.glimpsed:
            m.overtaken = m.overtaken or REASON  # behind the arrival it may find another phase, or may not
        else:
            agent = m.agents[m.names[event.uid[0]]]
            name = m.label(bar.address)
            text = f"arrives in phase {phase} of {name} although no wait has returned true for phase {phase - 1}"
            more = "" if bar.state is None else f" {name} counts {bar.state.expected}{_began(m, bar, life, phase - 1)}."
            m.problem("UB212", text, agent, event.op, event, catalogue.get("UB212").remedy + more)


def _began(m: Machine, bar: Mbarrier, life: int, phase: int) -> str:
    """Who arrived first in a phase, if anybody did."""
    first = bar.arrived.get((life, phase))
    if first is None:
        return ""
    who = names(m, [m.agents[m.names[first.uid[0]]]])
    return f"; the first to arrive in phase {phase} was {who}, at line {line_of(first.op)}"


def _late(m: Machine) -> None:
    """What only the end tells: uses of objects and of shared memory that nothing keeps within their lives."""
    alive = {a.place[2] for a in m.agents if a.status != "done"}
    for name, slot in m.window.find_final_flags():
        entry = m.window.entries[slot]
        assert entry is not None
        event = entry.event
        assert event is not None
        if name in OF_EXITS and m.owner_of(event) in alive:
            continue
        use_of_object(m, name, m.names[entry.thread], event, None)


OF_EXITS = frozenset(("UB501", "UB502", "UB504"))
"""Flags about the exits of a CTA, all of whose threads must have exited."""
