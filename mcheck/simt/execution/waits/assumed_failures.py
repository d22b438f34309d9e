"""Polls of mbarriers outside waiting loops, whose answers are assumed to be false.

``if (!try_wait(phase)) wait(phase)`` is followed with a poll that fails. The other way, on which the poll succeeds and
the wait is left out, needs no execution of its own if four things hold:

* what the answer decides is whether the same thread executes a wait for the same phase, and nothing else: no address,
  no later branch, nothing in another thread;
* nothing that other threads can observe is between the use of the answer and the wait;
* the wait that is recorded orders no more than the poll (9.7.13.15.16): it gets the weaker order and the narrower scope
  of the two. A poll that is relaxed acquires nothing where it saves the wait;
* between the poll and the wait the thread neither works on the mbarrier nor learns what others have done
  (``_outdates``). A parity is that of every other phase: after a poll that found the one before complete, a wait for
  the same parity may come to mean the one after the next.

Take an execution in which a poll succeeds. It has found a phase complete, and the wait can find the same one: nothing
that the thread has done since comes after the end of the next phase. So with that wait there is an execution of what is
recorded, in which the same is ordered, or less.

So a poll is not recorded: it is to find an mbarrier and a state of it, as the wait is (9.7.13.15.16). One after which
the thread learns something, or ends, before such a wait has come is recorded without its answer, at that place.

A value that comes from an answer has the quality ``taint.POLL``. Where it leaves the thread, or when the wait is
executed, its quality gets ``taint.UNKNOWN`` as well: it may decide nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple

import numpy as np

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import taint
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.ops.operation import mbarrier_of
from mcheck.ir.scopes import SCOPES
from mcheck.simt.execution.lanes import Lanes, Mask, Quality

POLL_DECIDES = "the answer of a poll decides more than whether to wait"
POLL_OUTDATED = "the phase that a poll has found complete may not be the one that the wait after it is for"


class FailedPoll(NamedTuple):
    """A poll that is assumed to fail, of a phase of an mbarrier: its address, and the parity or state."""

    address: int
    asked: int
    op: ops.MbarrierWait
    """The poll without its answer."""
    used_at: Span | None = None
    """Where its answer was used, if it was."""
    outdated: bool = False
    """Whether the phase may have become another one since; then it is recorded."""


@dataclass(slots=True)
class AssumedFailures:
    """By lane, the polls after whose use a wait for the same phase must follow."""

    by_lane: dict[int, tuple[FailedPoll, ...]] = field(default_factory=dict)

    def add(self, lane: int, poll: FailedPoll) -> None:
        """Record a poll."""
        polls = self.by_lane.get(lane, ())
        if poll not in polls:
            self.by_lane[lane] = (*polls, poll)

    def outdate(self, lane: int, following: Op | None) -> list[ops.MbarrierWait]:
        """The polls of a lane that its next operation, or its end, outdates."""
        polls = self.by_lane.get(lane, ())
        fresh = [p for p in polls if not p.outdated and (following is None or _outdates(following, p.address))]
        if fresh:
            self.by_lane[lane] = tuple(p._replace(outdated=True) if p in fresh else p for p in polls)
        return [p.op for p in fresh]

    def use(self, mask: Mask, known: Quality, span: Span) -> Iterable[str]:
        """Record that control of these lanes depends on values of this quality; yields what cannot be followed."""
        for lane in np.flatnonzero(mask & ((known & taint.POLL) != 0)).tolist():
            polls = self.by_lane.get(lane, ())
            if not polls or known[lane] & taint.UNKNOWN:
                yield POLL_DECIDES
            if polls:
                self.by_lane[lane] = tuple(p if p.used_at else p._replace(used_at=span) for p in polls)

    def check(self, mask: Mask) -> Iterable[Span]:
        """Before an operation of these lanes that others can observe: yields the uses that no wait has followed."""
        if self.by_lane:
            for lane in np.flatnonzero(mask).tolist():
                yield from self._drop_used(lane)

    def wait(
        self, lanes: Lanes, lane: int, address: int, asked: int, op: ops.MbarrierWait
    ) -> tuple[ops.MbarrierWait, list[tuple[str, Span | None]]]:
        """A wait with what it orders if a poll may have saved it, and what cannot be followed, with where that is."""
        polls = self.by_lane.get(lane, ())
        saved = [p for p in polls if p.used_at is not None and p[:2] == (address, asked)]
        if saved:
            each = [op, *(p.op for p in saved)]
            weakest = min(each, key=lambda o: (o.sem != "relaxed", SCOPES.index(o.scope)))
            op = replace(weakest, scope=min((o.scope for o in each), key=SCOPES.index))
            self._keep(lane, [p for p in polls if p not in saved])
            lanes.quality[:, lane] = detach(lanes.quality[:, lane])
        others: list[tuple[str, Span | None]] = [(POLL_DECIDES, span) for span in self._drop_used(lane)]
        if any(p.outdated for p in saved):
            return op, [*others, (POLL_OUTDATED, op.span)]
        return op, others

    def _drop_used(self, lane: int) -> list[Span]:
        polls = self.by_lane.get(lane, ())
        used = [p.used_at for p in polls if p.used_at is not None]
        if used:
            self._keep(lane, [p for p in polls if p.used_at is None])
        return used

    def _keep(self, lane: int, polls: list[FailedPoll]) -> None:
        self.by_lane.pop(lane)
        if polls:
            self.by_lane[lane] = tuple(polls)


def _outdates(op: Op, address: int) -> bool:
    """Whether after this operation of a thread another phase of an mbarrier may be known to have ended: a signal of it,
    a new one at the same place, or something by which a thread learns what others have done. An operation that is only
    issued has its effects after all that the thread does next, perhaps (8.5), and a weak read orders nothing (8.7); a
    poll may have failed.
    """
    facets = op.facets
    match op:
        case ops.MbarrierWait():
            return False
        case ops.Barrier(kind="arrive") | ops.ClusterBarrier(kind="arrive"):
            return False
        case ops.Load(sem="weak"):
            return False
    if mbarrier_of(op) == Const(address) and not facets.asynchronous:
        return True
    return facets.blocks or facets.synchronises or facets.converges or facets.observes


def detach(known: Quality) -> Quality:
    """The quality of values that leave their thread, or outlive the wait that an answer was about."""
    return np.where(known & taint.POLL, known | np.uint8(taint.UNKNOWN), known)
