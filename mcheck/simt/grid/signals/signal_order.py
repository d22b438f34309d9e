"""Which signals end each wait of a grid, and what they order: computed once, and the same in every execution.

``order_signals`` runs the signals and waits of all clusters, those of a cluster one after the other. The signals of
each word fall into *phases*: every signal of one is ordered before every one of the next. A phase is a single signal,
or additions that are not ordered among themselves: the arrivals of all clusters at a barrier. In the run a wait ends
with a phase, when the word holds what all its signals leave. It is ordered after all of them, and a clock tells how
many signals and waits of each cluster come before the code behind it.

*Conditions.*

1. A thread acquires what each of its waits, looks and draws reads before it releases its next signal: by a pattern
   (8.8), of the access itself or of a fence. Signals that do not release are stores, and all by one thread.
2. What all signals before a wait have left is the first value that it may read, by the clock of its thread. It accepts
   nothing of what it may read before its phase is complete: no part of the sum of a phase, in any order. A look is a
   wait that accepts one value, which has to be the first one.
3. Any later signal of the word is ordered after the wait; or the wait accepts all that its phase may leave, and it
   releases at least what the wait knows.
4. Each signal of a phase that ends a wait of another cluster releases, and the wait acquires, at a scope that includes
   both.

*The argument.* Take any execution. Call waits, looks and draws *reads*. Let a read depend on another one if that comes
first in its thread, or in the thread of a signal that the first one observes (8.9.2; through a chain of atomics, too),
before the signal. By 1 a wait, or a look, synchronises with that signal, so the read on which it depends comes before
it in causality order, and so on along the thread to its next signal. A circle of reads would have one that observes
what comes after it in causality order, which 8.10.6 forbids: each read of it would come before the signals of its
thread that the next one observes. Signals that do not release hand nothing on: a wait that one of another cluster may
end knows nothing of other clusters (3, 4), and needs no induction. So we may go by induction from reads to those that
depend on them, and all that the clocks tell of what a read observes is so:

* Signals that causality orders are coherent in that order (8.10.1). An addition reads the write just before itself
  (8.10.3). So what is read is what a phase left and the sum of a part of the next one, and no phase is left out.
* What a signal before the wait has overwritten it cannot read (8.10.6). By 2 it reads the last value of its phase, or a
  later one. A signal that is ordered after it, it does not read; any other one releases what it has to know (3).
* The last value of its phase has been left by the last one of a chain of atomics, all of which it observes: so it
  synchronises with each (4). That is what the clock says.

All waits end: of those that do not, take the first one of the run. All signals before it in the run are executed. The
last write of the word is one that it accepts, or one that is ordered after the wait (3).

Sums are those of the type of the word, which may overflow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from mcheck.base.records import dataclass, replace
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.only_path import LEARNED
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.synchronisations import Synchronisation

At = tuple[int, int]
"""A signal or wait: the number of the cluster, and its number among those of the cluster."""
Links = tuple[int, ...]
"""What the signals and waits of a cluster are in a pair: the number of a signal that the other cluster waits for, or of
the signal of the other one that a wait waits for; 0 for all others.
"""
PairLinks = tuple[Links, Links]
MAX_SUMS = 4096
"""Maximum number of values of the additions of a phase."""


class NeverEnds(NotReducible):
    """A wait that does not end: of a cluster of this number, for a word that holds ``left`` when no cluster goes on.
    ``sure``: each wait has ended with what the word held then, so the run is an execution.
    """

    def __init__(self, number: int, wait: Synchronisation, left: int, *, sure: bool) -> None:
        super().__init__("a wait of a cluster does not end", wait.span)
        self.number, self.left, self.sure = number, left, sure


@dataclass(slots=True)
class Phase:
    """Signals of a word, none of which is ordered before all others; ``held`` is what the word holds before them."""

    held: int
    signals: list[At]
    left: int
    """What they leave."""
    reached: dict[int, int] = field(default_factory=dict)
    """By cluster, how much of its code comes up to its last signal."""

    def precedes(self, clock: Numbers) -> bool:
        """Whether a clock knows all signals."""
        return all(clock[number] >= count for number, count in self.reached.items())


@dataclass(slots=True)
class SignalledWord:
    """The phases of a word; ``relied`` are those that a wait relies on: they do not change any more."""

    phases: list[Phase]
    relied: int = 1


@dataclass(slots=True)
class SignalOrder:
    """The signals and waits of all clusters, and the initial values of their words, by address. With ``any_value`` a
    wait is ended by the first value that it accepts, even one that it cannot read any more.
    """

    codes: Sequence[tuple[Synchronisation, ...]]
    initial: Mapping[int, int]
    any_value: bool = False
    words: dict[int, SignalledWord] = field(default_factory=dict)
    """The first phase of a word has no signals: its initial value."""
    overtaken: bool = False
    """Whether a wait has ended with what its word held before the latest signal of the run."""
    ended: dict[At, int] = field(default_factory=dict)
    """The phase with which each wait ends."""
    known: dict[At, int] = field(default_factory=dict)
    """The last phase of its word that is ordered before each wait."""
    clocks: dict[At, Numbers] = field(default_factory=dict)
    """What comes before the code behind a wait for another cluster."""
    waiting: Sequence[Sequence[int]] = ()
    """By cluster, its waits for others."""
    releasing: Sequence[Sequence[int]] = ()
    """By cluster, its signals that release."""

    def __post_init__(self) -> None:
        self.words = {at: SignalledWord([Phase(value, [], value)]) for at, value in self.initial.items()}

    def at(self, at: At) -> Synchronisation:
        """The signal or wait."""
        return self.codes[at[0]][at[1]]

    def follows_numbers(self) -> bool:
        """Whether clusters wait only for those of lower numbers."""
        return all(
            signal[0] <= wait[0]
            for wait, end in self.ended.items()
            for phase in self.words[self.at(wait).address].phases[: end + 1]
            for signal in phase.signals
        )

    def left(self, address: int) -> int | None:
        """What a word holds in the end."""
        return self.words[address].phases[-1].left

    def links(self, one: int, other: int) -> Sequence[PairLinks]:
        """The links of two clusters: these, in every execution."""
        return () if one == other else (self.pair(one, other),)

    def first_to_wait(self) -> int | None:
        """The first cluster that waits for others, if one does."""
        return min((at[0] for at in self.clocks if not self.at(at).draws), default=None)

    # --- the order ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run all signals and waits. Raises ``NotReducible`` if some wait does not end (``NeverEnds``)."""
        reached = [0] * len(self.codes)
        blocked: dict[int, list[At]] = {}
        ready = deque(range(len(self.codes)))
        while ready:
            number = ready.popleft()
            for k in range(reached[number], len(self.codes[number])):
                at, one = (number, k), self.codes[number][k]
                if one.waits and not self._end(at, one, self._last_known(at, one)):
                    blocked.setdefault(one.address, []).append(at)
                    break
                reached[number] += 1
                if not one.waits:
                    self._signal(at, one)
                    latest = len(self.words[one.address].phases) - 1
                    waiting = blocked.pop(one.address, [])
                    ended = {w for w in waiting if self._end(w, self.at(w), latest)}
                    blocked[one.address] = [w for w in waiting if w not in ended]
                    for waited, place in sorted(ended):
                        reached[waited] = place + 1
                        ready.append(waited)
        for number, code in enumerate(self.codes):
            if reached[number] < len(code):
                wait = code[reached[number]]
                sure = not (self.overtaken or wait.looks or wait.draws)
                raise NeverEnds(number, wait, self.words[wait.address].phases[-1].left, sure=sure)

    def _signal(self, at: At, one: Synchronisation) -> None:
        word, clock = self.words[one.address], self.before(at, one.place)
        first = len(word.phases)
        while not word.phases[first - 1].precedes(clock):
            first -= 1
        signals = [*(s for phase in word.phases[first:] for s in phase.signals), at]
        if len(signals) > 1 and (first < word.relied or not all(self.at(s).adds for s in signals)):
            raise NotReducible("two signals of one word are not ordered", one.span)
        held = word.phases[first - 1].left
        left = held + sum(self.at(s).value for s in signals) if one.adds else one.value
        phase = Phase(held, signals, left % (1 << 8 * one.size))
        for number, place in signals:
            phase.reached[number] = max(phase.reached.get(number, 0), place + 1)
        word.phases[first:] = [phase]

    def _last_known(self, at: At, wait: Synchronisation) -> int:
        """The last phase of its word that is ordered before a wait."""
        clock, phases = self.before(at, wait.place), self.words[wait.address].phases
        return 0 if self.any_value else next(k for k in reversed(range(len(phases))) if phases[k].precedes(clock))

    def _end(self, at: At, wait: Synchronisation, first: int) -> bool:
        """End a wait by the first phase that it accepts, from one of this number on."""
        word = self.words[wait.address]
        end = next((k for k in range(first, len(word.phases)) if wait.accepts(word.phases[k].left)), None)
        if wait.looks and end != first:
            raise NotReducible(LEARNED, wait.span)
        if end is None:
            return False
        self.ended[at] = end
        self.overtaken |= end < len(word.phases) - 1
        word.relied = max(word.relied, end + 1)
        self.known[at] = min(end, self._last_known(at, wait))
        signals = [signal for signal in word.phases[end].signals if signal[0] != at[0]]
        if end > self.known[at] and signals:
            self.clocks[at] = np.maximum.reduce([self._released(signal, wait) for signal in signals])
        return True

    def _released(self, signal: At, wait: Synchronisation) -> Numbers:
        """What comes before the code behind a wait that observes a signal."""
        made = self.at(signal)
        if made.point is None:
            raise NotReducible("a signal for another cluster releases nothing", made.span)
        if wait.point is None:
            raise NotReducible("a wait for another cluster acquires nothing", wait.span)
        return self._up_to(signal)

    def _up_to(self, signal: At) -> Numbers:
        """What a signal hands on, if it releases."""
        made = self.at(signal)
        if made.point is None:
            return np.zeros(len(self.codes), np.int64)
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
        clock[at[0]] = at[1]
        return clock

    # --- that it is the only one ---------------------------------------------------------------------------------

    def check_patterns(self) -> None:
        """Check that threads acquire what they wait for before they release. Raises ``NotReducible``."""
        silent = set[int]()
        for number, code in enumerate(self.codes):
            acquired = -1
            waits: list[Synchronisation] = []
            for one in code:
                if one.waits:
                    waits.append(one)
                    acquired = max(acquired, -1 if one.point is None else one.point)
                elif one.point is None:
                    silent.add(number)
                    if one.updates or len(silent) > 1:
                        raise NotReducible("a signal for another cluster releases nothing", one.span)
                elif acquired > one.point:
                    raise NotReducible("a signal may come before what its thread has waited for", one.span)
                elif any(wait.point is None for wait in waits):
                    raise NotReducible("a wait for another cluster acquires nothing", waits[0].span)
                if one.draws and not one.waits:
                    waits.append(replace(one, point=one.acquired))
                    acquired = max(acquired, -1 if one.acquired is None else one.acquired)

    def check(self) -> None:
        """Check that every execution has this order. Raises ``NotReducible``."""
        for phase in (phase for word in self.words.values() for phase in word.phases):
            self._check_signs(phase)
        waits: dict[int, list[At]] = {}
        for at in self.ended:
            waits.setdefault(self.at(at).address, []).append(at)
        for address, word in self.words.items():
            signals = [(k, s) for k, phase in enumerate(word.phases) for s in phase.signals]
            if address not in waits or not signals:
                continue
            parts = [self._parts(phase) for phase in word.phases]
            phases = np.array([k for k, _ in signals])
            clocks = np.array([self.before(s, self.at(s).place) for _, s in signals])
            released = np.array([self._up_to(s) for _, s in signals])
            for at in waits[address]:
                wait, end = self.at(at), self.ended[at]
                if any(map(wait.accepts, {part for k in range(self.known[at], end) for part in parts[k + 1]})):
                    raise NotReducible("a wait may end before all signals that it needs", wait.span)
                after = clocks[:, at[0]] > at[1]
                others = np.flatnonzero((phases > end) & ~after)
                incomplete = set(phases[after].tolist())  # without what comes after the wait
                for k in set(phases[others].tolist()):
                    if not all(map(wait.accepts, parts[k] if k in incomplete else (*parts[k], word.phases[k].left))):
                        raise NotReducible(
                            LEARNED if wait.looks else "a wait may miss the value that ends it", wait.span
                        )
                known = self.clocks.get(at)
                if known is not None and (np.delete(released[others], at[0], 1) < np.delete(known, at[0])).any():
                    raise NotReducible("several signals may end a wait", wait.span)

    def _check_signs(self, phase: Phase) -> None:
        """Check that numbers of this phase have the signs that were drawn: what was added to the word before, of it and
        of the phases before it. Raises ``NotReducible``.
        """
        for one in map(self.at, phase.signals):
            if one.sign is not None and any(
                bool(part >> 8 * one.size - 1 & 1) is not one.sign.is_set for part in self._parts(phase)
            ):
                raise NotReducible("the sign of a number that is drawn is not always the same", one.span)

    def _parts(self, phase: Phase) -> set[int]:
        """What a word may hold after some signals of a phase, or none, but not all."""
        parts, left = set[int](), phase.held
        for at in phase.signals:
            one = self.at(at)
            top = 1 << 8 * one.size
            parts |= {left, *((part + one.value) % top for part in parts)}
            left = (left + one.value) % top
            if len(parts) > MAX_SUMS:
                raise NotReducible("additions that are not ordered leave too many values", one.span)
        return parts

    # --- two clusters --------------------------------------------------------------------------------------------

    def pair(self, one: int, other: int) -> PairLinks:
        """The signals and waits of two clusters without the others. What a wait knows of the other one of the pair it
        learns from the latest signal of that.
        """
        mine, theirs = self.learnt(one, other), self.learnt(other, one)
        return self._links(one, mine, theirs), self._links(other, theirs, mine)

    def _links(self, number: int, mine: Mapping[int, int], theirs: Mapping[int, int]) -> Links:
        """The links of a cluster, given which signal each wait of both knows."""
        taught, learnt = ({s: k for k, s in enumerate(sorted(set(by.values())), 1)} for by in (theirs, mine))
        return tuple(
            (learnt[mine[k]] if k in mine else 0) if one.waits else taught.get(k, 0)
            for k, one in enumerate(self.codes[number])
        )

    def learnt(self, number: int, other: int) -> dict[int, int]:
        """By wait of a cluster, the latest signal of another one that it knows and that releases."""
        out: dict[int, int] = {}
        for k in self.waiting[number]:
            before = bisect_left(self.releasing[other], int(self.clocks[number, k][other]))
            if before:
                out[k] = self.releasing[other][before - 1]
        return out


def order_signals(
    codes: Sequence[tuple[Synchronisation, ...]], initial: Mapping[int, int], *, any_value: bool = False
) -> SignalOrder:
    """The order of all signals. Raises ``NotReducible`` if there are executions with another one."""
    for one in (one for code in codes for one in code if one.taken is not None):
        raise NotReducible("clusters take locks", one.span)
    found = SignalOrder(codes, initial, any_value)
    found.check_patterns()
    found.run()
    found.check()
    found.waiting = [[k for k in range(len(code)) if (n, k) in found.clocks] for n, code in enumerate(codes)]
    found.releasing = [[k for k, one in enumerate(code) if not one.waits and one.point is not None] for code in codes]
    return found
