"""One execution for all clusters of a class, where each is executed alone.

A cluster is executed under a watch that says which others do the same (``mcheck.simt.grid.footprints.alone_classes``):
they record the same operations, and the address of each weak access of global memory is an affine form in some symbols.
What an affine form is at a few places of a class that span it, it is at all of them. So a few more clusters are
executed, and the executions of the others follow: they have the same shape, and accesses at places that are computed.

A cluster of the class is executed for itself

* if two of its accesses meet that move by different slopes, and both write or one is strong: whether they meet may
  decide what the execution takes for known;
* if one of its accesses would leave the buffer or not be aligned, so that the reason is found there.

The clusters that are executed anyway have to do what the class says, or there are no classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.grid.footprints.alone_classes import AloneWatch, space_around
from mcheck.simt.grid.footprints.space import AXES
from mcheck.simt.grid.launches.launch_accesses import class_symbols
from mcheck.simt.grid.pairs.cluster_accesses import Execution
from mcheck.simt.grid.pairs.conflicts import APART
from mcheck.simt.grid.pairs.copied_ranges import BY_COORDINATES
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.reduction import MAX_CLUSTERS, MAX_EXECUTED, NotReducible, cancels_clusters, is_box
from mcheck.simt.trace_extraction import Watcher

E = TypeVar("E", bound=Execution)
W = TypeVar("W", bound=Watcher)
MakeWatch = Callable[[], AloneWatch]
FEW = 4
"""The number of clusters of a class that are not worth to be computed."""
MAX_SINGLE = 3
"""How many classes may be of one cluster before no more are looked for."""
TOLERANCE = 1e-3
"""How far computed places may be from whole numbers."""


@dataclass(slots=True)
class Both(Generic[W]):
    """The watch on a cluster that stands for its class, beside another watch."""

    own: W
    grid: AloneWatch | None

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the steps for both."""
        if self.grid is None:
            return self.own.instrument(compiler, steps)
        compiler.differs = self.grid.differs
        return self.own.instrument(compiler, self.grid.instrument(compiler, steps))


@dataclass(slots=True)
class ClassExecutions(Generic[E]):
    """What the clusters of a launch do, each alone. ``execute`` executes that of a number, with a watch of a class if
    it is given how to make it.
    """

    module: Module
    launch: Launch
    clusters: Sequence[Coordinates]
    execute: Callable[[int, MakeWatch | None], E]
    few: int = FEW
    found: dict[int, E] = field(default_factory=dict)
    executed: int = 0
    single: int = 0
    apart: bool = False
    """Whether clusters are executed one by one."""

    def __post_init__(self) -> None:
        several = self.few < len(self.clusters) <= MAX_CLUSTERS
        self.apart = cancels_clusters(self.module) or is_box(self.launch) or not several

    def __getitem__(self, number: int) -> E:
        """The execution of a cluster. Raises ``NotReducible``, and what ``execute`` raises."""
        if number not in self.found and not self.apart:
            self._execute_class(number)
        return self._execute_alone(number)

    def _execute_alone(self, number: int) -> E:
        if number not in self.found:
            self.executed += 1
            if self.executed > MAX_EXECUTED or (self.apart and len(self.clusters) > MAX_EXECUTED):
                raise NotReducible(f"there are more than {MAX_EXECUTED} clusters, each for itself", applies=False)
            self.found[number] = self.execute(number, None)
        return self.found[number]

    def _execute_class(self, number: int) -> None:
        watches: list[AloneWatch] = []

        def watch() -> AloneWatch:
            watches.append(AloneWatch(space_around(self.launch, self.clusters[number])))
            return watches[-1]

        self.executed += 1
        try:
            one = self.execute(number, watch)
        except NotReducible as error:
            if error.late or len(self.clusters) > MAX_EXECUTED:
                raise
            self.apart = True  # for the class something is not known that each cluster by itself may know
            return
        self.found[number] = one
        symbols, members = self._members(watches[-1])
        if len(members) > self.few:
            self._compute(one, symbols, members)
            return
        self.single += 1
        self.apart |= self.single >= MAX_SINGLE

    def _members(self, watch: AloneWatch) -> tuple[NDArray[np.int64], list[int]]:
        """The symbols of the clusters of a class, and their numbers, of those that are not known yet; the executed one
        comes first.
        """
        symbols, inside = class_symbols(watch.space, [watch.space])
        symbols = symbols[inside]
        counts = self.launch.cluster_counts
        places = symbols[:, :AXES] + np.array(watch.space.first)
        numbers = places @ np.array([1, counts[0], counts[0] * counts[1]], np.int64)
        known = np.isin(numbers, list(self.found)) & symbols[:, :AXES].any(axis=1)
        order = np.argsort(symbols[~known][:, :AXES].any(axis=1), kind="stable")
        return symbols[~known][order], numbers[~known][order].tolist()

    def _compute(self, one: E, symbols: NDArray[np.int64], members: Sequence[int]) -> None:
        """Compute the executions of a class from those of clusters that span it."""
        chosen, weights = _spanning(symbols)
        spanning = [self._execute_alone(members[k]) for k in chosen]
        check = self._execute_alone(members[-1])
        first = one.accesses.origins
        if not all(_is_alike(one, other) for other in (*spanning, check)):
            self.apart = True
            return
        slopes = np.stack([other.accesses.origins - first for other in (one, *spanning)])[1:]
        moved = np.flatnonzero(slopes.any(axis=0))
        slopes = slopes[:, moved]
        exact = weights @ slopes.astype(np.float64) if chosen else np.zeros((len(members), 0))
        moves = np.rint(exact).astype(np.int64)
        starts = first[moved] + moves
        known = one.accesses.at(moved, starts[len(members) - 1])
        unsure = np.abs(exact - moves).max(initial=0) > TOLERANCE or one.accesses.strong[moved].any()
        unsure |= (one.accesses.alignments[moved] == BY_COORDINATES).any()  # part of a box may leave its tensor
        if unsure or (known.starts != check.accesses.origins).any():
            self.apart = True
            return
        for k in np.flatnonzero(_are_regular(one, moved, starts, slopes)).tolist():
            mine = one.accesses.at(moved, starts[k])
            self.found[members[k]] = replace(one, cluster=self.clusters[members[k]], accesses=mine)


def _is_alike(one: Execution, other: Execution) -> bool:
    """Whether two clusters do the same but for the places of their accesses."""
    if one.alike != other.alike:
        return False
    names = (
        "sizes", "threads", "roles", "codes", "places", "segments", "writes", "strong", "non_coherent", "counts",
        "copies", "alignments", "generic", "begun", "over", "complete", "phases", "fenced_phases",
    )  # fmt: skip
    return all(np.array_equal(getattr(one.accesses, n), getattr(other.accesses, n)) for n in names)


def _spanning(symbols: NDArray[np.int64]) -> tuple[list[int], NDArray[np.float64]]:
    """Rows that span all rows, and of each row its coefficients."""
    rows = symbols.astype(np.float64)
    chosen: list[int] = []
    weights = np.zeros((len(rows), 1))
    while True:
        rest = rows - (weights @ rows[chosen] if chosen else 0)
        furthest = int(np.abs(rest).max(axis=1).argmax())
        if np.abs(rest[furthest]).max() < 1e-6:
            return chosen, weights
        chosen.append(furthest)
        weights = rows @ np.linalg.pinv(rows[chosen])


def _are_regular(one: Execution, moved: Numbers, starts: Numbers, slopes: Numbers) -> NDArray[np.bool_]:
    """Which clusters of a class, whose ``moved`` accesses begin there, need not be executed for themselves."""
    accesses, instances = one.accesses, one.places.memory.instances
    good = np.ones(len(starts), np.bool_)
    if not len(moved):
        return good
    sizes, writes, aligned = accesses.sizes[moved], accesses.writes[moved], accesses.alignments[moved]
    bases, tops = (np.array(given, np.int64) for given in zip(*sorted(
        (i.base, i.base + i.object.size) for i in instances), strict=True))  # fmt: skip
    mine = np.searchsorted(bases, accesses.origins[moved], side="right") - 1
    inside = (starts >= bases[mine]) & (starts + sizes <= tops[mine])
    good &= ((inside | (sizes == 0)) & (starts % aligned == 0)).all(axis=1)
    still = np.ones(len(accesses.sizes), np.bool_)
    still[moved] = False
    for some, others in ((slice(None), still & accesses.strong), (writes, still & accesses.writes)):
        good &= ~_meets(starts[:, some], sizes[some], accesses.origins[others], accesses.sizes[others])
    _, kinds = np.unique(slopes, axis=1, return_inverse=True)
    kinds = kinds.reshape(-1)
    apart = starts + np.arange(len(starts), dtype=np.int64)[:, None] * APART
    for kind in distinct(kinds[writes]).tolist():
        some, others = writes & (kinds == kind), writes & (kinds > kind)
        there = apart[:, others].reshape(-1)
        good &= ~_meets(apart[:, some], sizes[some], there, np.tile(sizes[others], len(starts)))
    return good


def _meets(starts: Numbers, sizes: Numbers, others: Numbers, lengths: Numbers) -> NDArray[np.bool_]:
    """In which rows one of the ranges has a byte of the others."""
    if not len(others) or not len(sizes):
        return np.zeros(len(starts), np.bool_)
    order = np.argsort(others, kind="stable")
    reach = np.maximum.accumulate((others + lengths)[order])  # the furthest end of those that begin up to there
    last = np.searchsorted(others[order], starts + sizes, side="left") - 1
    found: NDArray[np.bool_] = (last >= 0) & (reach[last] > starts)
    return np.asarray(found.any(axis=1), np.bool_)
