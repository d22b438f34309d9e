"""The accesses of global memory of one cluster, and the shape of what it does: all but the places of weak accesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.effects.site import Layout, layout_of
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.memory_layout import MemoryLayout
from mcheck.ir import ops
from mcheck.ir.expr import Expr, Lanes
from mcheck.ir.memory import MemoryMap
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.program import Program, Thread
from mcheck.ir.resolve import expressions
from mcheck.ir.type_sizes import type_size
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.pairs.barrier_phases import NEVER, NO_PHASE, Course, Phases, Point, When, meeting_barriers
from mcheck.simt.grid.pairs.copied_ranges import Copied, read_copy, read_prefetch
from mcheck.simt.grid.pairs.global_places import Numbers, mentions_global, places_of
from mcheck.simt.grid.pairs.idle_atomics import is_idle_atomic
from mcheck.simt.grid.pairs.reduction import NotReducible

UNFOLLOWED = (ops.TensormapReplace, ops.TensormapCopyFence, ops.GridWait)
NON_COHERENT = ".nc."
"""Part of the text of a load through the non-coherent cache, which in a module is a load as any other (9.7.9.9)."""
Access = ops.Load | ops.Store | ops.Atomic


@dataclass(slots=True)
class Accesses:
    """The accesses of global memory of one execution, a row each, by thread and then in its order: where they begin and
    end, by whom they are (number of the thread), at which place in the code of the thread, and after how many
    operations of it that may synchronise. All clusters of a class share these arrays, but for where those of the
    columns ``moved`` begin.
    """

    origins: Numbers
    """Where they begin, unless they are ``moved``."""
    sizes: Numbers
    threads: Numbers
    roles: Numbers
    """Equal for threads that synchronise by the same operations, in the same warp if those of a warp are among them. A
    thread has one of its own if it synchronises by an operation that its warp executes as one, with operands of each
    lane.
    """
    codes: Numbers
    """Equal for threads with the same code."""
    places: Numbers
    segments: Numbers
    operations: Numbers
    """Equal for lanes that execute an operation as one."""
    writes: NDArray[np.bool_]
    strong: NDArray[np.bool_]
    non_coherent: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    """Whether it is what orders clusters: the atomic by which a cluster counts itself, a wait, a signal."""
    copies: NDArray[np.bool_]
    """Whether it is of an asynchronous copy."""
    alignments: Numbers
    """Of how many bytes an address has to be a multiple; ``BY_COORDINATES`` of those that are in no operand."""
    generic: NDArray[np.bool_]
    """Whether it is through the generic proxy."""
    begun: Numbers
    """In which round of barriers of its CTA it begins (``mcheck.simt.grid.pairs.barrier_phases``)."""
    over: Numbers
    """In which round it is complete, if its thread comes to the barrier at the end of that."""
    complete: Numbers
    """From which place on it is."""
    phases: Numbers
    """Equal if they are ordered alike with what other clusters do; ``NO_PHASE`` if that is not known."""
    fenced_phases: Numbers
    """The same of what they do through other proxies."""
    ranks: Numbers
    """By thread, the rank of its CTA."""
    spans: list[Span | None] = field(default_factory=list)
    moved: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    moved_starts: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def starts(self) -> Numbers:
        """Where they begin."""
        if not len(self.moved):
            return self.origins
        found = self.origins.copy()
        found[self.moved] = self.moved_starts
        return found

    @property
    def ends(self) -> Numbers:
        """Where they end."""
        return self.starts + self.sizes

    def at(self, moved: Numbers, starts: Numbers) -> Accesses:
        """The same accesses, but for where those of some columns begin."""
        return replace(self, moved=moved, moved_starts=starts)


@dataclass(slots=True)
class Execution:
    """What a cluster does. Two with one ``shape`` differ in the places of weak accesses, and in nothing else but what
    the argument about them allows for.
    """

    cluster: Coordinates
    shape: object
    accesses: Accesses
    lanes: Numbers
    """Of each thread its lane among all lanes of the cluster."""
    places: MemoryLayout
    """Where memory lies, and what it holds at first."""

    @property
    def alike(self) -> object:
        """What is the same in two clusters that do the same but for the places of weak accesses."""
        return self.shape


@dataclass(frozen=True, slots=True)
class Row:
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
    alignment: int
    begun: When
    copies: bool = False
    generic: bool = True
    """Whether it is through the generic proxy."""


def lanes_of(program: Program) -> Numbers:
    """Of each thread its lane among all lanes of the cluster."""
    width = WARP * (1 + max(t.place.warp for t in program.threads))
    return np.array([t.place.cta.rank * width + WARP * t.place.warp + t.place.lane for t in program.threads], np.int64)


@dataclass(slots=True, kw_only=True)
class AccessReader:
    """Collects the accesses of one execution. ``shapes`` numbers operations, the same in all executions."""

    memory: MemoryMap
    shapes: dict[object, int]
    numbers: dict[object, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    roles: dict[int, int] = field(default_factory=dict)
    """By thread, the number of its role."""
    codes: dict[int, int] = field(default_factory=dict)
    """By thread, the number of its code."""
    rank: int = 0
    """The rank of the CTA that is read."""
    threads: Sequence[Thread] = ()
    layout: Layout | None = None
    """The threads, and the layout, of the program that is read."""
    meetings: frozenset[Expr] = frozenset()
    """The barriers that end rounds."""
    done: dict[int, When] = field(default_factory=dict)
    """By row, when a copy is complete."""
    points: list[Point] = field(default_factory=list)
    proxies: list[Point] = field(default_factory=list)
    """The points at which clusters may synchronise, and the fences of proxies."""
    ended: dict[int, int] = field(default_factory=dict)
    """By thread, how many rounds it ends by a barrier."""

    def read(self, code: Sequence[Op], threads: Numbers, lanes: list[int]) -> tuple[int, ...]:
        """The accesses of threads of one warp with equal code; returns its shape."""
        shape, orders = list[int](), list[int]()
        same_in_warps, own_operands = True, False
        course = Course(self.meetings)
        for op in code:
            inner = performed_operation(op)
            course.step(inner)
            match inner:
                case ops.Load() | ops.Store() | ops.Atomic() if (at := places_of(inner.address, lanes)) is not None:
                    shape.append(self.number(op, inner, at))
                    self._add(op, inner, at, threads, (course.now, len(orders)))
                    if not is_weak(op, inner):
                        orders.append(shape[-1])
                        course.strong.append(course.now)
                    continue
                case ops.Load() | ops.Store() if is_weak(op, inner):
                    shape.append(self.known(id(op), op))  # shared memory
                    continue
                case ops.CpAsync() | ops.BulkCopy() | ops.TensorCopy() if copied := self._copy(inner, threads):
                    shape.append(self.shapes.setdefault(("copied", copied.shape), len(self.shapes)))
                    kind = self.shapes.setdefault(("copies", copied.role), len(self.shapes))
                    self._add_copy(op, copied, threads, course, len(orders) + 1)
                    orders += [kind, kind]  # a segment of its own
                    own_operands |= isinstance(copied.role, Op) and _has_lanes(copied.role)
                    same_in_warps &= copied.is_of_thread
                    continue
                case ops.Prefetch():
                    prefetched = read_prefetch(inner, lanes)
                    shape.append(self.shapes.setdefault(prefetched.shape, len(self.shapes)))
                    self._add_copy(op, prefetched, threads, course, len(orders))
                    continue
                case ops.ProxyFence() if inner.kind != "async" or inner.half is not None:
                    raise NotReducible("fences of a kind that is not followed", op.span)
                case _ if isinstance(inner, UNFOLLOWED) or mentions_global(inner):
                    raise NotReducible(f"'{op.text}' is not followed", op.span)
                case ops.UnknownContinuation():
                    raise NotReducible(inner.reason, op.span)
            shape.append(self.known(id(op), op))
            orders.append(shape[-1])
            same_in_warps &= _is_of_thread(op)
            own_operands |= _has_lanes(op)
        self.done |= course.done
        self.ended |= dict.fromkeys(threads.tolist(), course.round)
        self.points += [Point(thread, at) for thread in threads.tolist() for at in course.points]
        self.proxies += [Point(thread, at) for thread in threads.tolist() for at in course.proxies]
        role = (self.rank, *orders, *(() if same_in_warps else ("in the warp of", int(threads.min()))))
        for thread in threads.tolist():
            key = ("role", role, thread if own_operands else None)
            self.roles[thread] = self.shapes.setdefault(key, len(self.shapes))
        self.codes |= dict.fromkeys(threads.tolist(), self.shapes.setdefault(("code", *shape), len(self.shapes)))
        return tuple(shape)

    def read_program(self, program: Program) -> tuple[tuple[int, ...], ...]:
        """The accesses of all threads; returns the shape of each. Those of a warp that do the same are read as one."""
        self.threads, self.layout = program.threads, layout_of(program)
        warps: dict[tuple[object, ...], list[int]] = {}
        for thread in program.threads:
            warps.setdefault((thread.place.cta.rank, thread.place.warp, *map(id, thread.code)), []).append(thread.index)
        width = sum(t.place.cta == program.threads[0].place.cta for t in program.threads)
        codes = [program.threads[members[0]].code for members in warps.values()]
        self.meetings = meeting_barriers((performed_operation(op) for code in codes for op in code), width)
        shape: dict[int, tuple[int, ...]] = {}
        for members in warps.values():
            code = program.threads[members[0]].code
            lanes = [program.threads[k].place.lane for k in members]
            self.rank = program.threads[members[0]].place.cta.rank
            shape |= dict.fromkeys(members, self.read(code, np.array(members, np.int64), lanes))
        return tuple(shape[k] for k in sorted(shape))

    def _add(self, op: Op, inner: Access, at: Numbers, threads: Numbers, when: tuple[When, int]) -> None:
        """Record an access."""
        size = type_size(inner.type) * inner.scalar_count
        if (
            inner.proxy != "generic"
            or inner.multimem is not None
            or (isinstance(inner, ops.Load | ops.Store) and inner.matrix_rows)
        ):
            raise NotReducible(f"'{op.text}' is not followed", op.span)
        self.check_bounds(at, size, op, size)
        strong = not is_weak(op, inner)
        orders = self.is_ordering(op, inner, at, size, threads)
        if is_idle_atomic(op) and not (orders or self.is_waited_for(at, size)):
            raise NotReducible("an atomic leaves what it finds, and is no wait", op.span)
        self.rows.append(Row(
            at, size, threads, when[0].place, when[1], id(op), not isinstance(inner, ops.Load) or is_idle_atomic(op),
            strong, isinstance(inner, ops.Load) and NON_COHERENT in op.text, orders, op.span, size, when[0],
        ))  # fmt: skip

    def _copy(self, op: Op, threads: Numbers) -> Copied | None:
        assert self.layout is not None
        return read_copy(op, [self.threads[k] for k in threads.tolist()], self.layout)

    def _add_copy(self, op: Op, copied: Copied, threads: Numbers, course: Course, segment: int) -> None:
        """Record the accesses of a copy."""
        if copied.group is not None:
            course.issued[copied.group] += range(len(self.rows), len(self.rows) + len(copied.ranges))
        for some in copied.ranges:
            self.check_bounds(some.starts, some.size, op, copied.alignment or 1)
            self.check_copied(op, some.starts, some.size)
            self.rows.append(Row(
                some.starts, some.size, threads[some.members], course.place, segment, id(op), copied.writes,
                copied.strong, False, False, op.span, copied.alignment, course.now, copies=True,
                generic=copied.is_of_thread,
            ))  # fmt: skip

    def check_copied(self, op: Op, at: Numbers, size: int) -> None:
        """Check that copies may access these bytes. Raises ``NotReducible``."""

    def check_nothing_copied_to(self) -> None:
        """Check that no copy writes global memory. Raises ``NotReducible``."""
        for row in self.rows:
            if row.copies and row.writes:
                raise NotReducible("copies to global memory are not followed here", row.span)

    def is_ordering(self, op: Op, inner: Access, at: Numbers, size: int, threads: Numbers) -> bool:
        """Whether an access is one of those that order clusters."""
        raise NotImplementedError

    def is_waited_for(self, at: Numbers, size: int) -> bool:
        """Whether nothing but waits, and what they wait for, may access this word."""
        del at, size
        return False

    def known(self, key: object, op: object) -> int:
        """The number of something that every execution makes anew, so that its hash is computed once in each."""
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = self.shapes.setdefault(op, len(self.shapes))
        return found

    def number(self, op: Op, inner: Access, at: Numbers) -> int:
        """The number of an access; of a weak one its place does not count."""
        weak = isinstance(inner, ops.Load | ops.Store) and inner.sem == "weak" and op is inner
        if not weak:
            return self.shapes.setdefault((op, tuple(at.tolist())), len(self.shapes))
        assert isinstance(inner, ops.Load | ops.Store)
        # What an instruction does is told by its place in the module; nothing depends on what it stores.
        return self.shapes.setdefault((type(inner), inner.span, inner.type, inner.text), len(self.shapes))

    def check_bounds(self, at: Numbers, size: int, op: Op, alignment: int) -> None:
        """Check that accesses, unless they are of no bytes, stay in their buffers, and are aligned. Raises
        ``NotReducible``.
        """
        first, last = self.memory.find(int(at.min())), self.memory.find(int(at.max()))
        inside = first is not None and first is last and int(at.max()) + size <= first.base + first.object.size
        if size and not inside:
            for low in at.tolist():
                found = self.memory.find(low)
                if found is None or low + size > found.base + found.object.size:
                    raise NotReducible("an access may leave its buffer", op.span)
        if (at % alignment).any():
            raise NotReducible("an access is not aligned", op.span)

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

        begun, over, complete, phases, fenced = (np.concatenate([empty, *one])[order] for one in self._when())
        roles, codes = (np.array([of[k] for k in range(len(of))], np.int64) for of in (self.roles, self.codes))
        return Accesses(
            starts, spread([r.size for r in rows]), threads, roles[threads], codes[threads], places,
            spread([r.segment for r in rows]), spread([r.operation for r in rows]),
            spread([r.writes for r in rows], np.bool_),
            spread([r.strong for r in rows], np.bool_), spread([r.non_coherent for r in rows], np.bool_),
            spread([r.counts for r in rows], np.bool_), spread([r.copies for r in rows], np.bool_),
            spread([r.alignment for r in rows]), spread([r.generic for r in rows], np.bool_), begun, over, complete,
            phases, fenced, np.array([t.place.cta.rank for t in self.threads], np.int64),
            [rows[k].span for k in number.tolist()],
        )  # fmt: skip

    def _when(self) -> Iterator[list[Numbers]]:
        """Of each row, by thread, the round in which it begins, that in which it is over, the place from which on it is
        complete, and the phases.
        """
        ranks = {thread.index: thread.place.cta.rank for thread in self.threads}
        given = [Phases(points, ranks, self.ended) for points in (self.points, [*self.points, *self.proxies])]
        out: list[tuple[list[int], ...]] = []
        for number, row in enumerate(self.rows):
            done = self.done.get(number) if row.copies else row.begun
            threads = row.threads.tolist()
            over = NEVER if done is None or self.ended[threads[0]] <= done.round else done.round
            complete = NEVER if done is None else done.place
            phases = [self._phases(each, row, done) for each in given]
            out.append(([row.begun.round] * len(threads), [over] * len(threads), [complete] * len(threads), *phases))
        for k in range(len(given) + 3):
            yield [np.array(one[k], np.int64) for one in out]

    def _phases(self, given: Phases, row: Row, done: When | None) -> list[int]:
        """The numbers of the phases of a row, by thread."""
        if row.strong:
            return [NO_PHASE] * len(row.threads)
        told = [given.phase(k, row.begun, done) for k in row.threads.tolist()]
        return [NO_PHASE if one is None else self.shapes.setdefault(("phase", one), len(self.shapes)) for one in told]


def is_weak(op: Op, inner: Op) -> bool:
    """Whether an operation, of which ``inner`` is what is executed, is a weak load or store."""
    return isinstance(inner, ops.Load | ops.Store) and inner.sem == "weak" and op is inner


def _has_lanes(op: Op) -> bool:
    """Whether an operand differs between lanes."""
    return any(isinstance(e, Lanes) for _, e in expressions(op))


def _is_of_thread(op: Op) -> bool:
    """Whether it makes no difference in which warp of its CTA a thread executes an operation."""
    if isinstance(op, ops.Commit | ops.WaitGroup):
        return op.family in ("cp.async", "bulk")
    return isinstance(op, ops.Barrier | ops.Fence | ops.ProxyFence)
