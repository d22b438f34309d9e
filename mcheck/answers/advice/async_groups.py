"""Groups of asynchronous operations: the wait that completes one, and why an executed one does not (9.7.9.25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mcheck.answers.advice.graph import ExecutionGraph, Step, site_of
from mcheck.base.phrase import say
from mcheck.base.records import dataclass
from mcheck.findings.fix import Condition, Fix, Given, IdleWait, Insert, Note, Point, WeakWait
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Commit, Op, WaitGroup
from mcheck.ir.program import Thread

MAX_PENDING_WGMMA = 7
"""Groups that ``wgmma.wait_group`` can leave pending (9.7.15.7.2)."""
WAITS_FOR_MOVES = {"tcgen05.ld": "tcgen05.wait::ld.sync.aligned", "tcgen05.st": "tcgen05.wait::st.sync.aligned"}
_COMMITS = {"cp.async": "cp.async.commit_group", "bulk": "cp.async.bulk.commit_group"}


def family_of(op: Op) -> str:
    """The family of groups that an operation belongs to, as waits and commits name it."""
    return "wgmma" if isinstance(op, ops.Wgmma) else "cp.async" if isinstance(op, ops.CpAsync) else "bulk"


def pending_groups_note(later: int | None) -> Note | None:
    """A note for the advice to leave ``later`` groups pending; ``None`` if that is 0."""
    text = "Leave fewer groups pending where fewer follow, as in the last iterations of a loop"
    return Note((text,), detail=True) if later else None


def wait_for_completion(op: Op, *, write: bool, later: int | None) -> Insert | None:
    """The instruction, still without a point to stand at, that waits for an operation of a group: for its writes, or
    for its reads alone.

    ``later``: the number of groups closed after the operation's group, which may stay pending; ``None``: its group is
    open. Returns ``None`` for an operation that signals an mbarrier.
    """
    match op:
        case ops.Wgmma():
            commit = ("wgmma.commit_group.sync.aligned",) if later is None else ()
            leaves = min(later or 0, MAX_PENDING_WGMMA)
            return Insert(codes=(*commit, f"wgmma.wait_group.sync.aligned {leaves}"), leaves=leaves)
        case ops.CpAsync():
            wait = "cp.async.wait_all" if later is None else f"cp.async.wait_group {later}"
            return Insert(codes=(wait,), leaves=later or 0)
        case ops.BulkCopy(mbar=None) | ops.TensorCopy(mbar=None):
            commit = ("cp.async.bulk.commit_group",) if later is None else ()
            wait = f"cp.async.bulk.wait_group{'' if write else '.read'} {later or 0}"
            return Insert(codes=(*commit, wait), leaves=later or 0)
    return None


def order_before_wgmma(first: Op, second: Op, *, own: bool) -> Fix:
    """The fix that orders an earlier access, the thread's ``own`` or one handed over to it, before the reads of a wgmma
    (8.9.1.1).
    """
    after = Given(Condition.AFTER if own else Condition.AFTER_HAND_OVER, site_of(first))
    place = Point(site_of(second), after=False)
    return Fix((Insert(codes=("wgmma.fence.sync.aligned",), points=(place,), given=(after,)),))


def count_closed_groups(commits: Iterable[Op], op: Op) -> int | None:
    """The number of groups that ``commits`` close after the operation's own group, ``None`` if they do not close even
    that one.

    Guarded commits are not counted, so this is a lower bound.
    """
    mine = [c for c in commits if isinstance(c, Commit) and c.family == family_of(op)]
    return max(sum(c.guard is None for c in mine) - 1, 0) if mine else None


# --- in an execution ----------------------------------------------------------------------------------------------


def _count_later_groups(g: ExecutionGraph, until: int) -> int | None:
    """How many groups were committed after the operation's own before a step, ``None`` if it was open."""
    behind = (e.op for e in g.steps[g.old.position : until] if e.agent == g.old.agent and e.signal < 0)
    return count_closed_groups(behind, g.old.op)


def wait_of_group(g: ExecutionGraph, until: int) -> Insert | None:
    """The wait for the operation before a step."""
    return wait_for_completion(g.old.op, write=g.old.is_modification, later=_count_later_groups(g, until))


def find_weak_wait(g: ExecutionGraph, step: int, op: Op) -> WeakWait | None:
    """The last wait of the issuing thread before its ``step``, at ``op``, if only the number of groups that it leaves
    pending is wrong: nothing is committed between the two, and the thread always comes to both, one after the other.
    """
    family, agent = family_of(g.old.op), g.agents[g.old.agent]
    own = [e for e in g.own_steps(agent.index, g.old.position) if e.step < step]
    last = next((e for e in reversed(own) if isinstance(e.op, WaitGroup | Commit) and e.op.family == family), None)
    if last is None or not isinstance(wait := last.op, WaitGroup) or wait.guard is not None or wait.commits:
        return None
    later = _count_later_groups(g, g.steps.index(last))
    if not isinstance(wait.pending, Const) or later is None or wait.pending.value <= later:
        return None
    if (wait.read and g.old.is_modification) or not _always_follows(g.program.threads[agent.threads[0]], last, op):
        return None
    return WeakWait(site_of(wait), wait.pending.value)


def _always_follows(thread: Thread, first: Step, second: Op) -> bool:
    """Whether a thread comes to the statement ``second`` right after ``first``, and never otherwise."""
    code, start = thread.code, first.pc
    end = next((k for k in range(max(start, 0), len(code)) if code[k].span == second.span), None)
    if start < 0 or end is None or any(isinstance(op, ops.Branch) for op in code[start:end]):
        return False
    often = [sum(op.span == one.span for op in code) for one in (first.op, second)]
    return often[0] == often[1] and not any(start < at <= end for at in thread.labels.values())


def find_group_wait(g: ExecutionGraph) -> Op | None:
    """The wait of the issuing thread that completes the operation, even if it is still to come."""
    old = g.old
    done = g.step_at(old.agent, next((step for agent, step in old.waits if agent == old.agent), 0))
    if done is not None:
        return done.op
    family = family_of(old.op)
    closed = isinstance(old.op, ops.Wgmma)
    for op in g.agents[old.agent].code[g.steps[old.position].pc + 1 :]:
        if isinstance(op, ops.Branch):
            break
        closed = closed or (isinstance(op, Commit) and op.family == family and op.guard is None)
        if not isinstance(op, WaitGroup) or op.family != family or op.guard is not None:
            continue
        if (closed or op.commits) and op.pending == Const(0) and not (op.read and old.is_modification):
            return op
    return None


def explain_late_wait(g: ExecutionGraph, released: int) -> Note | None:
    """That the issuing thread's next wait for the group comes after it has released the bytes, at ``released``."""
    family, issued = family_of(g.old.op), g.steps[g.old.position].pc
    for k, op in enumerate(g.agents[g.old.agent].code[issued + 1 :], issued + 1):
        if isinstance(op, ops.Branch):
            break
        if isinstance(op, WaitGroup) and op.family == family:
            return Note(say("The wait at {} comes after that", site_of(op)), detail=True) if k > released else None
    return None


def find_commit(g: ExecutionGraph) -> Commit | None:
    """The first commit of a group by the issuing thread after the operation."""
    family = family_of(g.old.op)
    behind = (e.op for e in g.steps[g.old.position :] if e.agent == g.old.agent)
    return next((op for op in behind if isinstance(op, Commit) and op.family == family), None)


def has_waited(g: ExecutionGraph, position: int) -> bool:
    """Whether the issuing thread had waited for the operation before a step."""
    return any(agent == g.old.agent and step < g.steps[position].step for agent, step in g.old.waits)


@dataclass(frozen=True, slots=True)
class _Wait:
    """A wait for groups after the operation. ``later``: the number of groups closed between, ``None`` if the
    operation's own was still open. ``known``: the later access knows of it.
    """

    op: WaitGroup
    agent: int
    own: bool
    later: int | None
    known: bool = False


def explain_insufficient_wait(g: ExecutionGraph) -> IdleWait | None:
    """Why a wait of the issuing thread, or else of another, does not cover the operation; ``None`` if there is none."""
    wait = _wait_meant(g)
    does = _explain_wait(g, wait) if wait is not None else ""
    return IdleWait(site_of(wait.op), (does,)) if wait is not None and does else None


def suggest_commit(g: ExecutionGraph) -> Fix | None:
    """The commit that is missing between copies and a wait of their thread that would cover the operation then: copies
    that stand between two points at which the thread synchronises are meant to be one group or, if that is not enough,
    those of one round of a loop.
    """
    if family_of(g.old.op) == "wgmma" or g.old.signals:
        return None
    return _suggest_commit(g, rounds=False) or _suggest_commit(g, rounds=True)


def _suggest_commit(g: ExecutionGraph, *, rounds: bool) -> Fix | None:
    family = family_of(g.old.op)
    batches: list[list[Step]] = []
    apart, closed = True, 0
    for e in g.own_steps(g.old.agent, g.old.position):
        if isinstance(e.op, Commit) and e.op.family == family:
            batches, apart, closed = [], True, closed + 1
        elif _joins_group(e.op, g.old.op):
            again = rounds and any(e.op.span == other.op.span for batch in batches[-1:] for other in batch)
            batches = [*batches, [e]] if apart or again else [*batches[:-1], [*batches[-1], e]]
            apart = False
        elif e.op.facets.blocks:
            apart = True
        if not isinstance(wait := e.op, WaitGroup) or wait.family != family or not g.is_known(e):
            continue
        if wait.read and g.old.is_modification:
            continue
        would = closed + len(batches) - 1
        if batches and not wait.commits and isinstance(wait.pending, Const) and wait.pending.value <= would:
            places = {_place_of_commit(g.agents[e.agent].code, batch[-1], wait) for batch in batches}
            points = tuple(sorted(places, key=lambda point: (point.site.line, point.site.column)))
            return Fix((Insert(codes=(_COMMITS[family],), points=points),))
    return None


def _place_of_commit(code: Sequence[Op], copy: Step, wait: Op) -> Point:
    """Where the group of a copy is closed as often as ``wait`` counts groups: behind the copy or, if the last rounds
    wait and copy nothing, before what follows in each round.
    """
    often = Counter(op.span for op in code)
    if copy.pc < 0 or often[copy.op.span] >= often[wait.span]:
        return Point(site_of(copy.op), after=True)
    behind = (op for op in code[copy.pc + 1 :] if op.span is not None and often[op.span] == often[wait.span])
    each = next(behind, None)
    return Point(site_of(copy.op), after=True) if each is None else Point(site_of(each), after=False)


def _joins_group(op: Op, other: Op) -> bool:
    """Whether an operation belongs to the groups that another one does."""
    return isinstance(op, type(other)) and getattr(op, "mbar", None) is None


def _wait_meant(g: ExecutionGraph) -> _Wait | None:
    """The wait for groups that was meant for the operation: the last one of which the later access knows, else the
    first. In a ring of several stages, those before leave the operation in flight on purpose.
    """
    if not g.old.asynchronous or g.old.signals:
        return None
    family = family_of(g.old.op)
    waits = [w for w in _waits(g) if w.op.span is not None and w.op.family == family]
    return next((w for w in reversed(waits) if w.known), waits[0] if waits else None)


def _explain_wait(g: ExecutionGraph, wait: _Wait) -> str:
    """What a wait does instead of covering the operation; empty if it covers it."""
    if not wait.own:
        return f"is executed by {g.name(wait.agent)}; groups belong to the issuing thread"
    if wait.op.read and g.old.is_modification:
        return "has .read: it waits until the source has been read, not for the writes"
    if wait.later is None and not wait.op.commits:
        return "does not cover the operation: no commit_group stands between them"
    pending = wait.op.pending.value if isinstance(wait.op.pending, Const) else 0
    if pending <= (wait.later or 0):
        return ""
    several = f"the {pending} latest groups pending, this one among them"
    return f"leaves {'the latest group pending, which is this one' if pending == 1 else several}"


def _waits(g: ExecutionGraph) -> list[_Wait]:
    """The waits that may have been meant for the operation: those of its thread or, if there are none, of others."""
    behind = enumerate(g.steps[g.old.position :], g.old.position)
    waits = [(k, e, op) for k, e in behind if isinstance(op := e.op, WaitGroup)]
    if not waits:
        return []
    own = [
        _Wait(op, e.agent, True, _count_later_groups(g, k), g.is_known(e))
        for k, e, op in waits
        if e.agent == g.old.agent
    ]
    if own or isinstance(g.old.op, ops.Wgmma):  # a group of wgmma is of its warpgroup, whoever waits for it
        return own
    its = {op.span for op in g.agents[g.old.agent].code}
    return [_Wait(op, e.agent, False, None) for _, e, op in waits if op.span not in its]
