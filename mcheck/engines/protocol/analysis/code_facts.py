"""Facts about the code of a thread, computed once: how many groups its waits leave pending, state registers, back
edges.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from mcheck.base.records import dataclass, replace
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.liveness import defined_and_used
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.reachability import earliest_reachable, last_barrier_position, last_barrier_positions


@dataclass(frozen=True, slots=True)
class PendingDepths:
    """The largest numbers of groups that the waits of a thread leave pending.

    ``writes`` counts waits that complete all of a group, ``reads`` all waits.
    """

    writes: int = 0
    reads: int = 0


@dataclass
class CodeFacts:
    """Facts about the code of a thread; ``ends``: mbarriers of the program may end, and phases be counted anew."""

    thread: Thread
    ends: bool
    _depths: dict[str, PendingDepths | None] = field(default_factory=dict, init=False)

    def pending_depths(self, family: str) -> PendingDepths | None:
        """Return the depths of a family of groups; ``None`` if some number is not constant."""
        if family not in self._depths:
            self._depths[family] = self._read_depths(family)
        return self._depths[family]

    def _read_depths(self, family: str) -> PendingDepths | None:
        writes = reads = 0
        for op in self.thread.code:
            if isinstance(op, ops.WaitGroup) and op.family == family:
                if not isinstance(op.pending, Const):
                    return None
                reads = max(reads, op.pending.value)
                writes = writes if op.read else max(writes, op.pending.value)
        return PendingDepths(writes, reads)

    @cached_property
    def arrives_on_cp_async(self) -> bool:
        """Whether the thread has an arrive that tracks all of its ``cp.async``."""
        return any(isinstance(op, ops.CpAsyncArrive) for op in self.thread.code)

    @cached_property
    def commits_wgmma(self) -> bool:
        """Whether the thread commits groups of wgmma."""
        return any(isinstance(op, ops.Commit) and op.family == "wgmma" for op in self.thread.code)

    @cached_property
    def state_registers(self) -> frozenset[str]:
        """The registers that hold states returned by arrives and are used as such alone.

        None where mbarriers may end.
        """
        if self.ends:
            return frozenset()
        states: set[str] = set()
        others: set[str] = set()
        for op in self.thread.code:
            if isinstance(op, ops.MbarrierArrive) and op.state is not None:
                states.add(op.state.name)
        for op in self.thread.code if states else ():
            defined, used = defined_and_used(
                replace(_without_state(op), guard=None)
            )  # what is guarded may define as well
            others |= defined | used
            if op.guard is not None:
                others.add(op.guard.reg.name)
        return frozenset(states - others)

    @cached_property
    def earliest_reachable(self) -> list[int]:
        """For each place, the first place that is reachable from it."""
        return earliest_reachable(self.thread)

    @cached_property
    def _barriers(self) -> dict[int | None, int]:
        return last_barrier_positions(self.thread)

    def may_reach_barrier(self, pc: int, number: int) -> bool:
        """Return whether the thread, at a place, may still reach a barrier of the CTA with this number."""
        return last_barrier_position(self._barriers, number) >= self.earliest_reachable[pc]


def may_end_mbarriers(program: Program) -> bool:
    """Return whether mbarriers of a program may end, and phases be counted anew."""
    return any(isinstance(op, ops.MbarrierInval) for op in program.operations)


def _without_state(op: Op) -> Op:
    match op:
        case ops.Await():
            return replace(op, inner=_without_state(op.inner))
        case ops.MbarrierArrive() | ops.MbarrierWait():
            return replace(op, state=None)
        case ops.MbarrierPending():
            return replace(op, state=Const(0))
    return op
