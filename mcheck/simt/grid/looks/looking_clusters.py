"""What clusters do that look at words of others, but for looks and stores to words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.findings import finding as findings
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.launch import Extent, Launch
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.ops import Op
from mcheck.ir.scopes import GRID_SCOPES
from mcheck.simt.grid.looks.endless_looks import Stuck
from mcheck.simt.grid.looks.others_look import OthersLook
from mcheck.simt.grid.looks.published_cells import find_published
from mcheck.simt.grid.looks.warp_exploration import ENDLESS
from mcheck.simt.grid.looks.word_statements import is_look, is_word
from mcheck.simt.grid.looks.word_values import Words
from mcheck.simt.grid.pairs.cluster_accesses import Access, AccessReader, Execution, lanes_of
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.known_words import KnownWord
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.cluster_signals import is_draw, trace_signalling, with_threads
from mcheck.simt.trace_extraction import ClusterTrace

WAITS_FOR_LATER = "a loop looks forever at words of clusters that need not have begun"


class StuckFound(NotReducible):
    """A thread looks forever unless a later cluster stores to a word: its last look, and what its cluster does else."""

    def __init__(self, waits: findings.Access, execution: Execution) -> None:
        super().__init__(WAITS_FOR_LATER, waits.span)
        self.waits, self.execution = waits, execution


def has_looks(module: ptx.Module) -> bool:
    """Whether a module may look at words."""
    return any(is_look(s) for function in module.functions.values() for s in function.body)


def execute_looking(
    module: ptx.Module, launch: Launch, cluster: Extent, number: int, ticket: KnownWord | None, words: Words,
    shapes: dict[object, int], limit: Limit,
) -> Execution:  # fmt: skip
    """What the cluster of a number does but for looks and stores to words, which are noted in ``words``. ``shapes``
    numbers operations. Raises ``NotReducible``, and ``TicketFound``.
    """
    watch = OthersLook(launch, (number,), ticket, found=words, check_time=limit.check)
    try:
        whole = trace_signalling(module, launch, (cluster,), watch, limit)
    except NotReducible:
        if watch.stuck:
            raise NotReducible(ENDLESS, watch.stuck[0].statement.span) from None
        raise
    trace = _without_words(whole, words)
    reader = _Reader(memory=trace.program.memory, shapes=shapes, ticket=ticket)
    shape = reader.read_program(trace.program)
    reader.check_nothing_copied_to()  # what a thread has published is what it has stored
    if ticket is not None and reader.drawn != 1:
        raise NotReducible("a cluster does not draw exactly one ticket")
    accesses, lanes = reader.accesses(), lanes_of(trace.program)
    found = Execution(cluster, shape, accesses, lanes, watch.compiler.places)
    if watch.stuck:
        _raise_stuck(whole, words, number, watch.stuck[0], found)
    mine = {at: stores for at, stores in words.stored.items() if words.owners[at] == number}
    for at, cells in find_published(whole.program, lanes, accesses, mine).items():
        words.publish(at, cells)
    return found


def _raise_stuck(
    trace: ClusterTrace, words: Words, number: int, stuck: Stuck, execution: Execution
) -> NoReturn:  # fmt: skip
    """Raises ``StuckFound`` if no other thread of the cluster stores to a word that the lane looks at."""
    instance = trace.program.memory.find(stuck.address)
    place = np.flatnonzero(lanes_of(trace.program) == stuck.lane)
    if instance is None or not len(place) or any(words.owners.get(one) == number for one in stuck.words):
        raise NotReducible(ENDLESS, stuck.statement.span)
    start = stuck.address - instance.base
    raise StuckFound(
        findings.Access(
            thread=trace.program.threads[int(place[0])].name, instruction=stuck.statement.text,
            span=stuck.statement.span, object=instance.label, bytes=(start, start + stuck.size), strong=True,
        ),
        execution,
    )  # fmt: skip


def trace_looking(
    module: ptx.Module, launch: Launch, clusters: Mapping[int, Extent], ticket: KnownWord | None, words: Words,
    limit: Limit,
) -> ClusterTrace:  # fmt: skip
    """What clusters, by their numbers, do together but for looks and stores to words."""
    watch = OthersLook(launch, tuple(clusters), ticket, found=words, check_time=limit.check, follows=False)
    return _without_words(trace_signalling(module, launch, [*clusters.values()], watch, limit), words)


def _without_words(trace: ClusterTrace, words: Words) -> ClusterTrace:
    """The trace without the stores to words."""

    def is_kept(op: Op, lane: int) -> bool:
        if not isinstance(op, ops.Store | ops.Atomic) or not isinstance(op.address, Const | Lanes):
            return True
        at = op.address.value if isinstance(op.address, Const) else op.address.values[lane]
        strong = op.sem != "weak" and op.scope in GRID_SCOPES and op.proxy == "generic" and op.multimem is None
        noted = is_word(op.type) and at in words.stored
        return not strong or not noted or (isinstance(op, ops.Atomic) and op.op != "exch")

    threads = tuple(
        replace(t, code=tuple(op for op in t.code if is_kept(op, t.place.lane))) for t in trace.program.threads
    )
    return replace(trace, program=with_threads(trace.program, threads))


@dataclass(slots=True, kw_only=True)
class _Reader(AccessReader):
    """Collects the accesses of one execution, and the draw of its ticket."""

    ticket: KnownWord | None
    drawn: int = 0

    def is_ordering(self, op: Op, inner: Access, at: Numbers, size: int, threads: Numbers) -> bool:
        """Whether an access draws the ticket."""
        word = self.ticket
        if word is None or not ((at < word.address + word.size) & (at + size > word.address)).any():
            return False
        if not is_draw(op, inner, at, size, word) or len(threads) != 1:
            raise NotReducible("tickets are accessed otherwise than by one atomic of each cluster", op.span)
        self.drawn += 1
        return True
