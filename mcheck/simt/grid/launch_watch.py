"""Execution of a cluster while watching how its accesses are ordered with other grids of its stream (griddepcontrol).

An access is behind a ``griddepcontrol.wait`` if its thread has executed one, or a barrier orders it behind the wait of
another thread (PTX ISA 9.0 section 9.7.13.13). It is released if every thread of its CTA that executes
``griddepcontrol.launch_dependents`` has executed a release fence of scope gpu or sys between the two: such a fence
synchronises with the start of the dependent grid (PTX ISA 9.4, griddepcontrol).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass as record
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.loop_visits import BeforeStep, statements, with_action
from mcheck.simt.grid.access_placement import AccessPlacement
from mcheck.simt.grid.footprint import Footprint
from mcheck.simt.grid.recorded_accesses import STRONG, Before
from mcheck.simt.grid.state import Indices
from mcheck.simt.grid.watched_execution import GridWatch

BEFORE, MAYBE, AFTER = range(3)
"""Whether what a thread does is ordered behind a wait for the grids before: no, by a synchronisation that is not
followed, yes.
"""
FULL_WARP = 0xFFFFFFFF


@record(frozen=True, slots=True)
class Placement:
    """How accesses are ordered with other grids: behind the wait (``BEFORE``, ``MAYBE``, ``AFTER``), and whether they
    are released to the dependent grid.
    """

    behind_wait: int
    released: bool


@record(frozen=True, slots=True)
class Trigger:
    """The first ``launch_dependents`` of a lane: whether the wait is ordered before it (``behind_wait``), and its last
    release fence: after how many barriers of the CTA, and how many fences the lane had executed. 0 fences: none.
    ``fence_behind_wait``: whether the wait is ordered before that fence.
    """

    behind_wait: int
    barriers: int
    fences: int
    fence_behind_wait: int


@dataclass(slots=True)
class _Barriers:
    """The barriers of one kind: how many each lane has passed, and for each group and barrier whether an arrival is
    behind the wait.
    """

    groups: NDArray[np.int64]
    arrived: NDArray[np.int64] = field(init=False)
    passed: NDArray[np.int64] = field(init=False)
    brought: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arrived, self.passed = np.zeros_like(self.groups), np.zeros_like(self.groups)


@dataclass(slots=True)
class LaunchWatch(GridWatch):
    """The watch on one execution. ``triggers`` are those of an earlier run, by lane: what they release is known only
    when all of them have been executed.
    """

    triggers: Mapping[int, Trigger] = field(default_factory=dict)
    footprints: dict[Placement, Footprint] = field(default_factory=dict)
    seen_triggers: dict[int, Trigger] = field(default_factory=dict)
    waited_ctas: set[int] = field(default_factory=set)
    """The CTAs in which a lane has executed the wait."""
    behind: NDArray[np.int8] = field(init=False)
    learning: NDArray[np.bool_] = field(init=False)
    """Lanes that have come to a synchronisation that is not followed, and what they learn there is not known yet."""
    fences: NDArray[np.int64] = field(init=False)
    fence_barriers: NDArray[np.int64] = field(init=False)
    fence_behind: NDArray[np.int8] = field(init=False)
    in_cta: _Barriers = field(init=False)
    in_warp: _Barriers = field(init=False)
    in_cluster: _Barriers = field(init=False)

    @property
    def may_signal(self) -> bool:
        """Whether the code has an instruction by which threads of different clusters can synchronise."""
        return any(f.may_signal for f in self.footprints.values())

    def begin(self, compiler: Compiler) -> None:
        AccessPlacement.begin(self, compiler)
        lanes = compiler.lanes
        count = lanes.count
        self.behind, self.fence_behind = np.zeros(count, np.int8), np.zeros(count, np.int8)
        self.learning = np.zeros(count, np.bool_)
        self.fences, self.fence_barriers = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.in_cta = _Barriers(lanes.cta)
        self.in_warp = _Barriers(np.arange(count) // WARP)
        self.in_cluster = _Barriers(np.zeros(count, np.int64))
        self.footprints = {Placement(BEFORE, released=False): self.footprint}

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        out = GridWatch.instrument(self, compiler, steps)
        for at, statement, unit in statements(compiler):
            action = self._synchronisation(unit, statement)
            if action is not None:
                out[at] = with_action(compiler, unit, statement, action, out[at])
        return out

    # --- accesses -------------------------------------------------------------------------------------------------

    def watch_access(self, unit: Unit, statement: ptx.Statement) -> Before | None:
        touching = GridWatch.watch_access(self, unit, statement)
        if touching is None:
            return None

        def before(c: Cluster, lanes: Indices) -> None:
            self._pass_barriers(lanes)
            released = self._released(lanes)
            keys = self.behind[lanes] * 2 + released
            optional = self.optional
            for key in np.unique(keys).tolist():
                some = keys == key
                placement = Placement(key // 2, bool(key % 2))
                if placement not in self.footprints:
                    self.footprints[placement] = Footprint(self.space, self.footprint.buffers)
                self.footprint = self.footprints[placement]
                self.optional = None if optional is None else optional[some]
                touching(c, lanes[some])
            self.optional = optional

        return before

    def _released(self, lanes: Indices) -> NDArray[np.bool_]:
        out = np.zeros(len(lanes), np.bool_)
        if not self.triggers:
            return out
        ctas, width = self.in_cta.groups[lanes], self.compiler.lanes.width
        for cta in np.unique(ctas).tolist():
            found = [(lane, t) for lane, t in self.triggers.items() if lane // width == cta]
            mine = ctas == cta
            some = lanes[mine]
            good = np.full(len(some), bool(found), np.bool_)
            for lane, t in found:
                own = (some == lane) & (self.fences[some] < t.fences)
                good &= ((self.in_cta.passed[some] < t.barriers) | own) & (t.fences > 0)
            out[mine] = good
        return out

    # --- synchronisation ------------------------------------------------------------------------------------------

    def _synchronisation(self, unit: Unit, statement: ptx.Statement) -> BeforeStep | None:
        opcode = statement.opcode
        match opcode[0]:
            case "griddepcontrol":
                return self._wait if "wait" in opcode else self._trigger
            case "fence" | "membar":
                return self._fence if _releases_to_gpu(opcode) else None
            case "bar" | "barrier":
                return self._barrier(unit, statement)
            case "mbarrier" if "test_wait" in opcode or "try_wait" in opcode:
                return self._learn
            case "ld" if not STRONG.isdisjoint(opcode):
                return self._learn
            case "atom" | "call":
                return self._learn
        return None

    def _wait(self, c: Cluster, mask: Mask) -> None:
        self.behind[mask] = AFTER
        self.waited_ctas |= set(np.unique(c.lanes.cta[mask]).tolist())

    def _trigger(self, _: Cluster, mask: Mask) -> None:
        lanes = np.flatnonzero(mask)
        self._pass_barriers(lanes)
        for lane in lanes.tolist():
            made = Trigger(
                int(self.behind[lane]), int(self.fence_barriers[lane]), int(self.fences[lane]),
                int(self.fence_behind[lane]),
            )  # fmt: skip
            self.seen_triggers.setdefault(lane, made)

    def _fence(self, _: Cluster, mask: Mask) -> None:
        lanes = np.flatnonzero(mask)
        self._pass_barriers(lanes)
        self.fences[lanes] += 1
        self.fence_barriers[lanes] = self.in_cta.passed[lanes]
        self.fence_behind[lanes] = self.behind[lanes]

    def _learn(self, _: Cluster, mask: Mask) -> None:
        """A synchronisation that is not followed."""
        self._pass_barriers(np.flatnonzero(mask))
        self.learning |= mask

    def _barrier(self, unit: Unit, statement: ptx.Statement) -> BeforeStep:
        opcode, operands = statement.opcode, statement.operands
        if "cluster" in opcode:
            if "arrive" not in opcode:
                return lambda _, mask: self._pass(self.in_cluster, np.flatnonzero(mask))
            weak = "relaxed" in opcode
            return lambda _, mask: self._arrive(self.in_cluster, np.flatnonzero(mask), weak=weak)
        if "warp" in opcode:
            fetch = self.compiler.fetch(unit, operands[-1])

            def converge(c: Cluster, mask: Mask) -> None:
                members = np.broadcast_to(fetch()[0], mask.shape)[mask] & np.uint64(FULL_WARP)
                exists = c.lanes.exists.reshape(-1, WARP) @ (1 << np.arange(WARP, dtype=np.int64))
                everyone = exists[np.flatnonzero(mask) // WARP]
                if ((members.astype(np.int64) & everyone) == everyone).all():
                    self._meet(self.in_warp, np.flatnonzero(mask))
                else:
                    self._learn(c, mask)

            return converge
        named = operands[1:-1] if "red" in opcode else operands
        everyone = ptx.Immediate(self.compiler.lanes.width)
        fixed = isinstance(named[0], ptx.Immediate) and named[1:] in ((), (everyone,))
        if "arrive" in opcode or not fixed:
            return self._learn
        return lambda _, mask: self._meet(self.in_cta, np.flatnonzero(mask))

    def _meet(self, barriers: _Barriers, lanes: Indices) -> None:
        """These lanes arrive at a barrier of all lanes of their group and wait there."""
        self._arrive(barriers, lanes)
        self._pass(barriers, lanes)

    def _arrive(self, barriers: _Barriers, lanes: Indices, *, weak: bool = False) -> None:
        self._pass_barriers(lanes)
        told = np.minimum(self.behind[lanes], MAYBE) if weak else self.behind[lanes]
        for lane, by in zip(lanes.tolist(), told.tolist(), strict=True):
            key = int(barriers.groups[lane]), int(barriers.arrived[lane])
            barriers.brought[key] = max(barriers.brought.get(key, BEFORE), by)
        barriers.arrived[lanes] += 1

    def _pass(self, barriers: _Barriers, lanes: Indices) -> None:
        barriers.passed[lanes] = barriers.arrived[lanes]

    def _pass_barriers(self, lanes: Indices) -> None:
        """Let lanes learn what the last barriers that they have passed brought: all arrivals are known by now. After
        another synchronisation a lane may be behind the wait if any lane is.
        """
        if not self.behind.any():
            self.learning[lanes] = False
            return
        learning = lanes[self.learning[lanes]]
        self.behind[learning] = np.maximum(self.behind[learning], MAYBE)
        self.learning[learning] = False
        for barriers in (self.in_cta, self.in_warp, self.in_cluster):
            if not any(barriers.brought.values()):
                continue
            for lane in lanes[(barriers.passed[lanes] > 0) & (self.behind[lanes] < AFTER)].tolist():
                key = int(barriers.groups[lane]), int(barriers.passed[lane]) - 1
                self.behind[lane] = max(self.behind[lane], barriers.brought.get(key, BEFORE))


def _releases_to_gpu(opcode: tuple[str, ...]) -> bool:
    if opcode[0] == "membar":
        return opcode[1] in ("gl", "sys")
    orders = not {"acq_rel", "sc", "release"}.isdisjoint(opcode)
    return orders and not {"gpu", "sys"}.isdisjoint(opcode) and "proxy" not in opcode
