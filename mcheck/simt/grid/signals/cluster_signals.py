"""Clusters that wait for each other's signals: what each does, executed alone.

A signal is a strong store of a known value, or an atomic that exchanges it or adds it; a wait is a load that is
repeated until its value compares with a known one. While a cluster is executed, whatever it waits for is there
(``mcheck.simt.grid.signals.others_signal``). Everything else that it may learn from other clusters is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.program import Program, Thread
from mcheck.ir.scopes import GRID_SCOPES
from mcheck.simt.grid.pairs.cluster_accesses import Access, AccessReader, Execution, lanes_of
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.kept_operands import check_kept
from mcheck.simt.grid.pairs.known_words import KnownWord
from mcheck.simt.grid.pairs.only_path import LEARNED, follow_only_path
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.early_polls import check_comparisons, check_early_poll, wanted_value
from mcheck.simt.grid.signals.others_signal import OthersSignal
from mcheck.simt.grid.signals.synchronisations import (
    Synchronisation,
    Told,
    look_of,
    read_synchronisation,
    synchronisation_of,
)
from mcheck.simt.trace_extraction import ClusterTrace, PathRules
from mcheck.simt.traces.address_names import KernelTerms

WAITS = PathRules(barrier_waits=True)


@dataclass(slots=True)
class Signalling(Execution):
    """What a cluster does. Two with one shape differ in the words and values of their signals and waits, too."""

    code: tuple[Synchronisation, ...]
    """The signals and waits, in the order of the one thread that does them."""
    thread: int | None
    """The number of that thread."""
    polls_early: bool
    """Whether it looks at a word before it waits for it."""
    last: frozenset[int]
    """Which of its draws are the last ones."""
    told: Told
    """What the thread is told by its looks and draws."""
    seen: tuple[int, tuple[int | None, ...]]
    """The lane of the thread, and what its loads that are not repeated return."""

    @property
    def draws(self) -> int:
        """The number of its draws."""
        return sum(one.draws for one in self.code if not one.waits)


def execute_signalling(
    module: Module, launch: Launch, cluster: Coordinates, number: int, ticket: KnownWord | None,
    shapes: dict[object, int], limit: Limit, last: frozenset[int] | None = None, *, named: bool = False,
) -> Signalling:  # fmt: skip
    """What the cluster of a number does if all that it waits for is there; with ``last``, if these of its draws are the
    last ones. ``shapes`` numbers operations; with ``named`` all that is stored is computed. Raises ``NotReducible`` if
    it may learn anything else from other clusters, and ``TicketFound``.
    """
    trace, watch = _trace_alone(module, launch, cluster, number, ticket, limit, last, named=named)
    lanes = lanes_of(trace.program)
    told = {k: watch.told[lane] for k, lane in enumerate(lanes.tolist()) if lane in watch.told}
    reader = SignalReader(memory=trace.program.memory, shapes=shapes, ticket=ticket, told=told)
    shape = reader.read_program(trace.program)
    if ticket is not None and reader.drawn != 1:
        raise NotReducible("a cluster does not draw exactly one ticket", reader.span)
    thread = reader.thread
    mine = {} if thread is None else told.get(thread, {})
    lane = -1 if thread is None else int(lanes[thread])
    return Signalling(
        cluster, (shape, thread, tuple(mine.items())), reader.accesses(), lanes, watch.compiler.places,
        reader.synchronisation(trace), thread, bool(watch.early), last or frozenset(), mine,
        (lane, tuple(watch.seen.get(lane, ()))),
    )  # fmt: skip


def _trace_alone(
    module: Module, launch: Launch, cluster: Coordinates, number: int, ticket: KnownWord | None, limit: Limit,
    last: frozenset[int] | None, *, named: bool,
) -> tuple[ClusterTrace, OthersSignal]:  # fmt: skip
    """What a cluster does, without its early polls. Raises ``NotReducible`` if one decides more than whether there is a
    wait.
    """
    watch = OthersSignal(launch, (number,), ticket, last=None if last is None else (last,))
    trace = trace_signalling(module, launch, (cluster,), watch, limit, replace(WAITS, named=named))
    if len(watch.early) > 1:
        raise NotReducible("several loads decide whether to wait", watch.early[1].span)
    if watch.uses is not None:
        watch.uses.check_only_last(prod(launch.cluster_counts), {8 * size for size in watch.words.values()})
    for poll in watch.early:
        wanted = {poll.lane: wanted_value(poll, trace.program, launch.width)}
        check_comparisons(poll, wanted[poll.lane], watch.compared.get(poll.lane, ()))
        other = OthersSignal(launch, (number,), ticket, returned=wanted)
        succeeded = trace_signalling(module, launch, (cluster,), other, limit)
        check_early_poll(poll, launch.width, trace.program, succeeded.program)
    return trace, watch


def trace_signalling(
    module: Module, launch: Launch, clusters: Sequence[Coordinates], watch: OthersSignal, limit: Limit,
    rules: PathRules = WAITS,
) -> ClusterTrace:  # fmt: skip
    """What these clusters of a grid do together, if all that they wait for is there; ``watch`` leaves early polls
    out.
    """
    some = replace(launch, group=tuple(clusters))
    runner, executed, _ = follow_only_path(module, some, limit, watch.restarted, rules)
    recorded = executed.recorded
    drawn = watch.signs | (set(watch.words) if watch.ticket is None else {watch.ticket.address})
    if watch.signs & set(watch.words):
        raise NotReducible(LEARNED)
    if any(o.address in recorded.decisive_atomics - drawn for o in recorded.returned.values()):
        raise NotReducible(LEARNED)
    for address in drawn & set(watch.asked):
        raise NotReducible(LEARNED, watch.asked[address])
    for (lane, place), seen in recorded.loaded.items():
        op = recorded.code[lane][place]
        if watch.ticket is not None and seen.address == watch.ticket.address:
            continue
        if look_of(op, seen.value) is None:
            raise NotReducible(LEARNED, op.span)
        watch.told.setdefault(lane, {})[place] = seen.value
    trace = runner.cluster_trace(executed, whole=True)
    if trace.gaps:
        raise NotReducible(trace.gaps[0].reason, trace.gaps[0].span)
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


@dataclass(slots=True, kw_only=True)
class SignalReader(AccessReader):
    """Collects the accesses of one execution, the draw of its ticket, its signals and its waits."""

    ticket: KnownWord | None
    told: Mapping[int, Told]
    """What threads are told, by their numbers."""
    looks: set[int] = field(default_factory=set)
    """Looks of the threads that are read."""
    drawn: int = 0
    thread: int | None = None
    """The thread that signals and waits."""
    span: Span | None = None

    def read(self, code: Sequence[Op], threads: Numbers, lanes: list[int]) -> tuple[int, ...]:
        """The accesses of threads of one warp with equal code; returns its shape."""
        told = [place for thread in threads.tolist() for place in self.told.get(thread, ())]
        self.looks = {id(code[place]) for place in told if isinstance(code[place], ops.Load)}
        return AccessReader.read(self, code, threads, lanes)

    def is_ordering(self, op: Op, inner: Access, at: Numbers, size: int, threads: Numbers) -> bool:
        """Whether an access draws the ticket, signals, waits or looks."""
        word = self.ticket
        if word is not None and ((at < word.address + word.size) & (at + size > word.address)).any():
            if not is_draw(op, inner, at, size, word) or len(threads) != 1:
                raise NotReducible("tickets are accessed otherwise than by one atomic of each cluster", op.span)
            self.drawn += 1
            self.span = op.span
            return True
        found = synchronisation_of(op, self.ticket)
        looks = id(op) in self.looks
        if not looks and (found is None or (len(threads) != 1 and not found.waits)):
            return False
        if len(threads) != 1 or self.thread not in (None, int(threads[0])):
            raise NotReducible("several threads of a cluster signal or wait", op.span)
        self.thread = int(threads[0])
        return True

    def number(self, op: Op, inner: Access, at: Numbers) -> int:
        """The number of an access; of a signal or wait its word and value do not count."""
        found = synchronisation_of(op, self.ticket)
        if found is None or (len(at) != 1 and not found.waits):
            return AccessReader.number(self, op, inner, at)
        key = (type(op), inner.span, inner.text, inner.type, inner.sem, inner.scope)
        return self.shapes.setdefault(key, len(self.shapes))

    def synchronisation(self, trace: ClusterTrace) -> tuple[Synchronisation, ...]:
        """The signals and waits."""
        return (
            ()
            if self.thread is None
            else tuple(
                read_synchronisation(
                    trace.program.threads[self.thread].code, self.ticket, self.told.get(self.thread, {})
                )
            )
        )


def is_draw(op: Op, inner: Access, at: Numbers, size: int, word: KnownWord) -> bool:
    """Whether an access draws a ticket from a word."""
    if not isinstance(inner, ops.Atomic) or op is not inner or inner.op != "add" or inner.scope not in GRID_SCOPES:
        return False
    return size == word.size and int(at[0]) == word.address and inner.srcs == (Const(1),)
