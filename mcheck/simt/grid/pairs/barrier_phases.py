"""What barriers of whole CTAs say of the order of accesses, so that fewer pairs of clusters have to be followed.

A *round* of a thread is what it does between two barriers for which all threads of its CTA come together, those that
have exited aside. The n-th one is the same for all threads: each waits for all others. So what a thread has done, and
completed, in one round is ordered before what any thread of its CTA does in a later one, if it comes to the barrier in
between itself (8.9.4). Of a copy a wait of its own thread for its group says when it is complete. A barrier at which
some thread arrives without waiting, or with a part of the others, ends no round, in no thread: of those of two threads
it need not be known which one is which.

*Within a cluster* accesses that are ordered so are no race, wherever they are.

*Between clusters* order arises at *points*: strong accesses of global memory, ``fence.sc``, and other fences of threads
that have strong accesses, for the patterns of 8.8 are of one thread. An access is ordered before one of another cluster
if a point behind it is ordered before a point that the other one is behind. So accesses are ordered alike with all of
other clusters if of the same points it is known that they come before them, and of all others that they come behind.
That is a *phase*. It is the same in all clusters of one shape, whatever else tells their threads and rounds apart.

If one of two accesses is through the async proxy, a fence of that has to be on the way, too. So for these the fences
count as points. Within a cluster they are known to be ordered if the later one is through the generic proxy, or both
are through the other one: what has been written through a proxy needs no fence behind its completion there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np

from mcheck.base.records import dataclass
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.ops import Op

NEVER = 1 << 40
"""The round, or the place, of a completion of which nothing is known."""
NO_PHASE = -1
GROUPS = ("cp.async", "bulk")
"""The families of copies for whose groups their thread may wait."""
MAX_POINTS = 4096
"""Maximum number of points of a cluster of which phases are told."""


@dataclass(frozen=True, slots=True)
class When:
    """When an access takes place in the code of its thread, or is complete: the place, and the round."""

    place: int
    round: int


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the code of a thread at which clusters may synchronise."""

    thread: int
    at: When


def meeting_barriers(ops_of_cta: Iterable[Op], width: int) -> frozenset[Expr]:
    """The barriers at which nothing happens but that all threads of a CTA of so many wait for each other."""
    barriers = [op for op in ops_of_cta if isinstance(op, ops.Barrier)]
    other = {op.barrier for op in barriers if not _is_of_all(op, width)}
    found = {op.barrier for op in barriers} - other
    if not all(isinstance(barrier, Const) for barrier in found | other):
        return frozenset()
    return frozenset(barrier for barrier in found if barrier is not None)


def _is_of_all(op: ops.Barrier, width: int) -> bool:
    whole = op.count is None or op.count == Const(width)
    return whole and op.kind in ("sync", "red") and op.instance is None


@dataclass(slots=True)
class Course:
    """The rounds of a thread of a CTA with these ``meeting_barriers``, while its code is read from its first place
    on.
    """

    meetings: frozenset[Expr]
    place: int = -1
    round: int = 0
    committed: dict[str, list[list[int]]] = field(default_factory=lambda: {family: [] for family in GROUPS})
    """By family, the groups of copies that are not known to be complete, the oldest first."""
    issued: dict[str, list[int]] = field(default_factory=lambda: {family: [] for family in GROUPS})
    """The copies of the next one."""
    done: dict[int, When] = field(default_factory=dict)
    """When copies are complete."""
    strong: list[When] = field(default_factory=list)
    """The strong accesses of global memory."""
    proxies: list[When] = field(default_factory=list)
    """The fences of proxies."""
    fences: list[tuple[When, bool]] = field(default_factory=list)
    """The fences, each with whether it is a ``fence.sc``."""

    @property
    def now(self) -> When:
        """The current operation."""
        return When(self.place, self.round)

    @property
    def points(self) -> list[When]:
        """The operations by which clusters may synchronise."""
        return [*self.strong, *(at for at, is_sc in self.fences if is_sc or self.strong)]

    def step(self, op: Op) -> None:
        """Go on to the next operation."""
        self.place += 1
        match op:
            case ops.Fence():
                self.fences.append((self.now, op.sem == "sc"))
            case ops.ProxyFence():
                self.proxies.append(self.now)
            case ops.Barrier() if op.barrier in self.meetings:
                self.round += 1
            case ops.Commit(family=family) if family in GROUPS:
                self._commit(family)
            case ops.WaitGroup(family=family, pending=Const(pending), read=False, restrict=None) if family in GROUPS:
                if op.commits:
                    self._commit(family)
                complete = max(len(self.committed[family]) - pending, 0)
                self.done |= {copy: self.now for group in self.committed[family][:complete] for copy in group}
                del self.committed[family][:complete]

    def _commit(self, family: str) -> None:
        self.committed[family].append(self.issued[family])
        self.issued[family] = []


class Phases:
    """The points of a cluster; by thread, the number of its CTA, and how many rounds it ends by a barrier."""

    def __init__(self, points: Sequence[Point], ranks: Mapping[int, int], ended: Mapping[int, int]) -> None:
        points = sorted(points, key=lambda p: (p.thread, p.at.place))
        self.ranks, self.ended = ranks, ended
        self.threads = np.array([p.thread for p in points], np.int64)
        self.places = np.array([p.at.place for p in points], np.int64)
        self.rounds = np.array([p.at.round for p in points], np.int64)
        self.at = np.array([ranks[p.thread] for p in points], np.int64)
        self.goes_on = np.array([ended[p.thread] > p.at.round for p in points], np.bool_)
        self.alone = frozenset(self.threads.tolist())
        self.known: dict[tuple[int, int, int, bool], bytes | None] = {}

    def phase(self, thread: int, begun: When, done: When | None) -> bytes | None:
        """What tells which points are ahead of an access, if all others are known to be behind it; ``None`` if that is
        not known.
        """
        if len(self.threads) > MAX_POINTS:
            return None
        done = done or When(NEVER, NEVER)
        goes_on = self.ended[thread] > done.round
        if thread in self.alone:
            return self._compute(thread, begun, done, goes_on=goes_on)
        key = self.ranks[thread], begun.round, done.round, goes_on
        if key not in self.known:
            self.known[key] = self._compute(thread, begun, done, goes_on=goes_on)
        return self.known[key]

    def _compute(self, thread: int, begun: When, done: When, *, goes_on: bool) -> bytes | None:
        mine, near = self.threads == thread, self.at == self.ranks[thread]
        ahead = near & (self.rounds < begun.round) & self.goes_on
        behind = near & (self.rounds > done.round) & goes_on
        ahead = np.where(mine, self.places < begun.place, ahead)
        behind = np.where(mine, self.places > done.place, behind)
        return ahead.tobytes() if (ahead | behind).all() else None
