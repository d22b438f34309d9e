"""The mbarriers of a cluster and the lanes that wait for their phases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.semantics import mbarrier
from mcheck.semantics.undefined import Misuse
from mcheck.simt.execution.lanes import Mask


@dataclass(frozen=True, slots=True)
class PhaseWait:
    """Lanes that wait for the phase of a parity, or for one by its number."""

    lanes: Mask
    parity: int | None
    phase: int | None

    def ends(self, state: mbarrier.State | None) -> bool:
        """Whether the phase is complete."""
        if state is None:
            return False
        if self.parity is not None:
            return self.parity in (0, 1) and mbarrier.wait_parity(state, self.parity)
        return self.phase is not None and state.phase > self.phase


@dataclass(slots=True)
class MbarrierWaits:
    """By address, the states of mbarriers and who waits there."""

    states: dict[int, mbarrier.State] = field(default_factory=dict)
    waiting: dict[int, list[PhaseWait]] = field(default_factory=dict)
    _spans: dict[int, Span | None] = field(default_factory=dict)
    """The location of the latest wait."""

    def apply(self, address: int, step: Callable[[mbarrier.State], mbarrier.Step]) -> list[Mask]:
        """Apply an operation to the mbarrier at an address; the lanes whose phase it completes."""
        state = self.states.get(address)
        if state is None:
            return []
        try:
            after, completed = step(state)
        except Misuse:
            return []  # the engine reports it
        self.states[address] = after
        if not completed:
            return []
        waits = self.waiting.pop(address, [])
        kept = [wait for wait in waits if not wait.ends(after)]
        if kept:
            self.waiting[address] = kept
        return [wait.lanes for wait in waits if wait.ends(after)]

    def blocks(self, address: int, wait: PhaseWait, span: Span | None) -> bool:
        """Whether a wait blocks its lanes until the phase completes."""
        if wait.ends(self.states.get(address)):
            return False
        self.waiting.setdefault(address, []).append(wait)
        self._spans[address] = span
        return True

    def give_up(self) -> Iterator[tuple[Span | None, list[PhaseWait]]]:
        """The waits of each mbarrier, with the location of the latest: they wait no longer."""
        for address in list(self.waiting):
            yield self._spans[address], self.waiting.pop(address)
