"""Polls of mbarriers outside waiting loops, whose answers are assumed to be false.

``if (!try_wait(phase)) wait(phase)`` is followed with a poll that fails. The other way, on which the poll succeeds and
the wait is left out, needs no execution of its own if three things hold:

* what the answer decides is whether the same thread executes a wait for the same phase, and nothing else: no address,
  no later branch, nothing in another thread;
* nothing that other threads can observe is between the use of the answer and the wait;
* the wait that is recorded orders no more than the poll (9.7.13.15.16): it gets the weaker order and the narrower scope
  of the two. A poll that is relaxed acquires nothing where it saves the wait.

A value that comes from an answer has the quality ``taint.POLL``. Where it leaves the thread, or when the wait is
executed, its quality gets ``taint.UNKNOWN`` as well: it may decide nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mcheck.base.errors import Span
from mcheck.frontend.ptx import taint
from mcheck.ir import ops
from mcheck.ir.scopes import SCOPES
from mcheck.simt.execution.lanes import Lanes, Mask, Quality

POLL_DECIDES = "the answer of a poll decides more than whether to wait"


class FailedPoll(NamedTuple):
    """A poll that is assumed to fail, of a phase of an mbarrier: its address, and the parity or state."""

    address: int
    asked: int
    op: ops.MbarrierWait
    used_at: Span | None = None
    """Where its answer was used, if it was."""


@dataclass(slots=True)
class AssumedFailures:
    """By lane, the polls after whose use a wait for the same phase must follow."""

    by_lane: dict[int, tuple[FailedPoll, ...]] = field(default_factory=dict)

    def add(self, lane: int, poll: FailedPoll) -> None:
        """Record a poll."""
        polls = self.by_lane.get(lane, ())
        if poll not in polls:
            self.by_lane[lane] = (*polls, poll)

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
    ) -> tuple[ops.MbarrierWait, list[Span]]:
        """A wait with what it orders if a poll may have saved it, and the uses of answers about other phases."""
        polls = self.by_lane.get(lane, ())
        saved = [p for p in polls if p.used_at is not None and p[:2] == (address, asked)]
        if saved:
            each = [op, *(p.op for p in saved)]
            weakest = min(each, key=lambda o: (o.sem != "relaxed", SCOPES.index(o.scope)))
            op = replace(weakest, scope=min((o.scope for o in each), key=SCOPES.index))
            self._keep(lane, [p for p in polls if p not in saved])
            lanes.quality[:, lane] = detach(lanes.quality[:, lane])
        return op, self._drop_used(lane)

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


def detach(known: Quality) -> Quality:
    """The quality of values that leave their thread, or outlive the wait that an answer was about."""
    return np.where(known & taint.POLL, known | np.uint8(taint.UNKNOWN), known)
