"""What two racing accesses lack: the entry of all advice about races."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.answers.advice.announcements import suggest_announcement
from mcheck.answers.advice.async_groups import explain_insufficient_wait, order_before_wgmma
from mcheck.answers.advice.completion_waits import (
    suggest_completion_wait,
    suggest_wait_for_first_fill,
)
from mcheck.answers.advice.early_waits import find_early_wait
from mcheck.answers.advice.gaps import Gap, gap_of
from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, GraphAgent, Step, line_of, site_of
from mcheck.answers.advice.known_order import explain_known_order
from mcheck.answers.advice.missed_releases import suggest_check_of_acquire
from mcheck.answers.advice.narrow_scopes import find_narrow_scopes
from mcheck.answers.advice.proxy_fences import (
    explain_idle_proxy_fences,
    explain_wait_without_fence,
    suggest_alias_fence,
    suggest_fence_after_wait,
    suggest_proxy_fence,
    suggest_tensormap_fences,
)
from mcheck.answers.advice.refills import suggest_wait_before_refill
from mcheck.answers.advice.repeated_phases import find_repeated_wait
from mcheck.answers.advice.scope_mismatch import (
    explain_narrow_scope,
    narrowest_common_scope,
    suggest_scope,
    suggest_wider_scope,
)
from mcheck.answers.advice.single_tests import suggest_repeated_test
from mcheck.answers.advice.stage_reuse import ReadPhase, classify_stage_read
from mcheck.answers.advice.unheard_arrivals import suggest_wait_for_arrival
from mcheck.answers.advice.unused_barriers import unused_barrier
from mcheck.base.phrase import A_BARRIER, CLUSTER_BARRIER, GRID_BARRIER, Phrase, Site, join, say
from mcheck.base.records import dataclass, replace
from mcheck.cat.tags import Tag
from mcheck.findings import catalogue
from mcheck.findings.fix import (
    BeforeIssue,
    Condition,
    Fix,
    Fixes,
    Given,
    HandOver,
    Insert,
    Meet,
    Note,
    Point,
    advise,
)
from mcheck.findings.fix import Step as FixStep
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op

NEEDS_FENCE = frozenset(("RACE004", "RACE006", "RACE007"))
UNORDERED = frozenset(("RACE001", "RACE002", "RACE003"))
WARP = 32
BARRIERS = {"cluster": CLUSTER_BARRIER, "gpu": GRID_BARRIER}
"""What threads of different CTAs meet at, by the narrowest scope that includes them; GPUs have no barrier."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The fix for two accesses, and a clause for the message that says what they lack; empty if that is plain. ``gap``:
    where the fix can stand.
    """

    fixes: Fixes
    lack: Phrase = ()
    gap: Gap = ()


def advise_on_race(g: ExecutionGraph, code: str) -> Advice:
    """What two racing accesses lack, with what is wrong with the fences, scopes and waits that are there."""
    narrow = find_narrow_scopes(g) if code == "RACE010" else []
    if narrow:
        return Advice(tuple(map(suggest_scope, narrow)), join([*map(explain_narrow_scope, narrow)], "; ", "; "))
    if code in UNORDERED and (test := suggest_repeated_test(g)):
        return Advice((test,))
    wrong = find_repeated_wait(g) or find_early_wait(g) if code == "RACE003" else None
    if wrong is not None:
        return Advice((wrong.fix,), wrong.lack)
    if code == "RACE003" and (wait := suggest_wait_before_refill(g)):
        return Advice((wait,))
    fixes = (_where_all_come_by(g, _suggest_order_or_fence(g, code)),)
    return Advice(fixes, gap=gap_of(g, fixes))


def _where_all_come_by(g: ExecutionGraph, fix: Fix) -> Fix:
    """The fix; of a barrier beside a statement in a branch, which other threads of the CTA do not come to, or of those
    that a named barrier counts, that it has to stand outside of that (9.7.13.1). The roles of a sketch have no
    statement in common.
    """
    if fix.also or not g.share_cta(g.old.agent, g.new.agent):
        return fix
    ends = [site for step in fix.steps for site in _ends_of_barrier(step)]
    named = any(isinstance(step, HandOver) and step.barrier != A_BARRIER for step in fix.steps)
    met = [a for a in g.agents if g.share_cta(a.index, g.new.agent)]
    reached = [sites for sites in _sites_of_warps(g, met) if not named or site_of(g.new.op) in sites]
    inside = next((site for site in ends if not all(site in every for every in reached)), None)
    if inside is None or not set.intersection(*reached):
        return fix
    who = "they all" if named else "all threads"
    place = say("a barrier has to stand outside of the branch around {}, where {} come by", inside, who)
    return replace(fix, also=place)


def _sites_of_warps(g: ExecutionGraph, agents: Sequence[GraphAgent]) -> list[set[Site]]:
    """What each agent comes to: its code, and what is aligned in that of the other lanes of its warp, since all lanes
    execute it. An ``ldmatrix`` takes the addresses of some of them alone (9.7.15.5.15).
    """
    codes = {id(a.code): a.code for a in agents}
    own = {key: {site_of(op) for op in code} for key, code in codes.items()}
    common = {key: {site_of(op) for op in code if ".aligned" in op.text} for key, code in codes.items()}
    warps: dict[tuple[int, int], set[int]] = {}
    for a in agents:
        warps.setdefault(g.place(a.index).own_warp, set()).add(id(a.code))
    whole = {warp: set.union(*(common[key] for key in keys)) for warp, keys in warps.items()}
    alike = {(id(a.code), g.place(a.index).own_warp) for a in agents}
    return [own[key] | whole[warp] for key, warp in alike]


def _ends_of_barrier(step: FixStep) -> tuple[Site, ...]:
    """The statements that a barrier stands beside, if one is meant."""
    match step:
        case BeforeIssue(first=first, issue=second):
            return first, second
        case Meet(first=first, second=second) | HandOver(after=first, to=second):
            return tuple(site for site in (first, second) if site is not None)
    return ()


def _suggest_order_or_fence(g: ExecutionGraph, code: str) -> Fix:
    if code == "RACE001" and (fence := suggest_alias_fence(g)):
        return fence
    if code == "RACE001" and (part := suggest_announcement(g)):
        return part
    fix = _suggest_fix(g, code)
    if code in NEEDS_FENCE:
        fix = fix.noted(explain_idle_proxy_fences(g), explain_wait_without_fence(g))
    waited = any(isinstance(step, HandOver) and step.after is not None for step in fix.steps)
    if code == "RACE003" and not waited and classify_stage_read(g) is not ReadPhase.NEXT:
        fix = fix.noted(explain_insufficient_wait(g))
    apart = g.old.agent != g.new.agent and not g.old.asynchronous
    if code in UNORDERED and apart and not _lacks_only_wgmma_fence(g):
        fix = fix.noted(*explain_known_order(g))
    return fix


def _suggest_fix(g: ExecutionGraph, code: str) -> Fix:
    """The fix; the one of the catalogue by default."""
    match code:
        case "RACE004" | "RACE006":
            return suggest_proxy_fence(g)
        case "RACE007":
            return suggest_fence_after_wait(g) or catalogue.get(code).fix
        case "RACE009":
            return suggest_tensormap_fences(g)
        case "RACE001" | "RACE002" | "RACE003":
            return _suggest_order(g, code)
    return catalogue.get(code).fix


def _suggest_order(g: ExecutionGraph, code: str) -> Fix:
    old, new = g.old, g.new
    if _lacks_only_wgmma_fence(g):
        return order_before_wgmma(old.op, new.op, own=old.agent == new.agent and not old.asynchronous)
    if code == "RACE003" and old.asynchronous:
        return suggest_completion_wait(g)
    elected = _find_elected_lane(g)
    if elected is not None:
        return _suggest_meeting_before(g, elected)
    if code == "RACE001":
        ends = ((a.event, g.place(a.agent)) for a in (old, new))
        if scope := suggest_wider_scope(*ends):
            return scope
        if check := suggest_check_of_acquire(g):
            return check
        return _place_barrier(g)
    if code == "RACE003":
        fence = old.proxy == Tag.GEN and new.proxy == Tag.ASYNC
        return (
            suggest_wait_for_first_fill(g)
            or suggest_wait_for_arrival(g, old, site_of(new.op))
            or Fix((BeforeIssue(site_of(old.op), site_of(new.op), fence),))
        )
    return catalogue.get(code).fix


def _place_barrier(g: ExecutionGraph) -> Fix:
    """A barrier, with the lines that it goes between if these are known, or the barrier of threads of two CTAs.

    A CTA lacks the barrier where a thread executes one statement after the other with none between. If threads do so in
    both orders, it lacks more than one.
    """
    old, new = g.old, g.new
    if g.share_cta(old.agent, new.agent):
        ends = [pair for pair in ((old, new), (new, old)) if _follows_without_barrier(g, *pair)]
        if len(ends) != 1:
            return Fix((Meet(),))
        first, second = (site_of(a.op) for a in ends[0])
        return Fix((Meet(first=first, second=second),))
    fix = Fix((Meet(BARRIERS.get(narrowest_common_scope(g.place(old.agent), g.place(new.agent)))),))
    same = old.op.span == new.op.span and old.write and new.write
    return fix.noted(Note(("If each CTA has bytes of its own, correct the address",))) if same else fix


def _follows_without_barrier(g: ExecutionGraph, first: GraphAccess, second: GraphAccess) -> bool:
    """Whether a thread of the CTA executes the statement of ``second`` after that of ``first`` without a barrier."""
    since: set[int] = set()
    cta = {agent.index for agent in g.agents if g.share_cta(agent.index, first.agent)}
    for e in g.steps:
        if e.signal >= 0 or e.agent not in cta:
            continue
        if isinstance(e.op, ops.Barrier | ops.ClusterBarrier):
            since.discard(e.agent)
        elif e.op.span == second.op.span and e.agent in since:
            return True
        if e.op.span == first.op.span:
            since.add(e.agent)
    return False


def _lacks_only_wgmma_fence(g: ExecutionGraph) -> bool:
    """Whether only a wgmma.fence is missing between an access and the reads of a wgmma (8.9.1.1)."""
    old, new = g.old, g.new
    if not isinstance(new.op, ops.Wgmma) or not old.is_complete_before(new.agent, new.step, new.time):
        return False
    fences = [e for e in g.steps if e.agent == new.agent and isinstance(e.op, ops.WgmmaFence)]
    return not fences or not old.is_complete_before(new.agent, fences[-1].step, fences[-1].time)


def _suggest_meeting_before(g: ExecutionGraph, elected: Step) -> Fix:
    """The barrier at which the lanes for which one arrives meet before that: of its warp or, if it arrives for several,
    of these.
    """
    place = (Point(_last_before_arrive(g, elected), after=True),)
    warps = {g.place(a.index).own_warp for a in _executing(g, g.old.op)}
    several = len(warps) > len({g.place(a.index).own_warp for a in _executing(g, elected.op)})
    whom = f"its warp and {len(warps) - 1} more" if several else "its warp"
    why = say("at {} {} arrives for {}", site_of(elected.op), g.name(elected.agent), whom)
    why = (*why, ", and a release covers what its own thread did")
    free = _unused_barrier(g)
    if several and free is None:
        return advise("Let all threads that execute {} meet before {}: {}", site_of(g.old.op), site_of(elected.op), why)
    meet = f"bar.sync {free}, {WARP * len(warps)}" if several else "bar.warp.sync 0xffffffff"
    given = (Given(Condition.EACH_THREAD_OF, site_of(g.old.op)),) if several else ()
    return Fix((Insert(codes=(meet,), points=place, given=given),), why=why)


def _executing(g: ExecutionGraph, op: Op) -> list[GraphAgent]:
    """The agents of the earlier access's CTA whose code has a statement."""
    there = (agent for agent in g.agents if g.share_cta(agent.index, g.old.agent))
    return [agent for agent in there if any(other.span == op.span for other in agent.code)]


def _unused_barrier(g: ExecutionGraph) -> int | None:
    """A barrier that no thread names; ``None`` if some are named by registers, or all are."""
    named = {op.barrier for agent in g.agents for op in agent.code if isinstance(op, ops.Barrier)}
    if not all(isinstance(barrier, Const) for barrier in named):
        return None
    return unused_barrier(named)


def _last_before_arrive(g: ExecutionGraph, arrive: Step) -> Site:
    """The last statement that the warp executes between the earlier access and the arrive of its elected lane: other
    reads of the stage, and a proxy fence, come before the lanes meet.
    """
    own = {op.span for op in g.agents[g.old.agent].code}
    code = g.agents[arrive.agent].code[: arrive.pc]
    since = next((k for k in range(len(code) - 1, -1, -1) if code[k].span == g.old.op.span), len(code))
    behind = (op for op in code[since:] if not isinstance(op, ops.Branch))
    common = [op for op in behind if op.span is not None and op.span in own and line_of(op) < line_of(arrive.op)]
    return site_of(common[-1]) if arrive.pc >= 0 and common else site_of(g.old.op)


def _find_elected_lane(g: ExecutionGraph) -> Step | None:
    """The arrive of another lane of the earlier access's warp, of which the later one knows, in the same round or in a
    later one; the lanes of a warp may arrive on an mbarrier each, in other CTAs.
    """
    old = g.old
    warp, code = g.place(old.agent).own_warp, g.agents[old.agent].code
    for lane in g.agents:
        if lane.index in (old.agent, g.new.agent) or g.place(lane.index).own_warp != warp:
            continue
        known = g.step_at(lane.index, g.new.time[lane.index])
        if known is None or not isinstance(known.op, ops.MbarrierArrive) or line_of(known.op) < line_of(old.op):
            continue
        bar = known.op.address
        own = (op for op in code if isinstance(op, ops.MbarrierArrive) and op.span == known.op.span)
        alone = known.op.guard is not None or all(op.address != bar for op in own)
        times = g.executions(lane.index, known.op, known.step), g.executions(old.agent, old.op, old.step)
        if alone and times[0] >= times[1]:
            return known
    return None
