"""Event structures: one path of every thread, split into chunks of bytes, with everything independent of choices.

Every object is cut into the largest runs of bytes that no access of these paths splits; an access becomes one event
per chunk.
Index 0 onwards are the initial writes (one per chunk), then the events of the threads in program order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import field
from itertools import pairwise

from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.events.event import Event, Path
from mcheck.ir.program import Program, Thread
from mcheck.ir.scopes import GRID_SCOPES
from mcheck.semantics.tensor_map_values import MAP_SIZE, encode
from mcheck.semantics.terms import Term, Uid, slice_bytes

INIT = -1
INITIAL_SETS = ("IW", Tag.W, Tag.M)
"""The base sets that initial writes are in."""
NEVER = 1 << 30
"""The turn of what orders no wgmma."""


@dataclass(frozen=True, slots=True)
class Node:
    """An event of the graph: ``source`` on ``size`` bytes at ``address`` (its chunk), which are ``offset`` bytes into
    its footprint.

    ``source`` is ``None`` for an initial write, whose value is ``initial``. ``thread`` is -1 for it.
    """

    index: int
    source: Event | None
    thread: int
    address: int = 0
    size: int = 0
    offset: int = 0
    initial: Term = 0

    @property
    def value(self) -> Term:
        """The value of a write, or the one passed with a barrier arrival."""
        if self.source is None:
            return self.initial
        if not self.size:
            return self.source.value
        return slice_bytes(self.source.value, self.offset, self.size, self.source.size)

    def has(self, tag: str) -> bool:
        """Whether the event is in the base set ``tag``."""
        if self.source is None:
            return tag in INITIAL_SETS
        return tag in self.source.tags


@dataclass(slots=True)
class Structure:
    """``nodes_of`` maps an event to its graph events, ``writes``/``reads`` a chunk's address to the graph events
    there.
    """

    program: Program
    paths: tuple[Path, ...]
    nodes: list[Node] = field(default_factory=list)
    nodes_of: dict[Uid, list[int]] = field(default_factory=dict)
    events: dict[Uid, Event] = field(default_factory=dict)
    writes: dict[int, list[int]] = field(default_factory=dict)
    reads: dict[int, list[int]] = field(default_factory=dict)
    chunk_size: dict[int, int] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    turns: dict[Uid, int] = field(default_factory=dict)
    """Of a read of wgmma, which of its thread's wgmma it belongs to; of a wgmma.fence, or of a proxy fence behind one,
    how many come before it.
    """
    static_rows: dict[str, list[int]] = field(default_factory=dict)
    """Base relations and sets, as far as they have been asked for (``mcheck.events.relations.static_rows``)."""

    @property
    def size(self) -> int:
        """The number of events."""
        return len(self.nodes)

    def thread(self, node: Node) -> Thread:
        """The thread of a node that has one."""
        return self.program.threads[node.thread]

    def chunks(self, address: int, size: int) -> list[tuple[int, int]]:
        """The chunks of a range, as (address, size)."""
        first = bisect_right(self.cuts, address) - 1
        last = bisect_left(self.cuts, address + size)
        bounds = self.cuts[first : last + 1]
        return [(a, b - a) for a, b in pairwise(bounds)]

    def parts(self, address: int, size: int) -> list[tuple[int, int, int]]:
        """A range as (address of a chunk, offset into it, length): a condition may ask for some bytes of a chunk."""
        out = []
        for start, length in self.chunks(address, size):
            low, high = max(start, address), min(start + length, address + size)
            out.append((start, low - start, high - low))
        return out


def initial_bytes(program: Program, address: int, size: int) -> Term:
    """The initial contents of physical bytes: an integer, or an unknown constant."""
    for instance in program.memory.instances:
        data = instance.object
        if instance.physical == instance.base and instance.base <= address < instance.base + data.size:
            if data.tensor_map:
                index, offset = divmod(address - instance.base, MAP_SIZE)
                return slice_bytes(encode(data.tensor_map[index]), offset, size, MAP_SIZE)
            offset = address - instance.base
            if data.init is None:
                parts = (b[offset - at :][:size] for at, b in data.held if at <= offset <= at + len(b) - size)
                return next((int.from_bytes(b, "little") for b in parts), ("?", ("memory", address, size)))
            return int.from_bytes(data.init[offset : offset + size], "little")
    return ("?", ("memory", address, size))


def build_structure(program: Program, paths: tuple[Path, ...], wanted: tuple[tuple[int, int], ...]) -> Structure:
    """Build the structure of these paths; ``wanted`` are further ranges (address, size) whose final value is needed."""
    s = Structure(program, paths)
    accesses = {(e.address, e.size) for p in paths for e in p.events if e.size}
    # what is asked for at the end is no access: it cuts only the bytes that none touches
    edges = {x for a, n in wanted for x in (a, a + n) if not any(b < x < b + m for b, m in accesses)}
    ranges = accesses | set(wanted)
    s.cuts = sorted({x for a, n in accesses for x in (a, a + n)} | edges)
    idle = _unobserved(s, wanted)
    used = sorted({c for a, n in ranges for c in s.chunks(a, n)} - idle)
    for address, size in used:
        s.chunk_size[address] = size
        node = Node(len(s.nodes), None, INIT, address, size, 0, initial_bytes(program, address, size))
        s.nodes.append(node)
        s.writes[address] = [node.index]
        s.reads[address] = []
    for path in paths:
        _count_wgmma(s, path)
        for event in path.events:
            s.events[event.uid] = event
            if not event.size:
                s.nodes_of[event.uid] = [len(s.nodes)]
                s.nodes.append(Node(len(s.nodes), event, path.thread))
                continue
            indices = s.nodes_of[event.uid] = []
            for address, size in s.chunks(event.address, event.size):
                if (address, size) in idle:
                    continue
                node = Node(len(s.nodes), event, path.thread, address, size, address - event.address)
                s.nodes.append(node)
                indices.append(node.index)
                (s.writes if Tag.W in event.tags else s.reads)[address].append(node.index)
    return s


def _count_wgmma(s: Structure, path: Path) -> None:
    issued: dict[Uid, int] = {}
    registers = False  # whether a wgmma.fence orders those of the next wgmma: a proxy fence alone is not enough
    for event in path.events:
        if Tag.WGMMA in event.tags and event.issue is not None:
            s.turns[event.uid] = issued.setdefault(event.issue, len(issued))
            registers = False
        elif Tag.WGFENCE in event.tags:
            registers |= Tag.PROXYFENCE not in event.tags
            s.turns[event.uid] = len(issued) if registers else NEVER


def _unobserved(s: Structure, wanted: tuple[tuple[int, int], ...]) -> set[tuple[int, int]]:
    """Chunks accessed by element reductions only, all of one width and with scopes that include each other.

    Whatever their order, it is consistent, it orders nothing else and nobody sees it: the chunk is left out. Shared
    memory stays, for it may be gone when they come.
    """
    touching: dict[tuple[int, int], list[tuple[int, Event]]] = {}
    for path in s.paths:
        for event in path.events:
            if event.size:
                for chunk in s.chunks(event.address, event.size):
                    touching.setdefault(chunk, []).append((path.thread, event))
    shown = {c for a, n in wanted for c in s.chunks(a, n)}
    out = set()
    for chunk, events in touching.items():
        reductions = all({Tag.ASYNCREDUCTION} == e.tags & {Tag.ASYNCREDUCTION, Tag.SHARED} for _, e in events)
        if chunk not in shown and reductions and all((e.address, e.size) == chunk for _, e in events):
            gpus = {s.program.threads[t].place.cta.gpu for t, _ in events}
            if len(gpus) == 1 and all(e.scope in GRID_SCOPES for _, e in events):
                out.add(chunk)
    return out
