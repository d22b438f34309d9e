"""The accesses of a whole launch to memory that other launches may touch, as ranges of bytes of that memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import Limit
from mcheck.base.errors import Span, Unsupported
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.known_contents import Memory
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch, cta_name
from mcheck.frontend.ptx.memory_layout import POINTER, UNKNOWN_GLOBAL
from mcheck.frontend.ptx.module import Module
from mcheck.isa.kinds import GRID_DEPENDENCIES, Kind
from mcheck.semantics.tensor_map import element_size
from mcheck.simt.distinct import distinct_rows
from mcheck.simt.execution.cluster import EXITED, Cluster
from mcheck.simt.grid.footprints.footprint import ANY, Footprint, Form
from mcheck.simt.grid.footprints.regions import Extent, Region, regions_of
from mcheck.simt.grid.footprints.space import AXES, Space, trim_slopes
from mcheck.simt.grid.footprints.watched_execution import cluster_space
from mcheck.simt.grid.launches.launch_watch import LaunchWatch, Placement, Releases
from mcheck.simt.grid.launches.wait_order import AFTER, BEFORE, MAYBE
from mcheck.simt.trace_extraction import Runner, follow_paths

MAX_CLASSES = 8
"""Maximum number of clusters of a grid that are executed, each for a class."""
MAX_CLUSTERS = 1 << 17
"""Maximum number of clusters of a grid that are enumerated."""
SAMPLE = 4096
"""Number of clusters of a larger grid among which common bytes are searched."""

ANYWHERE: Memory = ("", "")
"""The memory of an access whose address is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPath:
    """One path of the clusters of a class. ``clusters`` has the symbols of a cluster in each row: of all of them, if
    ``complete``.

    ``sure``: they take this path and no other, and all of it was followed. ``waits``: a thread waits for the grids
    before. ``start``: how the start of a dependent grid is ordered with the end of the grids before this one: not,
    or in time (``MAYBE``), or by a release (``AFTER``). ``triggers``: a thread executes launch_dependents.
    """

    number: int
    space: Space
    clusters: NDArray[np.int64]
    complete: bool
    sure: bool
    waits: bool
    start: int
    triggers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAccess:
    """What one instruction accesses in the clusters of a path: ``extents`` are ranges of bytes of ``memory``, all of
    which are accessed if ``exact``.
    """

    memory: Memory
    form: Form
    span: Span | None
    extents: tuple[Extent, ...]
    exact: bool
    placement: Placement
    path: ClassPath


@dataclass(slots=True)
class LaunchFootprint:
    """What a launch accesses of the memory that launches share. ``left_out``: the number of clusters of no class."""

    launch: Launch
    paths: list[ClassPath] = field(default_factory=list)
    accesses: list[LaunchAccess] = field(default_factory=list)
    left_out: int = 0
    one_order: bool = False
    """Whether control depends on the order of threads, of which one was followed."""
    lost: bool = False
    """Whether some lanes were not followed to their end: they wait for other clusters, say."""
    may_signal: bool = False
    apart: bool = False
    """Whether clusters are executed each for itself, since what one does says nothing of others."""
    actions: set[Kind] = field(default_factory=set)
    """The kinds of griddepcontrol in the code."""

    @property
    def waits(self) -> int:
        """Whether a thread waits for the grids before: ``BEFORE`` (no), ``MAYBE``, ``AFTER`` (surely)."""
        if Kind.GRID_WAIT not in self.actions:
            return BEFORE
        classes = [list(paths) for _, paths in groupby(self.paths, key=lambda path: path.number)]
        if not self.one_order and any(all(path.waits for path in paths) for paths in classes):
            return AFTER
        return MAYBE if self.is_partial or any(path.waits for path in self.paths) else BEFORE

    @property
    def start(self) -> int:
        """How the start of a dependent grid is ordered with the end of the grids before this one. Every CTA has to let
        it begin, so one class that does so behind its wait is enough.
        """
        if Kind.GRID_WAIT not in self.actions:
            return BEFORE
        classes = [[path.start for path in paths] for _, paths in groupby(self.paths, key=lambda path: path.number)]
        least, most = max(map(min, classes)), max(map(max, classes))
        unseen = self.one_order or self.lost  # threads of these CTAs that may let it begin earlier
        return least if least == most and not (unseen or (self.is_partial and least < MAYBE)) else MAYBE

    @property
    def may_trigger(self) -> bool:
        """Whether some thread may execute launch_dependents."""
        triggers = self.is_partial or any(path.triggers for path in self.paths)
        return triggers and Kind.GRID_TRIGGER in self.actions

    @property
    def is_partial(self) -> bool:
        """Whether clusters or paths may do what was not seen."""
        return self.misses_accesses or not all(path.sure for path in self.paths)

    @property
    def misses_accesses(self) -> bool:
        """Whether there may be accesses that were not seen."""
        return bool(self.left_out) or self.one_order or self.lost

    def cta(self, access: LaunchAccess, row: int) -> str:
        """The name of a cluster of the class of an access: its first CTA."""
        cluster = access.path.space.grid_coordinates(access.path.clusters[row, :AXES].tolist())
        return cta_name(cluster, self.launch.cluster)


def follow_launch(module: Module, launch: Launch, limit: Limit) -> LaunchFootprint:
    """Execute a cluster of each class of a launch; raises what the execution raises."""
    found = LaunchFootprint(launch)
    total = cluster_space(launch).cluster_count
    found.apart = total == 1
    if total > MAX_CLUSTERS:
        space = _follow_class(module, launch, limit, found)
        found.left_out = 0 if not space.conditions and not space.reasons_lost else total - 1
        return found
    counts = [n // c for n, c in zip(launch.grid, launch.cluster, strict=True)]
    left = np.ones(counts, np.bool_)
    first: Coordinates = launch.first
    for _ in range(MAX_CLASSES):
        one = replace(launch, first=first)
        space = _follow_class(module, one, limit, found)
        covered = found.paths[-1].clusters[:, :AXES] + np.array(space.first)
        left[tuple(covered.T)] = False
        if not left.any():
            break
        x, y, z = (int(n) * c for n, c in zip(np.argwhere(left)[0], launch.cluster, strict=True))
        first = (x, y, z)
    found.left_out = int(left.sum())
    return found


def _follow_class(module: Module, launch: Launch, limit: Limit, found: LaunchFootprint) -> Space:
    """Execute the paths of one cluster; the space of the last one, whose class they are taken for."""

    def paths(releases: Releases | None = None) -> list[tuple[Runner, Cluster, LaunchWatch]]:
        def watch() -> LaunchWatch:
            return LaunchWatch(cluster_space(launch), alone=found.apart, releases=releases)

        return list(follow_paths(module, launch, limit, watch, first_lane_leads=True))

    ways = paths()
    if not found.apart and any(watch.space.reasons_lost for _, _, watch in ways):
        found.apart = True
        ways = paths()
    if len(ways) == 1 and ways[0][2].fences.any():
        ways = paths(Releases(ways[0][2].seen_triggers, ways[0][2].fences))
    number = 1 + max((path.number for path in found.paths), default=-1)
    rows = _common_rows([watch.space for _, _, watch in ways])
    for runner, cluster, watch in ways:
        clusters, complete = _class_rows(watch.space, rows)
        made = ClassPath(
            number=number, space=watch.space, clusters=clusters, complete=complete,
            sure=len(ways) == 1 and not (cluster.recorded.gaps or cluster.recorded.order_gaps or cluster.chosen_spans),
            waits=bool(watch.waited_ctas), start=_start(watch, len(runner.ctas)), triggers=bool(watch.seen_triggers),
        )  # fmt: skip
        found.paths.append(made)
        found.may_signal |= watch.may_signal
        found.actions |= {s.kind for u in runner.code.units for s in u.function.body if s.kind in GRID_DEPENDENCIES}
        found.one_order |= bool(cluster.recorded.order_gaps)
        found.lost |= bool((cluster.status != EXITED).any()) or any(
            g.nothing_known for g in cluster.recorded.gaps.values()
        )
        memories = _memories(launch, runner)
        for placement, footprint in watch.footprints.items():
            found.accesses += _accesses(footprint, placement, made, memories)
    return ways[-1][2].space


def _start(watch: LaunchWatch, ctas: int) -> int:
    width, best = watch.compiler.lanes.width, BEFORE
    for cta in range(ctas):
        found = [t for lane, t in watch.seen_triggers.items() if lane // width == cta]
        if not found:
            best = max(best, MAYBE if cta in watch.waited_ctas else BEFORE)
        elif min(t.behind_wait for t in found) == AFTER:
            fenced = all(t.fences and t.fence_behind_wait == AFTER for t in found)
            best = max(best, AFTER if fenced else MAYBE)
        else:
            best = max(best, min(t.behind_wait for t in found))
    return best


# --- the clusters of a class ----------------------------------------------------------------------------------


def class_symbols(space: Space, spaces: list[Space]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The symbols of all clusters of a grid in a row each, and which of them are in the class of every path."""
    return _grid_rows(space)[0], _common_rows(spaces)


def _class_rows(space: Space, within: NDArray[np.bool_] | None) -> tuple[NDArray[np.int64], bool]:
    """The symbols of the clusters of a class, and whether these are all of them."""
    symbols, complete = _grid_rows(space)
    member = _members(space, symbols) if within is None else within
    return symbols[member], complete


def _common_rows(spaces: list[Space]) -> NDArray[np.bool_]:
    """The clusters that are in the class of every path."""
    rows = [_members(space, _grid_rows(space)[0]) for space in spaces]
    return np.asarray(np.logical_and.reduce(rows), np.bool_)


def _grid_rows(space: Space) -> tuple[NDArray[np.int64], bool]:
    if space.cluster_count <= MAX_CLUSTERS:
        axes = [np.arange(low, high + 1) for low, high in zip(space.low, space.high, strict=True)]
        rows = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, AXES).astype(np.int64)
    else:
        rows = np.array(list(islice(space.all_clusters(), SAMPLE)), np.int64)
    return space.symbol_rows(rows), space.cluster_count <= MAX_CLUSTERS


def _members(space: Space, symbols: NDArray[np.int64]) -> NDArray[np.bool_]:
    if space.reasons_lost:
        return np.asarray(~symbols[:, :AXES].any(axis=1))
    out = np.ones(len(symbols), np.bool_)
    for condition in space.conditions.values():
        slopes = np.array(condition.slopes, np.int64)
        out &= symbols[:, : len(slopes)] @ slopes <= condition.bound
    return out


# --- the memory -----------------------------------------------------------------------------------------------


def _memories(launch: Launch, runner: Runner) -> Mapping[int, Memory]:
    """The memory that launches share, by its address in the execution."""
    places = runner.places
    common = {("buffer", buffer.name) for buffer in launch.buffers if buffer.declared}
    found = {at: memory for at, memory in places.memories.items() if memory[0] == "variable" or memory in common}
    if ("", UNKNOWN_GLOBAL) in places.symbols:
        found[places.symbols["", UNKNOWN_GLOBAL]] = ANYWHERE
    for argument in launch.arguments:
        if not argument.is_given and argument.size == POINTER:
            found[places.buffers[argument.name]] = ANYWHERE
    return found


def _accesses(
    footprint: Footprint, placement: Placement, path: ClassPath, memories: Mapping[int, Memory]
) -> Iterator[LaunchAccess]:
    sizes = {i.base: i.object.size for i in footprint.buffers}
    for form, places in footprint.beginnings.items():
        memory = ANYWHERE if form.buffer == ANY else memories.get(form.buffer)
        if memory is None:
            continue
        for span, found in places.items():
            starts = distinct_rows(np.concatenate(found))
            if memory == ANYWHERE or form.whole:
                extents, exact = [Extent(0, sizes.get(form.buffer, 1), (), ())], False
            elif form.shape:
                extents, exact = box_extents(form, starts, path.space, sizes[form.buffer])
            else:
                regions = regions_of(starts - form.buffer, form.lengths, form.slopes)
                extents, exact = [_only_dimension(r) for r in regions], True
            if extents:
                yield LaunchAccess(
                    memory=memory, form=form, span=span, extents=tuple(extents), exact=exact, placement=placement,
                    path=path,
                )  # fmt: skip


def _only_dimension(region: Region) -> Extent:
    return region.dimensions[0]


def box_extents(form: Form, starts: NDArray[np.int64], space: Space, size: int) -> tuple[list[Extent], bool]:
    """The bytes of boxes of a tensor; what is outside of the tensor is not accessed. The second value: whether these
    are exactly the bytes.
    """
    address, elemtype, dims, global_stride = form.shape
    assert isinstance(address, int)
    assert isinstance(elemtype, str)
    assert isinstance(dims, tuple)
    assert isinstance(global_stride, tuple)
    try:
        unit = element_size(elemtype)
    except Unsupported:
        return [Extent(0, size, (), ())], False
    strides = (unit, *global_stride)[: len(dims)]
    moves = [0] * max((len(s) for s in form.slopes), default=0)
    for slopes, stride in zip(form.slopes, strides, strict=True):
        for k, slope in enumerate(slopes):
            moves[k] += slope * stride
    out, exact = [], True
    for row in starts.tolist():
        low, steps, length = address - form.buffer, [], unit
        empty = False
        for k, (start, box, dim, slopes, stride) in enumerate(
            zip(row, form.lengths, dims, form.slopes, strides, strict=True)
        ):
            least, most = space.bound_form(slopes)
            begin, end = start, start + box
            if start + least < 0 or start + most + box > dim:
                if least or most:
                    exact = False
                else:
                    begin, end = max(start, 0), min(end, dim)
            empty |= end <= begin
            low += begin * stride
            if k == 0:
                length = (end - begin) * unit
            elif end - begin > 1:
                steps.append((stride, end - begin))
        if not empty:
            out.append(Extent(low, length, tuple(steps), trim_slopes(moves)))
    return out, exact
