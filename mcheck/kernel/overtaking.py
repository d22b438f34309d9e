"""Operations on mbarriers that may take effect behind what their own threads do later.

Every step is run where its thread comes to it. The model has executions that no such order shows: an operation on one
mbarrier and a later one of its thread on another object are ordered for a third thread only where a release and an
acquire hand the former over (PTX ISA 9.0 sections 8.9.4, 8.9.5 and 9.7.13.15: the axiom Mbarrier lets the order of the
operations on an object contradict no base causality, and nothing else). A thread that has seen the later operation by
relaxed means, or through the signal of an asynchronous operation, which publishes nothing but that operation (8.9.1.1),
may still operate on the mbarrier first: load buffering, over mbarriers.

So wherever the order of the steps alone puts one operation before another on its object, the axioms are asked whether
they do, too (``mcheck.views.ahead``). Where they do not, and the other order would be to other effect, the answer is
bounded and names the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcheck.answers.steps import text_of
from mcheck.graph.event import Event
from mcheck.kernel.agent import Agent
from mcheck.kernel.clocks import Vector
from mcheck.kernel.machine import Machine
from mcheck.kernel.objects import Done, Mbarrier
from mcheck.kernel.reordering import ANY, word_of
from mcheck.program import ops
from mcheck.program.expr import Const
from mcheck.program.ops import Op
from mcheck.views.entries import Entry as Live
from mcheck.views.entries import sum_of

REASON = "{first} may take effect only behind {then}: no release orders them"


def landed(m: Machine, bar: Mbarrier, done: Done, entries: tuple[Live, ...], time: Vector) -> None:
    """An operation has just taken its place: those before it that it might have come before instead.

    Within one phase operations commute, but for those that may be postponed to the next one: they are remembered.
    """
    done.entries = entries
    over, now = _over(bar, done.phase), _ahead_in_time(done.agent, (*bar.now, *bar.looks), time)
    left = m.window.not_ahead(over | _union(now))
    if m.watch is not None or bar.failed or bar.renewed or left & over:
        other = unordered(m, done, (*bar.before, *bar.failed, *bar.renewed), time)
        if other:
            tell(m, other[0].event, done.event)
        made(m, bar, done, time)
    done.loose = _of(now, left)


def _over(bar: Mbarrier, phase: int) -> int:
    """The initialisation of an object, and the operations of the phase before one, as a set of the window."""
    began = () if bar.began is None else bar.began.entries
    last = bar.phases.get((bar.generation, phase - 1))
    return sum_of(began) | (0 if last is None else last.acts)


def made(m: Machine, bar: Mbarrier, done: Done, time: Vector) -> None:
    """An operation or a look has just found the object that an initialisation made: it might have come before that."""
    if bar.began is not None and ("UB201", done.event.op.span) not in m.reported:
        other = unordered(m, done, (bar.began,), time)
        if other:
            tell(m, other[0].event, done.event)


def gone(m: Machine, bar: Mbarrier, done: Done, entries: tuple[Live, ...], time: Vector) -> None:
    """The object has just been invalidated, or begun anew, which no operation on it may be on either side of."""
    done.entries = entries
    ended = () if bar.ended is None or bar.ended is done else (bar.ended,)
    other = unordered(m, done, (*bar.now, *bar.before, *bar.looks, *ended), time)
    if other:
        tell(m, other[0].event, done.event)


def refused(
    m: Machine, agent: Agent, bar: Mbarrier, event: Event, others: Iterable[Done], time: Vector,
    issues: tuple[Live, ...] = (),
) -> None:  # fmt: skip
    """An operation is undefined where it comes, and enters no phase: whether another may come behind it. ``issues``
    are those of the asynchronous operation that signals.
    """
    known = _ahead_in_time(agent.index, others, time)
    if not known:
        return
    saved = m.save(bar)
    m.put(agent, event, edges=[begun_by(e) for e in issues] if issues else None)
    left = free(m, known)
    m.restore(saved, bar)
    if left:
        tell(m, left[0].event, event)


def begun_by(issue: Live) -> dict[str, int]:
    """The edges to a signal: from the issue of its operation, and from what that has waited for."""
    return {"issue": issue.bit, "ctrl": issue.edges.get("ctrl", 0)}


def unordered(m: Machine, done: Done, others: Iterable[Done], time: Vector) -> tuple[Done, ...]:
    """Those of some operations that are before the event that was put last in time, and by no axiom."""
    return free(m, _ahead_in_time(done.agent, others, time))


def _ahead_in_time(agent: int, others: Iterable[Done], time: Vector) -> list[Done]:
    """Those of some operations that time puts before one of an agent's, or before a signal that it has begun. Its own
    come before in program order, which the axioms keep on one object.
    """
    return [d for d in others if d.entries and (d.signal >= 0 or d.agent != agent) and d.known(time)]


def free(m: Machine, known: Sequence[Done]) -> tuple[Done, ...]:
    """Those of some operations that no axiom puts before the event that was put last."""
    return _of(known, m.window.not_ahead(_union(known))) if known else ()


def _of(known: Sequence[Done], events: int) -> tuple[Done, ...]:
    """Those of some operations that are among some events."""
    return tuple(d for d in known if sum_of(d.entries) & events) if events else ()


def _union(known: Sequence[Done]) -> int:
    out = 0
    for d in known:
        out |= sum_of(d.entries)
    return out


def follows(in_time: Callable[[Done, Done], bool]) -> Callable[[Done, Done], bool]:
    """Which operations of a phase come after which, by an axiom and not only in time."""
    return lambda first, then: in_time(first, then) and not any(d is first for d in then.loose)


def all_loose(m: Machine, look: Done, behind: Sequence[Done]) -> None:
    """A wait that could come when its phase is over, if it were not before some operations of the phase in time."""
    if all(any(d is look for d in then.loose) for then in behind):
        tell(m, look.event, behind[0].event)


def unreachable(m: Machine) -> None:
    """Notes an operation that might come behind another one which has found an object, where it stands before the
    initialisation of the object, elsewhere: no time orders that before the finder, and yet nothing is run so without
    the object.
    """
    for position, ends, _ in m.reversals if m.found else ():
        first = m.trace[position]
        word = word_of(getattr(ops.performed(first.op), "address", Const(ANY)))
        for (finder, address, maker, made), step in m.found.items():
            behind = any(e.time[finder] >= step or (e.agent == finder and e.step >= step) for e in ends)
            if behind and first.agent == maker and first.signal < 0 and first.step < made and word != address:
                _tell(m, first.op, next(e.op for e in m.trace if (e.agent, e.step) == (maker, made)))


def tell(m: Machine, first: Event, then: Event) -> None:
    """Notes two operations that might be in the other order."""
    _tell(m, first.op, then.op)


def _tell(m: Machine, first: Op, then: Op) -> None:
    if m.overtaken is None:
        m.overtaken = REASON.format(first=_named(first), then=_named(then))


def lost(m: Machine, op: Op, what: str) -> None:
    """Notes an operation that finds an object, or none, because its thread lets the one go on by whom it is ``what``,
    made or gone: an mbarrier.init is no order in time for those it is not published to, so its thread might go on all
    the same, and others with it.
    """
    if m.overtaken is None:
        m.overtaken = f"{_named(op)} may find an object that is {what} only behind it"


def late(m: Machine, op: Op) -> None:
    """Notes a look that is undefined, but may take effect behind what its thread does next, where all else goes on."""
    if m.overtaken is None:
        m.overtaken = f"{_named(op)} is undefined, but may take effect only behind what its thread does next"


def _named(op: Op) -> str:
    line = f"line {op.span.line}: " if op.span is not None else ""
    return f"`{line}{text_of(op)}`"
