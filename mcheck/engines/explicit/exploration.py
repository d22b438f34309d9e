"""All outcomes of a program with example executions: allowed states, and forbidden states with the violated axioms."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from mcheck.answers.exploration import Exploration, Forbidden
from mcheck.answers.final_states import States, clauses, truth_of
from mcheck.answers.result import State, Value, state_sort_key
from mcheck.base.budget import TimeOut
from mcheck.base.errors import Unsupported
from mcheck.base.records import replace
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.cat.algebra.explanation import Violation
from mcheck.cat.algebra.tape import Tape
from mcheck.cat.ast import Model
from mcheck.engines.explicit.candidate_check import Evaluator, Settled, Trial
from mcheck.engines.explicit.consistency import Solver
from mcheck.engines.explicit.drawing import execution_of
from mcheck.engines.explicit.engine import answer
from mcheck.engines.explicit.network import network
from mcheck.engines.explicit.refutation import Refutation
from mcheck.engines.search.kept_executions import Kept
from mcheck.events.choices.candidate import Candidate, Choice
from mcheck.events.choices.prepared import Prepared
from mcheck.events.execution_graph import Execution
from mcheck.events.structure import Structure
from mcheck.findings.finding import Finding
from mcheck.ir.condition import Not
from mcheck.ir.program import Program

if TYPE_CHECKING:
    import networkx as nx

TRIED = 4
"""The number of explanations of one forbidden state of which the shortest is used."""

KEPT = 64
"""The number of executions of one state that are kept for that: of out-of-thin-air executions not all are forbidden."""

SHORTEST = 2
"""The length of a cycle that no other beats."""

THIN_AIR: Value = "out of thin air"  # type: ignore[assignment]
"""The value of a term in an execution in which a value depends on itself."""

MAX_CANDIDATES = 20_000
"""The maximum number of candidates, without axioms, that are searched for states that no consistent execution has."""


class _Explorer:
    def __init__(self, program: Program, model: Model, kept: Kept, budget: float, *, networks: bool = False) -> None:
        self.program = program
        self.model = model
        self.kept = kept
        self.networks = networks
        self.tape = tape_of(model)
        self.until = time.monotonic() + budget
        self.late = False
        self._structures: list[tuple[Structure, list[Choice]]] | None = None
        self._evaluators: dict[int, tuple[Structure, Evaluator]] = {}

    def deadline(self) -> None:
        if time.monotonic() > self.until:
            self.late = True
            raise TimeOut

    def evaluator(self, solver: Prepared) -> Evaluator:
        found = self._evaluators.get(id(solver.s))
        if found is None:
            found = self._evaluators[id(solver.s)] = (solver.s, Evaluator(self.tape, solver))
        return found[1]

    def structures(self) -> list[tuple[Structure, list[Choice]]]:
        """Every event structure with its choices; callers that restrict the choices work on a copy."""
        if self._structures is None:
            self._structures = list(self.kept.combinations())
        return [(s, [replace(c, options=list(c.options)) for c in choices]) for s, choices in self._structures]

    def find_orders(self, solver: Prepared, candidate: Candidate, *, explain: bool = False) -> Settled:
        return (Refutation if explain else Trial)(self.evaluator(solver), solver, candidate).find_orders()

    def draw(
        self, solver: Prepared, candidate: Candidate, state: State, settled: Settled | None = None, **more: object
    ) -> Execution:
        return execution_of(
            solver,
            candidate,
            model=self.model.name,
            state=state,
            settled=settled or self.find_orders(solver, candidate),
            explain=settled is not None,
            **more,  # type: ignore[arg-type]
        )

    def network(self, solver: Prepared, candidate: Candidate, state: State, settled: Settled) -> nx.MultiDiGraph:
        return network(solver, candidate, settled, model=self.model.name, state=state)

    def best_explanation(
        self, tried: list[tuple[Prepared, Candidate]], state: State, *, wanted: bool
    ) -> Forbidden | None:
        """The execution of a forbidden state with the shortest explanation, out of ``tried``."""
        best: tuple[Violation, Prepared, Candidate, Settled] | None = None
        explained = 0
        for solver, candidate in sorted(tried, key=lambda pair: (_unwritten(*pair), _ends(*pair))):
            try:
                self.deadline()
                settled = self.find_orders(solver, candidate, explain=True)
            except (TimeOut, RecursionError):
                break
            failed = settled.violation
            if failed is None:
                continue
            explained += 1
            if best is None or failed.rank < best[0].rank:
                best = failed, solver, candidate, settled
            if explained == TRIED or (failed.closed and failed.length <= SHORTEST):
                break
        if best is None:
            return None
        _, solver, candidate, settled = best
        drawn = self.draw(solver, candidate, state, settled)
        graph = self.network(solver, candidate, state, settled) if self.networks else None
        return Forbidden(state, drawn.axiom or "", drawn.cycle, drawn, wanted, graph)

    def candidates(self, *, wanted: bool) -> Iterator[tuple[Prepared, States, Candidate]]:
        """Candidates regardless of axioms: all of them, or those in which the condition's formula holds."""
        condition = self.program.condition
        formula = Not(condition.formula) if condition.kind == "forall" else condition.formula
        restrictions = (clauses(formula) or [[]]) if wanted else [[]]
        for clause in restrictions:
            for s, choices in self.structures():
                self.deadline()
                if clause and not self.kept.restrict(s, choices, clause):
                    continue
                solver = Solver(Tape(), s, choices, self.deadline)
                states = States(solver, condition) if solver.possible else None
                for found, _ in solver.solve():
                    assert states is not None
                    for c in found:
                        if not solver.misusable or not _misused(solver, c):
                            yield solver, states, c

    def collect(
        self, known: set[State], into: dict[State, list[tuple[Prepared, Candidate]]], *, wanted: bool, most: int
    ) -> bool:
        """Adds states that are not ``known``, with some executions of each; whether the search was complete."""
        condition = self.program.condition
        seen = 0
        try:
            for solver, states, c in self.candidates(wanted=wanted):
                seen += 1
                if seen > MAX_CANDIDATES:
                    return False
                try:
                    state = states.state_of(c)
                except Unsupported:
                    state = tuple((label, THIN_AIR) for label in states.labels)
                else:
                    if wanted and truth_of(condition, state) != {condition.kind != "forall"}:
                        continue
                if state in known or _may_be(state, known):
                    continue
                if state not in into and len(into) >= most:
                    return False
                tried = into.setdefault(state, [])
                if len(tried) < KEPT:
                    tried.append((solver, c))
        except (TimeOut, Unsupported, RecursionError):
            return False
        return True


def _may_be(state: State, known: set[State]) -> bool:
    """Whether unknown contents make it possible that the state equals an allowed one; then nothing forbids it."""
    if not any(value == "unknown" for _, value in state):
        return False
    return any(
        all(mine in (other, "unknown") for (_, mine), (_, other) in zip(state, allowed, strict=True))
        for allowed in known
    )


def _unwritten(solver: Prepared, candidate: Candidate) -> int:
    """The number of reads of uninitialised memory: an execution with fewer of them is the better example."""
    taken = (solver.choices[k].options[candidate[k]] for k in solver.reader.values() if candidate[k] >= 0)
    nodes = (solver.s.nodes[option.source] for option in taken)
    return sum(node.source is None and not isinstance(node.value, int) for node in nodes)


def _ends(solver: Prepared, candidate: Candidate) -> list[int]:
    """The final writes of all locations: of several candidates those later in the text are preferred."""
    chosen = zip(solver.choices, candidate, strict=True)
    return [-c.options[t].source for c, t in chosen if c.kind == "final" and t >= 0]


def _misused(solver: Prepared, candidate: Candidate) -> bool:
    return any(c.options[t].misstep is not None for c, t in zip(solver.choices, candidate, strict=True) if t >= 0)


def explore(
    program: Program,
    model: Model,
    *,
    profile: str = "ptx",
    unroll: int = 2,
    timeout: float | None = None,
    forbidden: int = 0,
    drawn: int = 0,
    budget: float = 5.0,
    networks: bool = False,
) -> Exploration:
    """The answer with up to ``drawn`` executions of allowed states, and up to ``forbidden`` forbidden states.

    ``networks``: as graphs of networkx too. ``budget``: seconds for forbidden states, beyond the ``timeout`` of the
    answer itself.
    """
    kept = Kept()
    given = answer(
        program, model, unroll=unroll, timeout=timeout, profile=profile, findings=True, witnesses=True, kept=kept
    )
    explorer = _Explorer(program, model, kept, budget, networks=networks)
    allowed: dict[State, Execution] = {}
    pictures: dict[Finding, Execution] = {}
    with suppress(TimeOut):  # what is drawn by then is shown
        for o in islice(given.outcomes, drawn):
            if o.state in kept.outcomes:
                allowed[o.state] = explorer.draw(*kept.outcomes[o.state], o.state)
        for finding, x in islice(kept.findings.items(), drawn):
            pictures[finding] = explorer.draw(x.prepared, x.candidate, (), marked=x.marked, note=x.note, stops=x.stops)
    out = Exploration(given, allowed, findings=pictures)
    for state in allowed if networks else ():
        solver, candidate = kept.outcomes[state]
        out.networks[state] = explorer.network(solver, candidate, state, explorer.find_orders(solver, candidate))
    if forbidden and given.complete:
        _forbidden(explorer, out, set(kept.outcomes), forbidden)
    out.cut = explorer.late or given.cut
    return out


def _forbidden(explorer: _Explorer, out: Exploration, known: set[State], most: int) -> None:
    condition = explorer.program.condition
    found: dict[State, list[tuple[Prepared, Candidate]]] = {}
    if condition.kind != "none":
        explorer.collect(known, found, wanted=True, most=most)
    wanted = set(found)
    out.all_forbidden = explorer.collect(known, found, wanted=False, most=most)
    entries = []
    for state, tried in found.items():
        told = explorer.best_explanation(tried, state, wanted=state in wanted)
        if told is not None:
            entries.append(told)
    out.forbidden = tuple(sorted(entries, key=lambda f: (not f.wanted, state_sort_key(f.state))))


def forbidden_state(
    program: Program, model: Model, state: State, *, profile: str = "ptx", unroll: int = 2, budget: float = 5.0
) -> Forbidden | None:
    """Why the model forbids one state: its axiom and cycle; ``None`` if no candidate has the state."""
    kept = Kept()
    given = answer(program, model, unroll=unroll, timeout=budget, profile=profile, kept=kept)
    explorer = _Explorer(program, model, kept, budget)
    found: dict[State, list[tuple[Prepared, Candidate]]] = {}
    known = {o.state for o in given.outcomes}
    if state in known:
        return None
    explorer.collect(known, found, wanted=False, most=1000)
    if state not in found:
        return None
    return explorer.best_explanation(found[state], state, wanted=False)
