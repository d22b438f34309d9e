"""Hardware counts of the outcomes of a test, if exactly this text was run."""

from __future__ import annotations

from functools import cache

from mcheck.answers.final_states import terms_of
from mcheck.answers.result import State
from mcheck.base.records import dataclass
from mcheck.ir.condition import MemTerm, RegTerm
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.report.hardware_results import Observation, Run, hash_text, load, observation_file


@dataclass(frozen=True, slots=True)
class HardwareCounts:
    """The observation of one test on ``device``; ``sizes`` are the sizes of its terms in bytes."""

    device: str
    date: str
    observation: Observation
    sizes: tuple[int, ...]

    def count(self, state: State) -> int:
        """The number of instances that ended in a state; an unknown value matches any, one out of thin air none."""
        if any(not isinstance(value, int) and value != "unknown" for _, value in state):
            return 0
        sized = [(value, size) for (_, value), size in zip(state, self.sizes, strict=True)]
        wanted = [value % (1 << 8 * size) if isinstance(value, int) else None for value, size in sized]
        return sum(
            count
            for values, count in self.observation.states.items()
            if all(w is None or w == v % (1 << 8 * n) for w, v, n in zip(wanted, values, self.sizes, strict=True))
        )

    def summarise(self, allowed: list[State]) -> str:
        """The sentence above the table of outcomes."""
        shown = sum(self.count(s) > 0 for s in allowed)
        states = f"{shown} of {len(allowed)} allowed state{'' if len(allowed) == 1 else 's'}"
        return f"Observed on an {self.device} ({self.date}): {states}, in {self.observation.instances:,} instances."


def find_hardware_counts(program: Program) -> HardwareCounts | None:
    """The hardware counts of a program; None if its text was not run or the observations are not installed."""
    runs, found = _load_observations()
    observation = found.get(hash_text(program.source))
    terms = [t for t in terms_of(program.condition) if isinstance(t, RegTerm | MemTerm)]
    if observation is None or not observation.states or observation.terms != tuple(t.label for t in terms):
        return None
    return HardwareCounts(runs[0].device, runs[0].date, observation, tuple(_size(program, t) for t in terms))


def _size(program: Program, term: RegTerm | MemTerm) -> int:
    return term.size if isinstance(term, MemTerm) else type_size(program.threads[term.thread].types[term.reg])


@cache
def _load_observations() -> tuple[list[Run], dict[str, Observation]]:
    file = observation_file()
    return load(file) if file.is_file() else ([], {})
