"""The counter of a grid: a word of global memory to which each cluster adds one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass as record
from mcheck.frontend.ptx.launch import AnyNumber, Buffer, Extent, Launch, Map
from mcheck.frontend.ptx.module import Module, Statement
from mcheck.ir import ops
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, Instance, MemoryMap
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import statements, with_action
from mcheck.simt.grid.footprint import Memory
from mcheck.simt.instructions.access_operands import to_generic
from mcheck.simt.trace_extraction import follow_paths

MAX_COUNTED = 160
"""Maximum number of clusters."""
COUNTED_TYPES = ("u32", "s32", "b32", "u64", "s64", "b64")


class NotCounted(Exception):
    """Why the argument about a counter does not apply: a clause, and its location. ``counter``: there is one, as far as
    is known; ``late``: that took too long.
    """

    def __init__(self, why: str, span: Span | None = None, *, counter: bool = True, late: bool = False) -> None:
        super().__init__(why)
        self.why, self.span, self.counter, self.late = why, span, counter, late


@record(frozen=True, slots=True)
class Counter:
    """A word of global memory that every cluster adds one to. ``first`` is its initial value."""

    address: int
    size: int
    buffer: str
    offset: int
    first: int

    @property
    def bytes(self) -> range:
        """Its addresses."""
        return range(self.address, self.address + self.size)


def is_box(launch: Launch) -> bool:
    """Whether a launch executes a box of clusters together."""
    return prod(launch.together) > 1


def clusters_of(launch: Launch) -> Sequence[Extent]:
    """The coordinates of the clusters that may count themselves in one word, or signal each other: those of the box
    that is executed, or of the grid.
    """
    if is_box(launch):
        return launch.executed_clusters
    a, b, c = launch.cluster_counts
    return [(x, y, z) for z in range(c) for y in range(b) for x in range(a)]


def find_counter(module: Module, launch: Launch, limit: Limit) -> Counter:
    """The word in which the executed cluster counts itself: the first one that it adds to and whose initial value is
    given. Raises ``NotCounted``.
    """
    if len(clusters_of(launch)) > MAX_COUNTED:
        raise NotCounted(f"there are more than {MAX_COUNTED} clusters", counter=False)
    missing = NotCounted("no cluster counts itself in a word whose initial value is given", counter=False)
    body = [s for f in module.functions.values() for s in f.body]
    if not any(b.initial for b in launch.buffers) or not any(map(_adds, body)):
        raise missing
    check_statements(module)
    one = replace(launch, group=(launch.executed_clusters[0],))
    try:
        for _ in follow_paths(module, one, limit, lambda: _FirstCount(launch)):
            break
    except _Found as found:
        if found.counter.first + len(clusters_of(launch)) >= 1 << 8 * found.counter.size - 1:
            raise NotCounted("the counter may overflow") from None
        return found.counter
    raise missing


def check_statements(module: Module) -> None:
    """Check that no instruction writes memory without that its execution shows it. Raises ``NotCounted``."""
    for function in module.functions.values():
        for statement in function.body:
            if statement.kind is Kind.DISCARD:  # a weak write, which executions leave out
                raise NotCounted(f"'{statement.text}' is not followed", statement.span)


def _adds(statement: Statement) -> bool:
    """Whether an instruction may count a cluster."""
    opcode = statement.opcode
    if statement.kind not in (Kind.ATOMIC, Kind.REDUCTION) or not opcode.has("add", "inc"):
        return False
    return opcode.type in COUNTED_TYPES and opcode.vector == 1 and statement.address is not None


class _Found(Exception):
    """A cluster is about to count itself."""

    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self.counter = counter


@dataclass(slots=True)
class _FirstCount:
    """The watch that raises ``_Found``: what a cluster does then may be to wait for others."""

    launch: Launch

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the atomics."""
        out = list(steps)
        for at, statement, unit in statements(compiler):
            if _adds(statement):
                size = type_size(statement.opcode.type)
                before = self._look(compiler, compiler.fetch(unit, statement.place), size)
                out[at] = with_action(compiler, unit, statement, before, steps[at])
        return out

    def _look(self, compiler: Compiler, fetch: Fetch, size: int) -> Callable[[Cluster, Mask], None]:
        def before(c: Cluster, mine: Mask) -> None:
            del c
            address = to_generic(np.broadcast_to(fetch()[0], mine.shape)[mine]).astype(np.int64)
            for at in np.unique(address).tolist():
                counter = counter_at(self.launch, compiler.places.memory, at, size)
                if counter is not None:
                    raise _Found(counter)

        return before


def counter_at(launch: Launch, memory: MemoryMap, address: int, size: int) -> Counter | None:
    """The word as a counter, if its initial value is given."""
    instance = memory.find(address) if GLOBAL_BASE <= address < SHARED_BASE else None
    initial = None if instance is None else _initial(launch, instance)
    if instance is None or initial is None:
        return None
    offset = address - instance.base
    if offset + size > len(initial) or offset % size:
        return None
    first = int.from_bytes(initial[offset : offset + size], "little")
    return Counter(address, size, instance.object.name, offset, first)


def is_count(op: ops.Atomic) -> bool:
    """Whether an atomic may count a cluster."""
    return op.op in ("add", "inc") and op.type in COUNTED_TYPES


def _initial(launch: Launch, instance: Instance) -> bytes | None:
    for buffer in launch.buffers:
        if buffer.name == instance.object.name:
            return buffer.initial
    return None


def with_count(launch: Launch, counter: Counter, value: int) -> Launch:
    """The launch with another initial value of the counter."""

    def changed(buffer: Buffer) -> Buffer:
        if buffer.name != counter.buffer:
            return buffer
        end = counter.offset + counter.size
        word = value.to_bytes(counter.size, "little")
        return replace(buffer, initial=buffer.initial[: counter.offset] + word + buffer.initial[end:])

    return _with_buffers(launch, changed)


def without_contents(launch: Launch, written: Sequence[tuple[Memory, int]], counter: Counter | None) -> Launch:
    """The launch without what it says of the contents of these bytes of buffers, and of those behind them, and
    without what the module says of these variables. Raises ``NotCounted`` if the counter is among those.
    """
    lost = {name for (kind, name), _ in written if kind == "variable"}
    launch = replace(launch, forgotten=launch.forgotten | lost)
    least = {name: offset for (kind, name), offset in written if kind == "buffer"}
    if not least:
        return launch
    if counter is not None and least.get(counter.buffer, counter.offset + counter.size) < counter.offset + counter.size:
        raise NotCounted("the initial value of the counter stands behind bytes that are written")
    return _with_buffers(launch, lambda b: replace(b, initial=b.initial[: least[b.name]]) if b.name in least else b)


def _with_buffers(launch: Launch, change: Callable[[Buffer], Buffer]) -> Launch:
    arguments = []
    for argument in launch.arguments:
        places: list[tuple[int, Buffer | Map | AnyNumber]] = []
        for offset, place in argument.places:
            if isinstance(place, Buffer):
                if place.maps or place.pointers:
                    raise NotCounted("buffers hold pointers or tensor maps")
                place = change(place)
            elif isinstance(place, Map) and change(place.buffer) != place.buffer:
                raise NotCounted("tensor maps describe the memory that clusters share")
            places.append((offset, place))
        arguments.append(replace(argument, places=tuple(places)))
    return replace(launch, arguments=tuple(arguments))
