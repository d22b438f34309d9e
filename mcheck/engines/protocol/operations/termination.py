"""Termination: exits of threads, deadlocks, and obligations left at the end of an execution."""

from __future__ import annotations

from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import Phrase, say
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.delayed_waits import REASON
from mcheck.engines.protocol.analysis.shared_words import ANY_WORD, word_of
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.unrolling_limit import format_line
from mcheck.engines.protocol.operations import aligned_instructions, mbarrier_reordering, wgmma
from mcheck.engines.protocol.operations.blocked_waits import note_other_orders
from mcheck.engines.protocol.operations.deadlocks import describe_deadlock
from mcheck.engines.protocol.operations.execution_barriers import complete_cluster_barrier, try_complete
from mcheck.engines.protocol.operations.failed_attempts import enter_failed_reads
from mcheck.engines.protocol.operations.mbarrier_updates import REINITIALISED, find_unannounced_bytes
from mcheck.engines.protocol.operations.mbarrier_waits import enter_endless_wait
from mcheck.engines.protocol.operations.phase_deferral import note_deferrable
from mcheck.engines.protocol.operations.races import report_object_use
from mcheck.engines.protocol.operations.thread_names import format_threads
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Mbarrier, Word
from mcheck.events.event import Event
from mcheck.findings import catalogue
from mcheck.findings.fix import Note
from mcheck.ir import ops
from mcheck.ir.ops import Exit


def leave_barriers(m: Machine, agent: Agent) -> None:
    """Handle the exit of a thread: barriers no longer wait for it (an exit orders nothing)."""
    agent.exit_time = agent.current_time()
    aligned_instructions.check_exit(m, agent)
    if m.setup.exits_matter:
        op = agent.code[-1] if agent.code else Exit()
        agent.step += 1
        event = Event((agent.threads[0], 0), op, frozenset((Tag.EXIT,)), 0, agent.step, agent.placement[2])
        for entry in m.add_event(agent, event):
            m.exits[agent.index] = m.exits.get(agent.index, 0) | entry.bit
    for state in agent.lanes:
        for uid in state.unfinished():
            op = state.events[uid[1]].op
            text = "exits without waiting until this copy has read its source in shared memory"
            m.report_problem("UB501", text, agent, op)
    m.wake(wgmma.GROUPS)
    for barrier in list(m.barriers.values()):
        if agent.index in barrier.members:
            if barrier.key[0] == "cluster":
                complete_cluster_barrier(m, barrier)
            elif barrier.key[-1] == "aligned":
                aligned_instructions.complete_warp(m, barrier)
            elif barrier.key[0] == "lanes":
                wgmma.complete_collective(m, barrier)
            else:
                try_complete(m, barrier, give_up_missing=False)
    complete_counted_barriers(m)


def complete_counted_barriers(m: Machine) -> None:
    """Complete barriers with a count that wait only for lanes of threads that have stopped."""
    for barrier in list(m.barriers.values()):
        if barrier.count is not None:
            try_complete(m, barrier, give_up_missing=False)


def finish_execution(m: Machine) -> None:
    """Finish an execution in which no agent can run: all have ended, or some wait forever."""
    if any(a.status == "cut" for a in m.agents):
        note_other_orders(m)
        m.outcome = "cut"
        return
    stuck = [a for a in m.agents if a.status in ("blocked", "standing")]
    other = next((a for a in stuck if _takes_other_branch(a)), None)
    if other is not None:
        m.note_bound(f"one of several branches{format_line(other.code[other.pc].span)}")
        m.outcome = "cut"
        return
    lost = [a for a in stuck if isinstance(a.blocked_on, Mbarrier) and a.blocked_on.state is None]
    for agent in lost:
        assert isinstance(agent.blocked_on, Mbarrier)
        text = say("{} holds no mbarrier", m.thing_at(agent.blocked_on.address))
        m.report_problem("UB201", text, agent, ops.performed_operation(agent.code[agent.pc]))
        if _is_still_to_come(stuck, ops.MbarrierInit, agent.blocked_on, agent):
            mbarrier_reordering.note_lost_object(m, agent.code[agent.pc], "created")
    for bar in m.mbarriers.values():
        _note_early_finds(m, bar, stuck)
    mbarrier_reordering.note_unordered_init(m)
    for signal in m.signals.values():
        text = say("{} holds no mbarrier", m.thing_at(signal.address))
        m.report_problem("UB201", text, m.agents[signal.agent], signal.event.op, signal.event)
    for agent in stuck:
        if isinstance(agent.blocked_on, Mbarrier) and agent not in lost:
            enter_endless_wait(m, agent, agent.blocked_on)
        elif isinstance(agent.blocked_on, Word):
            enter_failed_reads(m, agent)
    _report_lifetime_flags(m)
    for bar in m.mbarriers.values():
        if bar.state is not None:
            note_deferrable(m, bar, ended=True)  # an expect-tx keeps a phase open that could complete before it
    if lost or m.signals or any(a.status == "undefined" for a in m.agents) or m.outcome == "undefined":
        m.outcome = "undefined"  # undefined behaviour stopped an agent: that others wait for it is no deadlock
        return
    if stuck and m.ambiguous_arrivals:
        m.outcome = "cut"  # what they wait for may have come
        return
    if stuck:
        m.outcome = "stuck"
        m.problems.append(describe_deadlock(m, stuck))
    for bar in m.mbarriers.values():
        m.problems += bar.unannounced_bytes + find_unannounced_bytes(m, bar)
        _report_unwaited_phases(m, bar)


def _note_early_finds(m: Machine, bar: Mbarrier, stuck: list[Agent]) -> None:
    """Note operations that are undefined because an object existed, or did not, and that might find it otherwise after
    what waits forever now, perhaps for an effect of the undefined operation.
    """
    for done in bar.failed_operations:
        if done.kind == REINITIALISED and _is_still_to_come(stuck, ops.MbarrierInval, bar):
            mbarrier_reordering.note_lost_object(m, done.event.op, "invalidated")
        elif done.phase < 0 and _is_still_to_come(stuck, ops.MbarrierInit, bar):
            mbarrier_reordering.note_lost_object(m, done.event.op, "created")


def _is_still_to_come(
    stuck: list[Agent], kind: type[ops.MbarrierInit | ops.MbarrierInval], bar: Mbarrier, but: Agent | None = None
) -> bool:
    """Whether one of some agents has not yet executed an operation of a kind on an object."""
    rest = (op for agent in stuck if agent is not but for op in agent.code[agent.pc :] if isinstance(op, kind))
    return any(word_of(op.address) in (bar.address, ANY_WORD) for op in rest)


def _takes_other_branch(agent: Agent) -> bool:
    """Whether an agent takes a branch that was not recorded."""
    op = agent.code[agent.pc] if agent.pc < len(agent.code) else None
    return isinstance(op, ops.Await) and op.followed


def _report_unwaited_phases(m: Machine, bar: Mbarrier) -> None:
    """Report phases for which no wait returned true although an arrive of the next phase follows (9.7.13.15.4)."""
    for (life, phase), event in bar.first_arrivals.items():
        if phase == 0 or (life, phase - 1) in bar.waited_phases:
            continue
        if (life, phase - 1) in bar.delayed_waited_phases:
            m.reordering = m.reordering or REASON  # after the arrival it may find another phase
        else:
            agent = m.agents[m.agent_of_thread[event.uid[0]]]
            name = m.thing_at(bar.address)
            missed = f"although no wait has returned true for phase {phase - 1}"
            text = say("arrives in {} {}", say("phase {} of {}", str(phase), name), missed)
            fix = catalogue.get("UB212").fix
            if bar.state is not None:
                first, count = _describe_first_arrival(m, bar, life, phase - 1), bar.state.expected
                wants = f"{count} arrival{'s' if count > 1 else ''}"
                fix = fix.noted(Note(say("{} expects {}{}", name, wants, first)))
            m.report_problem("UB212", text, agent, event.op, event, (fix,))


def _describe_first_arrival(m: Machine, bar: Mbarrier, life: int, phase: int) -> Phrase:
    """The first arrival in a phase, if there is one."""
    first = bar.first_arrivals.get((life, phase))
    if first is None:
        return ()
    who = format_threads(m, [m.agents[m.agent_of_thread[first.uid[0]]]])
    return say("; the first to arrive in phase {} was {}, at {}", str(phase), who, site_of(first.op))


def _report_lifetime_flags(m: Machine) -> None:
    """Report flags that only the end decides: uses of objects and shared memory outside their lifetimes."""
    alive = {a.placement[2] for a in m.agents if a.status != "done"}
    for name, slot in m.window.find_final_flags():
        entry = m.window.entries[slot]
        assert entry is not None
        event = entry.event
        assert event is not None
        if name in EXIT_FLAGS and m.owning_cta(event) in alive:
            continue
        report_object_use(m, name, m.agent_of_thread[entry.thread], event, None)


EXIT_FLAGS = frozenset(("UB501", "UB502", "UB504"))
"""Flags about the exit of a CTA, all of whose threads must have exited."""
