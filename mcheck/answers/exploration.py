"""Answers with example executions: of the states that a model allows, and of those that it forbids."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from mcheck.answers.result import Answer, State
from mcheck.base.records import dataclass
from mcheck.events.execution_graph import Execution, label_of
from mcheck.findings.finding import Finding

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A state that only forbidden executions reach.

    ``wanted``: the condition's formula holds in the state. ``execution`` is for drawing, ``network``
    (``mcheck.engines.explicit.network``) for programs.
    """

    state: State
    axiom: str
    cycle: tuple[str, ...]
    execution: Execution | None
    wanted: bool
    network: nx.MultiDiGraph | None = None

    @property
    def cycle_steps(self) -> tuple[str, ...]:
        """The steps of the cycle with the instructions at their ends, for output without a picture."""
        if self.execution is None:
            return self.cycle
        x, out = self.execution, []
        for hop in x.walk:
            a, b = (f"{x.columns[k.column].title} {k.lines[0]}" for k in (x.boxes[hop.source], x.boxes[hop.target]))
            out.append(f"{label_of(hop.kind)}{'^-1' if hop.back else ''} from ({a}) to ({b})")
        return tuple(out)

    @property
    def explanation(self) -> str:
        """The cycle on one line, with what happens at each event."""
        return self.execution.explanation() if self.execution is not None else ", ".join(self.cycle)


@dataclass(slots=True)
class Exploration:
    """An answer with example executions.

    ``allowed`` has an execution of each state (where drawing was requested), ``findings`` one of each flagged race.
    ``networks`` are those of the allowed states as graphs of networkx. ``all_forbidden``: the list of forbidden states
    is complete. ``cut``: with more time there might be more to show.
    """

    answer: Answer
    allowed: dict[State, Execution]
    forbidden: tuple[Forbidden, ...] = ()
    all_forbidden: bool = True
    findings: dict[Finding, Execution] | None = None
    cut: bool = False
    networks: dict[State, nx.MultiDiGraph] = field(default_factory=dict)
