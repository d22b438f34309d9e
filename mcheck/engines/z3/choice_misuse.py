"""Misuse within a single open choice, regardless of the memory model."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.engines.z3.clauses import TRUE, Clauses, Side, spell
from mcheck.engines.z3.solver_calls import satisfiable
from mcheck.engines.z3.symbolic_choices import Encoding, OpenChoice, True_
from mcheck.events.choices.candidate import Option
from mcheck.semantics.terms import Uid


class SingleChoice:
    """The formula of one choice alone."""

    def __init__(self, choice: OpenChoice) -> None:
        import z3

        self.z3 = z3
        self.solver: z3.Solver = z3.SolverFor("QF_FD")
        self.clauses = Clauses()
        self.encoding: Encoding = choice.encode(self.clauses)
        self.distinguishing = self._distinguishing()

    def solve(self, literal: int = TRUE) -> True_ | None:
        """A solution in which a literal holds."""
        text = self.clauses.text([])
        if text:
            self.solver.from_string(text)
        if literal != TRUE:
            self.solver.push()
            self.solver.from_string(f"(assert {spell(literal)})")
        try:
            if not satisfiable(self.solver):
                return None
            model = self.solver.model()
        finally:
            if literal != TRUE:
                self.solver.pop()

        def true(x: int) -> bool:
            if abs(x) == TRUE:
                return x > 0
            value = model.eval(self.z3.Bool(f"v{abs(x)}"), model_completion=True)
            return bool(self.z3.is_true(value)) is (x > 0)

        return true

    def inevitable(self) -> bool:
        """Whether every option is a misuse."""
        missteps = [x for _, _, x in self.encoding.missteps()]
        return bool(missteps) and self.solve(-self.clauses.any_of(missteps, Side.EXACT)) is None

    def blamed_events(self, deadline: Callable[[], None]) -> set[Uid]:
        """The events that some option blames for a misuse."""
        open_: dict[Uid, list[int]] = {}
        for _, uid, x in self.encoding.missteps():
            open_.setdefault(uid, []).append(x)
        found: set[Uid] = set()
        while open_:
            deadline()
            true = self.solve(self.clauses.any_of([x for xs in open_.values() for x in xs], Side.EXACT))
            if true is None:
                return found
            shown = {uid for uid, xs in open_.items() if any(map(true, xs))}
            found |= shown
            for uid in shown:
                del open_[uid]
        return found

    def options(self) -> list[Option]:
        """All options; for choices that have few."""
        found: list[Option] = []
        while (true := self.solve()) is not None:
            option = self.encoding.decode(true)
            if option not in found:
                found.append(option)
            self.clauses.add(*(-x if true(x) else x for x in self.distinguishing))
        return found

    def _distinguishing(self) -> set[int]:
        """The literals in which options differ: pairs, results, misuse, remarks."""
        e = self.encoding
        found = [e.literal(name, i, j) for name in RELATIONS for i, j in e.may(name)]
        found += [x for _, _, x in (*e.missteps(), *e.remarks())]
        for given in e.results().values():
            found += given.values() if isinstance(given, dict) else [*given.phases, *(x for x, _ in given.low.weights)]
        return set(found)


RELATIONS = ("phase", "phase-order", "phase-fr", "complete", "barrier", "rounds", "syncbar")
