"""Proofs for grids whose clusters wait for each other's signals: turns, tokens, wavefronts, flags, tickets, barriers of
the grid that are used again and again.

A *signal* is a strong store of a known value to a word, or an atomic that exchanges it or adds it; a *wait* is a load
that is repeated until its value compares with a known one. A turn goes from one cluster to the next: each waits for its
number, works, and stores the next one. What a cluster does happens after what all clusters before it did, though it
waits for one of them alone. At a barrier all add to a word and wait for the sum, or the last one to add tells the
others, and what all have done before happens before what any does afterwards.

*Conditions.* They are checked for every cluster of the grid, by executing each alone. There all that it waits for is
there (``mcheck.simt.grid.signals.cluster_signals``).

1. Control and addresses depend on nothing that other clusters write, except that waits end, on loads of such words that
   return the same in every execution (*looks*), and on draws. What the launch says of the contents of memory that
   clusters write is forgotten.
2. Clusters may draw *tickets*: each does one ``atom.add`` of 1 on a word of known initial value, by one thread, at
   scope gpu or wider, and nothing else accesses the word. No instruction reads the coordinates of a cluster. So
   clusters differ in their tickets alone, each number is drawn once, and cluster k may be taken for the one that has
   drawn the k-th number. Or they ask, as often as each other, whether they are the *last* ones to add 1 to a word: all
   other numbers lead to the same control (``mcheck.simt.grid.counters.count_uses``). Each is executed for every set of
   rounds in which it may be the last one, and what follows holds for every choice of those that are
   (``mcheck.simt.grid.signals.signal_choices``). Or of the number that an addition returns a wait compares the sign bit
   alone, as the barrier of cooperative groups does. A number that is drawn is what was added to the word in the phases
   before, and by some of those of its own phase, so it has the same sign in every execution if all these sums have
   (``SignalOrder.check``).
3. All signals and waits of a cluster are by one thread, at scope gpu or wider. Their words have known initial values,
   are aligned and do not overlap; nothing else accesses them.
4. A wait is ordered after the same signals in every execution; they release what comes before them, and the wait
   acquires. ``mcheck.simt.grid.signals.signal_order`` computes which, and says why that is so.
   A load ahead of a wait, of the same word, decides only whether there is a wait at all, and is left out
   (``mcheck.simt.grid.signals.early_polls``).
5. What conflicts between clusters otherwise are weak accesses through the generic proxy, and copies
   (``mcheck.simt.grid.pairs.copied_ranges``).
6. The launch is cooperative, or clusters wait only for those with an earlier ticket, which are running. If this is the
   only condition that does not hold, a cluster that waits for others is followed by itself: it may be the only one that
   is resident. If it is stuck, that is the finding; otherwise the answer is bounded, and says so.

*The argument.* By 1, 2 and 4 all executions of a choice have the same signals and waits, and the order of the waits
that 4 gives has no cycle: so all waits end (6), unless threads of one cluster wait for each other. Take an execution
with a race between two clusters i and j, and leave out all events of the others. Each signal of i and j gets a word of
its own, to which it stores 1. A wait of i that comes, by 4, behind something of j becomes a wait for the word of the
latest signal of j that comes before it and releases; any other wait is left out. The result is an execution of i and j:

* A wait has one write to read, by a signal that came before it.
* Loads whose store is left out read another one, or what was there at first: no control depends on that (1).
* No order is added. A wait acquires what comes before a signal of j. In the execution of all clusters that came before
  the wait, too: by a chain of signals and waits, where each signal in between comes behind the wait, and releases what
  that has acquired (4; 8.9.5: base causality order is transitive). Only signals and waits carry order between clusters
  (3, 5), and draws of tickets, which are kept, in any order, and the order of ``fence.sc``, which is kept for those of
  i and j. Order may have been lost, and then the race is one all the more.

So it is enough that no pair of clusters, with signals and waits replaced so, has an error. Two pairs whose clusters
have the same shapes, and in which the same waits are for the same signals, have the same executions, up to the places
of weak accesses and what they store. So of all pairs those suffice in which each kind of conflict occurs
(``mcheck.simt.grid.signals.signalled_conflicts``). Within a cluster the same holds: what others signal to it and it to
them comes back to the same thread (3), which adds no order there. Accesses are in bounds and aligned in all clusters.

Where the words of signals lie in other places for other tiles, only the clusters of a tile, a box, signal each other.
Then the conditions are checked for one box: all boxes do the same and keep apart from each other
(``mcheck.checking.modules.closed_boxes``).

A race in a pair is one of the grid if no order has been lost (``mcheck.simt.grid.signals.whole_order``). Otherwise
nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.budget import Limit
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.grid_races import CODE
from mcheck.checking.modules.pairs.cluster_pairs import each_pair, join_pairs, of_two_clusters
from mcheck.checking.modules.pairs.executed_alone import TRIES, Written, given_and_written, within_one_cluster
from mcheck.findings.finding import Finding
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir.program import Program
from mcheck.simt.grid.footprints.coordinate_taint import reads_coordinates
from mcheck.simt.grid.pairs.conflicts import Side
from mcheck.simt.grid.pairs.known_words import KnownWord, check_initial_words, known_word, without_contents
from mcheck.simt.grid.pairs.reduction import (
    MAX_EXECUTED,
    NOT_RESIDENT,
    NotReducible,
    check_statements,
    clusters_of,
    is_box,
)
from mcheck.simt.grid.signals.cluster_signals import Signalling, execute_signalling, trace_signalling
from mcheck.simt.grid.signals.linked_pair import link_pair
from mcheck.simt.grid.signals.others_signal import OthersSignal, TicketFound
from mcheck.simt.grid.signals.signal_choices import MAX_ROUNDS, ChosenOrders, Code, Rounds, order_choices, subsets
from mcheck.simt.grid.signals.signal_order import NeverEnds, SignalOrder, order_signals
from mcheck.simt.grid.signals.signalled_conflicts import Pair, check_only_signals, check_words, choose_pairs
from mcheck.simt.grid.signals.whole_order import keeps_order, orders_by_barriers
from mcheck.simt.trace_extraction import ClusterTrace

SAID = "all {} clusters wait for signals that are the same in every execution"
SAID_OF_LAST = "all {} clusters wait for the same signals, whichever of them are the last ones to count themselves"
SAID_OF_BOX = "clusters wait for signals that are the same in every execution, each for those of the {} in its box"
FEW = 4
"""The number of clusters of which conditions are checked first, and then of the last one: a first row may not wait."""

FindStuck = Callable[[Launch, Limit], Sequence[Finding]]
"""Finds the waits of the clusters of a launch that never end if no others begin before these end."""
FollowTrace = Callable[[Launch, Limit, ClusterTrace], Answer | None]
"""Follows what the clusters of a launch do together; ``None`` if some wait may be for others."""


@dataclass(frozen=True, slots=True)
class SignalledClusters:
    """A launch whose clusters signal, what it says of contents forgotten, what they do, and its order."""

    launch: Launch
    ticket: KnownWord | None
    executions: Sequence[Signalling]
    orders: SignalOrder | ChosenOrders
    decides: bool
    """Whether clusters ask whether they are the last ones."""
    left: Mapping[KnownWord, int | None]
    """What words of signals, and that of the tickets, hold when the launch has ended; ``None`` if that depends on which
    clusters are the last ones.
    """


def find_signals(module: Module, launch: Launch, limit: Limit) -> SignalledClusters:
    """What the clusters of a grid signal, though none of them may wait for it. Raises ``NotReducible`` if that is not
    the same in every execution.
    """
    found = _find_clusters(module, launch, limit, some_wait=False)
    check_words(Side(found.executions), found.orders, limit)
    return found


def _find_clusters(
    module: Module, launch: Launch, limit: Limit, *, only_choices: bool = False, some_wait: bool = True
) -> SignalledClusters:
    """What the clusters of a grid do. Raises ``NotReducible`` if a condition does not hold, with ``some_wait`` that
    some cluster waits.
    """
    if len(clusters_of(launch)) > MAX_EXECUTED:
        raise NotReducible(f"there are more than {MAX_EXECUTED} clusters", applies=False)
    check_statements(module)
    ticket: KnownWord | None = None
    decides = False
    for _ in range(TRIES):
        try:
            return _execute_all(
                module, launch, ticket, limit, decides=decides, only_choices=only_choices, some_wait=some_wait
            )
        except TicketFound as found:
            if ticket is not None:
                raise NotReducible("clusters draw tickets from several words") from None
            decides = reads_coordinates(module, launch)
            ticket = None if decides else found.ticket
        except Written as found:
            launch = without_contents(launch, found.written, ticket)
    raise NotReducible("clusters write memory whose contents the launch gives")


def _execute_all(
    module: Module, launch: Launch, ticket: KnownWord | None, limit: Limit, *, decides: bool, only_choices: bool,
    some_wait: bool,
) -> SignalledClusters:  # fmt: skip
    if decides and (only_choices or is_box(launch)):
        raise NotReducible("clusters draw tickets, and have coordinates, too", applies=False)
    clusters = clusters_of(launch)
    shapes: dict[object, int] = {}
    executions: list[Signalling] = []

    def execute(number: int, last: Rounds | None) -> Signalling:
        limit.check()
        note(Level.CLUSTERS, f"cluster {number + 1} of {len(clusters)}")
        try:
            with within_one_cluster(limit) as within:
                found = execute_signalling(
                    module, launch, clusters[number], number, ticket, shapes, within, last, named=not some_wait
                )
        except NotReducible as error:
            error.applies = _any_waits(executions)
            raise
        kept = [range(one.address, one.address + one.size) for one in found.code]
        written = given_and_written(found, [*kept, *_bytes_of(ticket)])
        if written:
            raise Written(written)
        return found

    nobody: Rounds | None = frozenset() if decides else None
    for number in range(len(clusters)):
        executions.append(execute(number, nobody))
        if only_choices and ticket is None and not executions[-1].polls_early:
            raise NotReducible("clusters draw no tickets", applies=False)
        checked = some_wait and not decides and number + 1 in (FEW, len(clusters))
        if checked and not _any_waits(executions) and not _any_waits([execute(len(clusters) - 1, nobody)]):
            raise NotReducible("no cluster waits for a signal", applies=False)
    rounds = executions[0].draws
    if rounds > MAX_ROUNDS:
        raise NotReducible(f"a cluster draws more than {MAX_ROUNDS} tickets")
    for last in subsets(rounds):
        for number in range(len(clusters)):
            executions.append(execute(number, last))
    if any(one.draws != rounds for one in executions):
        raise NotReducible("not all clusters draw as many tickets")
    words = _signal_words(executions)
    if is_box(launch):
        check_initial_words(executions[0].places, words.values())
    initial = {at: word.first for at, word in words.items()}
    try:
        orders = _order(executions, len(clusters), initial, decides=decides)
    except NeverEnds as error:
        error.sure &= not decides and ticket is None
        check_only_signals(Side(executions), limit)
        raise
    left = {word: orders.left(at) for at, word in words.items()}
    if ticket is not None:
        left[ticket] = (ticket.first + len(clusters)) % (1 << 8 * ticket.size)
    return SignalledClusters(launch, ticket, executions, orders, decides, left)


@dataclass(frozen=True, slots=True)
class SignalledPairs:
    """A launch whose clusters signal, the pairs to follow, and a cluster that waits for others that need not be
    running; ``None`` if none does.
    """

    found: SignalledClusters
    pairs: tuple[Pair, ...]
    stuck: int | None


def find_signalled_pairs(module: Module, launch: Launch, limit: Limit, *, only_choices: bool = False) -> SignalledPairs:
    """The pairs of clusters that stand for a grid, with ``only_choices`` one whose clusters draw tickets, or
    look early at what they wait for. Raises ``NotReducible`` if a condition does not hold.
    """
    found = _find_clusters(module, launch, limit, only_choices=only_choices)
    orders = found.orders
    follows = isinstance(orders, SignalOrder) and found.ticket is not None and orders.follows_numbers()
    stuck = None if launch.cooperative or follows else orders.first_to_wait()
    if only_choices and stuck is not None:
        raise NotReducible(NOT_RESIDENT)
    return SignalledPairs(found, tuple(choose_pairs(Side(found.executions), orders, limit)), stuck)


def _order(
    executions: Sequence[Signalling], count: int, initial: Mapping[int, int], *, decides: bool
) -> SignalOrder | ChosenOrders:
    """The order of the signals of ``count`` clusters. Raises ``NotReducible``."""
    if not decides:
        any_value = any(one.polls_early for one in executions)
        return order_signals([one.code for one in executions], initial, any_value=any_value)
    codes: dict[Rounds, list[Code]] = {}
    for one in executions:
        codes.setdefault(one.last, []).append(one.code)
    return order_choices(codes, initial, [(k % count, one.last) for k, one in enumerate(executions)])


def _any_waits(executions: Sequence[Signalling]) -> bool:
    return any(one.waits for each in executions for one in each.code)


def _bytes_of(ticket: KnownWord | None) -> Sequence[range]:
    return [] if ticket is None else [ticket.bytes]


def _signal_words(executions: Sequence[Signalling]) -> dict[int, KnownWord]:
    """The words of signals, by address. Raises ``NotReducible`` if the initial value of one is not given."""
    found: dict[int, KnownWord] = {}
    for one in (one for each in executions for one in each.code):
        if one.address not in found:
            word = known_word(executions[0].places, one.address, one.size)
            if word is None:
                raise NotReducible("the first value of a word that clusters signal by is not given", one.span)
            found[one.address] = word
    return found


# --- a pair -----------------------------------------------------------------------------------------------------------


def trace_pair(module: Module, found: SignalledClusters, pair: Pair, limit: Limit) -> tuple[ClusterTrace, range]:
    """What two clusters do, without the others, and the words that they have in place of those of their signals. Raises
    ``NotReducible``.
    """
    clusters = clusters_of(found.launch)
    numbers = tuple(k % len(clusters) for k in pair[:2])
    both = [found.executions[k] for k in pair[:2]]
    watch = OthersSignal(
        found.launch, numbers, found.ticket, last=tuple(one.last for one in both) if found.decides else None,
        returns=[one.seen for one in both], signs_told=[one.told for one in both],
    )  # fmt: skip
    trace = trace_signalling(module, found.launch, [clusters[k] for k in numbers], watch, limit)
    program, words = link_pair(trace.program, both, pair[2], found.ticket)
    return replace(trace, program=program), words


def _is_race_of_grid(
    module: Module, found: SignalledClusters, pair: Pair, program: Program, given: Answer, words: range
) -> bool:
    """Whether what is found in a pair is a race of the grid, too."""
    races = given.verdict is Verdict.FINDING and all(f.code == CODE for f in given.findings)
    if not races or not isinstance(found.orders, SignalOrder) or found.ticket is not None:
        return False
    return orders_by_barriers(program, words) and keeps_order(module, found.orders, *pair[:2])


# --- the answer -------------------------------------------------------------------------------------------------------


def answer_signalled(
    module: Module, launch: Launch, follow: FollowTrace, limit: Limit, *, only_choices: bool = False,
    find_stuck: FindStuck | None = None,
) -> Answer | None:  # fmt: skip
    """The answer about a grid whose clusters signal each other, if it is proved, or would be in a cooperative launch,
    or is a finding; with ``only_choices``, if they draw tickets, or look early at what they wait for. ``find_stuck``
    follows a cluster that waits for others which need not be resident. Raises ``NotReducible`` if a condition does not
    hold.
    """
    chosen = find_signalled_pairs(module, launch, limit, only_choices=only_choices)
    found = chosen.found
    total = prod(launch.cluster_counts)
    clusters = clusters_of(launch)
    answers: list[Answer] = []
    for pair in each_pair(chosen.pairs):
        trace, words = trace_pair(module, found, pair, limit)
        together = replace(found.launch, group=tuple(clusters[k % len(clusters)] for k in pair[:2]))
        one = follow(together, limit, trace)
        if one is not None and _is_race_of_grid(module, found, pair, trace.program, one, words):
            return of_two_clusters(one, total)
        if one is None or one.verdict is not Verdict.PROVED:
            limit.check()
            return None
        answers.append(one)
    if not answers:
        return None
    said = SAID_OF_BOX.format(len(clusters)) if is_box(launch) else SAID.format(total)
    if found.decides:
        said = SAID_OF_LAST.format(total)
    joined = join_pairs(answers, total, said)
    if chosen.stuck is None:
        return joined
    alone = replace(launch, group=(clusters[chosen.stuck],))
    findings = () if find_stuck is None else find_stuck(alone, limit)
    if findings:
        return add_verdict(replace(joined, findings=(*joined.findings, *findings)))
    why = Reason(Cause.CLUSTERS, f"all {total} clusters were checked; but {NOT_RESIDENT}")
    return add_verdict(replace(joined, covered=False, reasons=(why,)))
