"""Final states of race-free programs, from the executions that the protocol engine distinguishes.

In such a program every weak read has one causally latest write. A final state therefore follows from the phases, the
values of strong reads and the order of atomics, which the engine explores anyway. For final states it also
distinguishes what the registers and locations in question depend on. The list is complete if no execution has a race,
if interleavings show every execution (``mcheck.engines.protocol.analysis.interleaving``), and if no value had to be
guessed. A state that was reached counts even where others may be missing.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.answers.final_states import UNKNOWN, terms_of, truth_of
from mcheck.answers.result import Answer, Outcome, State, Value, sort_by_state
from mcheck.answers.verdict_rules import ACCEPTED, INTERLEAVING_ASSUMPTION, assumptions, makes_undefined
from mcheck.base.reasons import Cause, Reason, unique_reasons
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.cat.ast import Model
from mcheck.engines.protocol.analysis.delayed_waits import explain_delayed_waits
from mcheck.engines.protocol.analysis.interleaving import explain_non_interleaving, shares_words
from mcheck.engines.protocol.analysis.model_equivalence import has_equivalent_races
from mcheck.engines.protocol.analysis.slicing import Watched
from mcheck.engines.protocol.diagnosis.findings import build_step
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.exploration import Search
from mcheck.engines.protocol.passes import ALL_PASSES, Passes
from mcheck.findings.finding import Finding
from mcheck.findings.trace import Trace
from mcheck.ir import ops
from mcheck.ir.condition import MemTerm, RegTerm, Term
from mcheck.ir.program import Program
from mcheck.semantics.terms import typed

MAX_EXECUTIONS = 10_000
UNKNOWN_BRANCH = "a branch on an unknown value may determine another unknown value"
WITNESS_LINES = 40


@dataclass(slots=True)
class States:
    """The final states of the executions so far: the number of executions that end in each, and one as a witness."""

    program: Program
    terms: tuple[Term, ...]
    witnesses: bool
    execution_counts: dict[State, int] = field(default_factory=dict)
    witness_of: dict[State, Trace] = field(default_factory=dict)
    inexact_reason: str | None = None
    exit_passed_barrier: bool = False

    def add_execution(self, m: Machine) -> None:
        """Add the final state of an execution in which every thread has ended; others have none."""
        if m.inexact_reason is not None:
            self.inexact_reason = m.inexact_reason
        self.exit_passed_barrier = self.exit_passed_barrier or m.exit_passed_barrier
        if m.outcome != "end" or any(a.status != "done" for a in m.agents):
            return
        state = tuple((t.label, _read_term(m, t)) for t in self.terms if isinstance(t, RegTerm | MemTerm))
        if m.guess_count and any(value == UNKNOWN for _, value in state):
            self.inexact_reason = UNKNOWN_BRANCH
        self.execution_counts[state] = self.execution_counts.get(state, 0) + 1
        if self.witnesses and state not in self.witness_of:
            self.witness_of[state] = _make_witness(m)


def _read_term(m: Machine, term: RegTerm | MemTerm) -> Value:
    """The final value of a register or location."""
    if isinstance(term, MemTerm):
        raw = m.memory.load(term.address, term.size)
        value = UNKNOWN if raw is None else typed(term.type, raw)
    else:
        agent = m.agents[m.agent_of_thread[term.thread]]
        lane = agent.threads.index(term.thread)
        value = agent.lanes[lane].registers.get(term.reg, 0)
    return value if isinstance(value, int) else UNKNOWN


def _make_witness(m: Machine) -> Trace:
    """The last steps of an execution."""
    first = max(len(m.trace) - WITNESS_LINES, 0)
    return tuple(build_step(m, k, skipped=first if k == first else 0) for k in range(first, len(m.trace)))


def condition_registers(program: Program) -> Watched:
    """The registers that the condition names."""
    found: dict[int, set[str]] = {}
    for term in terms_of(program.condition):
        if isinstance(term, RegTerm):
            found.setdefault(term.thread, set()).add(term.reg)
    return {thread: frozenset(names) for thread, names in found.items()}


OTHER_MODEL = Reason(
    Cause.MODEL,
    "the protocol engine lists final states under models with the axioms and the races of ptx-9.0 or ptx-9.3: for "
    "other models it is not known that a race-free program leaves weak reads no choice",
)


def answer(
    program: Program,
    model: Model,
    *,
    profile: str = "ptx",
    unroll: int = 2,
    timeout: float | None = None,
    witnesses: bool = False,
    passes: Passes = ALL_PASSES,
) -> Answer:
    """The final states of a program with the verdict on its condition; ``unknown`` with the reason where they are not
    known. Never raises for a time-out or an unmodelled construct.
    """
    if not has_equivalent_races(tape_of(model)):
        return Answer(verdict=Verdict.UNKNOWN, complete=False, engine="protocol", reasons=(OTHER_MODEL,))
    states = States(program, terms_of(program.condition), witnesses)
    search = Search(
        program,
        model,
        profile,
        unroll,
        MAX_EXECUTIONS,
        passes=passes,
        observed_registers=condition_registers(program),
        on_execution=states.add_execution,
    )
    reason = search.explore(timeout)
    findings = search.sorted_findings()
    undefined = any(makes_undefined(f) for f in findings)
    reason = reason or search.not_followed_reason or _explain_incomplete(search, states, findings)
    verdict, why = _decide_verdict(program, states, undefined=undefined, reason=reason)
    return Answer(
        verdict=verdict,
        outcomes=tuple(
            Outcome(state=state, executions=count, witness=states.witness_of.get(state, ()))
            for state, count in sort_by_state(states.execution_counts.items(), lambda pair: pair[0])
        )
        if states.inexact_reason is None
        else (),
        complete=reason is None,
        undefined=undefined,
        findings=findings,
        executions=search.executions,
        covered=reason is None,
        assumptions=(*assumptions(program), INTERLEAVING_ASSUMPTION),
        engine="protocol",
        reasons=unique_reasons(r for r in (why, reason) if r is not None and (r is why or r.cut)),
        ends=not search.no_execution_ends,
    )


def _explain_incomplete(search: Search, states: States, findings: tuple[Finding, ...]) -> Reason | None:
    """Why there may be other states."""
    races = sorted({f.code for f in findings if f.kind == "race" and f.code not in ACCEPTED})
    if races:
        text = f"the protocol engine lists final states only for race-free programs ({', '.join(races)})"
        return Reason(Cause.RACES, text)
    if search.bound_reason is not None:
        return search.bound_reason
    if search.reordering is not None:
        return Reason(Cause.STATES, f"an execution that is not an interleaving: {search.reordering}")
    if states.inexact_reason is not None:
        return Reason(Cause.STATES, f"the protocol engine does not list states here: {states.inexact_reason}")
    if _observes_pending_count(search):
        return Reason(Cause.STATES, "the protocol engine does not list the counts of pending arrivals")
    if states.exit_passed_barrier and shares_words(search.program):
        text = "shared words are read and written on both sides of a barrier that waits for a thread to exit"
        return Reason(Cause.STATES, text)
    late = None if search.setup is None else explain_delayed_waits(search.program, search.setup.sliced_registers)
    more = late or explain_non_interleaving(search.program)
    return None if more is None else Reason(Cause.STATES, more)


def _observes_pending_count(search: Search) -> bool:
    """Whether an observed register holds a count of pending arrivals, which depends on the order of commuting
    arrivals.
    """
    assert search.setup is not None
    observed = search.observed_registers or {}
    return any(
        (isinstance(op, ops.MbarrierPending) and op.dst.name in names)
        or (
            isinstance(op, ops.MbarrierArrive)
            and op.state is not None
            and op.state.name in observed.get(thread.index, ())
        )
        for thread, names in zip(search.program.threads, search.setup.sliced_registers, strict=True)
        for op in thread.code
    )


def _decide_verdict(
    program: Program, states: States, *, undefined: bool, reason: Reason | None
) -> tuple[Verdict, Reason | None]:
    """The verdict on the condition, with its reason."""
    condition = program.condition
    kind = condition.kind
    if undefined:
        if kind == "none":
            return Verdict.PASS, None
        return Verdict.PASS if kind == "exists" else Verdict.FAIL, Reason(Cause.UNDEFINED)
    if kind != "none" and states.inexact_reason is None:
        truths = [truth_of(condition, s) for s in states.execution_counts]
        if kind == "forall":
            if any(False in t for t in truths):
                return Verdict.FAIL, None
        elif any(True in t for t in truths):
            return (Verdict.PASS if kind == "exists" else Verdict.FAIL), None
    if reason is not None:
        return Verdict.UNKNOWN, reason
    return (Verdict.FAIL if kind == "exists" else Verdict.PASS), None
