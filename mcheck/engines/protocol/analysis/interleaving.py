"""Check whether interleavings show every final state of a program: in them reads may be stale, writes are never late.

In an execution that no interleaving shows, events form a cycle of program order, reads-from and coherence: two threads
read shared words and write others first (load buffering), or write the same words in opposite orders. Such a cycle
enters a thread at an access to one word, continues in program order, or over a barrier, to a write of another word, and
so returns.

A thread is entered *tightly* where the model orders the write that it comes from, and all before it, in causality order
before what follows: a read in an acquire pattern, all writes of its word being in release patterns (PTX ISA 9.0 section
8.8), a barrier, a wait on an mbarrier that only releases arrive at. It is entered *loosely* otherwise. A cycle with at
most one loose entry violates the Causality and Coherence axioms (8.10.1, 8.10.6). So interleavings cover the program
unless two threads have loose entries on one cycle.

The analysis is syntactic: a computed address may be that of any word, and what a branch may skip neither releases nor
acquires.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.base.records import dataclass
from mcheck.engines.protocol.analysis.shared_words import is_strong_write
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.scopes import WIDTH, width_of_program
from mcheck.ir.type_sizes import type_size

REASON = "threads access several shared words in an order that no interleaving need show ({first} and {second})"
MAX_EDGES = 4_000
"""Edges that are examined."""

Node = tuple[str, object]
"""A shared word or a synchronisation object: ("word", address), ("mbarrier", address), ("barrier", ...), ("lanes",
...), ("wgmma", ...), ("sc", None).
"""


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of one operation on a node.

    ``tight``: entering here is causal, ``None`` if no cycle can enter here; ``out``: a cycle may leave here to another
    thread.
    """

    at: int
    node: Node
    tight: bool | None
    out: bool
    name: str


@dataclass(frozen=True, slots=True)
class Edge:
    """From an entry to a later exit of one thread."""

    start: Node
    end: Node
    tight: bool
    name: str


def explain_non_interleaving(program: Program) -> str | None:
    """Return why there may be executions that no interleaving shows, ``None`` if there are none."""
    if not shares_words(program):
        return None
    edges: dict[Edge, set[int]] = {}
    known: dict[tuple[Step, ...], tuple[Edge, ...]] = {}
    facts = _Facts.collect(program)
    for thread in program.threads:
        steps = tuple(facts.steps(thread))
        if steps not in known:
            known[steps] = _find_edges(thread, steps)
        for edge in known[steps]:
            edges.setdefault(edge, set()).add(thread.index)
    if len(edges) > MAX_EDGES:
        return "too many shared words to tell in which orders they may be written"
    return _find_cycle(edges)


def shares_words(program: Program) -> bool:
    """Return whether threads use strong reads and writes."""
    codes = {id(t.code): t.code for t in program.threads}
    return any(_strong(op) for code in codes.values() for op in code)


def _strong(op: Op) -> bool:
    op = ops.performed_operation(op)
    return isinstance(op, ops.ScalarAccess) and op.sem != "weak"


# --- patterns -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Facts:
    """Facts about the whole program: words that only releases write, mbarriers that only releases arrive at."""

    rank: int
    released: dict[Node, bool]
    wild: frozenset[str] = frozenset()

    @staticmethod
    def collect(program: Program) -> _Facts:
        rank = width_of_program(program)
        facts = _Facts(rank, {})
        for thread in {id(t.code): t for t in program.threads}.values():
            fenced = _preceded_by_release_fence(thread, rank)
            for k, op in enumerate(thread.code):
                for node, released in facts._modified_nodes(op):
                    facts.released[node] = facts.released.get(node, True) and (released or k in fenced)
        named = {node for t in program.threads for op in t.code for node in _nodes_of_operation(op)}
        facts.wild = frozenset(kind for kind, address in named if address is None)
        return facts

    def _modified_nodes(self, op: Op) -> Iterable[tuple[Node, bool]]:
        """Yield the nodes that an operation modifies, and whether by a release."""
        op = ops.performed_operation(op)
        released = getattr(op, "sem", "") in ("release", "acq_rel") and self._covers_all_threads(
            getattr(op, "scope", None)
        )
        if not _only_reads(op):
            yield from ((node, released) for node in _nodes_of_operation(op))
        if isinstance(op, ops.ClusterBarrier) and op.kind == "arrive":
            yield CLUSTER, op.sem == "release"

    def _covers_all_threads(self, scope: str | None) -> bool:
        return WIDTH.get(scope or "cta", 0) >= self.rank

    def steps(self, thread: Thread) -> Iterable[Step]:
        """Return the steps of a thread, in the order of its code."""
        fenced = _followed_by_acquire_fence(thread, self.rank)
        for k, whole in enumerate(thread.code):
            op = ops.performed_operation(whole)
            name = " ".join(whole.text.split())
            for node in map(self._merge_steps, _nodes_of_operation(op)):
                tight: bool | None = None
                if _only_reads(op):
                    acquires = k in fenced or (
                        getattr(op, "sem", "") == "acquire" and self._covers_all_threads(getattr(op, "scope", None))
                    )
                    tight = acquires and self._all_release(node)
                elif _strong(op):
                    tight = False
                yield Step(k, node, tight, not _only_reads(op), name)
            if isinstance(op, ops.Store) and not _strong(op):
                weak = _node("word", op.address)
                if weak in self.released or (weak[1] is None and any(n[0] == "word" for n in self.released)):
                    yield Step(k, self._merge_steps(weak), None, True, name)  # strong accesses may read what it writes
            place = thread.place
            if isinstance(op, ops.Fence) and op.sem == "sc":
                yield Step(k, ("sc", 0), True, True, name)
            elif isinstance(op, ops.Barrier | ops.WarpSync):
                where = (place.cta.number, place.warp if isinstance(op, ops.WarpSync) else -1)
                yield Step(k, ("barrier", where), True, True, name)
            elif isinstance(op, ops.ClusterBarrier):
                yield Step(k, CLUSTER, self._all_release(CLUSTER), True, name)
            elif op.facets.converges:
                yield Step(k, ("lanes", (place.cta.number, place.warp)), False, True, name)  # orders no memory
            elif isinstance(op, ops.Commit | ops.WaitGroup) and op.family == "wgmma":
                # a wait lasts until the warpgroup has committed, which orders no memory (9.7.15.7.2)
                waits = isinstance(op, ops.WaitGroup)
                yield Step(k, ("wgmma", place.warpgroup), False if waits else None, not waits, name)

    def _all_release(self, node: Node) -> bool:
        return all(released for other, released in self.released.items() if self._merge_steps(other) == node)

    def _merge_steps(self, node: Node) -> Node:
        return (node[0], None) if node[0] in self.wild else node


CLUSTER: Node = ("barrier", "cluster")


def _nodes_of_operation(op: Op) -> list[Node]:
    """Return the shared words and mbarriers that an operation names."""
    op = ops.performed_operation(op)
    if isinstance(op, ops.ScalarAccess) and _strong(op):
        count = len(getattr(op, "dsts", getattr(op, "srcs", ()))) if not isinstance(op, ops.Atomic) else 1
        return [_node("word", op.address, k * type_size(op.type)) for k in range(count)]
    nodes: list[Node] = []
    if isinstance(op, ops.AsyncStore) and is_strong_write(op):
        nodes += [_node("word", op.address, k * type_size(op.type)) for k in range(len(op.srcs))]
    where = ops.mbarrier_of(op) if op.facets.signals or op.facets.observes else None
    if where is not None:
        several = getattr(op, "cta_mask", None) is not None  # a multicast one signals the mbarriers of several CTAs
        nodes.append(("mbarrier", None) if several else _node("mbarrier", where))
    return nodes


def _node(kind: str, address: Expr, offset: int = 0) -> Node:
    return kind, address.value + offset if isinstance(address, Const) else None


def _fences(thread: Thread, rank: int, kinds: set[str]) -> list[int]:
    """Return the places of fences of these kinds and of sufficient scope that every path through the code executes."""
    code = thread.code
    jumps = [(k, thread.labels[op.target]) for k, op in enumerate(code) if isinstance(op, ops.Branch)]
    return [
        k
        for k, op in enumerate(code)
        if isinstance(op, ops.Fence)
        and op.guard is None
        and op.sem in kinds
        and WIDTH.get(op.scope or "cta", 0) >= rank
        and op.restrict is None
        and not any(a < k < b for a, b in jumps)
    ]


def _preceded_by_release_fence(thread: Thread, rank: int) -> set[int]:
    """Return the places directly after a release fence: no cycle can enter the thread in between."""
    code = thread.code
    back = _back_edges(thread)
    found: set[int] = set()
    for f in _fences(thread, rank, {"release", "acq_rel", "sc"}):
        for k in range(f + 1, len(code)):
            if any(f < target <= k <= p for p, target in back):
                break
            found.add(k)
            if _nodes_of_operation(code[k]) or code[k].facets.synchronises:
                break
    return found


def _followed_by_acquire_fence(thread: Thread, rank: int) -> set[int]:
    """Return the places that an acquire fence follows, with no place in between where a cycle can leave the thread, and
    no release fence, by which it could leave later.
    """
    code = thread.code
    back = _back_edges(thread)
    found: set[int] = set()
    for g in _fences(thread, rank, {"acquire", "acq_rel", "sc"}):
        for k in range(g - 1, -1, -1):
            low = _earliest_reachable(k, [(p, target) for p, target in back if p < g])
            between = [*range(low, k), *range(k + 1, g)]
            if any(
                code[j].facets.synchronises
                or _is_release_fence(code[j])
                or (_nodes_of_operation(code[j]) and not _only_reads(ops.performed_operation(code[j])))
                for j in between
            ):
                break
            found.add(k)
    return found


def _is_release_fence(op: Op) -> bool:
    return isinstance(op, ops.Fence) and op.sem == "release"


def _only_reads(op: Op) -> bool:
    return op.facets.observes and not op.facets.writes


def _back_edges(thread: Thread) -> list[tuple[int, int]]:
    """Return the back edges, as (from, to)."""
    found = [(k, thread.labels[op.target]) for k, op in enumerate(thread.code) if isinstance(op, ops.Branch)]
    return [(k, target) for k, target in found if target <= k]


def _earliest_reachable(at: int, back: list[tuple[int, int]]) -> int:
    """Return the first place that a thread may reach again from ``at``."""
    low = at
    while True:
        lower = min([low, *(target for k, target in back if k >= low)])
        if lower == low:
            return low
        low = lower


# --- circles --------------------------------------------------------------------------------------------------


def _find_edges(thread: Thread, steps: tuple[Step, ...]) -> tuple[Edge, ...]:
    """Return each edge once, in the order of the code, so that the reported cycle is deterministic."""
    back = _back_edges(thread)
    exits = [s for s in steps if s.out]
    found: dict[Edge, None] = {}
    for entry in steps:
        if entry.tight is None:
            continue
        low = _earliest_reachable(entry.at, back)
        for leave in exits:
            later = leave.at > entry.at or leave.at >= low < entry.at
            atomic = leave.at == entry.at and isinstance(ops.performed_operation(thread.code[entry.at]), ops.Atomic)
            if atomic or (later and (leave.node != entry.node or entry.node[1] is None)):
                found[Edge(entry.node, leave.node, entry.tight, entry.name)] = None
    return tuple(found)


def _find_cycle(edges: dict[Edge, set[int]]) -> str | None:
    following: dict[Node, set[Node]] = {}
    for edge in edges:
        following.setdefault(edge.start, set()).add(edge.end)
    reach: dict[Node, set[Node]] = {}

    def reached(node: Node) -> set[Node]:
        if node not in reach:
            seen, todo = {node}, [node]
            while todo:
                for other in following.get(todo.pop(), ()):
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
            reach[node] = seen
        return reach[node]

    loose = [(e, threads) for e, threads in edges.items() if not e.tight]
    for edge, threads in loose:
        if edge.start[0] != "word":
            continue
        for other, theirs in loose:
            if len(threads | theirs) < 2:
                continue
            if edge.start == edge.end == other.start == other.end and not any(
                edge.start in reached(node) for node in reached(edge.start) - {edge.start}
            ):
                continue  # accesses to one word alone keep their order (8.10.5)
            if other.start in reached(edge.end) and edge.start in reached(other.end):
                return REASON.format(first=edge.name, second=other.name)
    return None
