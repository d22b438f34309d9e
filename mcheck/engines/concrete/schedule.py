"""The scheduler of a concrete execution: threads run a few instructions in turn, tasks proceed at random points
between.

Tasks proceed at the latest when no thread can.
"""

from __future__ import annotations

from mcheck.answers.step_text import deadlock_code
from mcheck.base.errors import Unsupported
from mcheck.engines.concrete import aligned_execution
from mcheck.engines.concrete.execute import handler_of
from mcheck.engines.concrete.execution_barriers import release_exited, release_partial_warps
from mcheck.engines.concrete.machine import Machine, Runner, Undefined
from mcheck.findings.suppress import is_suppressed
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.semantics.undefined import Misuse

QUANTA = (1, 2, 4, 16, 64)
"""Numbers of instructions that a thread may run before the next thread."""
MAX_STEPS = 20_000_000


def run(m: Machine) -> None:
    """Runs until every thread has ended and every asynchronous operation is complete, or nothing can proceed."""
    try:
        while _round(m):
            pass
        while m.tasks:
            m.perform_half(m.rng.choice(m.tasks))
    except Undefined:
        return
    if any(not r.ended for r in m.runners):
        _stuck(m)


def _round(m: Machine) -> bool:
    """Runs every thread that can proceed once; whether anything happened."""
    order = [r for r in m.runners if not r.ended]
    if not order:
        return False
    m.deadline()
    m.rng.shuffle(order)
    before = m.changes, m.steps
    for runner in order:
        _turn(m, runner)
        while m.tasks and m.rng.random() < 0.25:
            m.perform_half(m.rng.choice(m.tasks))
    if (m.changes, m.steps) != before:
        return True
    if m.tasks:
        m.perform_half(m.rng.choice(m.tasks))
        return True
    return release_partial_warps(m)


def _turn(m: Machine, runner: Runner) -> None:
    if runner.asleep_at == m.changes:
        return
    for _ in range(m.rng.choice(QUANTA)):
        if runner.ended:
            return
        if runner.wake_condition is not None:
            if not _may_go_on(m, runner):
                return
            runner.wake_condition = None
        _step(m, runner)
        if runner.asleep_at == m.changes:
            return


def _may_go_on(m: Machine, runner: Runner) -> bool:
    assert runner.wake_condition is not None
    try:
        return runner.wake_condition()
    except Misuse as misuse:
        op = runner.thread.code[max(runner.pc - 1, 0)]
        raise m.report_undefined(misuse, runner.thread.index, op) from None


def _step(m: Machine, runner: Runner) -> None:
    code = runner.thread.code
    if runner.pc >= len(code):
        m.end_thread(runner)
        release_exited(m, runner)
        aligned_execution.check_exited_lane(m, runner)
        return
    m.steps += 1
    if m.steps > MAX_STEPS:
        raise Unsupported(f"the execution has not ended after {MAX_STEPS} instructions")
    op = code[runner.pc]
    if op.guard is not None:
        taken = m.value(runner, op.guard.reg)
        if taken is None:
            taken = m.choose(f"the guard of '{op.text}'")
        if bool(taken) == op.guard.negated:
            runner.pc += 1
            return
    here = runner.pc
    try:
        aligned_execution.check_aligned(m, runner, op)
        handler_of(op)(m, runner, op)
        if runner.ended:
            release_exited(m, runner)
            aligned_execution.check_exited_lane(m, runner)
    except Misuse as misuse:
        undefined = m.report_undefined(misuse, runner.thread.index, op)
        if isinstance(op, ops.Await) or not is_suppressed(m.program.source, m.program.path, misuse.code, op.span):
            raise undefined from None
        runner.pc = here + 1  # what the file accepts has no effect here


def _stuck(m: Machine) -> None:
    """Reports the deadlock of this execution: nothing can proceed although threads have not ended."""
    groups: dict[tuple[str, str], list[Runner]] = {}
    for runner in m.runners:
        if runner.ended:
            continue
        op = _standing_at(runner)
        code = deadlock_code(op)
        groups.setdefault((code, op.text), []).append(runner)
    for (code, text), runners in groups.items():
        first = runners[0]
        others = f" and {len(runners) - 1} more" if len(runners) > 1 else ""
        message = f"{first.thread.name}{others} cannot get past '{text}' in this execution{_why(m, first)}"
        m.report(code, message, first.thread.index, _standing_at(first))


def _standing_at(runner: Runner) -> Op:
    at = runner.pc - 1 if runner.wake_condition is not None else runner.pc
    code = runner.thread.code
    at = min(max(at, 0), len(code) - 1)
    while isinstance(code[at], ops.Label) and at + 1 < len(code):
        at += 1
    return code[at]


def _why(m: Machine, runner: Runner) -> str:
    op = _standing_at(runner)
    inner = ops.performed_operation(op)
    if not isinstance(inner, ops.MbarrierWait):
        return ""
    address = m.value(runner, inner.address)
    state = m.barriers.get(address) if address is not None else None
    if state is None:
        return ""
    return f": the mbarrier is in phase {state.phase} with {state.pending} arrivals and {state.tx} bytes pending"
