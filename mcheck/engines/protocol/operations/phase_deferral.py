"""Phase deferral: operations on an mbarrier that could come when the phase is over, with all that follows them.

The operations that remain in the phase must complete it all the same (PTX ISA 9.0 sections 9.7.13.15.5 and .6).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator

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
    in_time = _Followers(bar.current_operations)
    for done, others, last in _find_deferrable(bar.current_operations, left, in_time):
        m.note_postponement(done.position, others, now=not ended and not last)
    unobserved = _find_unobserved_expectations(bar.current_operations, in_time) if left == (0, 0) else []
    for done in unobserved:  # directly after all arrivals and before any other completion
        if others := _find_unordered(bar.current_operations, done):
            m.note_postponement(done.position, (*others, done.position), now=False)
    if unobserved:  # what they find depends on the order of the others
        m.decisions.append(
            ("order", bar.address, bar.lifetime, *((d.agent, d.step, d.kind) for d in bar.current_operations))
        )
    reorderable = next((d for d in bar.current_operations if d.reorderable), None)
    if reorderable is not None and any(
        True for _ in _find_deferrable(bar.current_operations, left, _Followers(bar.current_operations, by_axiom=True))
    ):
        mbarrier_reordering.note_reordering(m, reorderable.reorderable[0].event, reorderable.event)


Deferral = tuple[SyncOperation, tuple[int, ...], bool]
"""A deferred operation, the positions of those that then precede it, and whether the last one does not."""


def _find_deferrable(now: list[SyncOperation], left: tuple[int, int], followers: _Followers) -> Iterator[Deferral]:
    """The operations of a phase that could come when it is over, if those that follow them do, too."""
    follows = followers.follows
    for done in now:
        if done.kind == "nocomplete" and not any(follows(done, d) for d in now if d.kind in ("arrive", "complete")):
            others = tuple(d.position for d in now if d is not done and not follows(done, d))
            if others:
                yield done, others, False
    if left == (0, 0) and all(d.kind != "expect" for d in now):
        return
    movable = [d for d in now if d.kind in ("expect", "complete")]
    groups = [[d] for d in movable if followers.sum_with(d) == left]
    if 1 < len(movable) <= MAX_COMBINED:
        groups += [[d for k, d in enumerate(movable) if mask >> k & 1] for mask in range(1, 1 << len(movable))]
    for group in groups:
        later = {id(d) for d in now if any(d is e or follows(e, d) for e in group)}
        rest = [d for d in now if id(d) not in later]
        moved = [d.effect for d in now if id(d) in later]
        if rest and (sum(p for p, _ in moved), sum(t for _, t in moved)) == left:
            for d in group:
                yield d, tuple(x.position for x in rest), id(now[-1]) in later
    for d in _find_unobserved_expectations(now, followers) if left == (0, 0) else ():
        before = _find_unordered(now, d)
        if before:
            yield d, before, d is now[-1] or follows(d, now[-1])


def _find_unordered(now: list[SyncOperation], done: SyncOperation) -> tuple[int, ...]:
    """The positions of the operations of a phase that do not follow one of them."""
    return tuple(x.position for x in now if x is not done and not follows_in_time(done, x))


def _find_unobserved_expectations(now: list[SyncOperation], followers: _Followers) -> list[SyncOperation]:
    """The expect-tx operations that no arrival and no completion of the phase follows: if the completions come first,
    all arrivals may have been spent (UB217).
    """
    return [d for d in now if d.effect[1] > 0 and not d.effect[0] and not followers.is_observed(d)]


Sum = tuple[int, int, int]
"""What some operations add to the pending arrivals and to the tx-count, and how many of them are no expect-tx."""


class _Followers:
    """What follows each operation of a phase, in sum, without a look at every pair of a phase of thousands of them.

    What follows one operation of an agent also follows its earlier ones. So for each agent the operations are ordered
    by the last step that they follow, and the sums over the ends of that sequence are kept.
    """

    def __init__(self, now: list[SyncOperation], *, by_axiom: bool = False) -> None:
        self.follows = mbarrier_reordering.follows_by_axiom(follows_in_time) if by_axiom else follows_in_time
        self._now = now
        self._agents: dict[int, tuple[list[int], list[Sum]]] = {}
        self._first_steps: dict[int, int] = {}
        for d in now:
            if d.signal < 0:
                self._first_steps[d.agent] = min(d.step, self._first_steps.get(d.agent, d.step))
        self._only_in_time: dict[int, list[SyncOperation]] = defaultdict(list)
        for then in now if by_axiom else ():
            for first in {id(d): d for d in then.reorderable}.values():
                if follows_in_time(first, then):
                    self._only_in_time[id(first)].append(then)

    def sum_with(self, done: SyncOperation) -> tuple[int, int]:
        """The effects of an operation and of all that follow it."""
        pending, tx, _ = self._sum_after(done)
        return pending + done.effect[0], tx + done.effect[1]

    def is_observed(self, done: SyncOperation) -> bool:
        """Whether an operation other than expect-tx follows one."""
        return self._sum_after(done)[2] > 0

    def _sum_after(self, done: SyncOperation) -> Sum:
        if done.signal >= 0:
            return _sum(d for d in self._now if self.follows(done, d)) if _is_commit(done) else (0, 0, 0)
        if done.agent not in self._agents:
            self._agents[done.agent] = self._order_by_last_followed(done.agent)
        steps, sums = self._agents[done.agent]
        after = sums[bisect_left(steps, done.step)]
        less = _sum(self._only_in_time.get(id(done), ()))
        return after[0] - less[0], after[1] - less[1], after[2] - less[2]

    def _order_by_last_followed(self, agent: int) -> tuple[list[int], list[Sum]]:
        """The last steps of an agent that operations follow, in order, and the sums of the operations from each on."""
        first = self._first_steps[agent]
        found = sorted(
            ((step, d) for d in self._now if (step := _last_followed(d, agent)) >= first), key=lambda pair: -pair[0]
        )
        sums = [(0, 0, 0)]
        for _, d in found:
            pending, tx, number = sums[-1]
            sums.append((pending + d.effect[0], tx + d.effect[1], number + (d.kind != "expect")))
        return [step for step, _ in reversed(found)], sums[::-1]


def _sum(operations: Iterable[SyncOperation]) -> Sum:
    pending, tx, number = 0, 0, 0
    for d in operations:
        pending, tx, number = pending + d.effect[0], tx + d.effect[1], number + (d.kind != "expect")
    return pending, tx, number


def follows_in_time(first: SyncOperation, then: SyncOperation) -> bool:
    """Whether an operation on the object follows another one of its phase in time.

    Nobody knows of a completion before the phase is over: only one of a later commit of the thread follows it (Q26).
    """
    if first.signal >= 0:
        return _is_commit(first) and _is_commit(then) and then.agent == first.agent and then.step > first.step
    return _last_followed(then, first.agent) >= first.step


def _is_commit(done: SyncOperation) -> bool:
    return isinstance(done.event.op, ops.TensorCommit)


def _last_followed(then: SyncOperation, agent: int) -> int:
    """The last step of an agent that an operation follows in time."""
    return then.step - 1 if then.agent == agent and then.signal < 0 else then.time[agent]
