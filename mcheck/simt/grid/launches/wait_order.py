"""What is ordered behind ``griddepcontrol.wait`` in an execution: the wait holds back its own thread, and barriers and
mbarriers carry that to others (PTX ISA 9.0 sections 8.9.4 and 9.7.13.13).

Other synchronisations are not followed: after one a thread may be behind the wait if any is. What a thread learns where
it has waited is looked up at its next step, when all arrivals are known.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.simt.distinct import distinct, distinct_rows
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.lanes import WARP, Lanes
from mcheck.simt.grid.footprints.state import Indices

BEFORE, MAYBE, AFTER = range(3)
"""Whether what a thread does is ordered behind a wait for the grids before: no, by a synchronisation that is not
followed, yes.
"""


@dataclass(slots=True)
class Barriers:
    """The barriers of one kind, at which all lanes of a group meet: how many each lane has come to and passed, and for
    each group and barrier whether an arrival is behind the wait.
    """

    groups: NDArray[np.int64]
    arrived: NDArray[np.int64] = field(init=False)
    passed: NDArray[np.int64] = field(init=False)
    brought: dict[tuple[int, int], int] = field(default_factory=dict)
    """Only arrivals that are, or may be, behind the wait."""

    def __post_init__(self) -> None:
        self.arrived, self.passed = np.zeros_like(self.groups), np.zeros_like(self.groups)


@dataclass(slots=True)
class WaitOrder:
    """The lanes of a cluster: ``behind`` says for each whether what it does now is behind the wait."""

    lanes: Lanes
    behind: NDArray[np.int8] = field(init=False)
    learning: NDArray[np.bool_] = field(init=False)
    """Lanes that have come to a synchronisation that is not followed, and have not taken their next step."""
    in_cta: Barriers = field(init=False)
    in_warp: Barriers = field(init=False)
    in_cluster: Barriers = field(init=False)
    phases_brought: dict[tuple[int, int], int] = field(default_factory=dict)
    """By mbarrier and phase, the arrival that is least behind the wait."""
    last_phases: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """By mbarrier, for each lane a phase that it has seen complete, or a later one; -1 at first."""
    awaited: NDArray[np.int64] = field(init=False)
    """By lane, the mbarrier for which it has waited since its last step, or 0."""
    parities: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        count = self.lanes.count
        self.behind, self.learning = np.zeros(count, np.int8), np.zeros(count, np.bool_)
        self.awaited, self.parities = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.in_cta = Barriers(self.lanes.cta)
        self.in_warp = Barriers(np.arange(count) // WARP)
        self.in_cluster = Barriers(np.zeros(count, np.int64))

    def learn(self, c: Cluster, lanes: Indices) -> None:
        """These lanes come to a synchronisation that is not followed."""
        self.resolve(c, lanes)
        self.learning[lanes] = True

    def resolve(self, c: Cluster, lanes: Indices) -> None:
        """Let lanes learn what the places at which they have waited brought."""
        self._resolve_mbarriers(c, lanes)
        if not self.behind.any():
            self.learning[lanes] = False
            return
        learning = lanes[self.learning[lanes]]
        self.behind[learning] = np.maximum(self.behind[learning], MAYBE)
        self.learning[learning] = False
        for barriers in (self.in_cta, self.in_warp, self.in_cluster):
            if not barriers.brought:
                continue
            for lane in lanes[(barriers.passed[lanes] > 0) & (self.behind[lanes] < AFTER)].tolist():
                key = int(barriers.groups[lane]), int(barriers.passed[lane]) - 1
                self.behind[lane] = max(self.behind[lane], barriers.brought.get(key, BEFORE))

    # --- barriers -------------------------------------------------------------------------------------------------

    def meet(self, c: Cluster, barriers: Barriers, lanes: Indices) -> None:
        """These lanes arrive at a barrier of all lanes of their group and wait there."""
        self.arrive(c, barriers, lanes)
        self.pass_by(c, barriers, lanes)

    def arrive(self, c: Cluster, barriers: Barriers, lanes: Indices, *, relaxed: bool = False) -> None:
        """These lanes arrive at a barrier; a ``relaxed`` arrival may still release, by a fence before it."""
        self.resolve(c, lanes)
        told = np.minimum(self.behind[lanes], MAYBE) if relaxed else self.behind[lanes]
        for lane, by in zip(lanes.tolist(), told.tolist(), strict=True):
            if by:
                key = int(barriers.groups[lane]), int(barriers.arrived[lane])
                barriers.brought[key] = max(barriers.brought.get(key, BEFORE), by)
        barriers.arrived[lanes] += 1

    def pass_by(self, c: Cluster, barriers: Barriers, lanes: Indices) -> None:
        """These lanes wait at the barrier to which they have come last."""
        self.resolve(c, lanes)
        barriers.passed[lanes] = barriers.arrived[lanes]

    # --- mbarriers ------------------------------------------------------------------------------------------------

    def arrive_at_mbarrier(
        self, c: Cluster, lanes: Indices, addresses: NDArray[np.int64], *, relaxed: bool, scope: str
    ) -> None:
        """These lanes arrive at mbarriers. Who observes the phase comes after all its arrivals."""
        self.resolve(c, lanes)
        for address in distinct(addresses).tolist():
            state = c.mbarriers.states.get(address)
            if state is None:
                continue
            some = lanes[addresses == address]
            told = int(self.behind[some].min())
            owner = (address - SHARED_BASE) // SHARED_WINDOW
            if relaxed or (scope == "cta" and (self.lanes.cta[some] != owner).any()):
                told = min(told, MAYBE)
            key = address, state.phase
            self.phases_brought[key] = min(self.phases_brought.get(key, AFTER), told)

    def wait_at_mbarrier(
        self, c: Cluster, lanes: Indices, addresses: NDArray[np.int64], parities: NDArray[np.int64]
    ) -> None:
        """These lanes wait, with acquire semantics, until the phases of these parities are complete."""
        self.resolve(c, lanes)
        self.awaited[lanes], self.parities[lanes] = addresses, parities

    def _resolve_mbarriers(self, c: Cluster, lanes: Indices) -> None:
        waiting = lanes[self.awaited[lanes] != 0]
        if not len(waiting):
            return
        keys = np.stack([self.awaited[waiting], self.parities[waiting]], axis=1)
        for address, parity in distinct_rows(keys).tolist():
            some = waiting[(keys == (address, parity)).all(axis=1)]
            last = self.last_phases.setdefault(address, np.full(self.lanes.count, -1, np.int64))
            # A thread sees no phase after a later one, so its wait was for this one or for one after it.
            first = np.where(last[some] % 2 == parity, last[some], last[some] + 1)
            last[some] = first
            state = c.mbarriers.states.get(address)
            end = 0 if state is None else state.phase
            for phase in distinct(first).tolist():
                told = [self.phases_brought.get((address, k), BEFORE) for k in range(phase, end)]
                mine = some[first == phase]
                if told and min(told) == AFTER:
                    self.behind[mine] = AFTER
                else:
                    self.learning[mine] = True
        self.awaited[waiting] = 0
