"""Proofs for grids whose clusters look at each other's words and do the same whatever they find: scans with decoupled
look-back.

A cluster says in a word of its own how far it is, by a status: nothing yet, the sum of its tile, the sum of all tiles
up to it. Others look at the words of the clusters before them, one after the other or a warp's width at a time, wait
where there is nothing yet, and stop at the first one that has the sum of all. Where they stop differs from execution
to execution. But the value is in the same word, or in one beside it that is accessed as a vector with it, or it is
loaded only after a status that says that it is there.

*Conditions.* They are checked for every cluster of the grid, by executing each alone, in their order.

1. Words that clusters look at have a known initial value, are stored to by strong stores or exchanges of one cluster
   each, are looked at by strong loads of later clusters, all at scope gpu or wider, of the whole word. Nothing else
   accesses them (``mcheck.simt.grid.looks.word_values``). Each element of a vector is a word (8.2.4).
2. Whatever such words hold of all that is stored to them, what a cluster does otherwise is the same: it computes, and
   its ways meet again (``mcheck.simt.grid.looks.warp_exploration``); one thread may hand to its CTA what it finds
   (``mcheck.simt.grid.looks.handed_looks``). Everything else that it may learn from others is
   refused, but draws of tickets (``mcheck.checking.modules.pairs.signalled_grid``, 2), and loads of bytes that are
   published with what it has found, behind a fence or an acquire (``mcheck.simt.grid.looks.published_cells``). Nobody
   but the cluster that publishes such bytes writes them. What the launch says of the contents of memory that clusters
   write is forgotten.
3. A thread that looks at a word again and again stops to once all words that it looks at have their last values.
4. The launch is cooperative, or the order of the clusters is that of their tickets: who waits for a cluster with an
   earlier ticket waits for one that is running. Otherwise the last cluster may begin before all others.
5. What conflicts between clusters otherwise are weak accesses through the generic proxy.

*The argument.* Looks and stores to words are morally strong with each other (8.7), so they are no race (8.7.1). Loads
of published bytes come behind all that is ever written there, so they are none either, and what they return decides
nothing. Leave all of these out, in any execution: what is left of each cluster is what is found here (2). Order may
have been lost, so it is enough that there is no race in what is left, in any pair of clusters, or in one. Of all pairs
those suffice in which each kind of conflict occurs, as for clusters that signal
(``mcheck.simt.grid.signals.signalled_conflicts``).

All waits end: of the clusters that do not, take the first one in their order. Those before it have ended (4: they are
running), so their words have their last values, which looks return from some time on, and by 3 no thread of it looks
forever. In the rest of it no thread waits for another cluster (2), and the pairs that are followed have no deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.progress import Level, note
from mcheck.base.records import dataclass, replace
from mcheck.checking.modules.pairs.cluster_pairs import prove_pairs
from mcheck.checking.modules.pairs.executed_alone import TRIES, Written, given_and_written, within_one_cluster
from mcheck.checking.modules.pairs.signalled_grid import FollowTrace
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.footprints.coordinate_taint import reads_coordinates
from mcheck.simt.grid.looks.looking_clusters import StuckFound, execute_looking, has_looks, trace_looking
from mcheck.simt.grid.looks.warp_exploration import ENDLESS
from mcheck.simt.grid.looks.word_values import Words
from mcheck.simt.grid.pairs.cluster_accesses import Execution
from mcheck.simt.grid.pairs.conflicts import Side
from mcheck.simt.grid.pairs.known_words import KnownWord, without_contents
from mcheck.simt.grid.pairs.reduction import NOT_RESIDENT, NotReducible, check_statements, clusters_of
from mcheck.simt.grid.signals.others_signal import TicketFound
from mcheck.simt.grid.signals.signal_order import PairLinks
from mcheck.simt.grid.signals.signalled_conflicts import Pair, choose_pairs

SAID = "all {} clusters do the same whatever they find in {} words of clusters before them"
MAX_LOOKING = 1 << 12
"""Maximum number of clusters."""


@dataclass(frozen=True, slots=True)
class _Apart:
    """The links of clusters that do not wait for each other: none."""

    def links(self, one: int, other: int) -> Sequence[PairLinks]:
        return () if one == other else [((), ())]


def answer_looking(module: Module, launch: Launch, follow: FollowTrace, limit: Limit) -> Answer | None:
    """The answer about a grid whose clusters look at words of others, if it is proved. Raises ``NotReducible`` if a
    condition does not hold, and ``StuckFound`` if a cluster never ends where each begins when the one before has ended.
    """
    if not has_looks(module) or prod(launch.cluster_counts) > MAX_LOOKING:
        raise NotReducible("no cluster looks at a word", applies=False)
    check_statements(module)
    ticket: KnownWord | None = None
    for _ in range(TRIES):
        try:
            return _answer(module, launch, ticket, follow, limit)
        except TicketFound as found:
            if ticket is not None or reads_coordinates(module, launch):
                raise NotReducible("clusters draw tickets, and have coordinates, too", applies=False) from None
            ticket = found.ticket
        except Written as found:
            launch = without_contents(launch, found.written, ticket)
    raise NotReducible("clusters write memory whose contents the launch gives")


def _answer(
    module: Module, launch: Launch, ticket: KnownWord | None, follow: FollowTrace, limit: Limit
) -> Answer | None:
    clusters = clusters_of(launch)
    shapes: dict[object, int] = {}
    executions: list[Execution] = []
    words = Words()
    for number, cluster in enumerate(clusters):
        limit.check()
        note(Level.CLUSTERS, f"cluster {number + 1} of {len(clusters)}")
        try:
            with within_one_cluster(limit) as within:
                executions.append(execute_looking(module, launch, cluster, number, ticket, words, shapes, within))
        except StuckFound as found:
            if launch.cooperative:
                raise NotReducible(ENDLESS, found.waits.span) from None
            words.check([*executions, found.execution])  # by no other kind of access either
            raise
        if ticket is None and not launch.cooperative:
            _begin_last_first(module, launch, limit)
            raise NotReducible(NOT_RESIDENT)
    words.check(executions)
    if not words.looked:
        raise NotReducible("no cluster looks at a word", applies=False)
    for one in executions:
        written = given_and_written(one, [] if ticket is None else [ticket.bytes])
        if written:
            raise Written(written)

    def follow_pair(pair: Pair) -> Answer | None:
        both = {k: clusters[k] for k in pair[:2]}
        trace = trace_looking(module, launch, both, ticket, words, limit)
        return follow(replace(launch, group=tuple(both.values())), limit, trace)

    total = prod(launch.cluster_counts)
    pairs = choose_pairs(Side(executions), _Apart(), limit)
    return prove_pairs(pairs, follow_pair, total, SAID.format(total, len(words.looked)), limit)


def _begin_last_first(module: Module, launch: Launch, limit: Limit) -> None:
    """Raises ``StuckFound`` if the last cluster never ends where it begins before all others."""
    clusters, words = clusters_of(launch), Words()
    try:
        with within_one_cluster(limit) as within:
            execute_looking(module, launch, clusters[-1], len(clusters) - 1, None, words, {}, within)
    except StuckFound as found:
        words.check([found.execution])
        raise
