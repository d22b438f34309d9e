"""When a grid is reduced to pairs of its clusters: which clusters these are, and why it may not be possible."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mcheck.base.errors import Span
from mcheck.frontend.ptx.launch import Extent, Launch
from mcheck.frontend.ptx.module import Module
from mcheck.isa.kinds import CANCELS, Kind

MAX_EXECUTED = 160
"""Maximum number of clusters that are executed one by one."""
MAX_CLUSTERS = 1 << 12
"""Maximum number of clusters whose executions are compared."""
NOT_RESIDENT = (
    'clusters wait for others, and nothing but `"cooperative": true` in the launch promises that these run meanwhile'
)


class NotReducible(Exception):
    """Why pairs do not stand for a grid: a clause, and its location. ``applies``: the clusters do what the argument is
    about, as far as is known; ``late``: finding out took too long.
    """

    def __init__(self, why: str, span: Span | None = None, *, applies: bool = True, late: bool = False) -> None:
        super().__init__(why)
        self.why, self.span, self.applies, self.late = why, span, applies, late


def is_box(launch: Launch) -> bool:
    """Whether a launch executes a box of clusters together."""
    return prod(launch.together) > 1


def clusters_of(launch: Launch) -> Sequence[Extent]:
    """The coordinates of the clusters that may count themselves in one word, or signal each other: those of the box
    that is executed, or of the grid.
    """
    if is_box(launch):
        return launch.executed_clusters
    a, b, c = launch.cluster_counts
    return [(x, y, z) for z in range(c) for y in range(b) for x in range(a)]


def cancels_clusters(module: Module) -> bool:
    """Whether a cluster can take the place of another one (9.7.13.17)."""
    return any(s.kind in CANCELS for f in module.functions.values() for s in f.body)


def has_signals(module: Module) -> bool:
    """Whether clusters may count, draw, or tell each other something: by atomics, or strong accesses."""
    return any(
        s.kind in (Kind.ATOMIC, Kind.REDUCTION) or (s.kind in (Kind.LOAD, Kind.STORE) and s.opcode.is_strong)
        for f in module.functions.values()
        for s in f.body
    )


def check_statements(module: Module) -> None:
    """Check that no instruction writes memory without that its execution shows it. Raises ``NotReducible``."""
    for function in module.functions.values():
        for statement in function.body:
            if statement.kind is Kind.DISCARD:  # a weak write, which executions leave out
                raise NotReducible(f"'{statement.text}' is not followed", statement.span)
