"""Races between CTAs in which one announces by a word what it has done, and the other one sees that: which part of the
announcement is missing, by the line at which the order is lost.

A CTA that counts itself announces that, too. If the other one goes on before that, with the number for all, it asks for
another number, or in another word, than it should.

A CTA's announcement takes three parts (8.8, 8.9): what its threads did comes before the write of the word, by a barrier
unless the same thread did it; the write releases, or a fence before it; and the read acquires, or a fence behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.answers.advice.graph import ExecutionGraph, Step, site_of
from mcheck.answers.advice.known_order import is_wide_fence, suggest_strong_access
from mcheck.answers.advice.memory_orders import change_of, order_with
from mcheck.answers.advice.scope_mismatch import acquires, named_scope, narrowest_common_scope, releases, scope_of
from mcheck.base.phrase import Code, Site, say
from mcheck.base.records import dataclass
from mcheck.findings.fix import Condition, Fix, Given, Insert, Point, Property, advise
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.scopes import WIDTH

COUNTS = ("add", "inc", "sub", "dec")


@dataclass(frozen=True, slots=True)
class Announcement:
    """A strong write by a thread of the earlier access's CTA, and the strong read that has observed it, by one of the
    later access's.
    """

    write: Step
    read: Step


def suggest_announcement(g: ExecutionGraph) -> Fix | None:
    """The part that is missing of an announcement; ``None`` if no CTA has seen one of the other, or it is complete. Of
    an asynchronous operation it is what announces that a wait has completed it.
    """
    if g.share_cta(g.old.agent, g.new.agent) or _completion(g) is None:
        return None
    scope = narrowest_common_scope(g.place(g.old.agent), g.place(g.new.agent))
    found = list(_find_announcements(g, scope))
    behind = [made for made in found if _comes_after_access(g, made.write)]
    if behind:
        return next(filter(None, (_suggest_halves(g, made, scope) for made in behind)), None)
    if g.old.asynchronous or g.new.asynchronous:
        return None
    whole = (made.write for made in found if _is_access(g, made.write) or not any(_missing_halves(g, made, scope)))
    return next(filter(None, (_suggest_order_before(g, write, scope) for write in whole)), None) or _suggest_count(
        g, scope
    )


def _find_announcements(g: ExecutionGraph, scope: str) -> Iterator[Announcement]:
    """The announcements of which the later access knows, by operations whose scope is wide enough."""
    own = [e for e in g.steps if e.signal < 0 and e.agent != g.new.agent and g.share_cta(e.agent, g.old.agent)]
    theirs = [e for e in g.steps if e.signal < 0 and g.share_cta(e.agent, g.new.agent) and g.is_known(e)]
    writes = [e for e in own if isinstance(ops.performed_operation(e.op), ops.ScalarWrite) and _is_wide(e.op, scope)]
    for read in theirs:
        if not _is_decisive(g, read) or not _is_wide(read.op, scope):
            continue
        for write in writes:
            if _address(write.op) == _address(read.op) and read.time[write.agent] >= write.step:
                yield Announcement(write, read)


def _is_decisive(g: ExecutionGraph, read: Step) -> bool:
    """Whether it matters which value is read: else another one could be as well, and nothing would be announced."""
    return isinstance(read.op, ops.Await | ops.Atomic) or (isinstance(read.op, ops.Load) and _steers(g, read))


def _steers(g: ExecutionGraph, read: Step) -> bool:
    """Whether the path that is followed is that for the value which is read."""
    code = g.agents[read.agent].code
    return 0 <= read.pc < len(code) - 1 and isinstance(code[read.pc + 1], ops.AssumedValue)


def _is_wide(op: Op, scope: str) -> bool:
    inner = ops.performed_operation(op)
    strong = getattr(inner, "sem", "weak") != "weak" and isinstance(_address(op), Const)
    return strong and WIDTH[scope_of(op) or "cta"] >= WIDTH[scope]


def _address(op: Op) -> object:
    return getattr(ops.performed_operation(op), "address", None)


def _completion(g: ExecutionGraph) -> tuple[int, int] | None:
    """The agent and its step by which the earlier access is complete: the access, or a wait for its group."""
    old = g.old
    return (old.agent, old.step) if not old.asynchronous else next(iter(old.waits), None)


def _comes_after_access(g: ExecutionGraph, write: Step) -> bool:
    """Whether a write comes after the earlier access is complete, in the thread that knows it or behind a barrier."""
    done = _completion(g)
    if done is None:
        return False
    return g.comes_after(write, *done)


def _missing_halves(g: ExecutionGraph, made: Announcement, scope: str) -> tuple[bool, bool]:
    """Whether the release and the acquire are missing: a fence counts in the thread of the write, or of the read."""
    write, read = made.write, made.read
    fences = [e for e in g.steps if e.signal < 0 and is_wide_fence(e.op, scope)]
    by, step = _completion(g) or (write.agent, 0)
    since = step if _comes_after_access(g, write) else 0
    gives = (e for e in fences if e.agent == write.agent and e.step < write.step and g.comes_after(e, by, since))
    takes = (e for e in fences if e.agent == read.agent and e.step > read.step and g.is_known(e))
    return not (releases(write.op) or any(gives)), not (acquires(read.op) or any(takes))


def _suggest_halves(g: ExecutionGraph, made: Announcement, scope: str) -> Fix | None:
    """The release and the acquire, whichever is missing."""
    lacks = _missing_halves(g, made, scope)
    ends = ((False, "release", made.write.op), (True, "acquire", made.read.op))
    missing = [end for half, end in zip(lacks, ends, strict=True) if half]
    if not missing:
        return None
    scope = named_scope(scope, (made.write.op, made.read.op))
    points = tuple(Point(site_of(op), after) for after, _, op in missing)
    halves: dict[Site, set[str]] = {}
    for _, half, op in missing:  # of one statement by which each CTA counts itself, both
        halves.setdefault(site_of(op), set()).add(half)
    orders = {site_of(op): (op, order_with(op, halves[site_of(op)])) for *_, op in missing}
    changes = [change_of(op, Property.SEMANTICS, f".{sem}.{scope}") for op, sem in orders.values() if sem is not None]
    return Fix(
        (Insert(codes=(f"fence.acq_rel.{scope}",), points=points),),
        others=tuple(changes) if len(changes) == len(orders) else (),
        why=("a relaxed one hands nothing over",),
    )


def _suggest_order_before(g: ExecutionGraph, write: Step, scope: str) -> Fix | None:
    """What puts the earlier access before the write that announces it, or has the later one wait for another write. An
    atomic does not announce its own read (Q24): a later write of its word has to be strong.
    """
    first, last = site_of(g.old.op), site_of(write.op)
    if _is_access(g, write):
        return suggest_strong_access(g, write, scope)
    if again := _announces_later(g, write):
        reads = [e for e in g.own_steps(g.new.agent) if e.step < g.new.step and _address(e.op) == _address(write.op)]
        wait = say("the wait at {}", site_of(reads[-1].op)) if reads else ("the wait",)
        only = say("{} writes at {}, after {}", g.name(g.old.agent), site_of(again), first)
        return advise("Let {} end only with what {}: it may have ended with {}", wait, only, last)
    code = g.agents[write.agent].code
    accesses = [k for k, op in enumerate(code) if op.span == g.old.op.span]
    if write.agent == g.old.agent or (accesses and accesses[0] > write.pc):
        barrier = () if write.agent == g.old.agent else say(", behind a {}", Code("bar.sync"))
        return advise("Let {} come after {}{}: it announces what is not done yet", last, first, barrier)
    if not accesses:
        return None
    return Fix(
        (Insert(codes=("bar.sync 0",), points=(Point(first, after=True),), given=(Given(Condition.EACH_OF_CTA),)),),
        why=say(
            "{} announces at {} what other threads have done, and does not wait for them", g.name(write.agent), last
        ),
    )


def _is_access(g: ExecutionGraph, write: Step) -> bool:
    """Whether a write is the earlier access."""
    return (write.agent, write.step) == (g.old.agent, g.old.step)


def _suggest_count(g: ExecutionGraph, scope: str) -> Fix | None:
    """The number for which the CTA of the later access does not wait, or by which it takes itself for the last one,
    though the other CTA has still to count itself in the same word, behind the earlier access.
    """
    for read in g.steps:
        if read.signal >= 0 or not g.share_cta(read.agent, g.new.agent) or not g.is_known(read):
            continue
        if not (isinstance(read.op, ops.Await) or _steers(g, read)) or not _is_wide(read.op, scope):
            continue
        for agent in g.agents:
            if not g.share_cta(agent.index, g.old.agent):
                continue
            first = g.steps[g.old.position].pc + 1 if agent.index == g.old.agent else 0
            to_come = next((op for op in agent.code[first:] if _counts(op) and _address(op) == _address(read.op)), None)
            seen = (e for e in g.own_steps(agent.index) if e.op is to_come and e.step <= read.time[agent.index])
            if to_come is not None and not any(seen):
                return advise(
                    "Correct the number with which the result at {} is compared, or the word that is counted in: {}"
                    " goes on before {} has counted itself at {}",
                    site_of(read.op), g.name(g.new.agent), g.name(agent.index), site_of(to_come),
                )  # fmt: skip
    return None


def _counts(op: Op) -> bool:
    """Whether an operation counts in a word."""
    inner = ops.performed_operation(op)
    return isinstance(inner, ops.Atomic) and inner.op in COUNTS


def _announces_later(g: ExecutionGraph, write: Step) -> Op | None:
    """Of a count, the one by the thread of the earlier access behind that, in the same word."""
    if not isinstance(ops.performed_operation(write.op), ops.Atomic):
        return None
    behind = g.agents[g.old.agent].code[g.steps[g.old.position].pc + 1 :]
    writes = (op for op in behind if isinstance(ops.performed_operation(op), ops.ScalarWrite))
    return next((op for op in writes if _address(op) == _address(write.op)), None)
