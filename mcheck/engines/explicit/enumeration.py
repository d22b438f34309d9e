"""Enumeration of all consistent executions of every combination of paths, in batches."""

from __future__ import annotations

from itertools import product

from mcheck.answers.final_states import States, clauses, memory_ranges, truth_of
from mcheck.answers.witnesses import WAITS, FlagReport, deadlock_finding, may_be_undefined, waiting_nodes
from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.engines.explicit.coherence_orders import Solution
from mcheck.engines.explicit.consistency import Solver
from mcheck.engines.explicit.restriction import restrict
from mcheck.engines.search import prefixes
from mcheck.engines.search.search import Run
from mcheck.events.choices import barrier_generations
from mcheck.events.choices.candidate import Candidate, Choice, read_choices
from mcheck.events.choices.divergent_lanes import is_undefined_by_paths
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Path
from mcheck.events.structure import Structure, build_structure
from mcheck.findings.finding import Finding
from mcheck.ir.condition import Compare, Not


@dataclass(slots=True)
class Enumeration(Run):
    """A run of the explicit engine: one question about one program."""

    def solve_all(self, complete: list[list[Path]]) -> None:
        """Enumerates the executions of all combinations of complete paths, or until the verdict is known if only that
        is asked.
        """
        if self.kept is not None:
            self.kept.combinations = lambda: (found for c in product(*complete) for found in self.structures(c))
            self.kept.restrict = restrict
        self.solve_each(complete)

    def _solve(self, paths: tuple[Path, ...]) -> None:
        condition = self.program.condition
        restrictions: list[list[Compare]] = [[]]
        if self.verdict_only and not self.findings_wanted:
            target = Not(condition.formula) if condition.kind == "forall" else condition.formula
            restrictions = clauses(target) or [[]]
            if restrictions != [[]] and self._undefined_beside(paths):
                restrictions = [[]]
            self.complete = self.complete and restrictions == [[]]
        for clause in restrictions:
            for s, choices in self.structures(paths):
                self.deadline()
                if clause and not restrict(s, choices, clause):
                    continue
                solver = Solver(self.tape, s, choices, self.deadline)
                states: States | None = None
                for candidates, solution in solver.solve():
                    if states is None:
                        states = States(solver, condition)
                    unfinished = is_undefined_by_paths(self.program, paths)
                    for c in candidates:
                        self.executions += 1
                        if solver.misusable and self._misused(solver, c):
                            continue
                        state = states.state_of(c)
                        self.record_state(state, solver, c)
                        if unfinished:
                            self._unfinished(solver, c, paths)
                            unfinished = False
                    self._report_flagged(solver, solution)
                    self.decided = self.decided or (self.verdict_only and self._decided(states, candidates))
                    if self.decided:
                        self.complete = False
                        return
                for name, count in solver.failed.items():
                    self.failed[name] = self.failed.get(name, 0) + count

    def _undefined_beside(self, paths: tuple[Path, ...]) -> bool:
        """Whether an execution outside of the condition may decide the verdict by being undefined."""
        if is_undefined_by_paths(self.program, paths):
            return True
        for s, choices in self.structures(paths):
            if any(o.misstep for c in choices for o in c.options):
                return True
            if any(a.role == "flag" for a in self.tape.checks):
                prepared = Prepared(self.tape, s, choices, self.deadline)
                if any(may_be_undefined(s, name, (i, j)) for name, i, j in prepared.may_flag()):
                    return True
        return False

    def _decided(self, states: States, candidates: list[Candidate]) -> bool:
        """Whether one of these executions decides the verdict."""
        condition = self.program.condition
        if condition.kind == "none":
            return not self.findings_wanted
        wanted = condition.kind != "forall"
        if self.undefined:
            return True
        if self.findings_wanted:
            return False
        return any(wanted in truth_of(condition, states.state_of(c)) for c in candidates)

    def _races_of(self, s: Structure, choices: list[Choice]) -> None:
        """Reports the races and misuses of a structure whose executions do not end."""
        solver = Solver(self.tape, s, choices, self.deadline)
        unfinished = is_undefined_by_paths(self.program, s.paths)
        if solver.misusable or unfinished or prefixes.may_show_new_race(solver, self.seen):
            for candidates, solution in solver.solve():
                for c in candidates if solver.misusable or unfinished else ():
                    misused = solver.misusable and self._misused(solver, c, ended=False)
                    if unfinished and not misused:
                        self._unfinished(solver, c, s.paths)
                        unfinished = False
                self._report_flagged(solver, solution)

    def consistent(self, s: Structure, choices: list[Choice]) -> tuple[Prepared, Candidate] | None:
        """A consistent execution of the structure without misuse, if there is one."""
        solver = Solver(self.tape, s, choices, self.deadline)
        for candidates, solution in solver.solve():
            if solution.defined:
                return solver, next((c for c in candidates if not solver.misstep(c)), candidates[0])
        return None

    def _stuck(self, combination: tuple[Path, ...]) -> Finding | None:
        condition = self.program.condition
        s = build_structure(self.program, combination, memory_ranges(condition))
        static = [
            n
            for n in s.nodes
            if n.has(Tag.BLOCKED) and n.source and n.source.barrier and n.source.barrier.key[0] == "static"
        ]
        met = self._barriers(s)
        if met is None or not all(barrier_generations.is_blocked(s, n) for n in static):
            return None
        stuck = frozenset(u for p in combination if p.end == "stuck" for u in p.stuck)
        assigned = self.phase_choices(s, stuck)
        if assigned is None:
            return None
        solver = Solver(self.tape, s, read_choices(s, stuck) + met + assigned, self.deadline)
        self._cut_short(s, met + assigned)
        finding = None
        racing = prefixes.may_show_new_race(solver, self.seen)
        for candidates, solution in solver.solve():
            for c in candidates:
                if not self._misused(solver, c) and finding is None:
                    finding = deadlock_finding(solver, c, combination, self.profile)
                    self._show(finding, solver, c, waiting_nodes(s, combination), WAITS)
                    if self.prop != "liveness":
                        self._unfinished(solver, c, combination)
            if self.prop != "liveness":
                self._report_flagged(solver, solution)
            if finding is not None and (self.prop == "liveness" or not (solver.misusable or racing)):
                break  # else the others may misuse an mbarrier in other ways, or race
        return finding

    def _report_flagged(self, solver: Prepared, solution: Solution) -> None:
        for flagged in solution.flagged.values():
            if not prefixes.is_group_overlap(solver.s, flagged.pair):
                self._report(solver, FlagReport(flagged.name, flagged.pair, flagged.candidate))
