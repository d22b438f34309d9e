"""What the current phase of an mbarrier lacks at the end of an execution (9.7.13.15.2, 9.7.13.15.6)."""

from __future__ import annotations

from mcheck.base.phrase import Thing
from mcheck.base.records import dataclass
from mcheck.events.choices.candidate import Candidate
from mcheck.events.choices.prepared import Prepared
from mcheck.events.structure import Structure
from mcheck.findings.fix import Fix, Phase, advise
from mcheck.semantics.terms import Uid


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """A phase that is not complete: ``arrived`` of ``count`` arrivals and ``received`` of ``expected`` bytes."""

    phase: int
    arrived: int
    count: int
    expected: int
    received: int

    def describe(self, bar: Thing) -> Fix:
        """A sentence that says what the mbarrier lacks."""
        bytes_ = (
            f"; of the {self.expected} bytes expected, {self.received} came" if self.expected or self.received else ""
        )
        got = f"got {self.arrived} of {self.count} arrivals{bytes_}"
        return advise(f"Phase {self.phase} of {{}} {got}", bar, phases=(Phase(bar, self.phase),))


def phases_of(prepared: Prepared, candidate: Candidate) -> dict[Uid, int]:
    """The phase that each mbarrier operation of a candidate falls into."""
    found: dict[Uid, int] = {}
    for choice, taken in zip(prepared.choices, candidate, strict=True):
        if taken >= 0:
            found.update(choice.options[taken].phases)
    return found


def find_lack(s: Structure, phases: dict[Uid, int], address: int) -> Lack | None:
    """What the mbarrier at ``address`` lacks; ``None`` if counting alone cannot tell."""
    steps = [(e.mbarrier, phases.get(e.uid, -1)) for p in s.paths for e in p.events if e.mbarrier is not None]
    steps = [(m, phase) for m, phase in steps if m.address == address and m.kind != "wait"]
    inits = [m for m, _ in steps if m.kind == "init"]
    if len(inits) != 1 or any(m.kind in ("inval", "drop", "increment") for m, _ in steps):
        return None
    for phase in range(len(steps) + 1):
        arrived = sum(m.count for m, p in steps if p == phase and m.kind == "arrive")
        expected = sum(m.tx or 0 for m, p in steps if p == phase and m.kind in ("arrive", "expect"))
        came = sum(m.tx or 0 for m, p in steps if p == phase and m.kind == "complete")
        if arrived != inits[0].count or expected != came:
            return Lack(phase=phase, arrived=arrived, count=inits[0].count, expected=expected, received=came)
    return None
