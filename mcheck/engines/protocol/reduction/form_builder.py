"""What the parts of one canonical form share: the names of events and addresses, and the live steps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.incremental.entries import Entry
from mcheck.engines.protocol.reduction.completion_classes import find_completion_classes
from mcheck.engines.protocol.reduction.derived_forms import Part, former_of, live_operations
from mcheck.engines.protocol.reduction.event_names import EventNames
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.address_names import AddressNames
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import SyncOperation
from mcheck.engines.protocol.state.vector_clocks import Vector


class FormBuilder:
    """The names of one state's parts.

    ``kinds`` numbers the kinds of events without names, and sets that are equal, for all states that are compared.
    ``place`` gives the place of an agent in its code.
    """

    def __init__(
        self, m: Machine, whole: Setup, kinds: dict[object, int], addresses: AddressNames,
        place: Callable[[Agent], object], *, contents: bool,
    ) -> None:  # fmt: skip
        self.m = m
        self.whole = whole
        self.addresses = addresses
        self.at = addresses.name_of
        self.place = place
        self.contents = contents
        self.names = EventNames(m, find_completion_classes(m), addresses, kinds)
        self._accesses: dict[int, Part] = {}
        self.steps: dict[int, list[int]] = {}
        self._phases: dict[int, list[int]] = {}
        for done in self._live():
            self.steps.setdefault(done.agent, []).append(done.step)
            if done.signal >= 0:
                self._phases.setdefault(done.signal, []).append(done.clock_bound)
        for numbers in (*self.steps.values(), *self._phases.values()):
            numbers.sort()
        self.bars = {bar.clock_index: self.at(bar.address) for bar in m.mbarriers.values()}
        self._order_of_phases = sorted(self._phases, key=self.bars.__getitem__)

    def form(self, owner: Any, context: object = None) -> Part:
        """Return the form of an object."""
        return former_of(type(owner))(self, owner, context)

    def events(self, entries: Iterable[Entry]) -> Part:
        """Return the names of events; those of merged ones are those of their representatives."""
        return tuple(self.names.name(e.bit) for e in entries)

    def time(self, v: Vector | None) -> tuple[int, ...] | None:
        """Return how many live steps of each agent, and live signals of each object, a time covers."""
        if not v:
            return None
        return (
            *(bisect_right(numbers, v[k]) for k, numbers in sorted(self.steps.items())),
            *(bisect_left(self._phases[k], v[k]) for k in self._order_of_phases),
        )

    def _live(self) -> Iterator[SyncOperation]:
        m = self.m
        for owner in (m, *m.mbarriers.values(), *m.tracked_words.values(), *m.barriers.values()):
            yield from live_operations(self, owner)

    def open(self, dones: Iterable[SyncOperation]) -> list[SyncOperation]:
        """Return the operations that something later might still come before."""
        return [d for d in dones if not self.m.is_past(d)]

    def operations(self, dones: Iterable[SyncOperation], phase: int) -> Part:
        """Return the forms of operations, whose phases count from this one."""
        return tuple(self.form(d, phase) for d in dones)

    def access(self, r: Record) -> Part:
        """Return the form of an access, as far as a later one can distinguish it."""
        found = self._accesses.get(id(r))
        if found is None:
            found = self._accesses[id(r)] = self.form(r, context=True)
        return found

    def completed_access(self, r: Record) -> Part:
        """An access as far as those can tell who learn of its completion: that it is behind them, wherever it is."""
        return self.form(r, context=False)
