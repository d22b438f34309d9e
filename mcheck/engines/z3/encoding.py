"""One event structure under one model as a formula, and the queries to it.

The choices are selectors of which exactly one holds; co and the fence order are a variable per open pair; the nodes of
the tape are defined if an axiom, a flag or a value needs them. Every axiom has a switch, so that an unsatisfiable core
names the axioms that forbid the executions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from mcheck.base.budget import Limit
from mcheck.base.errors import InternalError
from mcheck.base.records import replace
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.tape import BOUND, TOTAL, UNKNOWNS
from mcheck.engines.z3.bit_vectors import TOKEN_BITS
from mcheck.engines.z3.choice_misuse import SingleChoice
from mcheck.engines.z3.clauses import FALSE, TRUE, Side, spell
from mcheck.engines.z3.merged_structure import Guarded, Singles
from mcheck.engines.z3.relation_encoding import Relations
from mcheck.engines.z3.solver_calls import satisfiable
from mcheck.engines.z3.symbolic_choices import Mishap, OpenChoice, Opened
from mcheck.engines.z3.value_literals import ConditionLiterals, Values
from mcheck.engines.z3.witness_check import Witness, recheck
from mcheck.events.choices.candidate import Candidate, Choice, Option
from mcheck.events.choices.divergent_lanes import is_undefined_by_paths
from mcheck.ir.condition import Condition
from mcheck.semantics.terms import Term

if TYPE_CHECKING:
    import z3


class Question:
    """The formula of one structure."""

    def __init__(self, prepared: Opened, condition: Condition, limit: Limit, singles: Singles | None = None) -> None:
        import z3

        self.z3 = z3
        self.solver: z3.Solver = z3.SolverFor("QF_FD")
        self.prepared = prepared
        self.singles = singles
        self.s = prepared.s
        self.limit = limit
        self.clauses = prepared.clauses
        self.here = prepared.here
        self.selectors = [[] if k in prepared.open else self._one_hot(c) for k, c in enumerate(prepared.choices)]
        self.pairs = self._chosen_pairs()
        self.co: dict[tuple[int, int], int] = {}
        self.fences: dict[tuple[int, int], int] = {}
        self.relations = Relations(prepared, self.clauses, self.base_pair)
        self.values = Values(prepared, self.clauses, self.selectors)
        self.condition = ConditionLiterals(self.values, condition)
        self.switches: dict[int, str] = {}
        self.refuted: set[str] = set()
        self._misuse()
        self._states()
        self._coherence()
        self._fence_order()
        self._not_last()
        self._axioms()
        for (term, truth), under in self._constraints().items():
            self.clauses.add(-under, self.values.truth(term, truth))

    # --- choices ----------------------------------------------------------------------------------------------

    def _one_hot(self, choice: Choice) -> list[int]:
        """The selectors of a choice, of which exactly one holds; none for a read that is not in the execution."""
        here = self.here(choice.node) if choice.kind == "rf" else TRUE
        if len(choice.options) == 1:
            return [here]
        selectors = [self.clauses.new() for _ in choice.options]
        self.clauses.exactly_one(selectors if here == TRUE else [*selectors, -here])
        for x, option in zip(selectors, choice.options, strict=True):
            if choice.kind in ("rf", "final"):
                self.clauses.add(-x, self.here(option.source))
        return selectors

    def _constraints(self) -> dict[tuple[Term, bool], int]:
        """The constraints of the paths, each with the literal that its path is taken."""
        if not isinstance(self.prepared, Guarded):
            return dict.fromkeys(self.prepared.constraints, TRUE)
        found: dict[tuple[int, Term, bool], int] = {}
        for joined in self.prepared.threads:
            for k, path in enumerate(joined.alternatives):
                for term, truth in path.constraints:
                    key = (joined.path.thread, joined.term(k, term), truth)
                    found[key] = found.get(key, 0) | 1 << k
        return {
            (term, truth): self.prepared.guards.any_taken(thread, mask) for (thread, term, truth), mask in found.items()
        }

    def _listed(self) -> Iterator[tuple[Choice, list[int]]]:
        """The choices whose options are enumerated, with their selectors."""
        for k, (choice, selectors) in enumerate(zip(self.prepared.choices, self.selectors, strict=True)):
            if k not in self.prepared.open:
                yield choice, selectors

    def _chosen_pairs(self) -> dict[tuple[str, int, int], list[int]]:
        found: dict[tuple[str, int, int], list[int]] = {}
        for name in UNKNOWNS:
            for i, j, x in self.prepared.opened(name):
                found.setdefault((name, i, j), []).append(x)
        for choice, selectors in self._listed():
            for option, x in zip(choice.options, selectors, strict=True):
                for relation, pairs in option.edges:
                    for i, j in pairs:
                        found.setdefault((relation, i, j), []).append(x)
        return found

    def base_pair(self, name: str, i: int, j: int) -> int:
        """The literal of a pair of a base relation that the execution chooses."""
        if name == "co":
            return self.co[i, j]
        if name == "sync_fence":
            return self.fences[i, j]
        return self.clauses.any_of(self.pairs.get((name, i, j), ()), Side.EXACT)

    def _misuse(self) -> None:
        """Excludes executions with two misuses; only the first counts, for nothing after it is known.

        A misuse that every option has counts in any case.
        """
        found = {k: [x for _, _, x in self._missteps(k)] for k in range(len(self.prepared.choices))}
        some = {k: self.clauses.any_of(missteps, Side.EXACT) for k, missteps in found.items() if missteps}
        self.misused = list(some.values())
        once = [x for k, x in some.items() if not self._inevitable(k)] if len(some) > 1 else []
        for x, y in combinations(once, 2):
            self.clauses.add(-x, -y)

    def _states(self) -> None:
        """A wait has the state that an arrive returned if and only if their values agree.

        After another misuse what depends on it has no value, and the wait may have any of the states.
        """
        vectors = self.values.vectors
        self.supposed: list[int] = []
        for k, encoding in self.prepared.open.items():
            for wait, arrivals in encoding.states().items():
                what = self.s.events[wait].mbarrier
                assert what is not None and what.state is not None
                value = vectors.unsigned(vectors.vector_of(what.state), TOKEN_BITS)
                others = [x for j in range(len(self.prepared.choices)) if j != k for _, _, x in self._missteps(j)]
                free = self.clauses.all_of((self.clauses.any_of(others, Side.EXACT), -value.known), Side.EXACT)
                for arrive, same in arrivals.items():
                    token = vectors.event_result(arrive)
                    both = self.clauses.all_of((value.known, token.known), Side.EXACT)
                    equal = self.values.named(f"(and {spell(both)} {vectors.compare('==', value, token)})")
                    self.clauses.add(free, -same, equal)
                    self.clauses.add(free, same, -equal)
                for x, y in combinations(arrivals.values(), 2):
                    self.clauses.add(-free, -x, -y)
                self.supposed += arrivals.values()

    def _inevitable(self, k: int) -> bool:
        """Whether every option of a choice is a misuse."""
        choice = self.prepared.choices[k]
        return SingleChoice(choice).inevitable() if isinstance(choice, OpenChoice) else choice.inevitable

    def _missteps(self, k: int) -> list[Mishap]:
        """The misuses that a choice may have."""
        if k in self.prepared.open:
            return self.prepared.open[k].missteps()
        options = zip(self.prepared.choices[k].options, self.selectors[k], strict=True)
        return [(o.misstep[0], o.misstep[2], x) for o, x in options if o.misstep is not None]

    def missteps(self) -> list[Mishap]:
        """All misuses of some execution, each with its literal."""
        return [mishap for k in range(len(self.selectors)) for mishap in self._missteps(k)]

    def unfinished(self) -> list[int]:
        """The literals of paths that are undefined in themselves: a copy may outlive its thread."""
        if not isinstance(self.prepared, Guarded):
            return [TRUE] if is_undefined_by_paths(self.s.program, self.s.paths) else []
        taken = self.prepared.guards.taken
        return [
            taken[joined.path.thread][k]
            for joined in self.prepared.threads
            for k, path in enumerate(joined.alternatives)
            if path.unfinished
        ]

    def remarks(self) -> list[Mishap]:
        """All findings that do not end the execution."""
        out = [mishap for encoding in self.prepared.open.values() for mishap in encoding.remarks()]
        for choice, selectors in self._listed():
            for option, x in zip(choice.options, selectors, strict=True):
                out += [(code, uid, x) for code, _, uid in option.remarks]
        return out

    # --- orders -----------------------------------------------------------------------------------------------

    def _coherence(self) -> None:
        """co is a strict partial order of the writes of each location, total if the model demands that of every
        execution.
        """
        p, add = self.prepared, self.clauses.add
        always = self._always_ordered()
        for writes in self.s.writes.values():
            for i, j in combinations(writes, 2):
                forward, back = (self._open_pair(p.co_low, p.co_high, a, b) for a, b in ((i, j), (j, i)))
                if forward and back and (always[i] >> j & 1 or always[j] >> i & 1):
                    x = self.clauses.new()
                    self.co[i, j], self.co[j, i] = x, -x
                    continue
                if forward:
                    self.co[i, j] = self.clauses.new()
                if back:
                    self.co[j, i] = self.clauses.new()
                if forward and back:
                    add(-self.co[i, j], -self.co[j, i])
            for j in writes:
                into = [(i, x) for i in writes if i != j and (x := self.co_pair(i, j)) != FALSE]
                out = [(k, x) for k in writes if k != j and (x := self.co_pair(j, k)) != FALSE]
                for i, x in into:
                    for k, y in out:
                        if i != k:
                            add(-x, -y, self.co_pair(i, k), -self.here(i), -self.here(j), -self.here(k))

    def _always_ordered(self) -> list[int]:
        p = self.prepared
        if p.tape.total_co:
            return [(1 << p.n) - 1] * p.n
        out = bits.empty(p.n)
        for axiom in p.checks:
            if axiom.role == TOTAL:
                out = bits.union(out, p.bounds.low[axiom.node])
        return out

    @staticmethod
    def _open_pair(low: list[int], high: list[int], i: int, j: int) -> bool:
        return bool(high[i] >> j & 1) and not low[i] >> j & 1

    def co_pair(self, i: int, j: int) -> int:
        """The literal of a pair of co."""
        if self.prepared.co_low[i] >> j & 1:
            return TRUE
        return self.co.get((i, j), FALSE)

    def _fence_order(self) -> None:
        """sync_fence orders every pair of its fences, consistently with some total order of all of them."""
        p = self.prepared
        fences = [i for i in range(p.n) if p.sf_high[i]]
        place: dict[tuple[int, int], int] = {}
        for i, j in combinations(fences, 2):
            x = self.clauses.new()
            place[i, j], place[j, i] = x, -x
            if p.sf_high[i] >> j & 1:
                self.fences[i, j], self.fences[j, i] = x, -x
        for i, j, k in combinations(fences, 3):
            self.clauses.add(-place[i, j], -place[j, k], place[i, k])
            self.clauses.add(place[i, j], place[j, k], -place[i, k])

    def _not_last(self) -> None:
        """No write follows in co after the one that an option selects as the last."""
        for choice, selectors in self._listed():
            for option, x in zip(choice.options, selectors, strict=True):
                for i, j in option.not_co:
                    self.clauses.add(-x, -self.co_pair(i, j), -self.here(i), -self.here(j))

    # --- axioms -----------------------------------------------------------------------------------------------

    def _axioms(self) -> None:
        p = self.prepared
        for axiom in p.checks + p.late:
            self.limit.check()
            switch = self.clauses.new()
            self.switches[switch] = axiom.name
            high = p.bounds.high[axiom.node]
            side = Side.LOWER if axiom.negated else Side.UPPER
            cells = [(i, j) for i in range(p.n) for j in bits.bits(high[i]) if axiom.test == "empty" or i == j]
            if axiom.role == "forbid" and axiom.negated:
                found = [
                    self.clauses.all_of(
                        (self.relations.literal(axiom.node, i, j, side), self.here(i), self.here(j)), side
                    )
                    for i, j in cells
                ]
                self.clauses.add(-switch, *found)
                continue
            for i, j in cells:
                if axiom.role == BOUND:
                    wanted = [self.co_pair(i, j)]
                elif axiom.role == TOTAL:
                    wanted = [self.co_pair(i, j), self.co_pair(j, i)]
                else:
                    wanted = []
                if TRUE not in wanted:
                    there = (-self.here(i), -self.here(j))
                    self.clauses.add(-switch, -self.relations.literal(axiom.node, i, j, side), *there, *wanted)

    def flag_pair(self, node: int, i: int, j: int) -> int:
        """The literal of a pair that a flag reports."""
        found = self.relations.literal(node, i, j, Side.LOWER)
        return self.clauses.all_of((found, self.here(i), self.here(j)), Side.LOWER)

    # --- solving ----------------------------------------------------------------------------------------------

    def _witness(self, model: z3.ModelRef, candidate: Candidate) -> Witness | None:
        """The solution after a check by the evaluator, on its own paths."""
        ordered = partial(self._holds, model)
        if not isinstance(self.prepared, Guarded):
            return recheck(self.prepared, candidate, ordered)
        assert self.singles is not None
        single = self.singles.project(self._alternatives(model), candidate)
        witness = recheck(single.prepared, single.candidate, single.ordered(ordered))
        if witness is None:
            return None
        shared = {own: node for node, own in single.nodes.items()}
        return replace(witness, shared=tuple((shared[i], shared[j]) for i, j in (f.pair for f in witness.flags)))

    def _alternatives(self, model: z3.ModelRef) -> dict[int, int]:
        """The alternative that each thread takes in a solution."""
        assert isinstance(self.prepared, Guarded)
        return {
            thread: next(k for k, x in enumerate(literals) if self._true(model, x))
            for thread, literals in self.prepared.guards.taken.items()
        }

    def _expression(self, literal: int) -> z3.BoolRef:
        if literal in (TRUE, FALSE):
            return self.z3.BoolVal(literal == TRUE)
        variable = self.z3.Bool(f"v{abs(literal)}")
        return variable if literal > 0 else self.z3.Not(variable)

    def _flush(self) -> None:
        text = self.clauses.text(self.values.vectors.take_lines())
        if text:
            self.solver.from_string(text)

    def exclude(self, *literals: int) -> None:
        """Excludes assignments in which all of these hold."""
        self.clauses.add(*(-x for x in literals))

    def solve(self, *assumptions: int) -> Witness | None:
        """A checked execution in which the assumptions hold; ``None`` if there is none."""
        if FALSE in assumptions:
            return None
        while True:
            self._flush()
            given = [self._expression(x) for x in (*self.switches, *assumptions) if x != TRUE]  # Z3 4.15 refuses `true`
            if not satisfiable(self.solver, given, self.limit.remaining()):
                names = {str(x) for x in self.solver.unsat_core()}
                self.refuted |= {name for k, name in self.switches.items() if f"v{k}" in names}
                return None
            model = self.solver.model()
            candidate = self._candidate(model)
            if self._corrected(model, candidate):
                continue
            witness = self._witness(model, candidate)
            if witness is not None:
                return witness
            self._exclude(model, candidate)

    def _true(self, model: z3.ModelRef, literal: int) -> bool:
        if literal in (TRUE, FALSE):
            return literal == TRUE
        value = model.eval(self.z3.Bool(f"v{abs(literal)}"), model_completion=True)
        return bool(self.z3.is_true(value)) is (literal > 0)

    def _candidate(self, model: z3.ModelRef) -> Candidate:
        return tuple(self._taken(model, k) for k in range(len(self.selectors)))

    def _taken(self, model: z3.ModelRef, k: int) -> int:
        """The option of a choice in a solution; a new one is added to the choice."""
        if k not in self.prepared.open:
            selectors = self.selectors[k]
            return next((o for o, x in enumerate(selectors) if self._true(model, x)), -1)
        option = self.prepared.open[k].decode(partial(self._true, model))
        self._compare(model, k, option)
        options = self.prepared.choices[k].options
        if option not in options[1:]:
            options.append(option)
        return options.index(option, 1)

    def _compare(self, model: z3.ModelRef, k: int, option: Option) -> None:
        """Checks that the pairs of an option are those of the solution."""
        given = {(name, i, j) for name, pairs in option.edges for i, j in pairs}
        encoding = self.prepared.open[k]
        for name in UNKNOWNS:
            for i, j in encoding.may(name):
                if self._true(model, encoding.literal(name, i, j)) is not ((name, i, j) in given):
                    raise InternalError(f"the solver's {name} is not that of the option it describes")
                given.discard((name, i, j))
        if given:
            raise InternalError(f"the solver knows nothing of {min(given)[0]} as an option has it")

    def _holds(self, model: z3.ModelRef, name: str, i: int, j: int) -> bool:
        literal = self.co_pair(i, j) if name == "co" else self.fences.get((i, j), FALSE)
        return self._true(model, literal)

    def _exclude(self, model: z3.ModelRef, candidate: Candidate) -> None:
        """Excludes an execution whose least co violates a check: its options with the order of all open pairs."""
        taken = [s[o] for s, o in zip(self.selectors, candidate, strict=True) if len(s) > 1 and o >= 0]
        if isinstance(self.prepared, Guarded):
            taken += [self.prepared.guards.taken[t][k] for t, k in self._alternatives(model).items()]
        for name in UNKNOWNS:
            taken += [x if self._true(model, x) else -x for _, _, x in self.prepared.opened(name)]
        taken += [x if self._true(model, x) else -x for x in self.supposed]
        orders = {abs(x): x for x in [*self.co.values(), *self.fences.values()]}
        taken += [x if self._true(model, x) else -x for x in orders.values()]
        self.exclude(*taken)

    def _corrected(self, model: z3.ModelRef, candidate: Candidate) -> bool:
        """Adds the results of untranslated operations for the arguments of this solution, if they are wrong in it."""
        from mcheck.engines.z3.computed_results import corrections

        wrong = False
        for line in corrections(self.prepared, candidate, self.values.vectors, model, self.z3):
            self.values.vectors.lines.append(line)
            wrong = True
        return wrong
