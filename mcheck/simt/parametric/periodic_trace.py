"""Periodic traces of a kernel with an unbounded parameter: for each lane the operations before its loop, in a period of
it, and after.

The loops are found by running the kernel with two numbers: a loop that is entered more often with the larger one
depends on the parameter. The number of iterations of a period is read off the operations of the lanes. That this holds
for every number is then shown by watching the execution of one number (``mcheck.simt.parametric.watched_execution``),
and of the numbers next to it that make a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from math import lcm

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.launch import Argument, Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, MemoryMap
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import LoopMark, LoopVisits
from mcheck.simt.parametric.affine import Numbers
from mcheck.simt.parametric.loaded_values import Loaded, LoadedValues, PeriodicLoads
from mcheck.simt.parametric.watched_execution import ParameterWatch
from mcheck.simt.trace_extraction import ClusterTrace, PathChoices, Runner

FIRST_TRIES = (48, 96)
PROBE_ITERATIONS = 24
"""Iterations that suffice to find a period, or as many as ``MOST_TRIED`` makes."""
MAX_TRIED = 12_288
MAX_VISITS = 72
"""Maximum number of iterations in a period."""
MIN_COVERED = 1 << 30
"""The least upper limit of the parameter to be covered, for numbers of 32 bits."""
MAX_SMALL = 160
"""Maximum number of values below the periodic ones that are checked one by one."""

LaunchWith = Callable[[int], Launch]
Step = tuple[NDArray[np.int64], Mask]


@dataclass(frozen=True, slots=True)
class PeriodicTrace:
    """A path of the kernel with every number from ``starts[0]`` on. ``starts`` are the first numbers that differ from
    their predecessors, up to one that adds a period, which is ``step`` larger; ``below`` are those that differ from 0
    on.

    ``heads`` and ``bodies`` are the operations of each thread before its loop and in a period of it, ``tails``, by the
    numbers in ``starts``, those after it, a last period included. ``last`` is the largest number for which no register
    overflows.
    """

    path: ClusterTrace
    starts: tuple[int, ...]
    step: int
    differing_below: tuple[int, ...]
    heads: tuple[tuple[Op, ...], ...]
    bodies: tuple[tuple[Op, ...], ...]
    tails: tuple[tuple[tuple[Op, ...], ...], ...]
    last: int
    loads: PeriodicLoads | None = None
    """The values of shared memory on which this rests."""

    def first_number(self, size: int) -> int:
        """The first number of those with the same program, counted by ``size``."""
        periods, which = divmod(size, len(self.starts))
        return self.starts[which] + periods * self.step

    def build_program(self, size: int) -> Program:
        """The program of the cluster with ``number(size)``. Reads of a period at growing addresses of memory that
        nothing writes are placed where the first one is.
        """
        periods, which = divmod(size, len(self.starts))
        parts = zip(self.heads, self.bodies, self.tails[which], strict=True)
        code = [(*head, *(body * periods), *tail) for head, body, tail in parts]
        threads = [replace(t, code=c) for t, c in zip(self.path.program.threads, code, strict=True)]
        return replace(self.path.program, threads=tuple(threads))

    def check_loads(self, sizes: int) -> None:
        """Check that executions with as many of the first numbers load what is said of them. Raises ``Aperiodic``."""
        for size in range(sizes if self.loads is not None else 0):
            periods, which = divmod(size, len(self.starts))
            assert self.loads is not None
            self.loads.check(which, periods, self.first_number(size))

    def loop_bounds(self, thread: int, size: int) -> tuple[int, int, int]:
        """The begin and the end of a thread's loop in its code, and the operations of a period."""
        first, length = len(self.heads[thread]), len(self.bodies[thread])
        return first, first + length * (size // len(self.starts) + 1), length


@dataclass(slots=True)
class PeriodFinder:
    """The search for the period of one path of a kernel; ``launched`` is its launch with a number."""

    module: Module
    launched: LaunchWith
    argument: Argument
    way: PathChoices
    limit: Limit
    name: str
    keys: dict[int, tuple[Op, object]] = field(default_factory=dict)
    plain: dict[object, int] = field(default_factory=dict)
    exact: dict[int, tuple[Op, int]] = field(default_factory=dict)

    def find(self) -> PeriodicTrace:
        """Find the period; raises ``Aperiodic`` with the obstacle."""
        small, large = self.run_two_numbers()
        marks, step = self.find_loops(small, large)
        problem: Aperiodic | None = None
        for first, more in ((1, 0), (1, 1), (2, 1), (2, 2)):
            try:
                return self.build_trace(large, marks, step, first, more)
            except Aperiodic as error:
                problem = error
        assert problem is not None
        raise problem

    def alternatives(self) -> Iterator[PathChoices]:
        """Choices that differ from those of this path in one choice that it made."""
        runner = self.make_runner(FIRST_TRIES[1])
        yield from runner.alternatives(self.way, runner.run(self.way))

    def make_runner(self, number: int) -> Runner:
        """The runner of the kernel with a number."""
        self.limit.check()
        if number >> 8 * self.argument.size:
            raise Aperiodic(f"{number} iterations, a value that {self.name} cannot have")
        return Runner(self.module, self.launched(number), self.limit)

    # --- loops ----------------------------------------------------------------------------------------------------

    def run_two_numbers(self) -> tuple[tuple[int, LoopVisits], tuple[int, LoopVisits, Cluster]]:
        """Run two numbers and record the loops."""
        low, high = FIRST_TRIES
        while True:
            small, large = LoopVisits(), LoopVisits()
            self.make_runner(low).run(self.way, small)
            cluster = self.make_runner(high).run(self.way, large)
            for gap in cluster.recorded.gaps.values():
                raise Aperiodic(gap.reason, gap.span)
            more = [len(v) - len(small.loops.get(k, ())) for k, v in large.loops.items()]
            if max(more, default=0) >= PROBE_ITERATIONS or high >= MAX_TRIED:
                return (low, small), (high, large, cluster)
            low, high = 8 * low, 8 * high

    def find_loops(
        self, small: tuple[int, LoopVisits], large: tuple[int, LoopVisits, Cluster]
    ) -> tuple[dict[int, tuple[int, int, int]], int]:
        """By lane its loop, how often it is entered with the larger number and how many numbers add one iteration; and
        how many add a period.
        """
        (low, before), (high, after, cluster) = small, large
        outer: dict[int, tuple[int, int, int]] = {}  # of a lane's loops that grow the one that is entered least often
        for (lane, head), visits in sorted(after.loops.items()):
            more = len(visits) - len(before.loops.get((lane, head), ()))
            if more > 0 and (lane not in outer or len(visits) < outer[lane][1]):
                outer[lane] = head, len(visits), more
        heads: dict[int, tuple[int, int, int]] = {}
        for lane, (head, often, more) in outer.items():
            if (high - low) % more:
                raise Aperiodic(f"a loop whose number of iterations does not grow in proportion to {self.name}")
            heads[lane] = head, often, (high - low) // more
        if not heads:
            raise Aperiodic(f"no loop runs more often with a larger {self.name}")
        step = 1
        known: dict[object, int] = {}
        for lane, (head, _, each) in heads.items():
            visits = after.loops[lane, head]
            code = cluster.recorded.code[lane]
            key = head, tuple(visits), tuple(map(id, code))
            if key not in known:
                known[key] = self.find_period([tuple(map(self.operation_key, code[a:b])) for a, b in pairwise(visits)])
            step = lcm(step, known[key] * each)
            if step > MAX_VISITS * each:
                raise Aperiodic(f"iterations of which only every {step // each}th is alike")
        return heads, step

    def find_period(self, done: list[tuple[object, ...]]) -> int:
        """The number of iterations after which the middle ones repeat."""
        some = done[len(done) // 5 : len(done) - len(done) // 5]
        for period in range(1, len(some) // 2 + 1):
            if all(a == b for a, b in zip(some, some[period:], strict=False)):
                return period
        raise Aperiodic("iterations of which no two are alike")

    def operation_key(self, op: Op) -> object:
        """The operation without the place in global memory that it reads."""
        found = self.keys.get(id(op))
        if found is None:
            free = drop_place(op)
            found = self.keys[id(op)] = op, self.plain.setdefault((op.span, free), len(self.plain))
        return found[1]

    # --- periods --------------------------------------------------------------------------------------------------

    def build_trace(
        self, large: tuple[int, LoopVisits, Cluster], loops: Mapping[int, tuple[int, int, int]], step: int,
        periods: int, more: int,
    ) -> PeriodicTrace:  # fmt: skip
        """The periodic trace from the visit that is ``periods`` - 1 periods after the first one, with ``more`` further
        numbers of periods.
        """
        marks, start = {}, 0
        for lane, (head, visits, each) in loops.items():
            marks[lane] = LoopMark(head, 1 + (periods - 1) * (step // each), step // each)
            wanted = marks[lane].first + marks[lane].visits * (1 + more) + 4
            start = max(start, large[0] - (visits - wanted) * each)
        steps = self.register_steps(start, marks, step)
        start += (
            self.run_watched(start, step - 1, step, marks, steps)[0].numbers.spare + 1
        )  # the first number of its class
        found: list[tuple[int, ParameterWatch, Cluster]] = []
        number, last = start, (1 << 8 * self.argument.size) - 1
        while number < start + step:
            watch, cluster = self.run_watched(number, start + step - 1 - number, step, marks, steps)
            found.append((number, watch, cluster))
            last = min(last, number + watch.numbers.most * step)
            number += watch.numbers.spare + 1
        below = tuple(self.find_differing(start))
        runner = self.make_runner(start)
        ways = [runner.cluster_trace(cluster, whole=True) for _, _, cluster in found]
        lanes = np.flatnonzero(found[0][2].lanes.exists).tolist()
        heads, bodies = self.split_trace(ways[0], found[0][1], lanes)
        grown = set().union(*(watch.growing_objects for _, watch, _ in found))
        memory, alike = ways[0].program.memory, None
        tails = []
        for way, (_, watch, _) in zip(ways, found, strict=True):
            parts = [
                self.comparison_key(code, grown, memory)
                for group in self.split_trace(way, watch, lanes)
                for code in group
            ]
            if alike is not None and parts != alike:
                raise Aperiodic(f"operations before the loop that are not the same for all {self.name}")
            alike = parts
            tails.append(
                tuple(
                    t.code[watch.trace_lengths[lane][0] :] if lane in watch.trace_lengths else ()
                    for t, lane in zip(way.program.threads, lanes, strict=True)
                )
            )
        self.require_unwritten(ways, grown)
        numbers = tuple(n for n, _, _ in found)
        rests = [watch.loads() or {} for _, watch, _ in found]
        loads = PeriodicLoads(tuple(rests), self.loaded_values) if any(rests) else None
        return PeriodicTrace(ways[0], numbers, step, below, heads, bodies, tuple(tails), last, loads)

    def loaded_values(self, number: int) -> Mapping[int, Sequence[Loaded]]:
        """By lane, what an execution with a number loads from shared memory."""
        found = LoadedValues()
        self.make_runner(number).run(self.way, found)
        return found.by_lane

    def split_trace(
        self, way: ClusterTrace, watch: ParameterWatch, lanes: list[int]
    ) -> tuple[tuple[tuple[Op, ...], ...], tuple[tuple[Op, ...], ...]]:
        """The operations of the threads before their loops, and in a period."""
        heads, bodies = [], []
        for thread, lane in zip(way.program.threads, lanes, strict=True):
            first, last = watch.trace_lengths.get(lane, (len(thread.code),) * 2)
            heads.append(thread.code[:first])
            bodies.append(thread.code[first:last])
        return tuple(heads), tuple(bodies)

    def comparison_key(self, code: tuple[Op, ...], grown: set[int], memory: MemoryMap) -> tuple[object, ...]:
        """The part of code that is compared: all except the places of reads in objects that are read at growing
        addresses.
        """
        found = []
        for op in code:
            kept = self.exact.get(id(op))
            if kept is None:
                bare = drop_place(op) if read_objects(op, memory) <= grown else op
                kept = self.exact[id(op)] = op, self.plain.setdefault((op.span, bare), len(self.plain))
            found.append(kept[1])
        return tuple(found)

    def register_steps(self, start: int, marks: Mapping[int, LoopMark], step: int) -> dict[int, Step]:
        """The increments of registers in a period, and the registers whose increments vary."""
        visits = LoopVisits(marks)
        self.make_runner(start + 2 * step).run(self.way, visits)
        out = {}
        for lane in marks:
            states = visits.states.get(lane, [])
            if len(states) < 2:
                raise Aperiodic("a loop that does not continue")
            gone = [(b[0] - a[0]).astype(np.int64) for a, b in pairwise(states)]
            unsteady = (states[0][1] != 0) | (states[1][1] != 0)
            for other in gone[1:]:
                unsteady = unsteady | (other != gone[0])
            out[lane] = gone[0], unsteady
        return out

    def run_watched(
        self, number: int, spare: int, step: int, marks: Mapping[int, LoopMark], steps: dict[int, Step]
    ) -> tuple[ParameterWatch, Cluster]:
        """Watch the execution of a number; registers found not to advance by their steps are added to those
        that vary.
        """
        least = min(MIN_COVERED, 1 << 8 * self.argument.size - 2) // step
        while True:
            most = ((1 << 8 * min(self.argument.size, 7)) - 1 - number) // step
            watch = ParameterWatch(Numbers(most, least, spare), self.argument, step, marks, steps=steps)
            cluster = self.make_runner(number).run(self.way, watch)
            watch.check_result(cluster)
            if not watch.irregular_registers:
                return watch, cluster
            for lane, rows in watch.irregular_registers.items():
                steps[lane][1][sorted(rows)] = True

    def find_differing(self, start: int) -> Iterator[int]:
        """The numbers below one that differ from their predecessors."""
        number = count = 0
        while number < start:
            yield number
            watch = ParameterWatch(Numbers(0, 0, start - 1 - number), self.argument)
            cluster = self.make_runner(number).run(self.way, watch)
            watch.check_result(cluster)
            number += watch.numbers.spare + 1
            count += 1
            if count > MAX_SMALL:
                raise Aperiodic(f"more than {MAX_SMALL} numbers below {start} that differ")

    def require_unwritten(self, ways: list[ClusterTrace], grown: set[int]) -> None:
        """Raises ``Aperiodic`` if an object is both read at growing addresses and written."""
        from mcheck.effects.unwritten_objects import find_unwritten_objects

        for way in ways:
            if not grown <= (kept := find_unwritten_objects(way.program)):
                base = min(grown - kept)
                name = next((i.object.name for i in way.program.memory.instances if i.base == base), "memory")
                raise Aperiodic(f"addresses in {name}, which the program writes, grow with the iterations")


def drop_place(op: Op) -> Op:
    """An operation without the place in global memory that it reads."""
    match op:
        case ops.BulkCopy() | ops.CpAsync() if _is_global(op.src):
            return replace(op, src=Const(0))
        case ops.Load() if _is_global(op.address):
            return replace(op, address=Const(0))
        case ops.TensorCopy(kind="load"):
            return replace(op, coords=tuple(Const(0) for _ in op.coords))
    return op


def read_objects(op: Op, memory: MemoryMap) -> set[int | None]:
    """The objects in global memory, by address, to which ``without_place`` may apply in an operation."""
    match op:
        case ops.BulkCopy() | ops.CpAsync():
            return {_object(memory, value) for value in _numbers(op.src)}
        case ops.Load():
            return {_object(memory, value) for value in _numbers(op.address)}
        case ops.TensorCopy():
            found = memory.find(op.tensor_map.value) if isinstance(op.tensor_map, Const) else None
            maps = () if found is None else found.object.tensor_map
            return {_object(memory, spec.global_address) for spec in maps} or {None}
    return {None}


def _object(memory: MemoryMap, address: int) -> int | None:
    found = memory.find(address)
    return None if found is None else found.base


def _numbers(address: Expr) -> tuple[int, ...]:
    if isinstance(address, Lanes):
        return tuple(value for value in address.values if value)  # 0 stands for lanes that do not take part
    return (address.value,) if isinstance(address, Const) else (-1,)


def _is_global(address: Expr) -> bool:
    return all(GLOBAL_BASE <= value < SHARED_BASE for value in _numbers(address))
