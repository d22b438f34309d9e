"""Engine selection: which engines are tried, in which order, for how long, and why.

A pure function of the program's text and the question.
"""

from __future__ import annotations

from collections.abc import Collection

from mcheck.answers.final_states import terms_of
from mcheck.answers.merged_answers import is_counted_error
from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import is_decisive
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.program_size import choose_enumerator
from mcheck.checking.policy.question import Completeness, Question
from mcheck.ir.ops import Alu, Branch, Fence, Load, Store
from mcheck.ir.program import Program

LITMUS_SIZE = 40
"""The maximum size, in operations of all threads, up to which an enumerating engine is tried first."""
LITMUS_THREADS = 6
FIRST = 4.0
"""Seconds of an engine's first attempt if another one may be faster."""
ALONE = 20.0
"""Seconds of Z3's first attempt at a classic test, for which the protocol engine seldom has an answer."""
BESIDE = 5.0
"""Seconds of the explicit engine to supplement the protocol engine's answer about findings."""
PATIENCE = 10.0
"""Seconds of the protocol engine's first attempt at a litmus test, which the explicit engine may finish at once."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An engine and its time limit in seconds; ``None``: all time that is left."""

    engine: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The attempts, in order, until one settles the question."""

    attempts: tuple[Attempt, ...]
    why: str

    def skip_engines(self, engines: Collection[str]) -> Plan:
        """The plan without the short attempts of ``engines``, which would time out again."""
        left = tuple(a for a in self.attempts if a.seconds is None or a.engine not in engines)
        if len(left) == len(self.attempts):
            return self
        return Plan(left, f"the {' and the '.join(sorted(engines))} engine timed out for a smaller instance")


def plan_attempts(program: Program, question: Question, engine: str) -> Plan:
    """The plan for ``engine``: a name, or ``auto``."""
    if engine != "auto":
        return Plan((Attempt(engine),), "selected by the user")
    match question.about:
        case Completeness.LIVENESS:
            return Plan((Attempt(choose_enumerator(program, verdict_only=False)),), "it models waits exactly")
        case Completeness.FINDINGS:
            return _for_findings(program, question)
        case _:
            return _for_states(program, question)


def _for_findings(program: Program, question: Question) -> Plan:
    """The plan for findings: the protocol engine, whose work grows with the program and not with its executions.

    For small litmus tests the explicit engine also explores every execution, before the protocol engine has taken long.
    """
    if not is_litmus(program):
        return Plan(
            (Attempt("protocol"), Attempt("explicit", BESIDE)),
            "its work grows with the program, not with its executions",
        )
    first = PATIENCE if question.timeout is None else min(PATIENCE, question.timeout / 2)
    attempts = (Attempt("protocol", first), Attempt("explicit", BESIDE), Attempt("protocol"))
    return Plan(attempts, "a litmus test: without a finding, all executions are enumerated too")


def _for_states(program: Program, question: Question) -> Plan:
    """The plan for states and verdicts: a short attempt of each engine, then the rest of the time for one of them.

    For a classic test that is the engine that enumerates executions, which may have been slow on a busy machine; the
    protocol engine seldom has an answer to such a test.
    """
    size = count_operations(program)
    classic = is_classic(program)
    lister = choose_enumerator(program, verdict_only=question.about is Completeness.VERDICT, classic=classic)
    short = FIRST if question.timeout is None else min(FIRST, question.timeout / 3)
    why = f"a litmus test of {size} operations: the enumerating engines are tried first"
    if classic and lister == "z3":
        first = ALONE if question.timeout is None else min(ALONE, question.timeout * 2 / 3)
        return Plan((Attempt("z3", first), Attempt("protocol", short), Attempt("z3")), why)
    if classic:
        return Plan((Attempt(lister, short), Attempt("protocol", short), Attempt(lister)), why)
    if size <= LITMUS_SIZE:
        order = (Attempt(lister, short), Attempt("protocol", short), Attempt("protocol"), Attempt(lister))
        return Plan(order, why)
    order = (Attempt("protocol", short), Attempt(lister, short), Attempt("protocol"), Attempt(lister))
    return Plan(order, f"{size} operations: the protocol engine is tried first")


def is_settled(given: Answer, program: Program, question: Question) -> bool:
    """Whether an answer settles the question."""
    if given.verdict is Verdict.UNKNOWN:
        return False
    match question.about:
        case Completeness.FINDINGS:
            enumerated = given.engine != "protocol" or given.all_executions
            return _is_finding(given, question) or enumerated or not is_litmus(program)
        case Completeness.STATES:
            return given.complete or given.undefined or not has_states(program)
        case _:
            return True


def _is_finding(given: Answer, question: Question) -> bool:
    """Whether the answer has a finding that is not excused and decides it, so that no other engine is needed: an error
    under the default profile, or a stricter one would find less, or anything decisive if all executions are covered.
    """
    if given.verdict is not Verdict.FINDING or question.excused is None:
        return given.verdict is Verdict.FINDING
    left = [f for f in given.findings if not question.excused(f)]
    return any(is_counted_error(f, question.excused) or (given.covered and is_decisive(f)) for f in left)


def count_operations(program: Program) -> int:
    """The number of operations of all threads."""
    return sum(len(t.code) for t in program.threads)


def has_states(program: Program) -> bool:
    """Whether the condition, or ``locations``, names anything."""
    return bool(terms_of(program.condition))


def is_classic(program: Program) -> bool:
    """Whether the threads are in different warps and only load, store and fence."""
    warps = {t.place.own_warp for t in program.threads}
    plain = all(isinstance(op, Load | Store | Fence | Alu) for t in program.threads for op in t.code)
    return plain and len(warps) == len(program.threads)


def is_litmus(program: Program) -> bool:
    """Whether the program is small enough to enumerate every execution: few threads with few operations beside
    arithmetic.

    Only enumeration shows reads from writes in the reader's future (load buffering), which the protocol engine does not
    follow.
    """
    if len(program.threads) > LITMUS_THREADS:
        return False
    shared = sum(1 for t in program.threads for op in t.code if not (op.facets.computes or isinstance(op, Branch)))
    return shared <= LITMUS_SIZE
