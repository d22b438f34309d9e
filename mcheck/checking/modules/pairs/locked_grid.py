"""Proofs for grids whose clusters take locks: sums under a spin lock, partial sums of many rows in a few buffers.

*Conditions.* They are checked for every cluster of the grid, by executing each alone with free locks.

1. One thread of a cluster takes and releases its locks, at scope gpu or wider, in sections as
   ``mcheck.simt.grid.locks.lock_order`` wants them.
2. Control and addresses depend on nothing that other clusters write, but on *guarded words*: their first contents are
   given, all accesses are of the whole word, and clusters leave a few known values in them. Clusters that access such
   words have one section each. They are executed for each of the values that some cluster leaves there, or that are
   there at first, which strong loads return as weak ones do. What the launch says of the contents of other memory that
   clusters write is forgotten.
3. Everything else that clusters share is accessed through the generic proxy, or read by copies.

*The argument.* Each cluster behaves as in one of these executions. Else take the first load, in the order of
dependencies and causality, that returns something else than what the section before has left in a guarded word (or
what was there at first). The threads that have written what it returns, and its own, have behaved as they do here up
to there. So the write does not race with the load, as no pair has a race (below): its section comes before that of the
load, and then it is the last one there, or after it, and then the load comes before the release of its section and
cannot return it (8.10.6). That threads which go wrong behind the load do not come to a barrier makes no difference:
nobody passes that without them.

Take an execution with a race between two clusters i and j, and leave out the others. The sections of i and j have one
of the orders that ``lock_order`` finds. Each release gets a word of its own, to which it stores 1, and the taking of a
lock becomes a wait for the word of the last section of the other cluster before it. All other strong accesses become
weak. This adds no order: what a section has acquired from others, the last release of the other cluster comes before.
So it is enough that no pair has an error, for all orders and all values of guarded words that both may find. Of all
pairs those suffice in which each kind of conflict occurs (``mcheck.simt.grid.signals.signalled_conflicts``).

All waits end: sections do (``lock_order``), and in the pairs that are followed there is no deadlock. Nobody waits for
a cluster that need not be resident, since who holds a lock is.

What is found in a pair need not be so in the grid. Then the two clusters are followed with their locks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
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
from mcheck.isa.kinds import Kind
from mcheck.simt.grid.locks.guarded_words import Word
from mcheck.simt.grid.locks.lock_order import LockOrders, order_locks
from mcheck.simt.grid.locks.locked_clusters import Contents, Locking, execute_locking, trace_locking
from mcheck.simt.grid.pairs.conflicts import Side
from mcheck.simt.grid.pairs.known_words import KnownWord, known_word, without_contents
from mcheck.simt.grid.pairs.reduction import MAX_EXECUTED, NotReducible, check_statements, clusters_of
from mcheck.simt.grid.signals.others_signal import TicketFound
from mcheck.simt.grid.signals.signalled_conflicts import Pair, choose_pairs

SAID = "all {} clusters take locks in one order, and what they share is accessed under them"
MAX_VALUES = 4
"""Maximum number of values of a guarded word."""
MANY = 64
"""The number of executions from which on those that take other locks count as different."""
NO_LOCKS = "no cluster takes a lock"


@dataclass(slots=True)
class _Executions:
    """What the clusters of a grid do, for all contents of guarded words that they may find."""

    module: Module
    launch: Launch
    limit: Limit
    shapes: dict[object, int] = field(default_factory=dict)
    values: dict[Word, dict[int, None]] = field(default_factory=dict)
    """What guarded words, which some cluster writes, may hold."""
    reads: dict[int, set[Word]] = field(default_factory=dict)
    """By cluster, the words of given contents that it reads."""
    found: dict[tuple[int, tuple[tuple[Word, int], ...]], Locking] = field(default_factory=dict)

    def run(self) -> None:
        """Execute all clusters until no more values appear. Raises ``NotReducible`` and ``Written``."""
        grows = True
        while grows:
            grows = False
            for number in range(len(clusters_of(self.launch))):
                for contents in self._contents(number):
                    key = number, tuple(sorted(contents.items()))
                    if key not in self.found:
                        self.found[key] = self._execute(number, contents)
                        grows = True

    def _contents(self, number: int) -> Iterator[Contents]:
        """The contents that a cluster may find, where they are not the first ones."""
        words = sorted(self.reads.get(number, set()) & self.values.keys())
        for some in product(*(list(self.values[word]) for word in words)):
            yield {
                word: value for word, value in zip(words, some, strict=True) if value != next(iter(self.values[word]))
            }

    def _execute(self, number: int, contents: Contents) -> Locking:
        self.limit.check()
        clusters = clusters_of(self.launch)
        note(Level.CLUSTERS, f"cluster {number + 1} of {len(clusters)}")
        with within_one_cluster(self.limit) as within:
            one = execute_locking(self.module, self.launch, clusters[number], number, contents, self.shapes, within)
        if not one.code:
            raise NotReducible(NO_LOCKS, applies=False)
        self.reads.setdefault(number, set()).update(one.reads)
        self._guard(one)
        return one

    def _guard(self, one: Locking) -> None:
        """Add the values that a cluster leaves in words that it writes."""
        locks = {each.address for each in one.code}
        kept = [range(each.address, each.address + each.size) for each in one.code]
        for (at, size), value in one.left.items():
            if at in locks:
                continue
            word, first = (at, size), known_word(one.places, at, size)
            assert first is not None
            values = self.values.get(word, {first.first: None})
            if value is None or len({**values, value: None}) > MAX_VALUES or not _is_whole(one, word):
                continue
            if word in self.values or _writes(one, word):
                self.values[word] = {**values, value: None}
            kept.append(range(at, at + size))
        written = given_and_written(one, kept)
        if written:
            raise Written(written)


def _writes(one: Locking, word: Word) -> bool:
    return bool((one.accesses.writes & (one.accesses.starts == word[0])).any())


def _is_whole(one: Locking, word: Word) -> bool:
    """Whether a cluster accesses a word only as a whole."""
    starts, ends, stop = one.accesses.starts, one.accesses.ends, sum(word)
    meets = (starts < stop) & (ends > word[0])
    return bool(((starts == word[0]) & (ends == stop))[meets].all())


@dataclass(frozen=True, slots=True)
class _LockedClusters:
    """A launch whose clusters take locks, what it says of contents forgotten, what they do, and their orders."""

    launch: Launch
    executions: tuple[Locking, ...]
    orders: LockOrders
    locks: Mapping[Word, int]
    """The values of free locks."""


def _find_clusters(module: Module, launch: Launch, limit: Limit) -> _LockedClusters:
    if len(clusters_of(launch)) > MAX_EXECUTED:
        raise NotReducible(f"there are more than {MAX_EXECUTED} clusters", applies=False)
    check_statements(module)
    for _ in range(TRIES):
        done = _Executions(module, launch, limit)
        try:
            done.run()
        except TicketFound:
            raise NotReducible("clusters draw tickets", applies=False) from None
        except Written as found:
            launch = without_contents(launch, found.written, None)
            continue
        return _ordered(launch, done)
    raise NotReducible("clusters write memory whose contents the launch gives")


def _ordered(launch: Launch, done: _Executions) -> _LockedClusters:
    executions = tuple(done.found.values())
    words = {(one.address, one.size): one for each in executions for one in each.code}
    initial: dict[Word, KnownWord] = {}
    for (at, size), one in words.items():
        found = known_word(executions[0].places, at, size)
        if found is None:
            raise NotReducible("the initial value of a lock is not given", one.span)
        initial[at, size] = found
    orders = order_locks(
        [one.code for one in executions], [one.number for one in executions],
        {at: found.first for (at, _), found in initial.items()},
    )  # fmt: skip
    asked = done.values.keys() & set().union(*done.reads.values())
    for each in executions:
        if len(each.code) > 2 and not asked.isdisjoint(each.left):
            raise NotReducible(
                "a cluster takes several locks, and accesses words that others ask for", each.code[0].span
            )
    for word in done.values:
        if not all(_is_whole(one, word) for one in executions):
            raise NotReducible("words that clusters ask for are accessed in parts")
    return _LockedClusters(launch, executions, orders, {word: found.first for word, found in initial.items()})


def _side(executions: Sequence[Locking]) -> Side:
    """The executions to choose pairs from. Of many those with the same locks are a kind of their own: they access the
    same places under them, which are compared once, but more pairs are followed.
    """
    if len(executions) <= MANY:
        return Side(executions)
    return Side([replace(one, shape=(one.shape, tuple(each.address for each in one.code))) for one in executions])


def takes_locks(module: Module) -> bool:
    """Whether a module may take locks."""
    swaps = (s.opcode for f in module.functions.values() for s in f.body if s.kind is Kind.ATOMIC)
    return any(opcode.has("cas") or opcode.has("exch") for opcode in swaps)


def answer_locked(module: Module, launch: Launch, follow: FollowTrace, limit: Limit) -> Answer | None:
    """The answer about a grid whose clusters take locks, if it is proved. Raises ``NotReducible`` if a condition does
    not hold.
    """
    if not takes_locks(module):
        raise NotReducible(NO_LOCKS, applies=False)
    found = _find_clusters(module, launch, limit)

    def follow_pair(pair: Pair) -> Answer | None:
        i, j, links = pair
        both = found.executions[i], found.executions[j]
        trace = trace_locking(module, found.launch, both, links, found.locks, limit)
        return follow(replace(found.launch, group=tuple(each.cluster for each in both)), limit, trace)

    total = prod(launch.cluster_counts)
    pairs = choose_pairs(_side(found.executions), found.orders, limit)
    return prove_pairs(pairs, follow_pair, total, SAID.format(total), limit)
