"""Lane groups: threads that execute as one agent.

Lanes of one warp with the same code up to data addresses are one agent: one component of the vector clocks, one step
per operation, and arrivals count for all lanes at once. Lanes of an agent are unordered among themselves between
operations that all of them wait for. Where lanes would diverge, the engine starts again with smaller agents
(``Split``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, fields

from mcheck.answers.final_states import terms_of
from mcheck.base.records import dataclass
from mcheck.engines.protocol.analysis import sc_fences
from mcheck.engines.protocol.passes import ALL_PASSES, Pass, Passes
from mcheck.ir import ops
from mcheck.ir.def_use import registers_of
from mcheck.ir.expr import Const, Reg
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.resolve import expressions

Partition = tuple[tuple[int, ...], ...]
"""The agents, each as the indices of its threads."""
NONE = frozenset[str]()


class Split(Exception):
    """The lanes of an agent must not run as one; ``groups`` are the agents to replace it by."""

    def __init__(self, groups: Sequence[tuple[int, ...]]) -> None:
        super().__init__("lanes diverge")
        self.groups = tuple(groups)


PER_LANE: dict[type[Op], tuple[str, ...]] = {
    ops.Load: ("address",),
    ops.Store: ("address", "srcs"),
    ops.Atomic: ("address", "srcs"),
    ops.CpAsync: ("dst", "src", "src_size", "ignore_src"),
    ops.BulkCopy: ("dst", "src"),
    ops.AsyncStore: ("address", "srcs"),
    ops.TensorMove: ("address",),
    ops.Alu: ("srcs",),
}
"""Operands in which lanes of one agent may differ."""

GROUPABLE = (
    ops.Alu, ops.Label, ops.Branch, ops.Exit, ops.Await, ops.Load, ops.Store, ops.Fence, ops.ProxyFence, ops.Barrier,
    ops.ClusterBarrier, ops.WarpSync, ops.Collective, ops.MbarrierInit, ops.MbarrierInval, ops.MbarrierTx,
    ops.MbarrierArrive, ops.MbarrierWait, ops.CpAsync, ops.BulkCopy, ops.Commit, ops.WaitGroup, ops.CpAsyncArrive,
    ops.Wgmma, ops.WgmmaFence, ops.Prefetch, ops.AsyncStore, ops.TensorCore, ops.TensorMove,
    ops.TensorCommit, ops.UnknownContinuation, ops.AssumedValue, ops.DivergentAligned,
    ops.Trap, ops.GridWait, ops.Atomic, )  # fmt: skip
"""Operations that an agent of several lanes may execute; a thread with any other one is an agent by itself."""


def partition_lanes(program: Program, passes: Passes = ALL_PASSES, *, joint: bool = False) -> Partition:
    """Return the largest agents: neighbours in a warp whose code has the same shape. With ``joint``, lanes that arrive
    at a counter, or wait for it, are one agent as well (``mcheck.engines.protocol.operations.joint_arrivals``).
    """
    if Pass.LANE_GROUPS not in passes:
        return tuple((thread.index,) for thread in program.threads)
    found: list[list[int]] = []
    where: dict[tuple[int, int, str], list[list[int]]] = {}
    mergeable, alike = _find_mergeable(program, passes, joint=joint), CodeComparison()
    for thread in program.threads:
        place = (thread.place.cta.number, thread.place.warp, thread.role)
        groups = where.setdefault(place, [])
        if mergeable.may_merge(thread):
            for group in groups:
                if alike.same(program.threads[group[0]], thread):
                    group.append(thread.index)
                    break
            else:
                group = [thread.index]
                groups.append(group)
                found.append(group)
        else:
            found.append([thread.index])
    return tuple(tuple(group) for group in found)


@dataclass(frozen=True, slots=True)
class Mergeable:
    """The threads of a program that may be lanes of an agent; operations are keyed by identity."""

    alone: frozenset[int]
    """Operations that only one lane may execute at a time."""
    states: dict[int, str]
    """The destination register of each arrive that returns a state."""
    uses: dict[int, frozenset[str]]
    """Of other operations, those of these registers that they name otherwise than as a state."""
    shown: bool
    """Whether final values are asked for; the state operands of lanes differ in them."""

    def may_merge(self, thread: Thread) -> bool:
        """Return whether several lanes may execute every operation of the thread at once.

        Guarded operations are executed by the lanes whose guard holds, mostly one: which ones shows at run time.
        """
        return not thread.init and self.alone.isdisjoint(map(id, thread.code)) and self._only_waited_for(thread)

    def _only_waited_for(self, thread: Thread) -> bool:
        """Whether nothing is done with the states that arrives return but to wait for their phases."""
        states = {self.states[id(op)] for op in thread.code if id(op) in self.states} if self.states else ()
        if not states:
            return True
        return not self.shown and all(self.uses.get(id(op), NONE).isdisjoint(states) for op in thread.code)


def _find_mergeable(program: Program, passes: Passes, *, joint: bool) -> Mergeable:
    decides = sc_fences.sc_order_matters if Pass.SC_FENCE_ORDER in passes else sc_fences.has_sc_fence
    ordered = decides(program)  # whether the fence.sc of different lanes are told apart
    code = program.operations
    states = {id(op): op.state.name for op in code if isinstance(op, ops.MbarrierArrive) and op.state is not None}
    return Mergeable(
        frozenset(
            id(op)
            for op in code
            if op.guard is None and not may_group(op, ordered) and not (joint and is_joint_arrival(op))
        ),
        states,
        _find_uses(code, frozenset(states.values())) if states else {},
        bool(terms_of(program.condition)),
    )


def _find_uses(code: Iterable[Op], states: frozenset[str]) -> dict[int, frozenset[str]]:
    found: dict[int, frozenset[str]] = {}
    for op in code:
        if not isinstance(op, ops.MbarrierArrive):
            named = (
                name for field_name, expr in expressions(op) if field_name != "state" for name in registers_of(expr)
            )
            if used := states.intersection(named):
                found[id(op)] = used
    return found


@dataclass(slots=True)
class CodeComparison:
    """A memoised comparison of code."""

    known: dict[tuple[int, int], bool] = field(default_factory=dict)
    kept: list[Op] = field(default_factory=list)

    def same(self, a: Thread, b: Thread) -> bool:
        """Return whether two threads have the same code up to the operands of ``PER_LANE``."""
        if len(a.code) != len(b.code) or a.labels != b.labels:
            return False
        return all(x is y or self.same_op(x, y) for x, y in zip(a.code, b.code, strict=True))

    def same_op(self, x: Op, y: Op) -> bool:
        """Return whether two operations are the same up to these operands."""
        key = (id(x), id(y))
        found = self.known.get(key)
        if found is None:
            self.kept += (x, y)
            found = self.known[key] = _equal_up_to_addresses(x, y)
        return found


def may_group(op: Op, ordered: bool) -> bool:
    """Return whether several lanes may execute an operation at once; ``ordered``: the order of fence.sc matters."""
    if not isinstance(op, GROUPABLE):
        return False
    if isinstance(op, ops.Await):
        return isinstance(op.inner, ops.MbarrierWait)
    if isinstance(op, ops.Load | ops.Store):
        return op.sem == "weak" and not op.volatile
    if isinstance(op, ops.Atomic):
        return op.sem == "weak"
    if isinstance(op, ops.MbarrierArrive):
        return not op.no_complete
    if isinstance(op, ops.BulkCopy):
        return op.is_plain
    if isinstance(op, ops.Fence):
        return op.sem != "sc" or not ordered
    return True


def is_joint_arrival(op: Op) -> bool:
    """Return whether an operation adds to one word in all lanes, or waits for one."""
    inner = ops.performed_operation(op)
    if not isinstance(inner, ops.Load | ops.Atomic) or not isinstance(inner.address, Const):
        return False
    if isinstance(inner, ops.Load):
        awaited = isinstance(op, ops.Await) and op.compare is not None and isinstance(op.compare[1], Const | Reg)
        return awaited and inner.sem != "weak" and not inner.volatile and len(inner.dsts) == 1
    plain = isinstance(op, ops.Atomic) and inner.proxy == "generic" and isinstance(inner.srcs[0], Const | Reg)
    return plain and inner.op == "add" and inner.type[0] in "us"


def _equal_up_to_addresses(x: Op, y: Op) -> bool:
    if type(x) is not type(y):
        return False
    apart = isinstance(x, ops.Atomic) and x.sem != "weak"  # lanes whose strong atomics are one step add to one word
    for name in ("address", "srcs", *_common_fields(type(x))) if apart else _common_fields(type(x)):
        a, b = getattr(x, name), getattr(y, name)
        if a is not b and a != b:
            return False
    return True


IN_COMMON: dict[type[Op], tuple[str, ...]] = {}


def _common_fields(kind: type[Op]) -> tuple[str, ...]:
    """Return the fields of an operation in which lanes that execute it together do not differ (memoised)."""
    found = IN_COMMON.get(kind)
    if found is None:
        free = {*PER_LANE.get(kind, ()), "text", "section"}
        found = IN_COMMON[kind] = tuple(f.name for f in fields(kind) if f.name not in free)
    return found
