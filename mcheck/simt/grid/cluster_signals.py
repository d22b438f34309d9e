"""Clusters that wait for each other's signals (``mcheck.simt.grid.synchronisations``): what each does, executed alone.

While a cluster is executed, whatever it waits for is there, and it draws the ticket of its number. Everything else that
it may learn from other clusters is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from mcheck.base.budget import Limit
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, type_bits
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.program import Program, Thread
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import statements
from mcheck.simt.execution.value_tests import AwaitedValue
from mcheck.simt.grid.cluster_accesses import (
    Execution,
    Numbers,
    global_objects,
    lanes_of,
)
from mcheck.simt.grid.early_polls import (
    FAILS,
    EarlyPoll,
    check_comparisons,
    check_early_poll,
    find_early_test,
    wanted_value,
)
from mcheck.simt.grid.grid_counter import Counter, NotCounted, counter_at
from mcheck.simt.grid.kept_operands import Kept, check_kept, find_kept_waits
from mcheck.simt.grid.only_path import LEARNED, follow_only_path
from mcheck.simt.grid.synchronisations import WIDE, Synchronisation, SynchronisationReader
from mcheck.simt.instructions.access_operands import fetch_lanes, to_generic
from mcheck.simt.instructions.awaited_values import await_load, find_waits
from mcheck.simt.instructions.barrier_polls import find_barrier_waits, lone_lanes
from mcheck.simt.trace_extraction import ClusterTrace
from mcheck.simt.traces.address_names import KernelTerms


@dataclass(slots=True)
class Signalling(Execution):
    """What a cluster does. Two with one shape differ in the words and values of their signals and waits, too."""

    code: tuple[Synchronisation, ...]
    """The signals and waits, in the order of the one thread that does them."""
    thread: int | None
    """The number of that thread."""
    polls_early: bool
    """Whether it looks at a word before it waits for it."""


# --- what the others do -----------------------------------------------------------------------------------------------


class TicketFound(Exception):
    """A cluster is about to draw a number from a word whose initial value is given."""

    def __init__(self, ticket: Counter) -> None:
        super().__init__()
        self.ticket = ticket


@dataclass(slots=True)
class OthersSignal:
    """The watch on an execution in which the other clusters have stored what the executed ones wait for, and drawn the
    tickets before theirs. ``numbers`` are the numbers of the executed clusters. Without a ``ticket`` it raises
    ``TicketFound`` at the first one.
    """

    launch: Launch
    numbers: tuple[int, ...]
    ticket: Counter | None
    compiler: Compiler = field(init=False)
    kept: list[Kept] = field(default_factory=list)
    """The values in shared memory that lanes have waited for."""
    returned: Mapping[int, int] = field(default_factory=dict)
    """What early polls of lanes return; others fail."""
    early: list[EarlyPoll] = field(default_factory=list)
    compared: dict[int, set[int | None]] = field(default_factory=dict)
    """By lane, what the values of early polls have been compared with; ``None`` for what is not known."""

    def restarted(self) -> Self:
        """The watch, at the beginning of an execution."""
        self.kept.clear()
        self.early.clear()
        self.compared.clear()
        return self

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the loads that may wait, and the atomics."""
        self.compiler = compiler
        out = list(steps)
        tests: dict[int, tuple[Unit, ptx.Operand]] = {}
        for at, statement, unit in statements(compiler):
            if statement.kind is Kind.LOAD and statement.opcode.is_strong:
                out[at] = self._load(unit, statement, at, steps[at])
                if (test := find_early_test(unit.function, at - unit.start)) is not None:
                    tests[unit.start + test[0]] = unit, test[1]
            elif statement.kind is Kind.ATOMIC and _draws(statement) and compiler.is_needed(unit, statement):
                out[at] = self._draw(unit, statement, steps[at])
        for at, (unit, other) in tests.items():
            out[at] = self._compare(unit, other, out[at])
        return out

    def _load(self, unit: Unit, statement: ptx.Statement, at: int, step: Step) -> Step:
        size = type_size(statement.opcode.type)
        if statement.opcode.vector != 1 or size > 8:
            return step
        waited = find_waits(self.compiler, unit, at, size)
        kept = find_kept_waits(self.compiler, unit, at - unit.start, size)
        polls = find_barrier_waits(self.compiler, unit, at, size)
        op = operation_template(unit.function, statement)
        tested = find_early_test(unit.function, at - unit.start) is not None
        early = op if tested and isinstance(op, ops.Load) and op.scope in WIDE else None
        if waited is None and kept is None and polls is None and early is None:
            return step
        fetch, guard = self.compiler.fetch(unit, statement.place), statement.guard
        rows = [unit.frame + r.index for r in statement.defs]

        def run(c: Cluster, mask: Mask) -> Mask | None:
            out = np.zeros_like(mask)
            if guard is not None:
                mine = _holds(self.compiler, unit, guard, mask)
                rest, mask = mask & ~mine, mine
                if rest.any():
                    done = step(c, rest)
                    out |= False if done is None else done
            alone = lone_lanes(c, mask) if polls is not None or early is not None else []
            for some, wait in [(mask, None)] if waited is None else waited(mask):
                for one in [some] if wait is None and kept is None and not alone else _each(some):
                    lane = np.flatnonzero(one)
                    found = kept(c, int(lane[0])) if wait is None and kept is not None else None
                    awaited = wait if found is None else found[0]
                    if awaited is None and polls is not None and lane[0] in alone and c.follows_barrier_waits:
                        around = polls(int(lane[0]))
                        awaited = None if around is None else around[0]
                    if awaited is None and early is not None and lane[0] in alone:
                        self._poll_early(c, one, fetch, early, rows)
                        out |= one
                        continue
                    if awaited is not None:
                        address = to_generic(np.broadcast_to(fetch()[0], mask.shape)[lane])
                        _end_wait(c, address, size, lane, awaited)
                    done = step(c, one)
                    if done is not None:
                        out |= done
                    if awaited is not None:
                        self.learn(rows, lane)
                    if found is not None:
                        self.kept += found[1]
                        _make_wait(c, int(lane[0]), rows, found[0])
            return out if out.any() else None

        return run

    def _poll_early(self, c: Cluster, one: Mask, fetch: Fetch, op: ops.Load, rows: list[int]) -> None:
        """Leave the early poll of a lane out: it fails, unless it is to return something else."""
        lane, size = int(np.flatnonzero(one)[0]), type_size(op.type)
        address, unknown = fetch_lanes(fetch, one, np.array([lane]))
        if unknown[0]:
            raise NotCounted("an address is not known", c.span)
        at, place = int(to_generic(address)[0]), len(c.recorded.code[lane])
        self.early.append(EarlyPoll(lane, at, size, place, op.sem == "acquire", c.span))
        for row in rows:
            c.lanes.values[row][lane] = self.returned.get(lane, FAILS) & (1 << 8 * size) - 1
            c.lanes.quality[row][lane] = 0
        self.learn(rows, np.array([lane]))

    def _compare(self, unit: Unit, other: ptx.Operand, step: Step) -> Step:
        """Record what lanes compare with at the place where values of early polls are compared."""
        fetch = self.compiler.fetch(unit, other)

        def run(c: Cluster, mask: Mask) -> Mask | None:
            for lane in {poll.lane for poll in self.early if mask[poll.lane]}:
                value, unknown = fetch_lanes(fetch, mask, np.array([lane]))
                self.compared.setdefault(lane, set()).add(None if unknown[0] else int(value[0]))
            return step(c, mask)

        return run

    def learn(self, rows: list[int], lane: Numbers) -> None:
        """These registers of a lane hold what was waited for, or what an early poll returned."""

    def _draw(self, unit: Unit, statement: ptx.Statement, step: Step) -> Step:
        size = type_size(statement.opcode.type)
        fetch, guard = self.compiler.fetch(unit, statement.place), statement.guard
        row = 0 if guard is None else unit.frame + guard.register.index
        values = self.compiler.lanes.values

        def run(c: Cluster, mask: Mask) -> Mask | None:
            mine = mask
            if guard is not None:
                mine = mask & ((values[row] == 0) if guard.negated else (values[row] != 0))
            for one in _each(mine):
                lane = np.flatnonzero(one)
                address = to_generic(np.broadcast_to(fetch()[0], mask.shape)[lane])
                self._hand_out(c, address, size, lane)
                step(c, one)
            rest = mask & ~mine
            if rest.any():
                step(c, rest)
            return mask

        return run

    def _hand_out(self, c: Cluster, address: Word, size: int, lane: Numbers) -> None:
        """Let a lane draw the number of its cluster."""
        if self.ticket is None:
            found = counter_at(self.launch, self.compiler.places.memory, int(address[0]), size)
            if found is not None:
                raise TicketFound(found)
        elif int(address[0]) == self.ticket.address and size == self.ticket.size:
            drawn = self.ticket.first + self.numbers[int(c.lanes.cluster[lane[0]])]
            c.store.save(address, size, lane, np.array([drawn], np.uint64), np.zeros(1, np.uint8))


def _holds(k: Compiler, unit: Unit, guard: ptx.Guard, mask: Mask) -> Mask:
    """The lanes for which a guard is sure to hold."""
    row = unit.frame + guard.register.index
    value = (k.lanes.values[row] != 0) ^ guard.negated
    return np.asarray(mask & value & (k.lanes.quality[row] == 0))


def _each(mask: Mask) -> Iterator[Mask]:
    """The lanes of a mask, one by one: two clusters may wait for different values of a word at the same time."""
    for lane in np.flatnonzero(mask).tolist():
        one = np.zeros_like(mask)
        one[lane] = True
        yield one


def _draws(statement: ptx.Statement) -> bool:
    opcode = statement.opcode
    return opcode.has("add") and opcode.vector == 1 and opcode.type[0] in "us" and opcode.type[1:] in ("32", "64")


def _end_wait(c: Cluster, address: Word, size: int, lane: Numbers, wait: AwaitedValue) -> None:
    """Store what a lane waits for."""
    held, unknown = c.store.load(address, size, lane)
    top = 1 << type_bits(wait.type)
    if unknown[0] or not wait.accepts(int(held[0])):
        for value in (wait.right, wait.right + 1, wait.right - 1):
            if wait.accepts(value % top):
                c.store.save(address, size, lane, np.array([value % top], np.uint64), np.zeros(1, np.uint8))
                return


def _make_wait(c: Cluster, lane: int, rows: list[int], wait: AwaitedValue) -> None:
    """Make the load that a lane has done last a wait."""
    code = c.recorded.code[lane]
    load = code[-1]
    assert isinstance(load, ops.Load)
    code[-1] = c.recorded.intern(("kept", id(load), wait), lambda: await_load(load, wait, load.address))
    c.recorded.loaded.pop((lane, len(code) - 1), None)
    for row in rows:
        c.lanes.quality[row][lane] &= ~np.uint8(taint.ORDER)


# --- one cluster ------------------------------------------------------------------------------------------------------


def execute_signalling(
    module: Module, launch: Launch, cluster: Coordinates, number: int, ticket: Counter | None,
    shapes: dict[object, int], limit: Limit,
) -> Signalling:  # fmt: skip
    """What the cluster of a number does if all that it waits for is there. ``shapes`` numbers operations. Raises
    ``NotCounted`` if it may learn anything else from other clusters, and ``TicketFound``.
    """
    trace, early = _trace_alone(module, launch, cluster, number, ticket, limit)
    reader = SynchronisationReader(memory=trace.program.memory, shapes=shapes, ticket=ticket)
    shape = reader.read_program(trace.program)
    if ticket is not None and reader.drawn != 1:
        raise NotCounted("a cluster does not draw exactly one ticket", reader.span)
    return Signalling(
        cluster, (shape, reader.thread), reader.accesses(), lanes_of(trace.program), global_objects(trace.program),
        reader.synchronisation(trace), reader.thread, bool(early),
    )  # fmt: skip


def _trace_alone(
    module: Module, launch: Launch, cluster: Coordinates, number: int, ticket: Counter | None, limit: Limit
) -> tuple[ClusterTrace, Sequence[EarlyPoll]]:
    """What a cluster does, and its early polls, which are left out. Raises ``NotCounted`` if one decides more than
    whether there is a wait.
    """
    watch = OthersSignal(launch, (number,), ticket)
    trace = trace_signalling(module, launch, (cluster,), watch, limit)
    if len(watch.early) > 1:
        raise NotCounted("several loads decide whether to wait", watch.early[1].span)
    for poll in watch.early:
        wanted = {poll.lane: wanted_value(poll, trace.program, launch.width)}
        check_comparisons(poll, wanted[poll.lane], watch.compared.get(poll.lane, ()))
        other = OthersSignal(launch, (number,), ticket, returned=wanted)
        succeeded = trace_signalling(module, launch, (cluster,), other, limit)
        check_early_poll(poll, launch.width, trace.program, succeeded.program)
    return trace, watch.early


def trace_signalling(
    module: Module, launch: Launch, clusters: Sequence[Coordinates], watch: OthersSignal, limit: Limit
) -> ClusterTrace:
    """What these clusters of a grid do together, if all that they wait for is there; ``watch`` leaves early polls
    out.
    """
    some = replace(launch, group=tuple(clusters))
    runner, executed, _ = follow_only_path(module, some, limit, watch.restarted, barrier_waits=True)
    recorded = executed.recorded
    drawn = None if watch.ticket is None else watch.ticket.address
    told = [
        *recorded.loaded.values(),
        *(o for o in recorded.returned.values() if o.address in recorded.decisive_atomics),
    ]
    if any(seen.address != drawn for seen in told):
        raise NotCounted(LEARNED)
    trace = runner.cluster_trace(executed, whole=True)
    if trace.gaps:
        raise NotCounted(trace.gaps[0].reason, trace.gaps[0].span)
    check_kept(trace.program, watch.kept, launch.width)
    return _without_values(trace)


def _without_values(trace: ClusterTrace) -> ClusterTrace:
    """The trace without what it says of the values that are drawn: the tickets of a grid may be drawn in any order."""
    known: dict[int, Op] = {}

    def plain(op: Op) -> Op:
        inner = performed_operation(op)
        if not isinstance(inner, ops.Atomic) or (isinstance(op, ops.Await) and not op.followed):
            return op
        return known.setdefault(id(op), inner if inner.dst is None else replace(inner, dst=None))

    threads = tuple(
        replace(t, code=tuple(plain(op) for op in t.code if not isinstance(op, ops.AssumedValue)))
        for t in trace.program.threads
    )
    return replace(trace, program=with_threads(trace.program, threads), observations={})


def with_threads(program: Program, threads: tuple[Thread, ...]) -> Program:
    """The program with other code of its threads."""
    return replace(program, threads=threads, terms=KernelTerms(program.memory, threads))
