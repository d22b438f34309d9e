"""Proofs for grids whose clusters count themselves: a last block that adds what all have left, a barrier of the grid.

The clusters share one word, the counter. Each adds one to it, once. Either the cluster that draws the last number goes
on and accesses what the others have left, or all wait until the counter has reached the number of clusters.

*Conditions.* They are checked for every cluster of the grid, by executing each alone, twice: with the counter at its
first value, and one below its final value.

1. The initial value c of the counter is given. Each cluster does one ``atom`` or ``red`` on it, of one thread: ``add``
   of 1, or ``inc`` with a limit that is not reached too early; at scope gpu or wider. So n clusters draw the numbers
   c to c + n - 1, each one of them.
2. Nothing else accesses the counter, except the thread of the last cluster that has drawn the last number, afterwards.
   By coherence that comes after all the atomics. Or, if clusters wait, nothing but waits that c + n alone ends.
3. Control and addresses depend on nothing that other clusters write, except on whether a number drawn is the last
   one: the number is only compared, and the comparisons have one result for all other numbers. What the launch says of
   the contents of memory that clusters write is forgotten.
4. No two clusters conflict, except one that is last with one that is not; if clusters wait, any two may. What conflicts
   are weak accesses through the generic proxy, and copies (``mcheck.simt.grid.pairs.copied_ranges``), beside those of
   the counter.
5. Clusters that wait are promised to be resident: the launch is cooperative.

*The argument.* Take an execution of the launch with a race between two clusters i and j, and leave out all events of
the others, with the counter starting at c + n - 2. The result is an execution of i and j:

* Their atomics are next to each other now. They draw c + n - 2 and c + n - 1, in the same order. If one has drawn the
  last number, it has done so before; where none has, and clusters do not wait, the two do not conflict (4). All other
  numbers lead to the same control (3). A wait ends when the counter is c + n, as before (2).
* Loads whose store is left out read another one, or what was there at first: no control depends on that (3).
* No order is added. An atomic of i that was observed by one of j through atomics of others (8.9.2; all are morally
  strong, 1) is observed directly. Only the counter carries order between clusters (4). Order may have been lost, and
  then the race is one all the more.

So it is enough that no pair of clusters has an error, with the counter at c + n - 2. Two pairs whose executions have
the same shapes order their accesses in the same ways: up to the places of weak accesses, and what they store, they have
the same executions. So of all pairs those suffice in which each kind of conflict occurs: of these two shapes, threads,
and segments of their code, or phases (``mcheck.simt.grid.counters.counted_conflicts``). Within a cluster the same
holds. Accesses are in bounds and aligned in all clusters.

Where the counter is another word for other tiles, all this is said of the clusters of one tile, a box
(``mcheck.checking.modules.closed_boxes``).

What is found in a pair is real: the other clusters may all have counted themselves before, and nobody waits for them.

Where a cluster goes on with a number k before the last one, which breaks 3 or 4, nothing is proved. But if it conflicts
then with what another one does, these two are followed with the counter at k. What is found there is real as well:
k - c others may have counted themselves before, and the rest afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import prod

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.progress import Level, note
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.cluster_pairs import each_pair, join_pairs, of_two_clusters
from mcheck.checking.modules.pairs.executed_alone import TRIES, Written, given_and_written, within_one_cluster
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.counters.count_uses import ASKS_MORE
from mcheck.simt.grid.counters.counted_clusters import Counted, execute_counted
from mcheck.simt.grid.counters.counted_conflicts import MeetEarly, Pair, check_apart, choose_pairs, find_early_pairs
from mcheck.simt.grid.counters.grid_counter import find_counter
from mcheck.simt.grid.pairs.class_executions import ClassExecutions, MakeWatch
from mcheck.simt.grid.pairs.conflicts import Side
from mcheck.simt.grid.pairs.known_words import KnownWord, with_value, without_contents
from mcheck.simt.grid.pairs.reduction import NOT_RESIDENT, NotReducible, clusters_of, is_box

LAST_GOES_ON = "all {} clusters count themselves in {}, and only the last one goes on"
ALL_WAIT = "all {} clusters count themselves in {}, and wait until all have"
IN_BOXES = ", in each box of the grid in a word of its own"
MAX_EARLY = 4
"""The number of pairs that are followed of which one goes on early."""

FollowPair = Callable[[Launch, Limit], Answer | None]
"""Follows the clusters of a launch together, whose others keep apart; ``None`` if some wait may be for others."""


class _GoesOnEarly(NotReducible):
    """Two clusters conflict before the last one has counted itself, or one asks for a number before the last one.
    ``pairs`` are clusters that may conflict then, each with the number that one of them draws; asking for them raises
    ``NotReducible``.
    """

    def __init__(
        self, why: str, span: Span | None, launch: Launch, counter: KnownWord, pairs: Iterator[tuple[Pair, int]]
    ) -> None:
        super().__init__(why, span)
        self.launch, self.counter, self.pairs = launch, counter, pairs


@dataclass(frozen=True, slots=True)
class Representatives:
    """A launch whose clusters count themselves, what it says of contents forgotten, and the pairs to follow."""

    launch: Launch
    counter: KnownWord
    pairs: tuple[Pair, ...]
    waits: bool
    left: int | None
    """What the counter holds when the launch has ended; ``None`` if that is not the same in all executions."""


def find_representatives(module: Module, launch: Launch, limit: Limit) -> Representatives:
    """The pairs of clusters that stand for a grid. Raises ``NotReducible`` if a condition does not hold."""
    with within_one_cluster(limit) as within:
        counter = find_counter(module, launch, within)
    for _ in range(TRIES):
        try:
            return _find_pairs(module, launch, counter, limit)
        except Written as found:
            launch = without_contents(launch, found.written, counter)
    raise NotReducible("clusters write memory whose contents the launch gives")


def _find_pairs(module: Module, launch: Launch, counter: KnownWord, limit: Limit) -> Representatives:
    clusters = clusters_of(launch)
    shapes: dict[object, int] = {}
    checked: set[tuple[int, bool]] = set()

    def run(number: int, watch: MakeWatch | None, *, drawn: int) -> Counted:
        limit.check()
        note(Level.CLUSTERS, f"cluster {number + 1} of {len(clusters)}")
        with within_one_cluster(limit) as within:
            return execute_counted(module, launch, clusters[number], counter, drawn, shapes, within, watch)

    executions = [
        ClassExecutions(module, launch, clusters, partial(run, drawn=drawn))
        for drawn in (counter.first, counter.first + len(clusters) - 1)
    ]

    def execute(number: int, *, last: bool) -> Counted:
        found = executions[last][number]
        if (number, last) not in checked:
            checked.add((number, last))
            written = given_and_written(found, [counter.bytes])
            if written:
                raise Written(written)
        return found

    waits = execute(0, last=True).waits
    if waits and not launch.cooperative:
        raise NotReducible(NOT_RESIDENT)

    def find_early() -> Iterator[tuple[Pair, int]]:
        alone = [execute(k, last=False) for k in range(len(clusters))]
        if any(one.waits for one in alone):
            return
        before = Side(alone)
        for number, one in enumerate(alone):
            for drawn in (counter.first, *one.otherwise):
                early = one if drawn == counter.first else run(number, None, drawn=drawn)
                for pair in find_early_pairs(before, number, early, counter, limit):
                    yield pair, drawn

    def choose(numbers: Sequence[int]) -> tuple[Pair, ...]:
        alone = [] if waits else [execute(k, last=False) for k in numbers]
        if any(one.otherwise for one in alone):
            raise _GoesOnEarly(ASKS_MORE, None, launch, counter, find_early())
        before = Side(alone) if alone else None
        try:
            if before is not None:
                check_apart(before, counter, limit)
        except MeetEarly as error:
            raise _GoesOnEarly(error.why, error.span, launch, counter, find_early()) from None
        ends = [execute(k, last=True) for k in numbers]
        last = Side(ends)
        if any(one.waits is not waits for one in (*alone, *ends)):
            raise NotReducible("some clusters wait for the counter, others do not")
        return tuple(choose_pairs(before or last, last, counter, limit, waits=waits))

    few = sorted({0, 1, len(clusters) - 1})
    if len(few) < len(clusters):
        choose(few)  # mostly a condition that does not hold in the grid does not hold among these
    pairs = choose(range(len(clusters))) if len(clusters) > 1 else ()
    left = {execute(number, last=True).left for number in range(len(clusters))}
    return Representatives(launch, counter, pairs, waits, left.pop() if len(left) == 1 else None)


def answer_counted(module: Module, launch: Launch, follow: FollowPair, limit: Limit) -> Answer | None:
    """The answer about a grid whose clusters count themselves, if it is proved or a finding. Raises ``NotReducible`` if
    a condition does not hold.
    """
    total, count = prod(launch.cluster_counts), len(clusters_of(launch))
    if count < 2:
        return None
    try:
        found = find_representatives(module, launch, limit)
    except _GoesOnEarly as early:
        two = _answer_early(early, follow, total, limit)
        if two is None:
            raise
        return two
    given = with_value(found.launch, found.counter, found.counter.first + count - 2)
    answers: list[Answer] = []
    for pair in each_pair(found.pairs):
        one = follow(replace(given, group=pair), limit)
        if one is None or one.verdict not in (Verdict.PROVED, Verdict.FINDING):
            limit.check()
            return None
        if any(f.severity == "error" for f in one.findings):
            return of_two_clusters(one, total)
        answers.append(one)
    said = (ALL_WAIT if found.waits else LAST_GOES_ON).format(count, found.counter.name)
    said += IN_BOXES if is_box(launch) else ""
    return join_pairs(answers, total, said)


def _answer_early(found: _GoesOnEarly, follow: FollowPair, total: int, limit: Limit) -> Answer | None:
    """The answer from two clusters of which one goes on early, if there is an error."""
    try:
        for pair, drawn in islice(found.pairs, MAX_EARLY):
            one = follow(replace(with_value(found.launch, found.counter, drawn), group=pair), limit)
            if one is not None and any(f.severity == "error" for f in one.findings):
                return of_two_clusters(one, total)
    except (NotReducible, Written):
        pass
    return None
