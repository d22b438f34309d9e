"""Words of known contents that clusters load and store under locks, and the execution of clusters that find chosen
values in them.

Each executed cluster finds contents of its own in these words, and free locks, as if others had come before it and
did nothing while it is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import statements
from mcheck.simt.grid.pairs.known_words import known_word
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.others_signal import OthersSignal
from mcheck.simt.instructions.access_operands import to_generic

MEMORY = (Kind.LOAD, Kind.STORE, Kind.ATOMIC, Kind.REDUCTION)
MAX_WORDS = 256
"""Maximum number of words of known contents that a cluster accesses."""

Word = tuple[int, int]
"""The address and the size of a word."""
Held = tuple[int, bool]
"""The contents of a word, and whether they are known."""


@dataclass(slots=True)
class OwnContents(OthersSignal):
    """The watch on clusters of which each finds the ``contents`` of its own in words, by its number among the executed
    ones; in all others what the launch says.
    """

    contents: Sequence[Mapping[Word, int]] = ()
    held: list[dict[Word, Held]] = field(default_factory=list)
    """By executed cluster, what words hold for it."""
    reads: set[Word] = field(default_factory=set)
    """The words of given contents that are loaded, or updated, as a whole."""

    @property
    def leaves_polls_out(self) -> bool:
        """They are not: strong loads find what the cluster does, as weak ones."""
        return False

    def restarted(self) -> Self:
        """The watch, at the beginning of an execution."""
        OthersSignal.restarted(self)
        self.reads.clear()
        self.held = [{word: (value, True) for word, value in given.items()} for given in self.contents]
        return self

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument all accesses of memory that clusters share."""
        out = OthersSignal.instrument(self, compiler, steps)
        for at, statement, unit in statements(compiler):
            opcode = statement.opcode
            if statement.kind in MEMORY and opcode.space in ("global", "generic"):
                size = type_size(opcode.type) * opcode.vector  # a vector may be a whole word of others
                if size <= 8:
                    out[at] = self._own(unit, statement, compiler.fetch(unit, statement.place), size, out[at])
        return out

    def _own(self, unit: Unit, statement: ptx.Statement, fetch: Fetch, size: int, step: Step) -> Step:
        """A step before which each cluster finds what it holds in the words that it accesses."""
        reads = statement.kind is not Kind.STORE  # what an atomic leaves depends on what it finds

        def run(c: Cluster, mask: Mask) -> Mask | None:
            out, goes_on = np.zeros_like(mask), False
            mine = self.compiler.guarded(unit, statement.guard, mask)
            places = to_generic(np.broadcast_to(fetch()[0], mask.shape))
            for number in distinct(c.lanes.cluster[mask]).tolist():
                some = mask & (c.lanes.cluster == number)
                words = self._words(distinct(places[some & mine]), size)
                for word in words:
                    if (held := self._held(number, word)) is not None:
                        _save(c, word, held)
                done = step(c, some)
                c.lock_taken = False  # the order in which locks are taken decides over these contents alone
                for word in words:
                    self.held[number][word] = _load(c, word)
                if done is not None:
                    out, goes_on = out | done, True
            if reads and mine.any():
                self.reads.update(self._words(distinct(places[mine]), size))
            return out if goes_on else None

        return run

    def _held(self, number: int, word: Word) -> Held | None:
        """What a word holds for a cluster: at first what the launch says, whatever another one has stored there."""
        found = self.held[number].get(word)
        first = known_word(self.compiler.places, *word) if found is None else None
        return found if first is None else (first.first, True)

    def _words(self, places: NDArray[np.uint64], size: int) -> list[Word]:
        """The words of given contents among these places."""
        found = [
            (at, size) for at in places.tolist()
            if any((at, size) in held for held in self.held)
            or known_word(self.compiler.places, at, size) is not None
        ]  # fmt: skip
        if len(found) > MAX_WORDS:
            raise NotReducible(f"a cluster accesses more than {MAX_WORDS} words of given contents")
        return found


def _save(c: Cluster, word: Word, held: Held) -> None:
    value, sure = held
    if sure:
        at, lane = np.array([word[0]], np.uint64), np.zeros(1, np.int64)
        c.store.save(at, word[1], lane, np.array([value], np.uint64), np.zeros(1, np.uint8))
    else:
        c.store.forget(*word)


def _load(c: Cluster, word: Word) -> Held:
    value, unknown = c.store.load(np.array([word[0]], np.uint64), word[1], np.zeros(1, np.int64))
    return int(value[0]), not unknown[0]
