"""Execution of a cluster while watching how its accesses are ordered with other grids of its stream (griddepcontrol).

An access is behind a ``griddepcontrol.wait`` if the wait is ordered before it
(``mcheck.simt.grid.launches.wait_order``). It is released if every thread of its CTA that executes
``griddepcontrol.launch_dependents`` has executed a release fence of scope gpu or sys between the two: such a fence
synchronises with the start of the dependent grid (PTX ISA 9.4, griddepcontrol). If no thread of the CTA does, its own
thread may have one before it exits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.ir import ops
from mcheck.ir.scopes import GRID_SCOPES
from mcheck.isa.kinds import BARRIERS, Kind
from mcheck.isa.opcode import RELEASING
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.loop_visits import BeforeStep, statements, with_action
from mcheck.simt.execution.waits.polling_loops import is_spin_loop
from mcheck.simt.grid.footprints.access_placement import AccessPlacement
from mcheck.simt.grid.footprints.affine_forms import Conditions
from mcheck.simt.grid.footprints.footprint import Footprint
from mcheck.simt.grid.footprints.recorded_accesses import Before
from mcheck.simt.grid.footprints.state import Indices
from mcheck.simt.grid.footprints.watched_execution import GridWatch
from mcheck.simt.grid.launches.wait_order import AFTER, BEFORE, WaitOrder
from mcheck.simt.instructions.access_operands import fetch_lanes, to_generic
from mcheck.simt.parametric.affine import Value

FULL_WARP = 0xFFFFFFFF
NOT_RELEASED, BY_EXIT, BY_TRIGGER = range(3)
"""Whether a release fence comes between an access and what lets a dependent grid begin: the exit of its thread, or
``launch_dependents``.
"""


@dataclass(frozen=True, slots=True)
class Placement:
    """How accesses are ordered with other grids: behind the wait (``BEFORE``, ``MAYBE``, ``AFTER``), and how they are
    released to the dependent grid.
    """

    behind_wait: int
    released: int = NOT_RELEASED


@dataclass(frozen=True, slots=True)
class Trigger:
    """The first ``launch_dependents`` of a lane: whether the wait is ordered before it (``behind_wait``), and its last
    release fence: after how many barriers of the CTA, and how many fences the lane had executed. 0 fences: none.
    ``fence_behind_wait``: whether the wait is ordered before that fence.
    """

    behind_wait: int
    barriers: int
    fences: int
    fence_behind_wait: int


@dataclass(frozen=True, slots=True)
class Releases:
    """What releases to the dependent grid in an execution: triggers by lane, and how many release fences each lane has
    executed in the end.
    """

    triggers: Mapping[int, Trigger]
    fences: NDArray[np.int64]


@dataclass(slots=True)
class LaunchWatch(GridWatch):
    """The watch on one execution. ``releases`` are those of an earlier run: what they cover is known only at its end.
    ``alone``: nothing is to be known of other clusters, so that the coordinates
    are numbers and every address is known.
    """

    repeats_rounds: ClassVar[bool] = False
    alone: bool = False
    releases: Releases | None = None
    footprints: dict[Placement, Footprint] = field(default_factory=dict)
    seen_triggers: dict[int, Trigger] = field(default_factory=dict)
    waited_ctas: set[int] = field(default_factory=set)
    """The CTAs in which a lane has executed the wait."""
    order: WaitOrder = field(init=False)
    fences: NDArray[np.int64] = field(init=False)
    """By lane, how many release fences it has executed; and of the last one, how many barriers of the CTA were before
    it, and whether it is behind the wait.
    """
    fence_barriers: NDArray[np.int64] = field(init=False)
    fence_behind: NDArray[np.int8] = field(init=False)

    @property
    def may_signal(self) -> bool:
        """Whether the code has an instruction by which threads of different clusters can synchronise."""
        return any(f.may_signal for f in self.footprints.values())

    def begin(self, compiler: Compiler) -> None:
        AccessPlacement.begin(self, compiler)
        count = compiler.lanes.count
        self.order = WaitOrder(compiler.lanes)
        self.fences, self.fence_barriers = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.fence_behind = np.zeros(count, np.int8)
        self.footprints = {Placement(BEFORE): self.footprint}
        if self.alone:
            self.space.isolate("it was executed for itself", None)

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        out = GridWatch.instrument(self, compiler, steps)
        for at, statement, unit in statements(compiler):
            faulty = find_fault(statement) is not None  # its step reports the error
            action = None if faulty else self._synchronisation(unit, statement, at - unit.start)
            if action is not None:
                out[at] = with_action(compiler, unit, statement, action, out[at])
        return out

    def set_unknown(self, rows: Iterable[int], lanes: Indices) -> None:
        (GridWatch.set_same if self.alone else GridWatch.set_unknown)(self, rows, lanes)

    def value(self, unit: Unit, operand: ptx.Operand, fetch: Fetch, lanes: Indices) -> tuple[Value, Conditions]:
        value, when = GridWatch.value(self, unit, operand, fetch, lanes)
        if not self.alone:
            return value, when
        return Value(value.base, np.zeros_like(value.slopes), np.zeros_like(value.bad)), np.zeros_like(when)

    # --- accesses -------------------------------------------------------------------------------------------------

    def watch_access(self, unit: Unit, statement: ptx.Statement) -> Before | None:
        touching = GridWatch.watch_access(self, unit, statement)
        if touching is None:
            return None

        def before(c: Cluster, lanes: Indices) -> None:
            self.order.resolve(c, lanes)
            keys = self.order.behind[lanes] * 3 + self._released(lanes)
            optional = self.optional
            for key in distinct(keys).tolist():
                some = keys == key
                placement = Placement(key // 3, key % 3)
                if placement not in self.footprints:
                    self.footprints[placement] = Footprint(self.space, self.footprint.buffers)
                self.footprint = self.footprints[placement]
                self.optional = None if optional is None else optional[some]
                touching(c, lanes[some])
            self.optional = optional

        return before

    def _released(self, lanes: Indices) -> NDArray[np.int64]:
        out = np.full(len(lanes), NOT_RELEASED, np.int64)
        if self.releases is None:
            return out
        ctas, width = self.compiler.lanes.cta[lanes], self.compiler.lanes.width
        for cta in distinct(ctas).tolist():
            found = [(lane, t) for lane, t in self.releases.triggers.items() if lane // width == cta]
            mine = ctas == cta
            some = lanes[mine]
            if not found:
                out[mine] = np.where(self.fences[some] < self.releases.fences[some], BY_EXIT, NOT_RELEASED)
                continue
            good = np.ones(len(some), np.bool_)
            for lane, t in found:
                own = (some == lane) & (self.fences[some] < t.fences)
                good &= ((self.order.in_cta.passed[some] < t.barriers) | own) & (t.fences > 0)
            out[mine] = np.where(good, BY_TRIGGER, NOT_RELEASED)
        return out

    # --- synchronisation ------------------------------------------------------------------------------------------

    def _synchronisation(self, unit: Unit, statement: ptx.Statement, at: int) -> BeforeStep | None:
        match statement.kind:
            case Kind.GRID_WAIT:
                return self._wait
            case Kind.GRID_TRIGGER:
                return self._trigger
            case Kind.FENCE:
                return self._fence if _releases_to_gpu(statement) else None
            case kind if kind in BARRIERS:
                return self._barrier(unit, statement)
            case Kind.MBARRIER_ARRIVAL | Kind.MBARRIER_WAIT:
                return self._mbarrier(unit, statement, at)
            case Kind.TMEM_COMMIT if statement.opcode.prefixed("multicast") is None:
                return self._commit(unit, statement)
            case Kind.LOAD if statement.opcode.is_strong:
                return self._learn
            case Kind.ATOMIC | Kind.CALL:
                return self._learn
        return None

    def _wait(self, c: Cluster, mask: Mask) -> None:
        self.order.behind[mask] = AFTER
        self.waited_ctas |= set(distinct(c.lanes.cta[mask]).tolist())

    def _trigger(self, c: Cluster, mask: Mask) -> None:
        lanes = np.flatnonzero(mask)
        self.order.resolve(c, lanes)
        for lane in lanes.tolist():
            made = Trigger(
                int(self.order.behind[lane]), int(self.fence_barriers[lane]), int(self.fences[lane]),
                int(self.fence_behind[lane]),
            )  # fmt: skip
            self.seen_triggers.setdefault(lane, made)

    def _fence(self, c: Cluster, mask: Mask) -> None:
        lanes = np.flatnonzero(mask)
        self.order.resolve(c, lanes)
        self.fences[lanes] += 1
        self.fence_barriers[lanes] = self.order.in_cta.passed[lanes]
        self.fence_behind[lanes] = self.order.behind[lanes]

    def _learn(self, c: Cluster, mask: Mask) -> None:
        self.order.learn(c, np.flatnonzero(mask))

    def _barrier(self, unit: Unit, statement: ptx.Statement) -> BeforeStep:
        order, kind, operands = self.order, statement.kind, statement.operands
        if kind is Kind.CLUSTER_WAIT:
            return lambda c, mask: order.pass_by(c, order.in_cluster, np.flatnonzero(mask))
        if kind is Kind.CLUSTER_ARRIVAL:
            relaxed = "relaxed" in statement.opcode.orders
            return lambda c, mask: order.arrive(c, order.in_cluster, np.flatnonzero(mask), relaxed=relaxed)
        if kind is Kind.WARP_BARRIER:
            fetch = self.compiler.fetch(unit, operands[-1])

            def converge(c: Cluster, mask: Mask) -> None:
                members = np.broadcast_to(fetch()[0], mask.shape)[mask] & np.uint64(FULL_WARP)
                exists = c.lanes.exists.reshape(-1, WARP) @ (1 << np.arange(WARP, dtype=np.int64))
                everyone = exists[np.flatnonzero(mask) // WARP]
                if ((members.astype(np.int64) & everyone) == everyone).all():
                    order.meet(c, order.in_warp, np.flatnonzero(mask))
                else:
                    self._learn(c, mask)

            return converge
        named = operands[1:-1] if kind is Kind.BARRIER_REDUCTION else operands
        everyone = ptx.Immediate(self.compiler.lanes.width)
        fixed = isinstance(named[0], ptx.Immediate) and named[1:] in ((), (everyone,))
        if kind is Kind.BARRIER_ARRIVAL or not fixed:
            return self._learn
        return lambda c, mask: order.meet(c, order.in_cta, np.flatnonzero(mask))

    def _mbarrier(self, unit: Unit, statement: ptx.Statement, at: int) -> BeforeStep | None:
        op = operation_template(unit.function, statement)
        place = statement.address
        assert isinstance(op, ops.MbarrierArrive | ops.MbarrierWait)
        assert place is not None
        order, fetch = self.order, self.compiler.fetch(unit, place)
        if isinstance(op, ops.MbarrierArrive):
            return self._arrival(unit, place, relaxed=op.sem != "release", scope=op.scope)
        if op.parity is None or op.sem != "acquire" or not is_spin_loop(unit.function, at):
            return self._learn
        asked = self.compiler.fetch(unit, statement.operands[2])

        def wait(c: Cluster, mask: Mask) -> None:
            lanes = np.flatnonzero(mask)
            addresses = to_generic(fetch_lanes(fetch, mask, lanes)[0]).astype(np.int64)
            parities = fetch_lanes(asked, mask, lanes)[0].astype(np.int64)
            order.wait_at_mbarrier(c, lanes, addresses, parities)

        return wait

    def _commit(self, unit: Unit, statement: ptx.Statement) -> BeforeStep:
        """An arrival when all that its thread has issued to the tensor core is over (open questions Q27)."""
        place = statement.operands[0]
        assert isinstance(place, ptx.Address)
        return self._arrival(unit, place, relaxed=False, scope="cluster")

    def _arrival(self, unit: Unit, place: ptx.Address, *, relaxed: bool, scope: str) -> BeforeStep:
        order, fetch = self.order, self.compiler.fetch(unit, place)

        def arrive(c: Cluster, mask: Mask) -> None:
            lanes = np.flatnonzero(mask)
            addresses = to_generic(fetch_lanes(fetch, mask, lanes)[0]).astype(np.int64)
            order.arrive_at_mbarrier(c, lanes, addresses, relaxed=relaxed, scope=scope)

        return arrive


def _releases_to_gpu(statement: ptx.Statement) -> bool:
    return not RELEASING.isdisjoint(statement.opcode.orders) and statement.opcode.scope in GRID_SCOPES
