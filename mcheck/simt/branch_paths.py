"""The paths that differ in values which other threads write: tickets, semaphores, flags that steer control.

A path is recorded for the values that its atomics and strong loads returned. The engine tells with which others an
execution leaves it; each such set of values is followed on a path of its own, until all are. That is complete. Take an
execution of the kernel, and of the followed paths the one with which it agrees longest, as a part closed under what
happens before. If it ever leaves that path, the engine has an execution of the path that contains this part and leaves
it at the same access, with the same value; the path of that execution's values agrees with more. To agree is to have
the same values, or others that the path does not tell apart from them (``mcheck.simt.execution.told_apart``): with them
it is the same path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from mcheck.base.records import dataclass
from mcheck.simt.execution.forced_values import AccessId, Observation

MAX_BRANCH_PATHS = 64
"""Maximum number of such paths."""
Values = frozenset[tuple[int, int, int]]
"""Values of accesses: lane, index of the operation in its code, value."""


@dataclass(slots=True)
class BranchPaths:
    """The paths followed so far, and the values of those to follow."""

    followed: list[Mapping[AccessId, Observation]] = field(default_factory=list)
    addresses: dict[AccessId, int] = field(default_factory=dict)
    pending: deque[Values] = field(default_factory=deque)
    planned: set[Values] = field(default_factory=set)
    origin: Any = None
    """The other choices of the paths that these values belong to."""
    incomplete: bool = False
    """Whether a path could not be followed."""

    def give_up(self) -> None:
        """Follow no more paths: there may be too many, as where a thread tries a lock until it gets it."""
        self.incomplete = True
        self.pending.clear()

    def restart(self) -> None:
        """Forget all paths: they are executed anew, with more of what they do."""
        self.followed.clear()
        self.pending.clear()
        self.planned.clear()

    def record(self, observations: Mapping[AccessId, Observation]) -> bool:
        """Record a path that has been executed; returns whether it is new."""
        if observations in self.followed:
            return False
        self.followed.append(observations)
        self.addresses |= {place: seen.address for place, seen in observations.items()}
        return True

    def require(self, branches: Iterable[Values], origin: object) -> None:
        """Plan the paths on which these values are returned; ``origin`` are the choices of the path that tells them,
        which have to be the same for all.
        """
        if self.origin not in (None, origin):
            self.incomplete = True
            return
        self.origin = origin
        for values in sorted(branches, key=lambda v: (len(v), sorted(v))):
            if values not in self.planned:
                self.planned.add(values)
                self.pending.append(values)

    def next_values(self) -> dict[AccessId, Observation] | None:
        """The values of a path to execute; ``None`` if there are no more."""
        while self.pending:
            values = self.pending.popleft()
            if self.is_followed(values):
                continue
            if len(self.followed) >= MAX_BRANCH_PATHS:
                self.give_up()
                return None
            return {(lane, at): Observation(self.addresses[lane, at], value) for lane, at, value in values}
        return None

    @staticmethod
    def is_followed_by(path: Mapping[AccessId, Observation], values: Iterable[tuple[int, int, int, int]]) -> bool:
        """Whether a path has these values: lane, index in its code, address, value."""
        return all(
            (seen := path.get((lane, at))) is not None and (seen.address, seen.value) == (where, value)
            for lane, at, where, value in values
        )

    def is_followed(self, values: Values) -> bool:
        """Whether one of the paths followed has these values, or others that are alike."""
        return any(
            all((seen := path.get((lane, at))) is not None and seen.stands_for(value) for lane, at, value in values)
            for path in self.followed
        )
