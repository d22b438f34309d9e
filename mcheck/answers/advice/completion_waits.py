"""The wait that an access lacks for an asynchronous operation, and where to hand over what it made (8.9.1.1)."""

from __future__ import annotations

from mcheck.answers.advice.async_groups import (
    alternative_order_before_issue,
    explain_late_wait,
    find_group_wait,
    find_wait_before_own_access,
    has_waited,
    is_committed,
    order_before_issue,
    pending_groups_note,
    wait_for_completion,
    wait_of_group,
)
from mcheck.answers.advice.graph import ExecutionGraph, line_of
from mcheck.answers.advice.proxy_fences import is_release, is_tensormap_fence, suggest_tensormap_fences
from mcheck.answers.advice.stage_reuse import ReadPhase, classify_stage_read
from mcheck.cat.tags import Tag
from mcheck.ir import ops
from mcheck.ir.ops import Op


def suggest_completion_wait(g: ExecutionGraph) -> str:
    """The wait for an asynchronous operation that a later access needs."""
    old, new = g.old, g.new
    op, second = old.op, line_of(new.op)
    mechanism, what = _completion_mechanism(g)
    if new.proxy == Tag.TMAP:
        releases = [e.op for e in g.steps[old.position :] if is_tensormap_fence(e.op, "release")]
        if old.waits or not releases:
            return suggest_tensormap_fences(g)
        return f"{mechanism} before line {line_of(releases[0])}, which releases the map to its readers."
    relaxed = _suggest_acquire(g) if what == "mbar" else ""
    if relaxed:
        return relaxed
    if old.agent == new.agent and (len(g.agents[old.agent].threads) == 1 or isinstance(op, ops.Wgmma)):
        mechanism, later = wait_of_group(g, new.position) if what == "group" else (mechanism, 0)
        told = " and hand over" if mechanism.startswith("Let") else ""
        return f"{mechanism}{told} before line {second}. {pending_groups_note(later)}".strip()
    issuer = g.name(old.agent)
    if not old.write and new.time[old.agent] < old.step:
        waited = find_group_wait(g) if what == "group" else None
        executed = [count_executions(g, a.agent, a.op, a.step) for a in (old, new)]
        if waited is not None and executed[1] > executed[0]:
            return (
                f"After the wait at line {line_of(waited)} in {issuer}, hand over to line "
                f"{second}: a barrier, or a release that is acquired. Or, if line {second} belongs before it: "
                f"fence.proxy.async, then hand over to line {line_of(op)}."
            )
        return (
            f"Hand line {second} over before line {line_of(op)} is issued: fence.proxy.async, then a barrier or a "
            f"release that is acquired. Or, if it belongs behind it: {mechanism[0].lower()}{mechanism[1:]} in "
            f"{issuer}, then hand over."
        )
    if what == "group":
        return _suggest_group_wait(g, mechanism)
    if mechanism.startswith("Let"):
        return f"{mechanism} and hand over before line {second}."
    return f"{mechanism} before line {second}, or take over from a thread that did."


def suggest_wait_for_first_fill(g: ExecutionGraph) -> str:
    """The wait that an access lacks if the copy behind it is the first to fill its bytes, and signals an mbarrier:
    whatever a read is meant to see, it is not what was there before. A write may be meant to come before the copy,
    unless the thread that issues the copy executes it only behind that. Empty if something else filled the bytes.
    """
    old, new = g.old, g.new
    if not new.write or getattr(new.op, "mbar", None) is None:
        return ""
    if old.write and not _is_executed_after_issue(g):
        return ""
    if any(r.write and r.is_complete_before(old.agent, old.step, old.time) for r in g.others):
        return ""
    first, second = line_of(old.op), line_of(new.op)
    if old.write:
        return f"{_wait_for_phase(new.op)} before line {first}, or take over from a thread that did."
    instead = alternative_order_before_issue(first, second, fence=old.proxy != new.proxy)
    return f"{_wait_for_phase(new.op)} before line {first}, or take over from a thread that did. {instead}"


def _is_executed_after_issue(g: ExecutionGraph) -> bool:
    """Whether the thread that issues the later access, a copy, executes the statement of the earlier one behind that,
    and not before.
    """
    code, issued = g.agents[g.new.agent].code, g.steps[g.new.position].pc
    places = [k for k, op in enumerate(code) if op.span == g.old.op.span]
    return bool(places) and issued >= 0 and min(places) > issued


def _suggest_group_wait(g: ExecutionGraph, mechanism: str) -> str:
    """The wait of the issuing thread, and the hand-over to the other one."""
    old, second = g.old, line_of(g.new.op)
    met = classify_stage_read(g)
    if met is ReadPhase.NEXT:
        return order_before_issue(second, line_of(old.op))
    instead = alternative_order_before_issue(second, line_of(old.op)) if met is ReadPhase.EITHER else ""
    over = _last_release_known(g)
    waited = None
    if over is not None:
        number = count_executions(g, g.new.agent, g.new.op, g.new.step) + 1
        waited = find_wait_before_own_access(g, number, over)
    if waited is None and over is not None and not has_waited(g, over):
        mechanism, later = wait_of_group(g, over)
        released = g.steps[over]
        also = " ".join(filter(None, (pending_groups_note(later), explain_late_wait(g, released.pc), instead)))
        return f"{mechanism} before line {line_of(released.op)}, which hands the bytes over. {also}".strip()
    waited = waited or find_group_wait(g)
    how = f"hand over to line {second}: a barrier, or a release that is acquired. {instead}".strip()
    if waited is not None:
        return f"After the wait at line {line_of(waited)} in {g.name(old.agent)}, {how}"
    return f"{mechanism} in {g.name(old.agent)}, then {how}"


def _suggest_acquire(g: ExecutionGraph) -> str:
    """The fence that turns the thread's own relaxed wait for an operation into an acquire."""
    if not any(s.bound is not None and g.new.time[s.clock] > s.bound for s in g.old.signals):
        return ""
    own = (ops.performed_operation(e.op) for e in reversed([*g.own_steps(g.new.agent)]))
    wait = next((op for op in own if isinstance(op, ops.MbarrierWait)), None)
    if wait is None or wait.sem != "relaxed":
        return ""
    return f"Execute fence.acquire.{wait.scope} after line {line_of(wait)}, whose wait is relaxed and acquires nothing."


def _completion_mechanism(g: ExecutionGraph) -> tuple[str, str]:
    """How to wait for an operation, and whether by a group, which belongs to the issuing thread."""
    op, signals = g.old.op, g.old.signals
    if signals:
        names = [f"phase {s.phase} (parity {s.phase % 2}) of {s.name}" for s in signals]
        cta = g.place(g.new.agent).cta
        far = any(s.cta is not None and s.cta != cta for s in signals)
        who = "Let a thread of its CTA wait" if far else "Wait"  # only the owner's threads may (9.7.13.15.16)
        return f"{who} for {' and '.join(names)}, which the operation at line {line_of(op)} completes,", "mbar"
    text = wait_for_completion(op, write=g.old.is_modification, later=0 if is_committed(g) else None)
    if text is not None:
        return text, "group"
    if getattr(op, "mbar", None) is not None:
        return _wait_for_phase(op), "mbar"
    return f"Wait for the completion of line {line_of(op)}", "mbar"


def _wait_for_phase(op: Op) -> str:
    return f"Wait for the phase of the mbarrier that line {line_of(op)} signals"


def _last_release_known(g: ExecutionGraph) -> int | None:
    """The last release after the issue of which the other agent knows, as a position in the graph."""
    for k in range(min(g.new.position, len(g.steps)) - 1, g.old.position, -1):
        entry = g.steps[k]
        if entry.agent == g.old.agent and is_release(entry) and g.new.time[entry.agent] >= entry.step:
            return k
    return None


def count_executions(g: ExecutionGraph, agent: int, op: Op, step: int) -> int:
    """How often an agent has executed a statement before a step."""
    return sum(1 for e in g.own_steps(agent) if e.step < step and e.op.span == op.span)
