"""Which signal ends each wait of a grid, and what it orders: computed once, and the same in every execution.

``order_signals`` runs the signals and waits of all clusters, those of a cluster one after the other. A wait ends with
the first value that it accepts. That this is so in every execution is checked afterwards:

* The signals of a word are ordered, each before the next one: by the program order of a thread, or because the thread
  of the next one has waited before for what comes after. So every write that a wait accepts is the one with which it
  has ended here, or a later one.
* A later one is by the same thread, is accepted too, and releases; or it is ordered after the wait, which then cannot
  read it.

Additions leave what they do because their thread, or one before it, has waited for the signal before in this very word:
a signal that came too early in coherence order would have read too little, or its wait would have.

Signals that end a wait of another cluster release what comes before them, and such waits acquire, at a scope that
includes both. So what is ordered is: a clock of each wait tells how many signals and waits of each cluster come before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from mcheck.simt.grid.cluster_accesses import Numbers
from mcheck.simt.grid.grid_counter import NotCounted
from mcheck.simt.grid.synchronisations import Synchronisation

At = tuple[int, int]
"""A signal or wait: the number of the cluster, and its number among those of the cluster."""
Links = tuple[Synchronisation | None, ...]
"""What the signals and waits of a cluster are in a pair: ``None`` for a wait that nothing is known to end."""
SIMPLE_TESTS = ("==", ">=")
"""What a wait for a signal of another cluster is replaced by."""


@dataclass(slots=True)
class SignalOrder:
    """The signals and waits of all clusters, and the initial values of their words, by address."""

    codes: Sequence[tuple[Synchronisation, ...]]
    initial: Mapping[int, int]
    words: dict[int, list[At]] = field(default_factory=dict)
    """The signals of each word, in their order."""
    ended: dict[At, At | None] = field(default_factory=dict)
    """The signal that ends each wait; ``None`` if the initial value does."""
    clocks: dict[At, Numbers] = field(default_factory=dict)
    """What comes before the code behind a wait for another cluster."""
    values: dict[At, int] = field(default_factory=dict)
    """What each signal leaves in its word."""
    places: dict[At, int] = field(default_factory=dict)
    """The place of each signal among those of its word."""
    by_cluster: dict[tuple[int, int], list[At]] = field(default_factory=dict)
    """The signals by word and cluster."""
    signatures: dict[tuple[int, int], tuple[object, ...]] = field(default_factory=dict)
    """Signatures of pairs of clusters that were asked for."""

    def at(self, at: At) -> Synchronisation:
        """The signal or wait."""
        return self.codes[at[0]][at[1]]

    def follows_numbers(self) -> bool:
        """Whether clusters wait only for those of lower numbers."""
        return all(signal is None or signal[0] <= wait[0] for wait, signal in self.ended.items())

    # --- the order -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run all signals and waits. Raises ``NotCounted`` if some wait does not end."""
        reached = [0] * len(self.codes)
        blocked: dict[int, list[int]] = {}
        ready = deque(range(len(self.codes)))
        while ready:
            number = ready.popleft()
            code = self.codes[number]
            while reached[number] < len(code):
                at = number, reached[number]
                one = code[reached[number]]
                if not one.waits:
                    self._signal(at, one)
                    ready.extend(blocked.pop(one.address, ()))
                elif not self._end(at, one):
                    blocked.setdefault(one.address, []).append(number)
                    break
                reached[number] += 1
        for number, code in enumerate(self.codes):
            if reached[number] < len(code):
                raise NotCounted("a wait of a cluster does not end", code[reached[number]].span)

    def _signal(self, at: At, one: Synchronisation) -> None:
        signals = self.words.setdefault(one.address, [])
        held = self.values[signals[-1]] if signals else self.initial[one.address]
        self.values[at] = (held + one.value) % (1 << 8 * one.size) if one.adds else one.value
        signals.append(at)

    def _end(self, at: At, wait: Synchronisation) -> bool:
        """End a wait by the first value that it accepts."""
        if wait.accepts(self.initial[wait.address]):
            self.ended[at] = None
            return True
        for signal in self.words.get(wait.address, ()):
            if wait.accepts(self.values[signal]):
                self.ended[at] = signal
                if signal[0] != at[0]:
                    self.clocks[at] = self._clock(signal, wait)
                return True
        return False

    def _clock(self, signal: At, wait: Synchronisation) -> Numbers:
        """What comes before the code behind a wait that this signal ends."""
        made = self.at(signal)
        if made.point is None:
            raise NotCounted("a signal for another cluster releases nothing", made.span)
        if wait.point is None:
            raise NotCounted("a wait for another cluster acquires nothing", wait.span)
        clock = self.before(signal, made.point)
        code = self.codes[signal[0]]
        clock[signal[0]] = sum(one.place <= made.point for one in code)
        if clock[signal[0]] == signal[1]:  # what is observed comes before what is acquired behind it (8.9.5)
            clock[signal[0]] += 1
        return clock

    def before(self, at: At, place: int) -> Numbers:
        """How much of each cluster comes before a place in the code of a cluster, by its waits before it."""
        clock = np.zeros(len(self.codes), np.int64)
        for number, one in enumerate(self.codes[at[0]][: at[1]]):
            known = self.clocks.get((at[0], number))
            if known is not None and one.point is not None and one.point <= place:
                np.maximum(clock, known, out=clock)
        return clock

    # --- that it is the only one ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that every execution has this order. Raises ``NotCounted``."""
        clocks = {at: self.before(at, self.at(at).place) for signals in self.words.values() for at in signals}
        for signals in self.words.values():
            for one, other in pairwise(signals):
                if one[0] != other[0] and clocks[other][one[0]] <= one[1]:
                    raise NotCounted("two signals of one word are not ordered", self.at(other).span)
            if any(self.at(at).adds for at in signals):
                self._check_additions(signals)
        self.places = {at: k for signals in self.words.values() for k, at in enumerate(signals)}
        for at in self.places:
            self.by_cluster.setdefault((self.at(at).address, at[0]), []).append(at)
        for at, end in self.ended.items():
            wait = self.at(at)
            signals = self.words.get(wait.address, [])
            for later in signals[0 if end is None else self.places[end] + 1 :]:
                if self._is_after(later, at, clocks[later]):
                    continue
                signal = self.at(later)
                if not wait.accepts(self.values[later]):
                    raise NotCounted("a wait may miss the value that ends it", wait.span)
                if end is not None and end[0] != at[0] and (later[0] != end[0] or signal.point is None):
                    raise NotCounted("several signals may end a wait", wait.span)

    def _check_additions(self, signals: Sequence[At]) -> None:
        """Check that each signal of a word in which some are additions has waited in this word for the one before."""
        for one, other in pairwise(signals):
            code = self.codes[other[0]][: other[1]]
            waits = (self.ended.get((other[0], k)) for k, wait in enumerate(code) if wait.waits)
            if one[0] != other[0] and one not in waits:
                raise NotCounted("an addition has not waited for the one before", self.at(other).span)

    def _is_after(self, signal: At, wait: At, clock: Numbers) -> bool:
        """Whether a signal is ordered after a wait."""
        return signal[1] > wait[1] if signal[0] == wait[0] else bool(clock[wait[0]] > wait[1])

    # --- two clusters --------------------------------------------------------------------------------------------

    def signals_of(self, word: int, one: int, other: int) -> list[At]:
        """The signals of a word by two clusters, in their order."""
        mine = [*self.by_cluster.get((word, one), ()), *self.by_cluster.get((word, other), ())]
        return sorted(mine, key=self.places.__getitem__)

    def pair(self, one: int, other: int) -> tuple[Links, Links]:
        """The signals and waits of two clusters without the others. What a wait for a third cluster knows of the other
        one of the pair it is to learn from the latest signal of that.
        """
        links = [self._links(one, other), self._links(other, one)]
        return links[0], links[1]

    def _links(self, number: int, other: int) -> Links:
        return tuple(
            self._replaced((number, k), other) if one.waits else replace(one, value=self.values[number, k])
            for k, one in enumerate(self.codes[number])
        )

    def _replaced(self, at: At, other: int) -> Synchronisation | None:
        """What a wait is in a pair with another cluster."""
        end, wait = self.ended[at], self.at(at)
        if end is None or end[0] == at[0]:
            return None
        if end[0] == other:
            return wait
        known = int(self.clocks[at][other])
        code = self.codes[other]
        latest = next((k for k in reversed(range(known)) if not code[k].waits and code[k].point is not None), None)
        if latest is None:
            return None
        signal = code[latest]
        signals = self.signals_of(signal.address, at[0], other)
        place = signals.index((other, latest))
        values = [self.initial[signal.address], *(self.values[s] for s in signals)]
        later = [s for s in signals[place + 1 :] if not self._is_after(s, at, self.before(s, self.at(s).place))]
        for test in SIMPLE_TESTS:
            value = self.values[other, latest]
            made = Synchronisation(
                signal.address, signal.type, value, test, wait.place, wait.point, adds=False, span=wait.span
            )
            if not any(made.accepts(v) for v in values[: place + 1]) and all(
                made.accepts(self.values[s]) for s in later
            ):
                return made
        return None

    def signature(self, one: int, other: int) -> tuple[object, ...]:
        """What tells the executions of two pairs apart whose clusters have the same shapes: for each signal its word
        and its place among the signals of that, for each wait its word and which values end it.
        """
        pair = self.pair(one, other)
        names: dict[int, int] = {}
        words = dict.fromkeys(by.address for links in pair for by in links if by is not None)
        ranks = {s: k for word in words for k, s in enumerate(self.signals_of(word, one, other))}
        out: list[object] = []
        for number, links in zip((one, other), pair, strict=True):
            for k, by in enumerate(links):
                if by is None:
                    out.append(None)
                    continue
                word = names.setdefault(by.address, len(names))
                if not by.waits:
                    out.append((word, ranks[number, k]))
                    continue
                signals = self.signals_of(by.address, one, other)
                values = [self.initial[by.address], *(self.values[s] for s in signals)]
                out.append((word, tuple(by.accepts(v) for v in values)))
        return tuple(out)


def order_signals(codes: Sequence[tuple[Synchronisation, ...]], initial: Mapping[int, int]) -> SignalOrder:
    """The order of all signals. Raises ``NotCounted`` if there are executions with another one."""
    found = SignalOrder(codes, initial)
    found.run()
    found.check()
    return found
