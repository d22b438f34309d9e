"""The wait that an access lacks for an asynchronous operation, and where to hand over what it made (8.9.1.1)."""

from __future__ import annotations

from mcheck.answers.advice.announcements import suggest_announcement
from mcheck.answers.advice.async_groups import (
    WAITS_FOR_MOVES,
    explain_late_wait,
    family_of,
    find_commit,
    find_group_wait,
    find_weak_wait,
    has_waited,
    pending_groups_note,
    suggest_commit,
    wait_for_completion,
    wait_of_group,
)
from mcheck.answers.advice.completion_signals import (
    explain_wait_for_other_stage,
    signalling_operation,
    suggest_next_stage,
)
from mcheck.answers.advice.graph import ExecutionGraph, Step, site_of
from mcheck.answers.advice.hand_overs import WaitBeforeRead, find_wait_before_read, hand_over
from mcheck.answers.advice.memory_orders import change_of
from mcheck.answers.advice.proxy_fences import is_release, is_tensormap_fence, suggest_tensormap_fences
from mcheck.answers.advice.stage_reuse import ReadPhase, classify_stage_read
from mcheck.answers.advice.unheard_arrivals import is_unheard, suggest_wait_for_arrival
from mcheck.base.phrase import A_BARRIER, Code, Site, say
from mcheck.base.records import replace
from mcheck.cat.tags import Tag
from mcheck.findings.fix import (
    Advise,
    Await,
    BeforeIssue,
    Condition,
    Fix,
    Given,
    HandOver,
    Insert,
    Instead,
    Phase,
    Point,
    Property,
)
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Commit, WaitGroup


def suggest_completion_wait(g: ExecutionGraph) -> Fix:
    """The wait for an asynchronous operation that a later access needs."""
    old, new = g.old, g.new
    issue, second = site_of(old.op), site_of(new.op)
    if isinstance(old.op, ops.TensorMove):
        behind = Insert(codes=(WAITS_FOR_MOVES[old.op.family],), points=(Point(issue, after=True),))
        known = old.agent == new.agent or new.time[old.agent] >= old.step
        return Fix((behind,) if known else (behind, HandOver(second, tensor=True)))
    wait = _completion_mechanism(g)
    if new.proxy == Tag.TMAP:
        releases = [e.op for e in g.steps[old.position :] if is_tensormap_fence(e.op, "release")]
        if old.waits or not releases:
            return suggest_tensormap_fences(g)
        return Fix((_placed(wait, site_of(releases[0]), Given(Condition.RELEASES_MAP)),))
    relaxed = _suggest_acquire(g) if isinstance(wait, Await) else None
    if relaxed is not None:
        return relaxed
    if old.agent == new.agent and (len(g.agents[old.agent].threads) == 1 or isinstance(old.op, ops.Wgmma)):
        if isinstance(wait, Insert) and (commit := suggest_commit(g)):
            return commit
        group = wait_of_group(g, new.position) if isinstance(wait, Insert) else None
        met = _barrier_before_others(g) if group is not None else None
        if met is not None:
            group = wait_of_group(g, g.steps.index(met)) or group
        step, op = (new.step, new.op) if met is None else (met.step, met.op)
        if group is not None:
            group = replace(group, weak=find_weak_wait(g, step, op))
        given = () if met is None else (Given(Condition.HANDS_OVER),)
        return Fix((_placed(group or wait, site_of(op), *given),)).noted(
            pending_groups_note(group.leaves if group else 0)
        )
    issuer = g.name(old.agent)
    if not old.write and new.time[old.agent] < old.step:
        waited = find_group_wait(g) if isinstance(wait, Insert) else None
        executed = [g.executions(a.agent, a.op, a.step) for a in (old, new)]
        if waited is not None and executed[1] > executed[0]:
            early = Advise(say("{}, then hand over to {}", Code("fence.proxy.async"), issue))
            instead = Instead((early,), say("{} belongs before it", second))
            return Fix((HandOver(second, site_of(waited), issuer),), instead=instead)
        if executed[1] > executed[0] and isinstance(wait, Insert) and _is_filled(g):
            return Fix((_after_commit(g, replace(wait, thread=issuer)), HandOver(second)))
        if executed[1] <= executed[0] and (filled := suggest_wait_for_first_fill(g)):
            return filled
        if executed[1] <= executed[0] and (unheard := suggest_wait_for_arrival(g, new, issue)):
            return unheard
        way = say("{}, then {} or a release that is acquired", Code("fence.proxy.async"), A_BARRIER)
        late = (replace(wait, thread=issuer), HandOver())
        return Fix(
            (Advise(say("Hand {} over before {} is issued: {}", second, issue, way)),),
            instead=Instead(late, ("it belongs behind it",)),
        )
    if isinstance(wait, Insert):
        return _suggest_group_wait(g, wait)
    if classify_stage_read(g) is ReadPhase.NEXT:
        return Fix((BeforeIssue(second, issue, fence=old.proxy != new.proxy),))
    if (elsewhere := find_wait_before_read(g, old, new)) is not None:
        return hand_over(g, elsewhere, new, Instead((replace(wait, before=second),)))
    fix = Fix((replace(wait, before=second, or_other=not wait.far),))
    signal = signalling_operation(g, old)
    if signal is not None and (stay := suggest_next_stage(g, new, signal)):
        return stay
    return fix if signal is None else fix.noted(explain_wait_for_other_stage(g, new, signal))


def _barrier_before_others(g: ExecutionGraph) -> Step | None:
    """The barrier before a later access of the issuing thread, if other threads of its CTA execute that statement, too,
    and do not issue the operation: a wait has to come before the barrier, or it covers its own thread alone.
    """
    old, new = g.old, g.new
    others = [a for a in g.agents if a.index != old.agent and g.share_cta(a.index, old.agent)]
    statements = {op.span for agent in others for op in agent.code}
    if new.op.span not in statements or old.op.span in statements:
        return None
    own = [e for e in g.own_steps(old.agent, old.position) if e.step < new.step]
    return next((e for e in reversed(own) if isinstance(e.op, ops.Barrier)), None)


def _is_filled(g: ExecutionGraph) -> bool:
    """Whether a copy by the statement of the later access is complete before the earlier one, a read: it is what that
    is meant to see.
    """
    old = g.old
    fills = (r for r in g.others if r.write and r.op.span == g.new.op.span)
    return any(r.is_complete_before(old.agent, old.step, old.time) for r in fills)


def _after_commit(g: ExecutionGraph, wait: Insert) -> Insert:
    """A wait right behind the commit of the operation's group, if that has been executed."""
    commit = find_commit(g)
    return wait if commit is None else replace(wait, points=(Point(site_of(commit), after=True),))


def _placed(wait: Insert | Await, before: Site, *given: Given) -> Insert | Await:
    """A wait before a statement."""
    if isinstance(wait, Insert):
        return replace(wait, points=(Point(before, after=False),), given=given)
    return replace(wait, before=before, given=given)


def suggest_wait_for_first_fill(g: ExecutionGraph) -> Fix | None:
    """The wait that an access lacks if the copy behind it is the first to fill its bytes, and signals an mbarrier:
    whatever a read is meant to see, it is not what was there before. A write may be meant to come before the copy,
    unless the thread that issues the copy executes it only behind that. ``None`` if something else filled the bytes.
    Of a copy in a group it is the hand-over, if its thread waits.
    """
    old, new = g.old, g.new
    signal = signalling_operation(g, new)
    waited = find_wait_before_read(g, new, old) if new.write else None
    if not new.write or signal is None:
        return None if waited is None else hand_over(g, waited, old, None)
    if old.write and not _is_executed_after_issue(g):
        return None
    if any(r.write and r.is_complete_before(old.agent, old.step, old.time) for r in g.others):
        return None
    first, second, bar = site_of(old.op), site_of(new.op), ops.mbarrier_of(signal)
    nobody = isinstance(bar, Const) and is_unheard(g, bar.value)
    wait = Await(signal=site_of(signal), before=first, or_other=True, first=not old.write, nobody=nobody)
    if waited is not None:
        return hand_over(g, waited, old, Instead((replace(wait, or_other=False),)))
    return Fix((wait,), instead=None if old.write else _or_before(first, second, fence=old.proxy != new.proxy))


def _or_before(first: Site, issue: Site, *, fence: bool = False) -> Instead:
    """As an alternative to a wait, the order of an access before the issue of the operation."""
    return Instead((BeforeIssue(first, issue, fence),), say("{} belongs before it", first))


def _is_executed_after_issue(g: ExecutionGraph) -> bool:
    """Whether the thread that issues the later access, a copy, executes the statement of the earlier one behind that,
    and not before.
    """
    code, issued = g.agents[g.new.agent].code, g.steps[g.new.position].pc
    places = [k for k, op in enumerate(code) if op.span == g.old.op.span]
    return bool(places) and issued >= 0 and min(places) > issued


def _suggest_group_wait(g: ExecutionGraph, wait: Insert) -> Fix:
    """The wait of the issuing thread, and the hand-over to the other one."""
    old, issue, second = g.old, site_of(g.old.op), site_of(g.new.op)
    met = classify_stage_read(g)
    if met is ReadPhase.NEXT:
        return Fix((BeforeIssue(second, issue),))
    if commit := suggest_commit(g):
        return commit
    instead = _or_before(second, issue) if met is ReadPhase.EITHER else None
    over, waited = _last_release_known(g), find_wait_before_read(g, old, g.new)
    if waited is None and over is not None and not has_waited(g, over):
        released = g.steps[over]
        wait = replace(wait_of_group(g, over) or wait, weak=find_weak_wait(g, released.step, released.op))
        fix = Fix((_placed(wait, site_of(released.op), Given(Condition.HANDS_OVER)),), instead=instead)
        return fix.noted(pending_groups_note(wait.leaves), explain_late_wait(g, released.pc))
    completed = waited.op if waited is not None else find_group_wait(g)
    if completed is not None and (part := suggest_announcement(g)):
        return part
    if waited is not None:
        return hand_over(g, waited, g.new, instead or _or_before_release(g, waited, over))
    if completed is not None:
        return Fix((HandOver(second, site_of(completed), g.name(old.agent)),), instead=instead)
    return Fix((replace(wait, thread=g.name(old.agent)), HandOver(second)), instead=instead)


def _or_before_release(g: ExecutionGraph, waited: WaitBeforeRead, over: int | None) -> Instead | None:
    """To wait before a release that is there, if the two may have changed places: the release stands before the wait,
    with no other wait before it, for what it hands over, and no group is committed between the two.
    """
    if over is None or waited.agent != g.old.agent or (released := g.steps[over].pc) > waited.pc:
        return None
    code, family = g.agents[waited.agent].code, family_of(g.old.op)
    before = code[g.steps[g.old.position].pc + 1 : released]
    if any(isinstance(op, WaitGroup) and op.family == family for op in before):
        return None
    if any(isinstance(op, Commit) and op.family == family for op in code[released + 1 : waited.pc]):
        return None
    wait = wait_of_group(g, over)
    released_by = site_of(g.steps[over].op)
    return None if wait is None else Instead((_placed(wait, released_by, Given(Condition.HANDS_OVER)),))


def _suggest_acquire(g: ExecutionGraph) -> Fix | None:
    """The fence that turns the thread's own relaxed wait for an operation into an acquire, or that order itself."""
    if not any(s.bound is not None and g.new.time[s.clock] > s.bound for s in g.old.signals):
        return None
    own = (ops.performed_operation(e.op) for e in reversed([*g.own_steps(g.new.agent)]))
    wait = next((op for op in own if isinstance(op, ops.MbarrierWait)), None)
    if wait is None or wait.sem != "relaxed":
        return None
    place = Point(site_of(wait), after=True)
    fence = Insert(codes=(f"fence.acquire.{wait.scope}",), points=(place,), given=(Given(Condition.RELAXED_WAIT),))
    return Fix((fence,), others=(change_of(wait, Property.SEMANTICS, f".acquire.{wait.scope}"),))


def _completion_mechanism(g: ExecutionGraph) -> Insert | Await:
    """How to wait for an operation, still without a place: by a group, which belongs to the issuing thread, or by its
    signal.
    """
    op, signals = g.old.op, g.old.signals
    if signals:
        cta = g.place(g.new.agent).cta
        far = any(s.cta is not None and s.cta != cta for s in signals)  # only the owner's may wait (9.7.13.15.16)
        return Await(signal=site_of(op), phases=tuple(Phase(s.bar, s.phase) for s in signals), far=far)
    if (signal := signalling_operation(g, g.old)) is not None and signal is not op:
        return Await(signal=site_of(signal))
    wait = wait_for_completion(op, write=g.old.is_modification, later=None if find_commit(g) is None else 0)
    return wait or Await(signal=site_of(op), mbarrier=getattr(op, "mbar", None) is not None)


def _last_release_known(g: ExecutionGraph) -> int | None:
    """The last release after the issue of which the other agent knows, as a position in the graph."""
    for k in range(min(g.new.position, len(g.steps)) - 1, g.old.position, -1):
        entry = g.steps[k]
        if entry.agent == g.old.agent and is_release(entry) and g.new.time[entry.agent] >= entry.step:
            return k
    return None
