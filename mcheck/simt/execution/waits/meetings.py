"""Waits of one thread that end where it meets others, and what they assume of those.

A thread polls a word, and all threads of its CTA, or of its warp, learn at a barrier or a shuffle whether it polls
again (``mcheck.simt.execution.waits.barrier_waits``, ``mcheck.simt.execution.waits.broadcast_waits``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import NamedTuple

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.ir.ops import Op
from mcheck.simt.execution.lanes import Mask

ComesBack = Callable[["Meetings", Sequence[Sequence[Op]], Mask], bool]
"""Whether these lanes, which stand where they meet and have executed these operations, come back to it alike in every
round of a loop.
"""


class Meeting(NamedTuple):
    """Where a lane that polls meets the others of its CTA, or of its warp: a barrier, or a shuffle."""

    place: int
    comes_back: ComesBack
    of_warp: bool = False
    write: int | None = None
    """The place of a store that hands on a value of which more is known than that the wait has ended."""


@dataclass(slots=True)
class Meetings:
    """The waits of an execution that end where threads meet."""

    followed: bool = False
    """Whether loads that are repeated so count as waits."""
    waiting: dict[int, Meeting] = field(default_factory=dict)
    """By lane that polls, where it meets the others."""
    failed_polls: set[int] = field(default_factory=set)
    """Those of them that are to poll again."""
    hold: bool = True
    """Whether what the waits assume of the other threads held."""
    hands_on: set[tuple[int, int]] = field(default_factory=set)
    """Lanes and places of stores that hand on what such a wait has read."""
    receives: set[tuple[int, int]] = field(default_factory=set)
    """Lanes and places of loads of it, of which nothing more is used than that the wait has ended."""
    words: dict[tuple[int, int], Mask] = field(default_factory=dict)
    """By address and size, the words that hand on what was read, and the lanes that take part in that."""

    def begin(self, lane: int, meeting: Meeting) -> None:
        """Record that a lane polls a word until it meets others. If it has ended a wait since it met them last, nobody
        has checked what that assumes.
        """
        self.hold &= lane not in self.waiting or lane in self.failed_polls
        self.failed_polls.discard(lane)
        self.waiting[lane] = meeting
        if meeting.write is not None:
            self.hands_on.add((lane, meeting.write))

    def are_handed_on(self, addresses: Word, size: int) -> bool:
        """Whether one of these loads may return what a wait has read: no other value of that is followed."""
        return any(a < at + width and at < a + size for at, width in self.words for a in addresses.tolist())
