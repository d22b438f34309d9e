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
   are weak accesses through the generic proxy, beside those of the counter.
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
and segments of their code (``mcheck.simt.grid.counted_conflicts``). Within a cluster the same holds. Accesses are in
bounds and aligned in all clusters.

Where the counter is another word for other tiles, all this is said of the clusters of one tile, a box
(``mcheck.checking.modules.closed_boxes``).

What is found in a pair is real: the other clusters may all have counted themselves before, and nobody waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

import numpy as np

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.progress import Level, note
from mcheck.base.reasons import share_reason
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.cluster_pairs import join_pairs, of_two_clusters
from mcheck.frontend.ptx.known_contents import Memory
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.cluster_accesses import Execution
from mcheck.simt.grid.counted_clusters import Counted, execute_counted
from mcheck.simt.grid.counted_conflicts import Pair, Side, check_apart, choose_pairs
from mcheck.simt.grid.grid_counter import (
    NOT_RESIDENT,
    Counter,
    NotCounted,
    clusters_of,
    find_counter,
    is_box,
    with_count,
    without_contents,
)

LAST_GOES_ON = "all {} clusters count themselves in {}, and only the last one goes on"
ALL_WAIT = "all {} clusters count themselves in {}, and wait until all have"
IN_BOXES = ", in each box of the grid in a word of its own"
TRIES = 5
"""How often the contents of memory are forgotten that clusters turn out to write."""
CLUSTER_SECONDS = 5.0
"""Maximum time to execute one cluster: a loop may wait for others in a way that is not recognised."""

FollowPair = Callable[[Launch, Limit], Answer | None]
"""Follows the clusters of a launch together, whose others keep apart; ``None`` if some wait may be for others."""


@dataclass(frozen=True, slots=True)
class Representatives:
    """A launch whose clusters count themselves, what it says of contents forgotten, and the pairs to follow."""

    launch: Launch
    counter: Counter
    pairs: tuple[Pair, ...]
    waits: bool
    left: int | None
    """What the counter holds when the launch has ended; ``None`` if that is not the same in all executions."""


def find_representatives(module: Module, launch: Launch, limit: Limit) -> Representatives:
    """The pairs of clusters that stand for a grid. Raises ``NotCounted`` if a condition does not hold."""
    with within_one_cluster(limit) as within:
        counter = find_counter(module, launch, within)
    for _ in range(TRIES):
        try:
            return _find_pairs(module, launch, counter, limit)
        except Written as found:
            launch = without_contents(launch, found.written, counter)
    raise NotCounted("clusters write memory whose contents the launch gives")


class Written(Exception):
    """Clusters write bytes of which the launch, or the module, gives the contents: the first ones."""

    def __init__(self, written: list[tuple[Memory, int]]) -> None:
        super().__init__()
        self.written = written


@contextmanager
def within_one_cluster(limit: Limit) -> Iterator[Limit]:
    """The time to execute one cluster. Raises ``NotCounted`` if it is over."""
    within = limit.share(CLUSTER_SECONDS)
    try:
        yield within
    except TimeOut:
        limit.check()
        raise NotCounted(share_reason("executing one cluster", CLUSTER_SECONDS).what, late=True) from None


def _find_pairs(module: Module, launch: Launch, counter: Counter, limit: Limit) -> Representatives:
    clusters = clusters_of(launch)
    shapes: dict[object, int] = {}
    known: dict[tuple[int, bool], Counted] = {}

    def execute(number: int, *, last: bool) -> Counted:
        limit.check()
        if (number, last) not in known:
            note(Level.CLUSTERS, f"cluster {number + 1} of {len(clusters)}")
            drawn = counter.first + len(clusters) - 1 if last else counter.first
            with within_one_cluster(limit) as within:
                found = execute_counted(module, launch, clusters[number], counter, drawn, shapes, within)
            written = given_and_written(found, [counter.bytes])
            if written:
                raise Written(written)
            known[number, last] = found
        return known[number, last]

    waits = execute(0, last=True).waits
    if waits and not launch.cooperative:
        raise NotCounted(NOT_RESIDENT)

    def choose(numbers: Sequence[int]) -> tuple[Pair, ...]:
        alone = [] if waits else [execute(k, last=False) for k in numbers]
        before = Side(alone) if alone else None
        if before is not None:
            check_apart(before, counter, limit)
        ends = [execute(k, last=True) for k in numbers]
        last = Side(ends)
        if any(one.waits is not waits for one in (*alone, *ends)):
            raise NotCounted("some clusters wait for the counter, others do not")
        return tuple(choose_pairs(before or last, last, counter, limit, waits=waits))

    few = sorted({0, 1, len(clusters) - 1})
    if len(few) < len(clusters):
        choose(few)  # mostly a condition that does not hold in the grid does not hold among these
    pairs = choose(range(len(clusters))) if len(clusters) > 1 else ()
    left = {execute(number, last=True).left for number in range(len(clusters))}
    return Representatives(launch, counter, pairs, waits, left.pop() if len(left) == 1 else None)


def given_and_written(execution: Execution, words: Sequence[range]) -> list[tuple[Memory, int]]:
    """The writes of an execution, but for those of these words, to bytes whose contents are known at first: the first
    one in each memory. Raises ``NotCounted`` if it writes memory that nobody knows.
    """
    out: list[tuple[Memory, int]] = []
    accesses, places = execution.accesses, execution.places
    for instance in places.memory.instances:
        mine = accesses.writes & (accesses.starts >= instance.base)
        mine &= accesses.starts < instance.base + instance.object.size
        for word in words:
            mine &= (accesses.starts >= word.stop) | (accesses.ends <= word.start)
        if not mine.any():
            continue
        if instance.base not in places.memories:
            raise NotCounted(f"clusters write {instance.object.name}")
        given = () if instance.base in places.assumed else places.contents.get(instance.base, ())
        unknown = np.frombuffer(given[1] if given else b"", np.uint8)
        known = np.concatenate([[0], np.cumsum(unknown == 0)])  # how many bytes up to one
        starts, ends = (np.minimum(at[mine] - instance.base, len(unknown)) for at in (accesses.starts, accesses.ends))
        told = known[ends] > known[starts]
        if told.any():
            out.append((places.memories[instance.base], int(starts[told].min())))
    return out


def answer_counted(module: Module, launch: Launch, follow: FollowPair, limit: Limit) -> Answer | None:
    """The answer about a grid whose clusters count themselves, if it is proved or a finding. Raises ``NotCounted`` if a
    condition does not hold.
    """
    total, count = prod(launch.cluster_counts), len(clusters_of(launch))
    if count < 2:
        return None
    found = find_representatives(module, launch, limit)
    given = with_count(found.launch, found.counter, found.counter.first + count - 2)
    answers: list[Answer] = []
    for number, pair in enumerate(found.pairs, 1):
        note(Level.CLUSTERS, f"pair {number} of {len(found.pairs)} of clusters")
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
