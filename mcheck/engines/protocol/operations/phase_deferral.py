"""Phase deferral: operations on an mbarrier that could come when the phase is over, with all that follows them.

The operations that remain in the phase must complete it all the same (PTX ISA 9.0 sections 9.7.13.15.5 and .6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations import mbarrier_reordering
from mcheck.engines.protocol.state.sync_objects import Mbarrier, SyncOperation
from mcheck.ir import ops

MAX_COMBINED = 5
"""Maximum number of expect-tx and complete-tx operations of a phase that are deferred in every combination; more are
deferred one by one.
"""


def note_deferrable(m: Machine, bar: Mbarrier, *, ended: bool = False) -> None:
    """Note expect-tx and complete-tx operations that could come when the phase is over, with all that follows them, and
    arrivals with .noComplete that could come last.

    The operations that remain, without those that follow the deferred ones in time, must complete the phase all the
    same: all arrivals must have come, and the bytes that came must equal the announced ones.
    """
    # A complete phase has nothing pending. That holds without some operations, too, if their effects sum to zero.
    left = (0, 0) if not ended or bar.state is None else (bar.state.pending, bar.state.tx)
    for done, others, last in _find_deferrable(bar.current_operations, left, follows_in_time):
        m.note_postponement(done.position, others, now=not ended and not last)
    unobserved = _find_unobserved_expectations(bar.current_operations, follows_in_time) if left == (0, 0) else []
    for done in unobserved:  # directly after all arrivals and before any other completion
        if others := _find_unordered(bar.current_operations, done):
            m.note_postponement(done.position, (*others, done.position), now=False)
    if unobserved:  # what they find depends on the order of the others
        m.decisions.append(
            ("order", bar.address, bar.lifetime, *((d.agent, d.step, d.kind) for d in bar.current_operations))
        )
    reorderable = next((d for d in bar.current_operations if d.reorderable), None)
    if reorderable is not None and any(
        True
        for _ in _find_deferrable(bar.current_operations, left, mbarrier_reordering.follows_by_axiom(follows_in_time))
    ):
        mbarrier_reordering.note_reordering(m, reorderable.reorderable[0].event, reorderable.event)


Deferral = tuple[SyncOperation, tuple[int, ...], bool]
"""A deferred operation, the positions of those that then precede it, and whether the last one does not."""


def _find_deferrable(
    now: list[SyncOperation], left: tuple[int, int], follows: Callable[[SyncOperation, SyncOperation], bool]
) -> Iterator[Deferral]:
    """The operations of a phase that could come when it is over, if those that follow them do, too."""
    for done in now:
        if done.kind == "nocomplete" and not any(follows(done, d) for d in now if d.kind in ("arrive", "complete")):
            others = tuple(d.position for d in now if d is not done and not follows(done, d))
            if others:
                yield done, others, False
    if left == (0, 0) and all(d.kind != "expect" for d in now):
        return
    movable = [d for d in now if d.kind in ("expect", "complete")]
    groups = [[d] for d in movable]
    if 1 < len(movable) <= MAX_COMBINED:
        groups += [[d for k, d in enumerate(movable) if mask >> k & 1] for mask in range(1, 1 << len(movable))]
    for group in groups:
        later = {id(d) for d in now if any(d is e or follows(e, d) for e in group)}
        rest = [d for d in now if id(d) not in later]
        moved = [d.effect for d in now if id(d) in later]
        if rest and (sum(p for p, _ in moved), sum(t for _, t in moved)) == left:
            for d in group:
                yield d, tuple(x.position for x in rest), id(now[-1]) in later
    for d in _find_unobserved_expectations(now, follows) if left == (0, 0) else ():
        before = _find_unordered(now, d)
        if before:
            yield d, before, d is now[-1] or follows(d, now[-1])


def _find_unordered(now: list[SyncOperation], done: SyncOperation) -> tuple[int, ...]:
    """The positions of the operations of a phase that do not follow one of them."""
    return tuple(x.position for x in now if x is not done and not follows_in_time(done, x))


def _find_unobserved_expectations(
    now: list[SyncOperation], follows: Callable[[SyncOperation, SyncOperation], bool]
) -> list[SyncOperation]:
    """The expect-tx operations that no arrival and no completion of the phase follows: if the completions come first,
    all arrivals may have been spent (UB217).
    """
    return [
        d
        for d in now
        if d.effect[1] > 0 and not d.effect[0] and not any(follows(d, x) for x in now if x.kind != "expect")
    ]


def follows_in_time(first: SyncOperation, then: SyncOperation) -> bool:
    """Whether an operation on the object follows another one of its phase in time.

    Nobody knows of a completion before the phase is over: only one of a later commit of the thread follows it (Q26).
    """
    if first.signal >= 0:
        ordered = all(isinstance(d.event.op, ops.TensorCommit) for d in (first, then))
        return ordered and then.agent == first.agent and then.step > first.step
    if then.agent == first.agent and then.signal < 0:
        return then.step > first.step
    return then.time[first.agent] >= first.step
