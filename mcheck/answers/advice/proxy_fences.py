"""Proxy fences that two accesses lack, where to put them, and why those that are there do not do (8.6, 8.9.5)."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.answers.advice.graph import ExecutionGraph, Step, line_of
from mcheck.answers.advice.scope_mismatch import narrowest_common_scope, scope_of
from mcheck.cat.tags import Tag
from mcheck.findings import catalogue
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.scopes import WIDTH


def suggest_proxy_fence(g: ExecutionGraph) -> str:
    """The proxy fence after a write, before its bytes are handed over."""
    first, second = line_of(g.old.op), line_of(g.new.op)
    if g.place(g.old.agent).cta.number != g.place(g.new.agent).cta.number:
        return (
            f"Execute fence.proxy.async after line {first}, before its CTA releases the bytes, "
            f"and execute fence.proxy.async before line {second}, after the acquire in that CTA."
        )
    fence = "fence.proxy.async.global" if g.old.is_global else "fence.proxy.async.shared::cta"
    over = find_release(g, g.old.agent, g.old.position)
    if over is not None and over is not g.new.op:
        who = "in every thread that executes it, " if _executed_by_several(g, g.old.op) else ""
        return f"Execute {fence} after line {first}, {who}before the hand-over at line {line_of(over)}."
    if g.old.agent == g.new.agent:
        return f"Execute {fence} after line {first}, before line {second}."
    return f"Execute {fence} after line {first}, in every thread that executes it, before it hands the bytes over."


def _executed_by_several(g: ExecutionGraph, op: Op) -> bool:
    return sum(any(o.span == op.span for o in t.code) for t in g.program.threads) > 1


def find_release(g: ExecutionGraph, agent: int, position: int, step: int | None = None) -> Op | None:
    """The first release of an agent after a position of the graph (and before a step)."""
    for entry in g.own_steps(agent, position + 1):
        if (step is None or entry.step < step) and is_release(entry):
            return entry.op
    return None


def is_release(entry: Step) -> bool:
    """Whether a step hands over what comes before it, if its semantics do: a strong write, a barrier, an arrive."""
    op = entry.op
    writes = isinstance(op, ops.ScalarWrite) and op.sem != "weak"
    return entry.signal < 0 and (writes or op.facets.synchronises or isinstance(op, ops.MbarrierArrive))


def explain_idle_proxy_fences(g: ExecutionGraph) -> str:
    """Why no proxy fence of this execution lies on the way from one access to the other."""
    space = "global" if g.old.is_global else "shared"
    remarks: list[str] = []
    others: dict[int, str] = {}
    for entry in g.steps[g.old.position :]:
        op = entry.op
        if not isinstance(op, ops.ProxyFence) or op.kind != "async" or op.span is None:
            continue
        where = f"the fence.proxy.async at line {op.span.line}"
        if not _covers_space(op, space):
            named = ", ".join(sorted(op.spaces)) or op.restrict or "another space"
            remarks.append(f"{where} is for {named}, not for these bytes")
        elif entry.agent == g.old.agent:
            release = find_release(g, entry.agent, g.old.position, entry.step)
            if release is not None:
                remarks.append(f"{where} comes after the hand-over at line {line_of(release)}")
        elif entry.agent != g.new.agent:
            covers = f"it covers what that thread wrote or took over, not this write of {g.name(g.old.agent)}"
            others.setdefault(op.span.line, f"{where} is executed by {g.name(entry.agent)}: {covers}")
    for line, text in others.items():
        mine = [k for k, e in enumerate(g.steps) if e.agent == g.old.agent and line_of(e.op) == line]
        if not mine:
            remarks.append(text)
        elif mine[-1] < g.old.position:  # else lanes execute it side by side
            remarks.append(f"the fence.proxy.async at line {line} comes before line {line_of(g.old.op)}")
    text = "; ".join(list(dict.fromkeys(remarks))[:2])
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _covers_space(op: ops.ProxyFence, space: str) -> bool:
    spaces = op.spaces | ({op.restrict} if op.restrict else set())
    return not spaces or any(str(s).startswith(space) for s in spaces)


def suggest_fence_after_wait(g: ExecutionGraph) -> str:
    """The proxy fence after the wait for a cp.async; empty if no wait for it was executed."""
    for agent, step in g.old.waits:
        waited = g.step_at(agent, step)
        if waited is not None:
            return f"Execute fence.proxy.async.shared::cta after line {line_of(waited.op)}, which waits for the copy."
    return ""


def suggest_alias_fence(g: ExecutionGraph) -> str:
    """The fence for accesses to the same bytes by two addresses (8.6, 8.10.6); empty if the address is the same."""
    one, other = g.old.event, g.new.event
    if one.virtual - one.address == other.virtual - other.address:
        return ""
    first, second = line_of(one.op), line_of(other.op)
    why = "they name the same memory by different addresses."
    strong = not {Tag.WEAK} & (one.tags | other.tags)
    if Tag.MULTIMEM in one.tags | other.tags and strong and g.old.agent != g.new.agent:
        return (
            f"Signal at line {first} and wait at line {second} by one kind of address, both by the multimem address or "
            "both by those of the copies: a release by the one does not synchronise with an acquire by the other (8.7)."
        )
    if g.old.agent == g.new.agent:
        return f"Execute fence.proxy.alias after line {first}, before line {second}: {why}"
    return (
        f"Execute fence.proxy.alias on the way from line {first} to line {second}, in either thread, beside the "
        f"release and the acquire or the barrier that orders them: {why}"
    )


# --- tensor maps ------------------------------------------------------------------------------------------------


def suggest_tensormap_fences(g: ExecutionGraph) -> str:
    """The missing halves of the tensormap fence, or what is wrong with the present ones."""
    scope = narrowest_common_scope(g.place(g.old.agent), g.place(g.new.agent))
    scope = max(scope, "gpu", key=WIDTH.__getitem__)
    text = " and ".join(filter(None, (_suggest_tensormap_release(g, scope), _suggest_tensormap_acquire(g, scope))))
    if not text:
        return catalogue.get("RACE009").remedy
    apart = g.old.agent != g.new.agent
    between = "; between the two, threads need a release and an acquire of that scope" if apart else ""
    return f"{text[0].upper()}{text[1:]}{between}."


def _suggest_tensormap_release(g: ExecutionGraph, scope: str) -> str:
    """What is wrong with the release half, empty if nothing is."""
    mine = (e for e in g.steps[g.old.position :] if e.agent == g.old.agent)
    there = [e.op for e in mine if is_tensormap_fence(e.op, "release")]
    if isinstance(g.old.op, ops.TensormapCopyFence):
        there.append(g.old.op)
    if not there:
        return f"execute fence.proxy.tensormap::generic.release.{scope} after line {line_of(g.old.op)}"
    return _suggest_tensormap_scope(there, scope)


def _suggest_tensormap_acquire(g: ExecutionGraph, scope: str) -> str:
    """What is wrong with the acquire half, which comes after the write and names the map."""
    old, new = g.old, g.new
    there = [e for e in g.steps if e.agent == new.agent and is_tensormap_fence(e.op, "acquire")]
    own = old.agent == new.agent
    behind = [e.op for e in there if (e.step > old.step if own else e.time[old.agent] >= old.step)]
    name = g.label(new.event.address)
    fence = f"fence.proxy.tensormap::generic.acquire.{scope} [{name}], 128 before line {line_of(new.op)}"
    if not there:
        return f"execute {fence}"
    if not behind:
        over = f"line {line_of(old.op)}" if own else f"what {g.name(old.agent)} hands over"
        return f"execute {fence}, for the one at line {line_of(there[-1].op)} comes before {over}"
    named = [op for op in behind if not _names_other_map(op, new.event.address)]
    if not named:
        return f"execute {fence}, for the one at line {line_of(behind[-1])} names another map"
    return _suggest_tensormap_scope(named, scope)


def _suggest_tensormap_scope(fences: Sequence[Op], scope: str) -> str:
    """What is wrong with the scope of halves; empty if one of them is wide enough."""
    given = [scope_of(op) or "sys" for op in fences]
    if any(WIDTH[one] >= WIDTH[scope] for one in given):
        return ""
    return f"give scope .{scope} instead of .{given[-1]} at line {line_of(fences[-1])}"


def _names_other_map(op: Op, address: int) -> bool:
    return isinstance(op, ops.ProxyFence) and isinstance(op.address, Const) and op.address.value != address


def is_tensormap_fence(op: Op, half: str) -> bool:
    """Whether an operation is a half of the tensormap fence."""
    return isinstance(op, ops.ProxyFence) and op.kind == "tensormap" and op.half == half
