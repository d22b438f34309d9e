"""Operations on mbarriers that may take effect after later operations of their own threads.

Every step is run where its thread reaches it. The model has executions that no such order shows: an operation on one
mbarrier and a later one of its thread on another object are ordered for a third thread only where a release and an
acquire publish the former (PTX ISA 9.0 sections 8.9.4, 8.9.5 and 9.7.13.15: the axiom Mbarrier lets the order of the
operations on an object contradict no base causality, and nothing else). A thread that has observed the later operation
by relaxed means, or through the signal of an asynchronous operation, which publishes nothing but that operation
(8.9.1.1), may still operate on the mbarrier first: load buffering, over mbarriers.

So wherever the order of the steps alone puts one operation before another on its object, the axioms are asked whether
they do, too (``mcheck.engines.protocol.incremental.object_order``). Where they do not, and the other order would have
another effect, the answer is bounded and names the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcheck.answers.step_text import text_of
from mcheck.engines.protocol.analysis.shared_words import ANY_WORD, word_of
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Mbarrier, SyncOperation
from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op

REASON = "{first} may take effect after {then}: no release orders them"


def note_operation(m: Machine, bar: Mbarrier, done: SyncOperation, entries: tuple[Live, ...], time: Vector) -> None:
    """Note the operations before the newest one that it could have preceded instead.

    Within one phase operations commute, except those that may be deferred to the next phase: they are remembered.
    """
    done.entries = entries
    over, now = (
        _earlier_phase_events(bar, done.phase),
        _ahead_in_time(done.agent, (*bar.current_operations, *bar.waits), time),
    )
    left = m.window.find_unordered(over | _union(now))
    if m.observer is not None or bar.failed_operations or bar.lifetime_changes or left & over:
        other = find_unordered_operations(
            m, done, (*bar.previous_operations, *bar.failed_operations, *bar.lifetime_changes), time
        )
        if other:
            note_reordering(m, other[0].event, done.event)
        note_after_init(m, bar, done, time)
    done.reorderable = _select(now, left)


def _earlier_phase_events(bar: Mbarrier, phase: int) -> int:
    """The initialisation of an object and the operations of the previous phase, as a set of the window."""
    began = () if bar.initialisation is None else bar.initialisation.entries
    last = bar.phases.get((bar.lifetime, phase - 1))
    return to_mask(began) | (0 if last is None else last.operations)


def note_after_init(m: Machine, bar: Mbarrier, done: SyncOperation, time: Vector) -> None:
    """Note whether an operation that found an object could have preceded its initialisation."""
    if bar.initialisation is not None and ("UB201", done.event.op.span) not in m.reported:
        other = find_unordered_operations(m, done, (bar.initialisation,), time)
        if other:
            note_reordering(m, other[0].event, done.event)


def note_invalidation(m: Machine, bar: Mbarrier, done: SyncOperation, entries: tuple[Live, ...], time: Vector) -> None:
    """Note the operations that the invalidation or initialisation of an object separates only in time."""
    done.entries = entries
    ended = () if bar.invalidation is None or bar.invalidation is done else (bar.invalidation,)
    other = find_unordered_operations(
        m, done, (*bar.current_operations, *bar.previous_operations, *bar.waits, *ended), time
    )
    if other:
        note_reordering(m, other[0].event, done.event)


def note_refused(
    m: Machine, agent: Agent, bar: Mbarrier, event: Event, others: Iterable[SyncOperation], time: Vector,
    issues: tuple[Live, ...] = (),
) -> None:  # fmt: skip
    """Note the operations that could follow one that is undefined, and thus enters no phase. ``issues`` are those of
    the asynchronous operation that signals.
    """
    known = _ahead_in_time(agent.index, others, time)
    if not known:
        return
    saved = m.save(bar)
    m.add_event(agent, event, edges=[issue_edges(e) for e in issues] if issues else None)
    left = find_unordered_by_axioms(m, known)
    m.restore(saved, bar)
    if left:
        note_reordering(m, left[0].event, event)


def issue_edges(issue: Live) -> dict[str, int]:
    """The edges to a signal: from the issue of its operation, and from what the issue has awaited."""
    return {"issue": issue.bit, "ctrl": issue.edges.get("ctrl", 0)}


def find_unordered_operations(
    m: Machine, done: SyncOperation, others: Iterable[SyncOperation], time: Vector
) -> tuple[SyncOperation, ...]:
    """Those of some operations that precede the newest event in time, and by no axiom."""
    return find_unordered_by_axioms(m, _ahead_in_time(done.agent, others, time))


def _ahead_in_time(agent: int, others: Iterable[SyncOperation], time: Vector) -> list[SyncOperation]:
    """Those of some operations that time orders before one of an agent, or before a signal that it has started. Its own
    operations precede in program order, which the axioms keep on one object.
    """
    return [
        d
        for d in others  # each operation of a phase looks at all before it: `SyncOperation.is_before` is written out
        if (time[d.signal] > d.clock_bound if d.signal >= 0 else d.agent != agent and time[d.agent] >= d.step)
        and d.entries
    ]


def find_unordered_by_axioms(m: Machine, known: Sequence[SyncOperation]) -> tuple[SyncOperation, ...]:
    """Those of some operations that no axiom orders before the newest event."""
    return _select(known, m.window.find_unordered(_union(known))) if known else ()


def _select(known: Sequence[SyncOperation], events: int) -> tuple[SyncOperation, ...]:
    """Those of some operations whose events are in a set."""
    return tuple(d for d in known if to_mask(d.entries) & events) if events else ()


def _union(known: Sequence[SyncOperation]) -> int:
    out = 0
    for d in known:
        out |= to_mask(d.entries)
    return out


def follows_by_axiom(
    in_time: Callable[[SyncOperation, SyncOperation], bool],
) -> Callable[[SyncOperation, SyncOperation], bool]:
    """A relation on the operations of a phase: one follows another by an axiom, not only in time."""
    return lambda first, then: in_time(first, then) and not any(d is first for d in then.reorderable)


def note_movable_wait(m: Machine, wait: SyncOperation, followers: Sequence[SyncOperation]) -> None:
    """Note a wait that could come once its phase is over, if time did not order it before operations of the phase."""
    if all(any(d is wait for d in then.reorderable) for then in followers):
        note_reordering(m, wait.event, followers[0].event)


def note_unordered_init(m: Machine) -> None:
    """Note an operation that could come after another one that has found an object, and that precedes the object's
    initialisation. No time orders the initialisation before the finder, yet no run without the object shows this.
    """
    for position, ends, _ in m.reversals if m.unordered_finds else ():
        first = m.trace[position]
        word = word_of(getattr(ops.performed_operation(first.op), "address", Const(ANY_WORD)))
        for (finder, address, maker, made), step in m.unordered_finds.items():
            follows = any(e.time[finder] >= step or (e.agent == finder and e.step >= step) for e in ends)
            if follows and first.agent == maker and first.signal < 0 and first.step < made and word != address:
                _record(m, first.op, next(e.op for e in m.trace if (e.agent, e.step) == (maker, made)))


def note_reordering(m: Machine, first: Event, then: Event) -> None:
    """Note two operations that could come in the other order."""
    _record(m, first.op, then.op)


def _record(m: Machine, first: Op, then: Op) -> None:
    """Record two operations that could come in the other order; the first pair is reported."""
    if m.reordering is None:
        m.reordering = REASON.format(first=quote(first), then=quote(then))


def note_lost_object(m: Machine, op: Op, what: str) -> None:
    """Note an operation that finds an object, or none, because its thread releases the one that creates or removes it.
    An mbarrier.init orders time only for those to whom it is published, so the thread might continue all the same, and
    others with it.
    """
    if m.reordering is None:
        m.reordering = f"{quote(op)} may find an object that is {what} only after it"


def note_delayed_wait(m: Machine, op: Op) -> None:
    """Note an undefined wait that may take effect after its thread's next operations, where everything else
    continues.
    """
    if m.reordering is None:
        m.reordering = f"{quote(op)} is undefined, but may take effect after its thread's next operations"


def quote(op: Op) -> str:
    """An operation with its line, quoted."""
    line = f"line {op.span.line}: " if op.span is not None else ""
    return f"`{line}{text_of(op)}`"
