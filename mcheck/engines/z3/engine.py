"""The z3 engine: paths and models as in the explicit engine, everything else is solved by Z3.

The complete paths of a thread are merged (``mcheck.engines.z3.path_merge``), so that one formula holds all their
combinations, each event under the literal that it is executed (``mcheck.engines.z3.guards``). Paths that use barriers,
mbarriers or asynchronous copies differently, or divide memory differently, are solved separately, and so are paths that
do not end: deadlocks, and prefixes that end in undefined behaviour.

Every execution that is reported has been checked by the explicit engine's evaluator (see
``mcheck.engines.z3.witness_check``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import prod

from mcheck.answers.final_states import States, final_addresses, memory_ranges
from mcheck.answers.result import Answer, State
from mcheck.answers.witnesses import FlagReport, deadlock_finding, may_be_undefined
from mcheck.base.budget import Limit
from mcheck.base.errors import InputError, InternalError, Span, Unsupported
from mcheck.base.records import dataclass, replace
from mcheck.cat.ast import Model
from mcheck.cat.tags import Tag
from mcheck.engines.search import prefixes
from mcheck.engines.search.search import Run
from mcheck.engines.search.verdict import conclude
from mcheck.engines.z3.barrier_constraints import quorum, rounds
from mcheck.engines.z3.choice_misuse import SingleChoice
from mcheck.engines.z3.clauses import Side
from mcheck.engines.z3.encoding import Question
from mcheck.engines.z3.merged_structure import Guarded, Singles, divides_alike
from mcheck.engines.z3.path_merge import Joined, groups
from mcheck.engines.z3.phase_replay import phase_choices
from mcheck.engines.z3.symbolic_choices import Mishap, OpenChoice, Opened
from mcheck.engines.z3.witness_check import Witness
from mcheck.events.choices import barrier_generations
from mcheck.events.choices.candidate import Candidate, Choice, final_choices, read_choices
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Path
from mcheck.events.structure import Structure, build_structure
from mcheck.findings import catalogue
from mcheck.findings.finding import Finding
from mcheck.findings.undefined_effects import REPORTED_BESIDE_MISUSE, accepts_misuse
from mcheck.ir.aligned_operations import is_wgmma
from mcheck.ir.program import Program
from mcheck.semantics.terms import Uid

FEW = 2
"""The minimum number of combinations of paths for a single formula."""


@dataclass(slots=True)
class Z3Run(Run):
    """A run of the z3 engine: one question about one program."""

    made = quorum, rounds

    def question(self, s: Structure, choices: list[Choice]) -> Question | None:
        """The formula of a structure; ``None`` if the static bounds refute it."""
        prepared = Opened(self.tape, s, choices, self.deadline)
        if not prepared.possible:
            self._failed(prepared.failed)
            return None
        return Question(prepared, self.program.condition, self.limit)

    def phase_choices(self, s: Structure, stuck: frozenset[Uid]) -> list[Choice]:
        """The choices of the phases of mbarriers; raises ``Unsupported`` if the file accepts a misuse, after which an
        object's behaviour is in no formula.
        """
        for event in s.events.values() if "mcheck:" in self.program.source else ():
            if event.mbarrier is not None and accepts_misuse(self.program, event.op):
                raise Unsupported("a misuse of an mbarrier that the file accepts", event.op.span)
        return phase_choices(s, stuck)

    def culprits(self, s: Structure, choices: list[Choice]) -> Iterator[tuple[Path, Uid]]:
        """The path and the event of every misuse among the options of some choice."""
        yield from prefixes.culprits(s, choices)
        for choice in choices:
            if isinstance(choice, OpenChoice):
                self.deadline()
                for uid in sorted(SingleChoice(choice).blamed_events(self.deadline)):
                    yield s.paths[uid[0]], uid

    def _failed(self, names: dict[str, int] | set[str]) -> None:
        for name in names:
            self.failed[name] = self.failed.get(name, 0) + 1

    # --- complete executions ----------------------------------------------------------------------------------

    def solve_all(self, complete: list[list[Path]]) -> None:
        """Solves all combinations at once if the paths of each thread use barriers and mbarriers in the same way."""
        for threads in product(*map(groups, complete)):
            self.deadline()
            if prod(len(joined.alternatives) for joined in threads) >= FEW and self.solve_joined(list(threads)):
                if self.decided:
                    return
                continue
            self.solve_each([joined.alternatives for joined in threads])
            if self.decided:
                return

    def solve_joined(self, threads: list[Joined]) -> bool:
        """Solves one formula for all combinations of these paths; whether there can be one."""
        if self.program.assumptions.converged:
            return False  # which statements two lanes execute depends on their paths
        if any(is_wgmma(e.op) for joined in threads for e in joined.path.events):
            return False  # the n-th of one lane is the n-th of every other: that depends on the path
        s = build_structure(
            self.program, tuple(joined.path for joined in threads), memory_ranges(self.program.condition)
        )
        if not divides_alike(s, threads) or (
            not self.semantics.static_barriers and barrier_generations.find_divergent_arrivals(s)
        ):
            return False
        met = self.barrier_choices(s)
        if met is None:
            return False
        choices = met + self.phase_choices(s, frozenset())
        if self.explore_prefixes and any(True for _ in self.culprits(s, choices)):
            return False  # each combination has executions of its own that stop early
        choices += self._plain_choices(s)
        prepared = Guarded(self.tape, s, choices, self.deadline, threads)
        if not prepared.possible:
            self._failed(prepared.failed)
            return True

        def single(paths: tuple[Path, ...]) -> tuple[Structure, list[Choice]]:
            own = build_structure(self.program, paths, memory_ranges(self.program.condition))
            return own, self._plain_choices(own)

        self._ask(Question(prepared, self.program.condition, self.limit, Singles(prepared, single)))
        return True

    def _plain_choices(self, s: Structure) -> list[Choice]:
        """The choices of rf and of final writes."""
        return read_choices(s, frozenset()) + final_choices(s, final_addresses(s, self.program.condition))

    def _solve(self, paths: tuple[Path, ...]) -> None:
        for s, choices in self.structures(paths):
            self.deadline()
            q = self.question(s, choices)
            if q is not None:
                self._ask(q)
                if self.decided:
                    return

    def _ask(self, q: Question) -> None:
        """Puts the queries about a structure that the question needs."""
        if self.verdict_only and not self.findings_wanted:
            self.complete = False
            self._verdict_of(q)
        else:
            self._everything(q)
        if not self.decided:
            self._failed(q.refuted)

    def _verdict_of(self, q: Question) -> None:
        """Queries for a verdict: the condition, then undefined behaviour."""
        condition = self.program.condition
        if condition.kind != "none":
            witness = q.solve(q.condition.target(condition.kind != "forall"), *(-x for x in q.misused))
            if witness is not None:
                self._outcome(witness)
                self._unfinished(witness.prepared, witness.candidate, witness.prepared.s.paths)
                self.decided = True
                return
        self.ends = self.ends or q.solve(*(-x for x in q.misused)) is not None
        self._misuses(q)
        self._flags(q, undefined_only=True)
        self._left_unfinished(q)
        self.decided = self.undefined

    def _everything(self, q: Question) -> None:
        """Queries for a full answer: all states, then all flags and misuses of any execution."""
        defined = [-x for x in q.misused]
        new = q.clauses.new()
        listed: set[State] = set()
        while (witness := q.solve(new, *defined)) is not None:
            state = self._outcome(witness)
            if state in listed:
                raise InternalError(f"the solver's values are not those of the evaluator: {state}")
            listed.add(state)
            self._report_flags(witness)
            self._misused(witness.prepared, witness.candidate)
            q.exclude(new, *(q.condition.equals(t, v) for t, (_, v) in zip(q.condition.terms, state, strict=True)))
        self._misuses(q)
        self._flags(q, undefined_only=False)
        self._left_unfinished(q)

    def _left_unfinished(self, q: Question) -> None:
        """Reports copies that may outlive their threads, if some execution without misuse takes these paths."""
        for literal in q.unfinished():
            if (witness := q.solve(literal, *(-x for x in q.misused))) is not None:
                self._unfinished(witness.prepared, witness.candidate, witness.prepared.s.paths)

    def _outcome(self, witness: Witness) -> State:
        state = States(witness.prepared, self.program.condition).state_of(witness.candidate)
        self.executions += 1
        self.record_state(state, witness.prepared, witness.candidate)
        return state

    # --- flags and misuse ---------------------------------------------------------------------------------------

    def _report_flags(self, witness: Witness) -> None:
        for flag in witness.flags:
            if not prefixes.is_group_overlap(witness.prepared.s, flag.pair):
                self._report(witness.prepared, FlagReport(flag.name, flag.pair, witness.candidate))

    def _flags(self, q: Question, *, undefined_only: bool) -> None:
        """Reports every pair that some execution flags."""
        for axiom in q.prepared.flags:
            if undefined_only and not self._grave(axiom.name):
                continue
            high = q.prepared.bounds.high[axiom.node]
            open_pairs = {
                (i, j)
                for i in range(q.prepared.n)
                for j in range(q.prepared.n)
                if high[i] >> j & 1 and prefixes.key_of(q.prepared, axiom.name, (i, j)) not in self.seen
                if not undefined_only or may_be_undefined(q.prepared.s, axiom.name, (i, j))
            }
            literals = {pair: q.flag_pair(axiom.node, *pair) for pair in open_pairs}
            while open_pairs:
                some = q.clauses.any_of([literals[p] for p in open_pairs], Side.LOWER)
                witness = q.solve(some, *(-x for x in q.misused))
                if witness is None:
                    break
                self._report_flags(witness)
                shown = {p for f, p in zip(witness.flags, witness.pairs, strict=True) if f.name == axiom.name}
                if undefined_only and self.undefined:
                    return
                if not shown & open_pairs:
                    raise Unsupported(f"the check {axiom.name} depends on which coherence order is least")
                open_pairs -= shown

    def _grave(self, name: str) -> bool:
        try:
            return catalogue.get(name).severity(self.profile) == "error"
        except InputError:
            return False

    def _misuses(self, q: Question, *, ended: bool = True) -> None:
        """Reports every misuse that some execution ends in, and every remark on an execution without misuse."""
        missteps = q.missteps()
        before = [mishap for mishap in missteps if mishap[0] not in prefixes.AT_THE_END]
        none_before = [-x for _, _, x in before]
        wanted: dict[tuple[str, Span | None, Uid], list[int]] = {}
        beside: dict[tuple[str, Span | None, Uid], list[int]] = {}
        """What must not hold as well."""

        def want(found: Iterable[Mishap], without: Callable[[Uid], list[int]]) -> None:
            for code, uid, x in found:
                key = code, q.s.events[uid].op.span, uid
                wanted.setdefault(key, []).append(x)
                beside[key] = without(uid)

        alone = self.findings_wanted
        want(before, lambda uid: [-x for _, other, x in before if other != uid] if alone else [])
        if ended:
            want((mishap for mishap in missteps if mishap[0] in prefixes.AT_THE_END), lambda _: none_before)
            want(q.remarks(), lambda _: [-x for x in q.misused])
        for key, literals in wanted.items():
            if key[:2] in self.findings:
                continue
            some = q.clauses.any_of(literals, Side.EXACT)
            witness = q.solve(some, *beside[key])
            if witness is not None:
                self._misused(witness.prepared, witness.candidate, ended=ended)
            elif alone and not self.only_with_others:
                self.only_with_others = q.solve(some) is not None
        self._flags_of_the_misused(q, missteps)

    def _flags_of_the_misused(self, q: Question, missteps: list[Mishap]) -> None:
        """Reports the flags of an operation that is undefined for another reason: see ``REPORTED_BESIDE_MISUSE``."""
        for axiom in q.prepared.flags:
            for code, uid, misused in missteps if axiom.name in REPORTED_BESIDE_MISUSE else ():
                node = next(iter(q.s.nodes_of[uid]), None)
                if node is None or code in REPORTED_BESIDE_MISUSE or not q.prepared.alone(uid):
                    continue
                if not q.prepared.bounds.high[axiom.node][node] >> node & 1:
                    continue
                if prefixes.key_of(q.prepared, axiom.name, (node, node)) in self.seen:
                    continue
                others = [-x for _, other, x in missteps if other != uid]
                witness = q.solve(misused, q.flag_pair(axiom.node, node, node), *others)
                if witness is None:
                    continue
                for flag, pair in zip(witness.flags, witness.pairs, strict=True):
                    if flag.name == axiom.name and pair == (node, node):
                        self._report(witness.prepared, FlagReport(flag.name, flag.pair, witness.candidate))

    # --- executions that do not end -----------------------------------------------------------------------------

    def consistent(self, s: Structure, choices: list[Choice]) -> tuple[Prepared, Candidate] | None:
        """A consistent execution of the structure without misuse, if there is one."""
        q = self.question(s, choices)
        witness = None if q is None else q.solve(*(-x for x in q.misused))
        return None if q is None or witness is None else (q.prepared, witness.candidate)

    def _races_of(self, s: Structure, choices: list[Choice]) -> None:
        """Reports the races of a structure whose executions do not end."""
        q = self.question(s, choices)
        if q is not None:
            self._misuses(q, ended=False)
            self._flags(q, undefined_only=False)
            self._left_unfinished(q)

    def _stuck(self, combination: tuple[Path, ...]) -> Finding | None:
        s = build_structure(self.program, combination, memory_ranges(self.program.condition))
        if self.semantics.static_barriers and not all(
            barrier_generations.is_blocked(s, n) for n in s.nodes if n.has(Tag.BLOCKED)
        ):
            return None
        met = self._barriers(s)
        stuck = frozenset(u for p in combination if p.end == "stuck" for u in p.stuck)
        assigned = self.phase_choices(s, stuck) if met is not None else None
        if met is None or assigned is None:
            return None
        q = self.question(s, read_choices(s, stuck) + met + assigned)
        if q is None:
            return None
        self._cut_short(s, met + assigned)
        if self.prop != "liveness":
            self._misuses(q)
            self._flags(q, undefined_only=self.verdict_only and not self.findings_wanted)
        witness = q.solve(*(-x for x in q.misused))
        if witness is None:
            return None
        if self.prop != "liveness":
            self._unfinished(q.prepared, witness.candidate, combination)
        return deadlock_finding(q.prepared, witness.candidate, combination, self.profile)


def answer(
    program: Program,
    model: Model,
    *,
    prop: str = "spec",
    verdict_only: bool = False,
    unroll: int = 2,
    timeout: float | None = None,
    profile: str = "ptx",
    findings: bool | None = None,
    witnesses: bool = False,
) -> Answer:
    """The z3 engine's answer about a program; see ``mcheck.engines.explicit.engine.answer`` for the parameters."""
    limit = Limit(timeout)
    wanted = bool(program.expectation.kinds) if findings is None else findings
    run = Z3Run(program, model, prop, verdict_only, unroll, limit, profile, wanted)
    reason = limit.attempt(run.explore)
    return replace(conclude(run, reason, witnesses=witnesses), engine="z3")
