"""Proxy fences that two accesses lack, where to put them, and why those that are there do not do (8.6, 8.9.5)."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.answers.advice.graph import ExecutionGraph, Step, line_of, site_of
from mcheck.answers.advice.known_order import is_releasing_fence
from mcheck.answers.advice.scope_mismatch import narrowest_common_scope, releases, scope_of
from mcheck.base.phrase import Code, Phrase, Site, capital, join, say
from mcheck.base.records import replace
from mcheck.cat.tags import Tag
from mcheck.findings import catalogue
from mcheck.findings.fix import Change, Condition, Fix, Given, IdleWait, Insert, Note, Point, Property, advise
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.ops import Op
from mcheck.ir.scopes import WIDTH


def suggest_proxy_fence(g: ExecutionGraph) -> Fix:
    """The proxy fence between an access and what hands its bytes over: as late as it can stand, where it covers the
    other accesses before the hand-over as well, of which unrolled loops make many.
    """
    old, new = g.old, g.new
    if g.place(old.agent).cta.number != g.place(new.agent).cta.number:
        there = _fence("fence.proxy.async", site_of(new.op), False, Given(Condition.AFTER_ACQUIRE))
        return Fix((_before_hand_over(g, "fence.proxy.async", Given(Condition.BEFORE_RELEASE)), there))
    fence = "fence.proxy.async.global" if old.is_global else "fence.proxy.async.shared::cta"
    return Fix((_before_hand_over(g, fence, Given(Condition.BEFORE_ANY_HAND_OVER)),))


def _before_hand_over(g: ExecutionGraph, fence: str, otherwise: Given) -> Insert:
    """The fence before a place at which the thread of the earlier access, and each that makes it, hands over what the
    later one takes over: the first one behind all accesses of its kind to the object. Behind the access, with
    ``otherwise``, if no such place is known.
    """
    first = site_of(g.old.op)
    several = _executed_by_several(g, g.old.op)
    over = next((op for op in _hand_overs(g) if _all_come_to(g, op)), None)
    if over is not None:
        who = (Given(Condition.EACH_THREAD_OF, first),) if several else ()
        return _fence(fence, site_of(over), False, Given(Condition.HANDS_OVER), *who)
    if g.old.agent == g.new.agent:
        return _fence(fence, site_of(g.new.op), False)
    over = find_hand_over(g, g.old.agent, g.old.position)
    until = Given(Condition.BEFORE_HAND_OVER, site_of(over)) if over is not None else otherwise
    return _fence(fence, first, True, *((Given(Condition.EACH_THREAD),) if several else ()), until)


def _hand_overs(g: ExecutionGraph) -> list[Op]:
    """What hands over the earlier access so that the later one knows it; nothing if one thread alone makes both."""
    old, new = g.old, g.new
    if old.agent == new.agent:
        if not _executed_by_several(g, old.op):
            return []
        known = new.step - 1
    else:
        known = new.time[old.agent]
    behind = [e for e in g.own_steps(old.agent, old.position + 1) if e.step <= known]
    while behind and not is_release(behind[-1]):
        behind.pop()  # what it does after the last hand-over is not handed over
    last = max((k for k, e in enumerate(behind) if _is_alike(g, e.op)), default=0)
    return [e.op for e in behind[last:] if is_release(e)]


def _is_alike(g: ExecutionGraph, op: Op) -> bool:
    """Whether an operation writes to the object of the earlier access or, if that is a read, reads it."""
    places = () if op.facets.asynchronous else op.facets.writes if g.old.write else op.facets.reads
    found = [at for name in places if (at := _first_address(getattr(op, name))) is not None]
    home = g.program.memory.find(g.old.event.address) if found and g.old.event.address is not None else None
    return home is not None and any(home is g.program.memory.find(at) for at in found)


def _first_address(at: object) -> int | None:
    return at.value if isinstance(at, Const) else at.values[0] if isinstance(at, Lanes) else None


def _all_come_to(g: ExecutionGraph, over: Op) -> bool:
    """Whether all threads that have made the earlier access come to a place behind it."""
    last = {e.agent: e for e in g.steps if e.signal < 0 and e.op.span == g.old.op.span}
    come = {e.agent for e in g.steps if e.signal < 0 and e.op.span == over.span and e.step > _step(last.get(e.agent))}
    return all(
        agent in come or any(op.span == over.span for op in g.agents[agent].code[max(e.pc, 0) :])
        for agent, e in last.items()
    )


def _step(entry: Step | None) -> int:
    return entry.step if entry is not None else 0


def _fence(code: str, site: Site, after: bool, *given: Given, because: Phrase = ()) -> Insert:
    return Insert(codes=(code,), points=(Point(site, after),), given=given, because=because)


def _executed_by_several(g: ExecutionGraph, op: Op) -> bool:
    return sum(any(o.span == op.span for o in t.code) for t in g.program.threads) > 1


def find_hand_over(g: ExecutionGraph, agent: int, position: int, until: int | None = None) -> Op | None:
    """What first hands over what an agent has done up to a position of the graph (and before a step of its own)."""
    for entry in g.own_steps(agent, position + 1):
        if until is not None and entry.step >= until:
            return None
        if is_release(entry):
            return entry.op
    return None


def is_release(entry: Step) -> bool:
    """Whether a step hands over what comes before it: a barrier, an arrive, a release or the fence that makes one of a
    relaxed write behind it (8.8).
    """
    op = entry.op
    if entry.signal >= 0 or (isinstance(op, ops.ClusterBarrier) and op.kind == "wait"):
        return False
    if isinstance(op, ops.Fence) and op.restrict in ("tensor", "mbarrier_init"):  # fences of something else
        return False
    return op.facets.synchronises or releases(op) or is_releasing_fence(op)


def explain_idle_proxy_fences(g: ExecutionGraph) -> Note | None:
    """Why no proxy fence of this execution lies on the way from one access to the other."""
    space = "global" if g.old.is_global else "shared"
    remarks: list[Phrase] = []
    others: dict[int, Phrase] = {}
    for entry in g.steps[g.old.position :]:
        op = entry.op
        if not isinstance(op, ops.ProxyFence) or op.kind != "async" or op.span is None:
            continue
        where = say("the fence.proxy.async at {}", site_of(op))
        if not _covers_space(op, space):
            named = ", ".join(sorted(op.spaces)) or op.restrict or "another space"
            remarks.append(say("{} is for {}, not for these bytes", where, named))
        elif entry.agent == g.old.agent:
            release = find_hand_over(g, entry.agent, g.old.position, entry.step)
            if release is not None:
                remarks.append(say("{} comes after the hand-over at {}", where, site_of(release)))
        elif entry.agent != g.new.agent:
            covers = f"it covers what that thread wrote or took over, not this write of {g.name(g.old.agent)}"
            others.setdefault(op.span.line, say("{} is executed by {}: {}", where, g.name(entry.agent), covers))
    for line, text in others.items():
        mine = [k for k, e in enumerate(g.steps) if e.agent == g.old.agent and line_of(e.op) == line]
        if not mine:
            remarks.append(text)
        elif mine[-1] < g.old.position:  # else lanes execute it side by side
            fence = site_of(g.steps[mine[-1]].op)
            remarks.append(say("the fence.proxy.async at {} comes before {}", fence, site_of(g.old.op)))
    said = list(dict.fromkeys(remarks))[:2]
    return Note(capital(join(said, "; ", "; "))) if said else None


def explain_wait_without_fence(g: ExecutionGraph) -> IdleWait | None:
    """That a wait of the thread that issues the later access, a copy, comes after the earlier one in time alone."""
    old, new = g.old, g.new
    if not new.asynchronous or old.agent == new.agent:
        return None
    waits = (e for e in g.own_steps(new.agent) if e.step < new.step and e.time[old.agent] >= old.step)
    wait = next((e.op for e in waits if isinstance(ops.performed_operation(e.op), ops.MbarrierWait)), None)
    if wait is None:
        return None
    kind = "write" if old.write else "read"
    return IdleWait(site_of(wait), (f"comes after the {kind} in time, but orders nothing between proxies",))


def _covers_space(op: ops.ProxyFence, space: str) -> bool:
    spaces = op.spaces | ({op.restrict} if op.restrict else set())
    return not spaces or any(str(s).startswith(space) for s in spaces)


def suggest_fence_after_wait(g: ExecutionGraph) -> Fix | None:
    """The proxy fence after the wait for a cp.async; ``None`` if no wait for it was executed."""
    for agent, step in g.old.waits:
        waited = g.step_at(agent, step)
        if waited is not None:
            site, waits = site_of(waited.op), Given(Condition.WAITS_FOR_COPY)
            return Fix((_fence("fence.proxy.async.shared::cta", site, True, waits),))
    return None


def suggest_alias_fence(g: ExecutionGraph) -> Fix | None:
    """The fence for accesses to the same bytes by two addresses (8.6, 8.10.6); ``None`` if the address is the same."""
    one, other = g.old.event, g.new.event
    if one.virtual - one.address == other.virtual - other.address:
        return None
    first, second = site_of(one.op), site_of(other.op)
    why = ("they name the same memory by different addresses",)
    strong = not {Tag.WEAK} & (one.tags | other.tags)
    if Tag.MULTIMEM in one.tags | other.tags and strong and g.old.agent != g.new.agent:
        signal = say("Signal at {} and wait at {} by one kind of address", first, second)
        both = "both by the multimem address or both by those of the copies"
        return advise(
            "{}, {}: a release by the one does not synchronise with an acquire by the other (8.7)", signal, both
        )
    alias = "fence.proxy.alias"
    if g.old.agent == g.new.agent:
        return Fix((_fence(alias, first, True, Given(Condition.BEFORE, second)),), why=why)
    way = say("{} on the way from {} to {}, in either thread", Code(alias), first, second)
    beside = "beside the release and the acquire or the barrier that orders them"
    return advise("Execute {}, {}: {}", way, beside, why)


# --- tensor maps ------------------------------------------------------------------------------------------------


def suggest_tensormap_fences(g: ExecutionGraph) -> Fix:
    """The missing halves of the tensormap fence, or what is wrong with the present ones."""
    scope = narrowest_common_scope(g.place(g.old.agent), g.place(g.new.agent))
    scope = max(scope, "gpu", key=WIDTH.__getitem__)
    halves = (_suggest_tensormap_release(g, scope), _suggest_tensormap_acquire(g, scope))
    steps = tuple(half for half in halves if half is not None)
    if not steps:
        return catalogue.get("RACE009").fix
    apart = g.old.agent != g.new.agent
    between = "between the two, threads need a release and an acquire of that scope"
    return Fix(steps, also=(between,) if apart else ())


def _suggest_tensormap_release(g: ExecutionGraph, scope: str) -> Insert | Change | None:
    """What is wrong with the release half, ``None`` if nothing is."""
    mine = (e for e in g.steps[g.old.position :] if e.agent == g.old.agent)
    there = [e.op for e in mine if is_tensormap_fence(e.op, "release")]
    if isinstance(g.old.op, ops.TensormapCopyFence):
        there.append(g.old.op)
    if not there:
        return _fence(f"fence.proxy.tensormap::generic.release.{scope}", site_of(g.old.op), True)
    return _suggest_tensormap_scope(there, scope)


def _suggest_tensormap_acquire(g: ExecutionGraph, scope: str) -> Insert | Change | None:
    """What is wrong with the acquire half, which comes after the write and names the map."""
    old, new = g.old, g.new
    there = [e for e in g.steps if e.agent == new.agent and is_tensormap_fence(e.op, "acquire")]
    own = old.agent == new.agent
    behind = [e.op for e in there if (e.step > old.step if own else e.time[old.agent] >= old.step)]
    code = f"fence.proxy.tensormap::generic.acquire.{scope} [{g.thing_at(new.event.address)}], 128"
    fence = _fence(code, site_of(new.op), False)
    if not there:
        return fence
    if not behind:
        over = (site_of(old.op),) if own else (f"what {g.name(old.agent)} hands over",)
        return replace(fence, because=say("the one at {} comes before {}", site_of(there[-1].op), over))
    named = [op for op in behind if not _names_other_map(op, new.event.address)]
    if not named:
        return replace(fence, because=say("the one at {} names another map", site_of(behind[-1])))
    return _suggest_tensormap_scope(named, scope)


def _suggest_tensormap_scope(fences: Sequence[Op], scope: str) -> Change | None:
    """What is wrong with the scope of halves; ``None`` if one of them is wide enough."""
    given = [scope_of(op) or "sys" for op in fences]
    if any(WIDTH[one] >= WIDTH[scope] for one in given):
        return None
    return Change(what=Property.SCOPE, sites=(site_of(fences[-1]),), new=scope, old=given[-1])


def _names_other_map(op: Op, address: int) -> bool:
    return isinstance(op, ops.ProxyFence) and isinstance(op.address, Const) and op.address.value != address


def is_tensormap_fence(op: Op, half: str) -> bool:
    """Whether an operation is a half of the tensormap fence."""
    return isinstance(op, ops.ProxyFence) and op.kind == "tensormap" and op.half == half
