"""All outcomes of a program with executions: the allowed ones, and the forbidden ones with what forbids them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from mcheck.cat.ast import Model
from mcheck.errors import Unsupported
from mcheck.explore.choices import Candidate, Choice
from mcheck.explore.engine import TimeOut, answer, tape_of
from mcheck.explore.execution import execution_of
from mcheck.explore.final import States, clauses, truth_of
from mcheck.explore.kept import Kept
from mcheck.explore.result import Answer, State, Value
from mcheck.explore.solver import Solver
from mcheck.explore.tape import Tape
from mcheck.explore.trial import Evaluator, Settled, Trial
from mcheck.findings.finding import Finding
from mcheck.graph.execution import Execution
from mcheck.graph.structure import Structure
from mcheck.program.condition import Not
from mcheck.program.program import Program

TRIED = 4
"""Explanations of one forbidden state of which the shortest is taken."""

KEPT = 64
"""Executions of one state that are kept for that: of those in which a value justifies itself not all are forbidden."""

SHORTEST = 2
"""Edges in a cycle that no other beats."""

THIN_AIR: Value = "out of thin air"  # type: ignore[assignment]
"""Stands for the values of an execution in which a value justifies itself."""

MAX_CANDIDATES = 20_000
"""Executions without axioms that are looked at for states that no consistent execution has."""


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A state that only executions against the model have; ``wanted``: the condition's formula holds in it."""

    state: State
    axiom: str
    cycle: tuple[str, ...]
    execution: Execution | None
    wanted: bool

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
    ``all_forbidden``: no other combination of final values could be thought of; otherwise the list is a part.
    """

    answer: Answer
    allowed: dict[State, Execution]
    forbidden: tuple[Forbidden, ...] = ()
    all_forbidden: bool = True
    findings: dict[Finding, Execution] | None = None


class _Explorer:
    def __init__(self, program: Program, model: Model, kept: Kept, budget: float) -> None:
        self.program = program
        self.model = model
        self.kept = kept
        self.tape = tape_of(model)
        self.until = time.monotonic() + budget
        self._structures: list[tuple[Structure, list[Choice]]] | None = None
        self._evaluators: dict[int, tuple[Structure, Evaluator]] = {}

    def deadline(self) -> None:
        if time.monotonic() > self.until:
            raise TimeOut

    def evaluator(self, solver: Solver) -> Evaluator:
        found = self._evaluators.get(id(solver.s))
        if found is None:
            found = self._evaluators[id(solver.s)] = (solver.s, Evaluator(self.tape, solver))
        return found[1]

    def structures(self) -> list[tuple[Structure, list[Choice]]]:
        """Every event structure with its choices; whoever narrows the choices down does so in a copy."""
        if self._structures is None:
            self._structures = list(self.kept.combinations())
        return [(s, [replace(c, options=list(c.options)) for c in choices]) for s, choices in self._structures]

    def settle(self, solver: Solver, candidate: Candidate, *, explain: bool = False) -> Settled:
        return Trial(self.evaluator(solver), solver, candidate).settle(explain=explain)

    def draw(
        self, solver: Solver, candidate: Candidate, state: State, settled: Settled | None = None, **more: object
    ) -> Execution:
        return execution_of(
            solver,
            candidate,
            model=self.model.name,
            state=state,
            settled=settled or self.settle(solver, candidate),
            explain=settled is not None,
            **more,  # type: ignore[arg-type]
        )

    def told(self, tried: list[tuple[Solver, Candidate]], state: State) -> Execution | None:
        """Of some executions of a forbidden state the one with the shortest explanation."""
        best: tuple[tuple[int, str], Solver, Candidate, Settled] | None = None
        explained = 0
        for solver, candidate in tried:
            try:
                self.deadline()
                settled = self.settle(solver, candidate, explain=True)
            except (TimeOut, RecursionError):
                break
            failed = settled.violation
            if failed is None:
                continue
            explained += 1
            if best is None or (len(failed.steps), failed.axiom) < best[0]:
                best = (len(failed.steps), failed.axiom), solver, candidate, settled
            if explained == TRIED or len(failed.steps) == SHORTEST:
                break
        return None if best is None else self.draw(best[1], best[2], state, best[3])

    def candidates(self, *, wanted: bool) -> Iterator[tuple[Solver, States, Candidate]]:
        """Executions that need not satisfy any axiom: all of them, or those in which the condition's formula holds."""
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
        self, known: set[State], into: dict[State, list[tuple[Solver, Candidate]]], *, wanted: bool, most: int
    ) -> bool:
        """Adds states that are not ``known``, with some executions of each; whether it saw them all."""
        condition = self.program.condition
        seen = 0
        try:
            for solver, states, c in self.candidates(wanted=wanted):
                seen += 1
                if seen > MAX_CANDIDATES:
                    return False
                try:
                    state = states.of(c)
                except Unsupported:
                    state = tuple((label, THIN_AIR) for label in states.labels)
                else:
                    if wanted and truth_of(condition, state) != {condition.kind != "forall"}:
                        continue
                if state in known:
                    continue
                if state not in into and len(into) >= most:
                    return False
                tried = into.setdefault(state, [])
                if len(tried) < KEPT:
                    tried.append((solver, c))
        except (TimeOut, Unsupported, RecursionError):
            return False
        return True


def _misused(solver: Solver, candidate: Candidate) -> bool:
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
) -> Exploration:
    """The answer with up to ``drawn`` executions of allowed states, and up to ``forbidden`` states that are not.

    ``budget`` bounds the seconds spent on what is not allowed, beyond the ``timeout`` of the answer itself.
    """
    kept = Kept()
    given = answer(
        program, model, unroll=unroll, timeout=timeout, profile=profile, findings=True, witnesses=True, kept=kept
    )
    explorer = _Explorer(program, model, kept, budget)
    allowed = {
        o.state: explorer.draw(*kept.outcomes[o.state], o.state)
        for o in islice(given.outcomes, drawn)
        if o.state in kept.outcomes
    }
    pictures = {
        finding: explorer.draw(x.solver, x.candidate, (), marked=x.marked, note=x.note, stops=x.stops)
        for finding, x in islice(kept.findings.items(), drawn)
    }
    out = Exploration(given, allowed, findings=pictures)
    if forbidden and given.complete:
        _forbidden(explorer, out, set(kept.outcomes), forbidden)
    return out


def _forbidden(explorer: _Explorer, out: Exploration, known: set[State], most: int) -> None:
    condition = explorer.program.condition
    found: dict[State, list[tuple[Solver, Candidate]]] = {}
    if condition.kind != "none":
        explorer.collect(known, found, wanted=True, most=most)
    wanted = set(found)
    out.all_forbidden = explorer.collect(known, found, wanted=False, most=most)
    entries = []
    for state, tried in found.items():
        best = explorer.told(tried, state)
        if best is not None:
            entries.append(Forbidden(state, best.axiom or "", best.cycle, best, state in wanted))
    out.forbidden = tuple(sorted(entries, key=lambda f: (not f.wanted, [(str(type(v)), v) for _, v in f.state])))


def forbidden_state(
    program: Program, model: Model, state: State, *, profile: str = "ptx", unroll: int = 2, budget: float = 5.0
) -> Forbidden | None:
    """Why the model forbids one state: its axiom and cycle, ``None`` if no execution at all has the state."""
    kept = Kept()
    given = answer(program, model, unroll=unroll, timeout=budget, profile=profile, kept=kept)
    explorer = _Explorer(program, model, kept, budget)
    found: dict[State, list[tuple[Solver, Candidate]]] = {}
    known = {o.state for o in given.outcomes}
    if state in known:
        return None
    explorer.collect(known, found, wanted=False, most=1000)
    if state not in found:
        return None
    best = explorer.told(found[state], state)
    return None if best is None else Forbidden(state, best.axiom or "", best.cycle, best, False)
