"""An answer with executions to look at: of the states that a model allows, and of those that it forbids."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from mcheck.answers.result import Answer, State
from mcheck.findings.finding import Finding
from mcheck.graph.execution import Execution
from mcheck.records import dataclass

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A state that only executions against the model have; ``wanted``: the condition's formula holds in it.

    ``execution`` is for people, ``network`` (``mcheck.explore.network``) for programs.
    """

    state: State
    axiom: str
    cycle: tuple[str, ...]
    execution: Execution | None
    wanted: bool
    network: nx.MultiDiGraph | None = None

    @property
    def told(self) -> tuple[str, ...]:
        """The cycle with what its boxes do, for where there is no picture."""
        if self.execution is None:
            return self.cycle
        boxes = {b.name: f"{self.execution.columns[b.column].title} {b.lines[0]}" for b in self.execution.boxes}
        out = []
        for step in self.cycle:
            ends, _, kind = step.partition(" by ")
            a, _, b = ends.partition(" \N{RIGHTWARDS ARROW} ")
            out.append(f"{kind} from ({boxes.get(a, a)}) to ({boxes.get(b, b)})")
        return tuple(out)


@dataclass(slots=True)
class Exploration:
    """An answer with its executions.

    ``allowed`` gives an execution of each state (where drawing was asked for), ``findings`` one of each flagged race.
    ``networks`` are those of the allowed states as graphs of networkx.
    ``all_forbidden``: no other combination of final values could be thought of; otherwise the list is a part.
    ``cut``: with more time there might be more to show.
    """

    answer: Answer
    allowed: dict[State, Execution]
    forbidden: tuple[Forbidden, ...] = ()
    all_forbidden: bool = True
    findings: dict[Finding, Execution] | None = None
    cut: bool = False
    networks: dict[State, nx.MultiDiGraph] = field(default_factory=dict)
