"""What the clusters of a grid do that take locks: each executed alone, with free locks and chosen contents of words.

All accesses of memory that clusters share, but for taking locks and releasing them, become weak: what is ordered then
is ordered by locks, and by barriers and fences of a cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.def_use import numbers_in
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.simt.grid.locks.guarded_words import OwnContents, Word
from mcheck.simt.grid.pairs.cluster_accesses import Access, lanes_of
from mcheck.simt.grid.pairs.only_path import LEARNED
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.cluster_signals import Signalling, SignalReader, trace_signalling, with_threads
from mcheck.simt.grid.signals.linked_pair import link_pair
from mcheck.simt.grid.signals.signal_order import PairLinks
from mcheck.simt.grid.signals.synchronisations import synchronisation_of
from mcheck.simt.trace_extraction import ClusterTrace, PathRules

Contents = Mapping[Word, int]
LOCKS = PathRules(barrier_waits=True, two_valued_locks=True)


@dataclass(slots=True)
class Locking(Signalling):
    """What a cluster does that finds these ``contents`` in words."""

    number: int
    contents: Contents
    reads: frozenset[Word]
    """The words of given contents that it loads or updates."""
    left: Mapping[Word, int | None]
    """What words hold at its end; ``None`` if that is not known."""


def execute_locking(
    module: Module, launch: Launch, cluster: Coordinates, number: int, contents: Contents, shapes: dict[object, int],
    limit: Limit,
) -> Locking:  # fmt: skip
    """What the cluster of a number does. ``shapes`` numbers operations. Raises ``NotReducible``, ``TicketFound``."""
    watch = OwnContents(launch, (number,), None, contents=[contents])
    trace = trace_signalling(module, launch, (cluster,), watch, limit, LOCKS)
    if watch.signs:
        raise NotReducible(LEARNED)
    program = _weakened(trace.program)
    reader = SignalReader(memory=program.memory, shapes=shapes, ticket=None, told={})
    shape = reader.read_program(program)
    reader.check_nothing_copied_to()  # words that clusters ask for are followed through stores and atomics alone
    code = reader.synchronisation(replace(trace, program=program))
    left = {word: value if sure else None for word, (value, sure) in watch.held[0].items()}
    locks = {one.address for one in code}
    return Locking(
        cluster, (shape, reader.thread), reader.accesses(), lanes_of(program), watch.compiler.places, code,
        reader.thread, polls_early=bool(watch.early), last=frozenset(), told={}, seen=(-1, ()), number=number,
        contents=contents, reads=frozenset(word for word in watch.reads if word[0] not in locks), left=left,
    )  # fmt: skip


def trace_locking(
    module: Module, launch: Launch, both: Sequence[Locking], links: PairLinks, locks: Contents, limit: Limit
) -> ClusterTrace:
    """What two clusters do together, with these values of free locks, if their sections come in the order of the
    links. Raises ``NotReducible``.
    """
    watch = OwnContents(
        launch, tuple(one.number for one in both), None, contents=[{**one.contents, **locks} for one in both]
    )
    trace = trace_signalling(module, launch, [one.cluster for one in both], watch, limit, LOCKS)
    program, _ = link_pair(_weakened(trace.program), both, links, None)
    return replace(trace, program=program)


def _weakened(program: Program) -> Program:
    """The program with weak accesses in place of all strong ones of global memory but those of locks."""
    locks = {
        found.address for op in program.operations
        if isinstance(op, ops.Await) and (found := synchronisation_of(op, None)) is not None and found.taken is not None
    }  # fmt: skip
    known: dict[int, Op] = {}

    def weak(op: Op) -> Op:
        return known.setdefault(id(op), _weak(op, locks))

    threads = tuple(replace(t, code=tuple(map(weak, t.code))) for t in program.threads)
    return with_threads(program, threads)


def _weak(op: Op, locks: Collection[int]) -> Op:
    if not isinstance(op, Access) or op.multimem is not None or op.proxy != "generic":
        return op
    places = list(numbers_in(op.address))
    if not places or not all(GLOBAL_BASE <= at < SHARED_BASE and at not in locks for at in places):
        return op
    match op:
        case ops.Atomic():
            return ops.Store(
                srcs=op.srcs[-1:], address=op.address, type=op.type, space=op.space, span=op.span, text=op.text,
                section=op.section,
            )  # fmt: skip
        case ops.Load() if op.sem != "weak":
            return replace(op, sem="weak", scope=None, volatile=False)
        case ops.Store() if op.sem != "weak":
            return replace(op, sem="weak", scope=None, volatile=False)
    return op
