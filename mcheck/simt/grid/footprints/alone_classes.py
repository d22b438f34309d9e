"""Classes of clusters that are executed alone: what one of them does says what each of them does.

Arguments about pairs ask what each cluster of a grid does by itself. Here it is not enough that two clusters would do
the same *if they kept apart* (``watched_execution``): a cluster may load what it has stored itself, and clusters
conflict. So the class of the executed cluster has further conditions.

1. Strong accesses and atomics of global memory are of the same words, and stores and additions are of the same values.
2. What a load returns is unknown to the class if the cluster has stored to that buffer at an address, or a value, that
   depends on its coordinates. Of all else it finds what the launch says, at the same address the same.
3. Lanes count as one that store one value to one place by one instruction. So lanes that store to one buffer move by
   the same slopes, and where they store to one place, their values are equal in every cluster of the class, or in none.
   The lane that stands for the others is chosen by what it has accessed there before, which moves by the same slopes.

*The argument.* Take another cluster of the class, and by induction the next instruction. Its guard, the lanes that
execute it, and all operands but addresses of weak accesses of global memory and stored data are the same; registers
that may differ in other ways are marked, and restrict the class, or end it, where any of this depends on them. So it
records the same operation for the same lanes, at an address that is an affine form in the symbols of the space.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.memory_layout import LOCAL_BASE
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.isa.kinds import REDUCTIONS, Kind
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.compiler import Fetch
from mcheck.simt.grid.footprints.access_placement import GLOBAL, AccessKind
from mcheck.simt.grid.footprints.footprint import READ
from mcheck.simt.grid.footprints.grid_classes import ExactWatch
from mcheck.simt.grid.footprints.recorded_accesses import OWN_ONLY
from mcheck.simt.grid.footprints.space import Slopes, Space, trim_slopes
from mcheck.simt.grid.footprints.state import Indices
from mcheck.simt.instructions.access_operands import to_generic

FOLLOWED = REDUCTIONS | {Kind.STORE, Kind.ATOMIC}


def space_around(launch: Launch, cluster: Coordinates) -> Space:
    """The coordinates of the clusters of a launch, as seen from one of them."""
    counts = launch.cluster_counts
    return Space(
        tuple(-at for at in cluster), tuple(n - 1 - at for at, n in zip(cluster, counts, strict=True)), tuple(cluster)
    )


@dataclass(slots=True)
class AloneWatch(ExactWatch):
    """The watch on a cluster that is executed alone, and stands for its class."""

    executes_alone: ClassVar[bool] = True

    def memories_at(self, spaces: frozenset[str], fetch: Fetch, lanes: Indices) -> frozenset[str]:
        """The memories that lanes access: of global memory the buffers."""
        if spaces == OWN_ONLY:
            return spaces
        at = to_generic(np.broadcast_to(fetch()[0], self.compiler.lanes.exists.shape)[lanes]).astype(np.int64)
        shared = (at >= SHARED_BASE) & (at < LOCAL_BASE)
        own = (at >= LOCAL_BASE) | (at < GLOBAL_BASE)
        found = {str(buffer) for buffer in distinct(self._buffers(at[~shared & ~own])).tolist()}
        if shared.any():
            if found or own.any():
                self.space.isolate("lanes access shared memory and other memory by one instruction", None)
            found.add("shared")
        if own.any():
            found.add("own")
        return frozenset(found)

    def _buffers(self, at: Indices) -> Indices:
        return np.searchsorted(self.bases, at, side="right") - 1

    def pin(self, rows: Iterable[int], lanes: Indices, reason: str, span: Span | None) -> None:
        """Restrict the class to the clusters in which these registers have the same values."""
        for row in dict.fromkeys(rows):
            if not self.may_differ((row,)):
                continue
            if row in self.bad and self.bad[row][lanes].any():
                self.space.isolate(reason, span)
            self.require_values(row, lanes, reason, span)
            if row in self.slopes:
                for by in {trim_slopes(column) for column in self.slopes[row][:, lanes].T.tolist()}:
                    self.space.require(by, 0, span)
                    self.space.require([-x for x in by], 0, span)
            self.set_same([row], lanes)

    def merges_alike(
        self, at: Word, numbers: list[Word], qualities: list[Word], names: list[Word], lanes: Indices
    ) -> bool:
        """Whether lanes that store one value to one place do so in every cluster of the class, and lanes that store
        several values there.
        """
        places, back = np.unique(at, return_inverse=True)
        if len(places) == len(at):
            return True
        if not ExactWatch.merges_alike(self, at, numbers, qualities, names, lanes):
            return False
        depends = np.logical_or.reduce([name != 0 for name in names])
        rows = np.unique(np.stack([at, *numbers, *qualities, *names]), axis=1)
        several = np.unique(rows[0], return_counts=True)[1] > 1
        mixed = places[several]
        return not depends[np.isin(places[back], mixed)].any()

    def record_access(
        self, unit: Unit, statement: ptx.Statement, place: ptx.Address, fetch: Fetch, lanes: Indices, kind: AccessKind,
        *, offset: NDArray[np.uint64] | None = None,
    ) -> None:  # fmt: skip
        """Record an access, and check that lanes that store count as one in other clusters as they do here."""
        if kind.kind != READ:
            value = self.value(unit, place, fetch, lanes)[0]
            at = to_generic(value.base).astype(np.int64)
            ours = (at >= GLOBAL) & (at < SHARED_BASE)
            if statement.kind not in FOLLOWED and ours.any():
                self.space.isolate(f"'{statement.text}' writes global memory", statement.span)
            buffers = self._buffers(at)
            for buffer in distinct(buffers[ours]).tolist():
                mine = ours & (buffers == buffer)
                slopes = {trim_slopes(column) for column in value.slopes[:, mine].T.tolist()}
                joint = len(distinct(at[mine])) < int(mine.sum())
                if len(slopes) > 1 or (joint and self._others_move(int(self.bases[buffer]), slopes)):
                    self.space.isolate(f"lanes that '{statement.text}' counts as one depend on %ctaid", statement.span)
        super(AloneWatch, self).record_access(unit, statement, place, fetch, lanes, kind, offset=offset)  # noqa: UP008 - slots

    def _others_move(self, base: int, slopes: set[Slopes]) -> bool:
        """Whether the cluster has accessed a buffer by other slopes than these."""
        return any(form.buffer == base and not slopes.issuperset(form.slopes) for form in self.footprint.beginnings)
