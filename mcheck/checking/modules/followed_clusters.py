"""What was followed of a grid: some of its clusters, and the answer about those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.findings.finding import Finding
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.trace_extraction import ClusterTrace


@dataclass(frozen=True, slots=True)
class Followed:
    """The answer about the clusters that were followed; ``scope`` is the one of its assumptions that names them.
    ``deadlocks`` of theirs that other clusters might resolve are not in it. ``waiting`` are those that wait for a word
    of global memory, by their numbers among the executed ones. ``late``: there was no time to follow the values that
    other threads write. ``assumes_contents``: the launch does not give initial contents that matter.
    """

    answer: Answer
    scope: str
    deadlocks: tuple[Finding, ...] = ()
    waiting: frozenset[int] = frozenset()
    late: bool = False
    assumes_contents: bool = False


def without_scope(given: Followed | None) -> Answer | None:
    """The answer about clusters that stand for all, if they wait for nothing from others."""
    if given is None or given.deadlocks:
        return None
    return replace(given.answer, assumptions=tuple(a for a in given.answer.assumptions if a != given.scope))


class Follow(Protocol):
    """Follows the clusters that a launch executes together; with ``whole`` only if no others conflict with them, with
    ``apart`` because it is known that none do. ``trace`` is what they do, if that is known. ``module`` is followed in
    the place of the launched one.
    """

    def __call__(
        self, launch: Launch, limit: Limit, *, whole: bool = False, apart: bool = False,
        trace: ClusterTrace | None = None, module: Module | None = None,
    ) -> Followed | None: ...  # fmt: skip


FollowModule = Callable[[Module, Launch, Limit], Answer | None]
"""Follows one cluster of the launch of a kernel, which is known to keep apart from the others."""
ProveEvery = Callable[[Module, Launch, Limit], tuple[Answer, Sequence[int]]]
"""Proves one cluster for every number that a parameter may be. Also returns the numbers with which it differs: with any
other one it does the same as with one of these.
"""
FollowTogether = Callable[[Launch, Limit], Followed | None]
"""Follows the clusters that a launch, and those beside it, execute together."""
