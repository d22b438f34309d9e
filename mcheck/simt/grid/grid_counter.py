"""The counter of a grid: a word of global memory to which each cluster adds one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass as record
from mcheck.frontend.ptx.known_contents import Memory
from mcheck.frontend.ptx.launch import Extent, Launch
from mcheck.frontend.ptx.memory_layout import MemoryLayout
from mcheck.frontend.ptx.module import Module, Statement
from mcheck.ir import ops
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import statements, with_action
from mcheck.simt.instructions.access_operands import to_generic
from mcheck.simt.trace_extraction import follow_paths

MAX_COUNTED = 160
"""Maximum number of clusters."""
COUNTED_TYPES = ("u32", "s32", "b32", "u64", "s64", "b64")
NOT_RESIDENT = (
    'clusters wait for others, and nothing but `"cooperative": true` in the launch promises that these run meanwhile'
)


class NotCounted(Exception):
    """Why the argument about a counter does not apply: a clause, and its location. ``counter``: there is one, as far as
    is known; ``late``: that took too long.
    """

    def __init__(self, why: str, span: Span | None = None, *, counter: bool = True, late: bool = False) -> None:
        super().__init__(why)
        self.why, self.span, self.counter, self.late = why, span, counter, late


@record(frozen=True, slots=True)
class Counter:
    """A word of global memory that every cluster adds one to: ``offset`` bytes behind the beginning of a memory, whose
    object has a ``name``. ``first`` is its initial value.
    """

    address: int
    size: int
    memory: Memory
    name: str
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
    if not (_knows_words(module, launch) and any(map(_adds, body))):
        raise missing
    check_statements(module)
    one = replace(launch, group=(launch.executed_clusters[0],))
    try:
        for _ in follow_paths(module, one, limit, _FirstCount):
            break
    except _Found as found:
        if found.counter.first + len(clusters_of(launch)) >= 1 << 8 * found.counter.size - 1:
            raise NotCounted("the counter may overflow") from None
        if is_box(launch):
            check_initial_words(found.places, [found.counter])
        return found.counter
    raise missing


def _knows_words(module: Module, launch: Launch) -> bool:
    """Whether the initial value of some word of global memory may be given."""
    told = any(v.space == "global" and v.is_told for _, v in module.all_variables)
    return told or launch.cooperative or any(buffer.initial for buffer in launch.buffers)


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

    def __init__(self, counter: Counter, places: MemoryLayout) -> None:
        super().__init__()
        self.counter, self.places = counter, places


@dataclass(slots=True)
class _FirstCount:
    """The watch that raises ``_Found``: what a cluster does then may be to wait for others."""

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
                counter = counter_at(compiler.places, at, size)
                if counter is not None:
                    raise _Found(counter, compiler.places)

        return before


def counter_at(places: MemoryLayout, address: int, size: int) -> Counter | None:
    """The word as a counter, if its initial value is given."""
    instance = places.memory.find(address) if GLOBAL_BASE <= address < SHARED_BASE else None
    memory = None if instance is None else places.memories.get(instance.base)
    first = places.initial_value(address, size)
    assumed = any(at <= address < at + len(places.contents[at][0]) for at in places.assumed)
    if instance is None or memory is None or first is None or address % size or assumed:
        return None
    return Counter(address, size, memory, instance.object.name, address - instance.base, first)


def check_initial_words(places: MemoryLayout, words: Iterable[Counter]) -> None:
    """Check that memories with these words begin with one value of them everywhere. Raises ``NotCounted``."""
    for base, size in {(word.address - word.offset, word.size) for word in words}:
        instance = places.memory.find(base)
        given, unknown = places.contents[base]
        whole = instance is not None and len(given) == instance.object.size and not any(unknown)
        if not whole or len({given[k : k + size] for k in range(0, len(given), size)}) != 1:
            raise NotCounted("words that clusters signal by begin with several values")


def is_count(op: ops.Atomic) -> bool:
    """Whether an atomic may count a cluster."""
    return op.op in ("add", "inc") and op.type in COUNTED_TYPES


def with_count(launch: Launch, counter: Counter, value: int) -> Launch:
    """The launch with another initial value of the counter."""
    contents = launch.contents_of(counter.memory)
    return launch.with_contents(contents.holding(counter.offset, value.to_bytes(counter.size, "little")))


def without_contents(launch: Launch, written: Sequence[tuple[Memory, int]], counter: Counter | None) -> Launch:
    """The launch without what is said of the contents of these bytes, and of those behind them, but for the counter.
    Raises ``NotCounted`` if tensor maps lie there.
    """
    if any(buffer.maps and ("buffer", buffer.name) == memory for buffer in launch.buffers for memory, _ in written):
        raise NotCounted("tensor maps in memory are written")
    launch = launch.with_contents(*(launch.contents_of(memory).forgetting(low) for memory, low in written))
    return launch if counter is None else with_count(launch, counter, counter.first)
