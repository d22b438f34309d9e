"""How often a chip showed each outcome of a test, where it ran as the file stands."""

from __future__ import annotations

from functools import cache

from mcheck.answers.final_states import terms_of
from mcheck.answers.result import State
from mcheck.base.records import dataclass
from mcheck.ir.condition import MemTerm, RegTerm
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.report.hardware_results import Observation, Run, hash_of, load, published


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one test on ``device``; ``sizes`` are the bytes of its terms."""

    device: str
    date: str
    observation: Observation
    sizes: tuple[int, ...]

    def count(self, state: State) -> int:
        """Instances that ended so; an unknown value is any value, and one out of thin air none."""
        if any(not isinstance(value, int) and value != "unknown" for _, value in state):
            return 0
        sized = [(value, size) for (_, value), size in zip(state, self.sizes, strict=True)]
        wanted = [value % (1 << 8 * size) if isinstance(value, int) else None for value, size in sized]
        return sum(
            count
            for values, count in self.observation.states.items()
            if all(w is None or w == v % (1 << 8 * n) for w, v, n in zip(wanted, values, self.sizes, strict=True))
        )

    def told(self, allowed: list[State]) -> str:
        """The sentence above the table."""
        shown = sum(self.count(s) > 0 for s in allowed)
        states = f"{shown} of {len(allowed)} allowed state{'' if len(allowed) == 1 else 's'}"
        return f"Seen on an {self.device} ({self.date}): {states}, in {self.observation.instances:,} instances."


def seen_of(program: Program) -> Seen | None:
    """What a chip showed of a program; nothing if its text was not run, or the observations are not here."""
    runs, found = _published()
    observation = found.get(hash_of(program.source))
    terms = [t for t in terms_of(program.condition) if isinstance(t, RegTerm | MemTerm)]
    if observation is None or not observation.states or observation.terms != tuple(t.label for t in terms):
        return None
    return Seen(runs[0].device, runs[0].date, observation, tuple(_size(program, t) for t in terms))


def _size(program: Program, term: RegTerm | MemTerm) -> int:
    return term.size if isinstance(term, MemTerm) else type_size(program.threads[term.thread].types[term.reg])


@cache
def _published() -> tuple[list[Run], dict[str, Observation]]:
    file = published()
    return load(file) if file.is_file() else ([], {})
