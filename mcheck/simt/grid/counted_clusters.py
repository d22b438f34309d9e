"""Clusters that count themselves: what each cluster of a grid does if it is the last one to count, and if it is not.

Every cluster is executed alone, with the word that it counts in as the others leave it. Those that do the same but for
the places of their weak accesses of global memory are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass as record
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, Instance, MemoryMap
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.type_sizes import type_size
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.count_uses import CountUses
from mcheck.simt.grid.grid_counter import Counter, NotCounted, is_count, with_count
from mcheck.simt.trace_extraction import ClusterTrace, follow_paths
from mcheck.simt.traces.private_atomics import numbers_in

NARROW_FENCES = (ops.ProxyFence, ops.TensormapReplace, ops.TensormapCopyFence, ops.GridWait)
NON_COHERENT = ".nc."
"""Part of the text of a load through the non-coherent cache, which in a module is a load as any other (9.7.9.9)."""
OTHERWISE = "the counter is accessed otherwise than by one atomic of each cluster"
Numbers = NDArray[np.int64]


@dataclass(slots=True)
class Accesses:
    """The accesses of global memory of one execution, a row each, by thread and then in its order: where they begin and
    end, by whom they are (number of the thread), at which place in the code of the thread, and after how many
    operations of it that may synchronise.
    """

    starts: Numbers
    ends: Numbers
    threads: Numbers
    places: Numbers
    segments: Numbers
    operations: Numbers
    """Equal for lanes that execute an operation as one."""
    writes: NDArray[np.bool_]
    strong: NDArray[np.bool_]
    non_coherent: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    """Whether it is the atomic by which the cluster counts itself."""
    spans: list[Span | None] = field(default_factory=list)


@record(frozen=True, slots=True)
class _Row:
    """An access of some threads of a warp."""

    starts: Numbers
    size: int
    threads: Numbers
    place: int
    segment: int
    operation: int
    writes: bool
    strong: bool
    non_coherent: bool
    counts: bool
    span: Span | None


@dataclass(slots=True)
class Execution:
    """What a cluster does. Two with one ``shape`` differ in the places of weak accesses alone."""

    cluster: Coordinates
    shape: object
    accesses: Accesses
    lanes: Numbers
    """Of each thread its lane among all lanes of the cluster."""
    waits: bool
    """Whether it waits until all have counted themselves."""
    memory: tuple[Instance, ...]
    """The objects of global memory."""


def clusters_of(launch: Launch) -> list[Coordinates]:
    """The coordinates of all clusters."""
    a, b, c = launch.cluster_counts
    return [(x, y, z) for z in range(c) for y in range(b) for x in range(a)]


# --- executions -----------------------------------------------------------------------------------------------------


def execute_counted(
    module: Module, launch: Launch, cluster: Coordinates, counter: Counter, drawn: int, shapes: dict[object, int],
    limit: Limit,
) -> Execution:  # fmt: skip
    """What a cluster does if the counter holds ``drawn`` when it counts itself. Unless that is the last number, it does
    the same for all numbers but the last. ``shapes`` numbers operations. Raises ``NotCounted``.
    """
    one = replace(with_count(launch, counter, drawn), group=(cluster,))
    ways = list(follow_paths(module, one, limit, CountUses))
    if len(ways) != 1:
        raise NotCounted("control depends on data, or on the order of threads")
    ((runner, executed, uses),) = ways
    recorded = executed.recorded
    for gap in recorded.gaps.values():
        raise NotCounted(gap.reason, gap.span)
    for span in executed.chosen_spans.values():
        raise NotCounted("control depends on data", span)
    free = recorded.has_unbound_values or recorded.decisive_atomics & recorded.unknown_atomics or recorded.swapped
    elsewhere = any(seen.address != counter.address for seen in recorded.observations().values())
    if free or elsewhere or recorded.early_accesses or not recorded.order_is_possible:
        raise NotCounted("control depends on values that other threads write")
    if uses.misuse is not None:
        raise NotCounted(*uses.misuse)
    last = counter.first + prod(launch.cluster_counts) - 1
    others = np.arange(counter.first, last)
    for c in uses.comparisons if drawn != last else ():
        if c.bits != 8 * counter.size or len(set(c.results(drawn, others).tolist())) > 1:
            raise NotCounted("more is asked of the number drawn than whether it is the last")
    made = _execution(cluster, runner.cluster_trace(executed, whole=True), counter, last, drawn == last, shapes)
    if made.waits and uses.is_drawn:
        raise NotCounted("clusters both wait for the counter and ask for the number drawn")
    return made


def _execution(
    cluster: Coordinates, trace: ClusterTrace, counter: Counter, last: int, is_last: bool, shapes: dict[object, int]
) -> Execution:
    if trace.gaps:
        raise NotCounted(trace.gaps[0].reason, trace.gaps[0].span)
    reader = _Reader(trace.program.memory, counter, last, is_last, shapes)
    warps: dict[tuple[object, ...], list[int]] = {}
    for thread in trace.program.threads:
        warps.setdefault((thread.place.cta.rank, thread.place.warp, *map(id, thread.code)), []).append(thread.index)
    shape: dict[int, tuple[int, ...]] = {}
    for members in warps.values():
        code = trace.program.threads[members[0]].code
        lanes = [trace.program.threads[k].place.lane for k in members]
        shape |= dict.fromkeys(members, reader.read(code, np.array(members, np.int64), lanes))
    if reader.counted != 1:
        raise NotCounted("a cluster does not count itself exactly once", reader.span)
    if reader.waits and reader.ends:
        raise NotCounted(OTHERWISE, reader.span)
    width = WARP * (1 + max(t.place.warp for t in trace.program.threads))
    lanes = [t.place.cta.rank * width + WARP * t.place.warp + t.place.lane for t in trace.program.threads]
    made = tuple(shape[k] for k in sorted(shape))
    memory = tuple(i for i in trace.program.memory.instances if i.object.space == "global")
    return Execution(cluster, made, reader.accesses(), np.array(lanes, np.int64), reader.waits, memory)


@dataclass(slots=True)
class _Reader:
    """Collects the accesses of one execution."""

    memory: MemoryMap
    counter: Counter
    last: int
    is_last: bool
    shapes: dict[object, int]
    numbers: dict[object, int] = field(default_factory=dict)
    counted: int = 0
    waits: bool = False
    ends: bool = False
    """Whether the last cluster accesses the counter after it has counted itself."""
    span: Span | None = None
    rows: list[_Row] = field(default_factory=list)

    def read(self, code: Sequence[Op], threads: Numbers, lanes: list[int]) -> tuple[int, ...]:
        """The accesses of threads of one warp with equal code; returns its shape."""
        segment, shape, has_counted = 0, list[int](), False
        for place, op in enumerate(code):
            inner = performed_operation(op)
            match inner:
                case ops.Load() | ops.Store() | ops.Atomic() if (at := _places(inner.address, lanes)) is not None:
                    shape.append(self._number(op, inner, at))
                    has_counted |= self._access(op, inner, at, threads, (place, segment), has_counted=has_counted)
                    weak = isinstance(inner, ops.Load | ops.Store) and inner.sem == "weak" and op is inner
                    segment += not weak
                    continue
                case ops.Load() | ops.Store() if inner.sem == "weak" and op is inner:
                    pass  # shared memory
                case ops.Fence() if inner.restrict is not None:
                    raise NotCounted("fences of a kind that is not followed", op.span)
                case _ if isinstance(inner, NARROW_FENCES) or _mentions_global(inner):
                    raise NotCounted(f"'{op.text}' is not followed", op.span)
                case ops.UnknownContinuation():
                    raise NotCounted(inner.reason, op.span)
                case _:
                    segment += 1
            shape.append(self._known(id(op), op))
        return tuple(shape)

    def _known(self, key: object, op: object) -> int:
        """The number of something that every execution makes anew, so that its hash is computed once in each."""
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = self.shapes.setdefault(op, len(self.shapes))
        return found

    def _number(self, op: Op, inner: ops.Load | ops.Store | ops.Atomic, at: Numbers) -> int:
        """The number of an access; of a weak one its place does not count."""
        weak = isinstance(inner, ops.Load | ops.Store) and inner.sem == "weak" and op is inner
        if not weak:
            return self.shapes.setdefault((op, tuple(at.tolist())), len(self.shapes))
        assert isinstance(inner, ops.Load | ops.Store)
        # What an instruction does is told by its place in the module; nothing depends on what it stores.
        return self.shapes.setdefault((type(inner), inner.span, inner.type, inner.text), len(self.shapes))

    def _access(
        self, op: Op, inner: ops.Load | ops.Store | ops.Atomic, at: Numbers, threads: Numbers,
        place: tuple[int, int], *, has_counted: bool,
    ) -> bool:  # fmt: skip
        """Record an access; returns whether it counts the cluster."""
        size = type_size(inner.type)
        match inner:
            case ops.Load():
                size *= len(inner.dsts)
            case ops.Store():
                size *= len(inner.srcs)
        if inner.proxy != "generic" or (isinstance(inner, ops.Load | ops.Store) and inner.matrix_rows):
            raise NotCounted(f"'{op.text}' is not followed", op.span)
        self._check_bounds(at, size, op)
        word = self.counter
        counts = False
        if ((at < word.address + word.size) & (at + size > word.address)).any():
            counts = self._count(op, inner, at, size, threads)
            if not counts and not self._is_wait(op, inner, at, size):
                if not (has_counted and self.is_last) or op is not inner:
                    raise NotCounted(OTHERWISE, op.span)
                self.ends = True
        strong = inner.sem != "weak" or isinstance(inner, ops.Atomic) or op is not inner
        self.rows.append(_Row(
            at, size, threads, *place, id(op), not isinstance(inner, ops.Load), strong,
            isinstance(inner, ops.Load) and NON_COHERENT in op.text, counts, op.span,
        ))  # fmt: skip
        return counts

    def _count(self, op: Op, inner: Op, at: Numbers, size: int, threads: Numbers) -> bool:
        """Whether an operation counts its cluster, by one thread."""
        if not isinstance(inner, ops.Atomic) or op is not inner or not is_count(inner) or len(threads) != 1:
            return False
        amount = inner.srcs[0]
        if size != self.counter.size or int(at[0]) != self.counter.address or not isinstance(amount, Const):
            return False
        fits = amount.value == 1 if inner.op == "add" else amount.value >= self.last
        if not fits or inner.scope not in ("gpu", "sys"):
            return False
        self.counted += 1
        self.span = op.span
        return True

    def _is_wait(self, op: Op, inner: Op, at: Numbers, size: int) -> bool:
        """Whether an operation waits until all have counted themselves."""
        if not (isinstance(op, ops.Await) and isinstance(inner, ops.Load) and op.compare is not None) or op.followed:
            return False
        test, bound = op.compare
        if not isinstance(bound, Const) or inner.type[0] == "f" or len(inner.dsts) != 1:
            return False
        if size != self.counter.size or (at != self.counter.address).any() or inner.scope not in ("gpu", "sys"):
            return False
        holds = {
            "==": int.__eq__,
            ">=": int.__ge__,
            ">": int.__gt__,
            "!=": int.__ne__,
            "<": int.__lt__,
            "<=": int.__le__,
        }
        numbers = range(self.counter.first, self.last + 2)
        ends = [bool(holds[test](n, bound.value)) for n in numbers] if test in holds else [True]
        if any(ends[:-1]) or not ends[-1]:
            return False
        self.waits = True
        return True

    def _check_bounds(self, at: Numbers, size: int, op: Op) -> None:
        for low in {int(at.min()), int(at.max())}:
            found = self.memory.find(low)
            if found is None or low + size > found.base + found.object.size:
                raise NotCounted("an access may leave its buffer", op.span)
        first, last = self.memory.find(int(at.min())), self.memory.find(int(at.max()))
        if first is not last:
            for low in at.tolist():
                found = self.memory.find(low)
                if found is None or low + size > found.base + found.object.size:
                    raise NotCounted("an access may leave its buffer", op.span)
        if (at % size).any():
            raise NotCounted("an access is not aligned", op.span)

    def accesses(self) -> Accesses:
        """All accesses."""
        rows = self.rows
        number = np.repeat(np.arange(len(rows)), [len(r.starts) for r in rows])
        empty = np.zeros(0, np.int64)
        starts = np.concatenate([empty, *(r.starts for r in rows)])
        threads = np.concatenate([empty, *(r.threads for r in rows)])
        places = np.array([r.place for r in rows], np.int64)[number]
        order = np.lexsort((places, threads))
        number, starts, threads, places = number[order], starts[order], threads[order], places[order]

        def spread(given: list[int], kind: type = np.int64) -> Any:
            return np.array(given, kind)[number]

        return Accesses(
            starts, starts + spread([r.size for r in rows]), threads, places, spread([r.segment for r in rows]),
            spread([r.operation for r in rows]), spread([r.writes for r in rows], np.bool_),
            spread([r.strong for r in rows], np.bool_), spread([r.non_coherent for r in rows], np.bool_),
            spread([r.counts for r in rows], np.bool_), [rows[k].span for k in number.tolist()],
        )  # fmt: skip


def _places(address: Expr, lanes: list[int]) -> Numbers | None:
    """The addresses of an access of global memory in some lanes of a warp; ``None`` for other memory."""
    match address:
        case Const(value):
            at = np.full(len(lanes), value, np.int64)
        case Lanes(values):
            at = np.array([values[k] for k in lanes], np.int64)
        case _:
            raise NotCounted("an address is not known")
    ours = (at >= GLOBAL_BASE) & (at < SHARED_BASE)
    if not ours.any():
        return None
    if not ours.all():
        raise NotCounted("an access of shared or global memory")
    return at


def _mentions_global(op: Op) -> bool:
    """Whether an operand may be an address of global memory."""
    return any(GLOBAL_BASE <= n < SHARED_BASE for n in numbers_in(op))
