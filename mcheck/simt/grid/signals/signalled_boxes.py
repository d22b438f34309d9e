"""Boxes of clusters that signal each other, and no cluster outside: the slices of a tile in split-K.

A box is executed as ``mcheck.simt.grid.signals.cluster_signals`` executes its clusters, and watched as
``mcheck.simt.grid.footprints.watched_execution`` watches a cluster. What a wait brings is the same in all boxes if it
is found from registers that are, and the words of signals begin with the same values.
"""

from __future__ import annotations

from dataclasses import field
from typing import Self

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.launch import Extent, Launch
from mcheck.frontend.ptx.module import Module
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.grid.counters.count_uses import CountUses
from mcheck.simt.grid.footprints.footprint import Footprint
from mcheck.simt.grid.footprints.space import AXES
from mcheck.simt.grid.footprints.state import Indices
from mcheck.simt.grid.footprints.watched_execution import GridWatch, cluster_space
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.cluster_signals import trace_signalling
from mcheck.simt.grid.signals.early_polls import wanted_value
from mcheck.simt.grid.signals.others_signal import OthersSignal, TicketFound, is_number
from mcheck.simt.trace_extraction import ClusterTrace

NEVER_LAST, ONCE_LAST = frozenset[int](), frozenset((0,))
"""The rounds in which a cluster of a box is the last one to count itself."""


@dataclass(slots=True)
class BoxWatch(OthersSignal):
    """The watch on a box, with one that says how other boxes differ from it."""

    grid: GridWatch = field(init=False)
    in_all: bool = True
    """Whether waits count only if they are found in all boxes."""

    def restarted(self) -> Self:
        """The watch, at the beginning of an execution."""
        self.grid = GridWatch(cluster_space(self.launch))
        OthersSignal.restarted(self)
        if self.last is not None and self.in_all:
            self.uses = CountUses(self.grid.varies)
        return self

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the steps for both."""
        compiler.differs = self.grid.differs if self.in_all else None
        return OthersSignal.instrument(self, compiler, self.grid.instrument(compiler, steps))

    def is_draw(self, statement: ptx.Statement) -> bool:
        """Whether an atomic may draw a number. A cluster may also count itself by an ``inc`` that does not wrap before
        all have; that is a condition on the box (``mcheck.simt.grid.counters.counted_clusters``).
        """
        return is_number(statement, "add") if self.last is None else is_number(statement, "add", "inc")

    def learn(self, rows: list[int], lane: Indices) -> None:
        """These registers hold what was waited for, in all boxes."""
        self.grid.set_same(rows, lane)

    def learn_draw(self, rows: list[int], lane: Indices) -> None:
        """These registers hold a number that is drawn, the same in all boxes that make this choice, in any order."""
        self.grid.set_same(rows, lane)
        for row in rows:
            self.compiler.lanes.quality[row][lane] &= ~np.uint8(taint.ORDER)


def find_box(module: Module, launch: Launch, limit: Limit, *, counts: bool) -> Extent | None:
    """The extents, in clusters, of the boxes whose clusters may access the same words by strong accesses, or with
    ``counts`` by atomics, if they are neither one cluster nor the grid. Raises ``NotReducible``.
    """
    body = (s for function in module.functions.values() for s in function.body)
    if not any(s.kind is Kind.ATOMIC if counts else s.kind is Kind.LOAD and s.opcode.is_strong for s in body):
        return None
    last = (NEVER_LAST,) if counts else None
    watch = BoxWatch(replace(launch, together=(1, 1, 1)), (0,), None, in_all=False, last=last)
    _trace(module, watch, limit)
    found = watch.grid.footprint
    words = [form for form in found.beginnings if not form.plain]
    shared = [any(not any(s[axis : axis + 1]) for form in words for s in form.slopes) for axis in range(AXES)]
    x, y, z = (count if both else 1 for count, both in zip(launch.cluster_counts, shared, strict=True))
    return (x, y, z) if words and (x, y, z) not in ((1, 1, 1), launch.cluster_counts) else None


def signalled_footprints(module: Module, launch: Launch, limit: Limit) -> tuple[Footprint, ...]:
    """What the clusters that a launch executes together access, in the coordinates of their box: if early polls fail,
    and if there are any, if they succeed. Raises ``NotReducible``.
    """
    numbers = tuple(range(len(launch.executed_clusters)))
    watch = BoxWatch(launch, numbers, None)
    trace = _trace(module, watch, limit)
    if not watch.early:
        return (watch.grid.footprint,)
    wanted = {poll.lane: wanted_value(poll, trace.program, launch.width) for poll in watch.early}
    other = BoxWatch(launch, numbers, None, returned=wanted)
    _trace(module, other, limit)
    return watch.grid.footprint, other.grid.footprint


def counted_footprints(module: Module, launch: Launch, limit: Limit) -> tuple[Footprint, ...]:
    """What the clusters that a launch executes together access, in the coordinates of their box: for each of them, if
    that is the last one to count itself. Raises ``NotReducible``.

    The others draw the first number here. The numbers in between lead to the same as the first one in one box
    (``mcheck.checking.modules.pairs.counted_grid``, condition 3); so they do in all, if all compare them with the same.

    An atomic of whose result something depends is no mere reduction, so footprints show that boxes count in words of
    their own.
    """
    clusters = launch.executed_clusters
    found = []
    for last in range(len(clusters)):
        limit.check()
        chosen = tuple(ONCE_LAST if k == last else NEVER_LAST for k in range(len(clusters)))
        watch = BoxWatch(launch, tuple(range(len(clusters))), None, last=chosen)
        _trace(module, watch, limit)
        if watch.uses is not None and watch.uses.misuse is not None:
            raise NotReducible(*watch.uses.misuse)
        if len(watch.words) != 1:
            raise NotReducible("the clusters of one tile do not count themselves in one word")
        found.append(watch.grid.footprint)
    return tuple(found)


def _trace(module: Module, watch: BoxWatch, limit: Limit) -> ClusterTrace:
    try:
        trace = trace_signalling(module, watch.launch, watch.launch.executed_clusters, watch, limit)
    except TicketFound:
        raise NotReducible("clusters draw tickets") from None
    if watch.kept:
        raise NotReducible("what is waited for is kept in shared memory")
    return trace
