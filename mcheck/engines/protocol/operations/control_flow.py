"""Local computation and control flow: labels, guards, branches, loops, exits."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.engines.protocol.analysis.lane_groups import Split, may_group
from mcheck.engines.protocol.execution.executors import executes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.unrolling_limit import (
    MAX_ENDLESS_ITERATIONS,
    describe_iterations,
    format_line,
    max_iterations,
)
from mcheck.engines.protocol.state.agent import Agent
from mcheck.ir import ops
from mcheck.ir.def_use import registers_of
from mcheck.ir.ops import Op


def run_local(m: Machine, agent: Agent) -> Op | None:
    """Run local operations up to the next one that others may observe; ``None`` if the agent stops before one."""
    code = agent.code
    heads = m.setup.loop_heads[agent.index]
    while True:
        if agent.pc >= len(code):
            _leave(agent)
            return None
        if agent.pc in heads and not _enter_loop_head(m, agent):
            return None
        op = code[agent.pc]
        if isinstance(op, ops.Label):
            agent.pc += 1
            continue
        if op.guard is not None or isinstance(op, ops.Branch):
            return op
        if isinstance(op, ops.Exit):
            _leave(agent)
            return None
        if isinstance(op, ops.Alu):
            _compute(m, agent)
            agent.pc += 1
            continue
        return op


def apply_guard(m: Machine, agent: Agent, op: Op) -> bool:
    """Whether a guarded operation runs; split the agent where lanes disagree."""
    assert op.guard is not None
    value = m.uniform_value(agent, op.guard.reg)
    m.add_branch_dependency(agent, [op.guard.reg.name])
    return m.decide_condition(value) is not op.guard.negated


def evaluate_guard(m: Machine, agent: Agent, op: Op) -> bool:
    """Whether the operation's guard lets it run; if not, skip the operation."""
    if op.guard is None:
        return True
    if not apply_guard(m, agent, op):
        agent.pc += 1
        return False
    if not agent.is_single_thread and not may_group(op, m.setup.sc_order_matters):
        raise Split([(t,) for t in agent.threads])
    return True


@executes(ops.Branch)
def execute_branch(m: Machine, agent: Agent, op: Op) -> None:
    """Execute a branch."""
    assert isinstance(op, ops.Branch)
    taken = True
    if op.guard is not None:
        taken = apply_guard(m, agent, op)
    if taken and op.condition is not None:
        m.add_branch_dependency(agent, registers_of(op.condition))
        taken = m.decide_condition(m.uniform_value(agent, op.condition))
    if not taken:
        agent.pc += 1
        return
    agent.pc = m.program.threads[agent.threads[0]].labels[op.target]


@executes(ops.Exit)
def exit_thread(m: Machine, agent: Agent, op: Op) -> None:
    """Execute a guarded exit."""
    if op.guard is not None and not apply_guard(m, agent, op):
        agent.pc += 1
        return
    _leave(agent)


@executes(ops.UnknownContinuation)
def stop_unfollowed(m: Machine, agent: Agent, op: Op) -> None:
    """Stop at a place from which the thread's code is not known; how those go on that wait for it is unknown as
    well.
    """
    assert isinstance(op, ops.UnknownContinuation)
    where = f" (line {op.span.line})" if op.span is not None else ""
    m.not_followed = f"{m.name(agent)}: {op.reason}{where}"
    agent.status = "cut"


@executes(ops.DivergentAligned)
def report_divergent(m: Machine, agent: Agent, op: Op) -> None:
    """Report an ``.aligned`` instruction that other lanes of the warp do not execute."""
    m.emit(agent, 0, op)
    agent.pc += 1


@executes(ops.Trap)
def trap(m: Machine, agent: Agent, op: Op) -> None:
    """Report a trap that is reached."""
    if not evaluate_guard(m, agent, op):
        return
    m.emit(agent, 0, op)
    agent.pc += 1


@executes(ops.AssumedValue)
def check_followed_value(m: Machine, agent: Agent, op: Op) -> None:
    """Continue if the thread has read a value for which its code was recorded."""
    assert isinstance(op, ops.AssumedValue)
    value = m.uniform_value(agent, op.reg)
    number = value % (1 << 8 * op.size) if isinstance(value, int) else None
    deviates = number is not None and not any(low <= number <= high for low, high in op.values)
    if op.branch >= 0:
        if number is None:
            m.note_bound(f"one of several branches{format_line(op.span)}")
        else:
            m.branch_values.update((t, op.branch, number) for t in agent.threads)
            m.takes_other_branch = m.takes_other_branch or deviates
    elif deviates:
        m.note_bound(f"one of several branches{format_line(op.span)}")
    if deviates:
        agent.status = "cut"
        return
    agent.pc += 1


@executes(ops.Alu)
def execute_alu(m: Machine, agent: Agent, op: Op) -> None:
    """Execute a guarded computation."""
    if op.guard is None or apply_guard(m, agent, op):
        _compute(m, agent)
    agent.pc += 1


def _compute(m: Machine, agent: Agent) -> None:
    """Compute in every lane, and propagate the reads that the results depend on."""
    threads = m.program.threads
    for k in range(len(agent.lanes)):
        op = threads[agent.threads[k]].code[agent.pc]
        m.emit(agent, k, op)
        known = agent.sources[k]
        if known:
            assert isinstance(op, ops.Alu)
            mask = m.find_sources(agent, k, [n for src in op.srcs for n in registers_of(src)])
            for reg in op.dsts:
                if reg is not None:
                    known[reg.name] = mask


def _leave(agent: Agent) -> None:
    """Mark the thread as leaving; ``mcheck.engines.protocol.operations.termination`` handles its exit."""
    agent.status = "leaving"


def _enter_loop_head(m: Machine, agent: Agent) -> bool:
    """Enter a loop iteration; false if the agent has to wait because another iteration would repeat the last one."""
    head = agent.pc
    agent.loop_iterations[head] = agent.loop_iterations.get(head, 0) + 1
    state = tuple(sorted(agent.lanes[0].registers.items(), key=lambda kv: kv[0]))
    before = agent.loop_visits.get(head)
    if before is None or before[1] != agent.effect_count:
        count = before[2] + 1 if before is not None else 0
        thread = m.program.threads[agent.threads[0]]
        if count > MAX_ENDLESS_ITERATIONS and count > max_iterations(thread, head):
            m.note_bound(describe_iterations(thread, head, count - 1))
            agent.status = "cut"
            return False
        agent.loop_visits[head] = (state, agent.effect_count, count)
        agent.polled_versions = {}
        agent.spinning = False
        return True
    if agent.status == "run" and agent.polled_versions and _states_match(before[0], state):
        unchanged = all(_current_version(m, where) == version for where, version in agent.polled_versions.items())
        if unchanged:
            agent.status = "blocked"
            agent.blocked_on = list(agent.polled_versions)
            return False
    agent.loop_visits[head] = (state, agent.effect_count, before[2])
    agent.polled_versions = {}
    # An iteration like the previous one observes nothing that an earlier one could not have observed.
    carried = m.setup.deciding_registers(agent.index, head)
    agent.spinning = _states_match(*([pair for pair in s if pair[0] in carried] for s in (before[0], state)))
    return True


def _states_match(a: Sequence[tuple[str, object]], b: Sequence[tuple[str, object]]) -> bool:
    """Whether two register states are equal; any unknown values are equal."""
    return len(a) == len(b) and all(
        x == y or (x[0] == y[0] and isinstance(x[1], tuple) and isinstance(y[1], tuple))
        for x, y in zip(a, b, strict=True)
    )


def _current_version(m: Machine, where: object) -> int:
    """The version of a polled object: the phase of an mbarrier, the number of writes to a word."""
    if isinstance(where, tuple) and where[0] == "mbarrier":
        state = m.mbarriers[where[1]].state
        return -1 if state is None else state.phase
    if isinstance(where, tuple):
        return m.tracked_words[where[1]].version
    return 0
