"""The words by which clusters tell each other how far they are: who stores what to them, and who loads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.ptx.memory_layout import MemoryLayout
from mcheck.simt.grid.looks.explored_ways import Explored
from mcheck.simt.grid.looks.known_bits import Bits, anything, known
from mcheck.simt.grid.looks.warp_states import Case, Cells, merge
from mcheck.simt.grid.pairs.cluster_accesses import Execution
from mcheck.simt.grid.pairs.known_words import known_word
from mcheck.simt.grid.pairs.reduction import NotReducible

MIXED = "threads of several clusters store to a word that others wait for"
LATER = "a cluster looks at a word that it, or a later one, stores to afterwards"
NOT_GIVEN = "the initial value of a word that clusters look at is not given"


@dataclass(frozen=True, slots=True)
class Stored:
    """A store to a word: by which lane of its cluster, of how many bytes, and what is known of the value."""

    lane: int
    size: int
    value: Bits
    span: Span | None


@dataclass(slots=True)
class Words:
    """What the clusters so far, executed in their order, store to words and load from them."""

    places: MemoryLayout = field(init=False)
    owners: dict[int, int] = field(default_factory=dict)
    """By address of a word that is stored to, the cluster that does."""
    stored: dict[int, list[Stored]] = field(default_factory=dict)
    """By address, the stores of its owner, in their order."""
    looked: dict[int, int] = field(default_factory=dict)
    """The words that are looked at, by address, and their sizes."""
    lookers: dict[int, int] = field(default_factory=dict)
    """By address, the first cluster that looks at the word."""
    kept: dict[int, tuple[Sequence[Case], Sequence[Case]]] = field(default_factory=dict)
    """What words that are complete may hold, and what they hold in the end."""
    cells: dict[int, Sequence[Cells]] = field(default_factory=dict)
    """By address, the bytes that each store publishes."""
    publishers: dict[int, int] = field(default_factory=dict)
    """By byte that is published, the cluster that does."""
    reads: set[int] = field(default_factory=set)
    """The bytes that clusters read because others have published them."""
    explored: Explored = field(default_factory=Explored)
    """What has been found of the ways of warps that look at these words."""

    def begin(self, cluster: int) -> None:
        """Forget what a cluster has stored in an execution that is begun again."""
        for address in [a for a, owner in self.owners.items() if owner == cluster]:
            del self.owners[address], self.stored[address]
            self.kept.pop(address, None)
            self.cells.pop(address, None)

    def store(self, cluster: int, address: int, one: Stored) -> None:
        """A cluster stores to a word. Raises ``NotReducible`` if another one does, or if one up to it has looked at it
        before: what it found there was not complete.
        """
        if self.owners.setdefault(address, cluster) != cluster:
            raise NotReducible(MIXED, one.span)
        if self.lookers.get(address, cluster + 1) <= cluster:
            raise NotReducible(LATER, one.span)
        self.kept.pop(address, None)
        self.stored.setdefault(address, []).append(one)

    def publish(self, address: int, cells: Sequence[Cells]) -> None:
        """What each store to a word publishes, in their order."""
        if len(cells) == len(self.stored[address]):
            self.cells[address] = cells
            self.kept.pop(address, None)
            for published in cells:
                self.publishers |= dict.fromkeys(published, self.owners[address])

    def look(self, cluster: int, address: int, size: int, span: Span | None, *, final: bool) -> Sequence[Case]:
        """What a word may hold when a cluster looks at it; ``final``: what it holds in the end. Raises
        ``NotReducible``.
        """
        if self.looked.setdefault(address, size) != size:
            raise NotReducible("a word is accessed in several sizes", span)
        self.lookers.setdefault(address, cluster)
        if self.owners.get(address) == cluster:
            raise NotReducible("a cluster looks at a word of its own", span)
        if address not in self.kept:
            self.kept[address] = self._values(address, size, span)
        return self.kept[address][final]

    def _values(self, address: int, size: int, span: Span | None) -> tuple[Sequence[Case], Sequence[Case]]:
        given = known_word(self.places, address, size)
        if given is None:
            raise NotReducible(NOT_GIVEN, span)
        stores = self.stored.get(address, [])
        cells = self.cells.get(address, [frozenset[int]()] * len(stores))
        may = [Case(known(np.array([given.first], np.uint64)))]
        may += [Case(one.value, published) for one, published in zip(stores, cells, strict=True)]
        last = may[-1]
        if len({one.lane for one in stores}) > 1:
            last = Case(anything(8 * size, (1,)))
        return merge(may), (last,)

    def check(self, executions: Sequence[Execution]) -> None:
        """Check that words are stored to as they are looked at, and that nothing else of what these executions do
        accesses them. Raises ``NotReducible``.
        """
        sizes = {at: one.size for at, stores in self.stored.items() for one in stores} | self.looked
        for address, stores in self.stored.items():
            for one in stores:
                if one.size != sizes[address]:
                    raise NotReducible("a word is accessed in several sizes", one.span)
        starts = np.array(sorted(sizes), np.int64)
        ends = starts + np.array([sizes[at] for at in starts.tolist()], np.int64)
        if (starts[1:] < ends[:-1]).any():
            raise NotReducible("words that clusters look at overlap")
        for number, execution in enumerate(executions if len(starts) else ()):
            self._check_published(number, execution)
            found = execution.accesses
            # Words keep apart, so the last one that begins before an access ends is the one that it may meet.
            place = np.searchsorted(starts, found.ends, side="left") - 1
            meets = (place >= 0) & (ends[place] > found.starts)
            if meets.any():
                span = found.spans[int(np.flatnonzero(meets)[0])]
                raise NotReducible("a word that clusters look at is accessed otherwise", span)
        if not self.reads.isdisjoint(at + k for at, size in sizes.items() for k in range(size)):
            raise NotReducible("a word that clusters look at is accessed otherwise")

    def _check_published(self, number: int, execution: Execution) -> None:
        """Check that a cluster writes no bytes that others read because yet another one has published them."""
        if not self.reads:
            return
        found = execution.accesses
        near = found.writes & (found.starts <= max(self.reads)) & (found.ends > min(self.reads))
        for row in np.flatnonzero(near).tolist():
            for byte in range(int(found.starts[row]), int(found.ends[row])):
                if byte in self.reads and self.publishers[byte] != number:
                    raise NotReducible("several clusters write what is published", found.spans[row])
