"""An answer with executions to look at: of the states that a model allows, and of those that it forbids."""

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
    """A state that only executions against the model have; ``wanted``: the condition's formula holds in it.

    ``execution`` is for people, ``network`` (``mcheck.engines.explicit.network``) for programs.
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
        x, out = self.execution, []
        for hop in x.walk:
            a, b = (f"{x.columns[k.column].title} {k.lines[0]}" for k in (x.boxes[hop.source], x.boxes[hop.target]))
            out.append(f"{label_of(hop.kind)}{'^-1' if hop.back else ''} from ({a}) to ({b})")
        return tuple(out)

    @property
    def explanation(self) -> str:
        """The cycle in one line, with what happens at each of its ends."""
        return self.execution.explanation() if self.execution is not None else ", ".join(self.cycle)


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
