"""``ask``: puts a question to the named engine, to those that suit the program, or to all for comparison."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from mcheck.base.budget import Limit, read_clock
from mcheck.base.errors import Unsupported
from mcheck.base.reasons import mark_own_limit, unique_reasons
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy import agreement
from mcheck.checking.policy.advised_fixes import add_tried_fixes
from mcheck.checking.policy.engine_choice import has_states, is_settled, plan_attempts
from mcheck.checking.policy.engines import ask_engine
from mcheck.checking.policy.question import Completeness, Question

if TYPE_CHECKING:
    from mcheck.answers.result import Answer
    from mcheck.cat.ast import Model
    from mcheck.checking.policy.every_n import Prover
    from mcheck.ir.program import Program, ShortenedLoops
    from mcheck.proofs.parametric_proof import Proof


def ask(
    program: Program, model: Model, question: Question, engine: str = "auto", late: set[str] | None = None
) -> Answer:  # fmt: skip
    """The answer to a question about a program; ``Answer.engine`` names the engine, ``Answer.chosen`` says why.

    Engines in ``late`` did not finish a smaller instance of the program in a short attempt, and get no short attempt
    here; further ones are added. ``both`` raises ``InternalError`` with the answers if the engines differ.
    """
    if program.parameter is not None:
        return _ask_every_number(program, model, question, engine)
    if program.shortened is not None:
        return _ask_written_loops(program, program.shortened, model, question, engine)
    if engine == "both":
        return _all(program, model, question)
    return _ask_engines(program, model, question, engine, late)


def _ask_every_number(program: Program, model: Model, question: Question, engine: str) -> Answer:
    """The answer about a program whose parameter is any number."""
    from mcheck.checking.policy.every_cta_count import check_every_size, counts_threads
    from mcheck.checking.policy.every_n import check_every_number

    if question.about is not Completeness.FINDINGS:
        raise Unsupported(f"{program.parameter} is any number; use `mcheck check`, which checks all of them")
    late = set[str]()

    def answer(one: Program, left: float | None) -> Answer:
        return ask(one, model, replace(question, timeout=left), engine, late)

    if counts_threads(program):
        return check_every_size(
            program, question.timeout, answer, question.excused, brief=question.brief,
            provable=partial(_is_shipped, model),
        )  # fmt: skip
    prover = _prover(program, model, question, engine) if engine in ("auto", "protocol") else None
    return check_every_number(program, question.timeout, answer, prover, question.excused, brief=question.brief)


def _ask_written_loops(
    program: Program, shortened: ShortenedLoops, model: Model, question: Question, engine: str
) -> Answer:
    """The answer about a program with a loop of many iterations, from the proof for any number of them."""
    from mcheck.checking.policy.every_n import check_written_loops

    def answer(one: Program, left: float | None) -> Answer:
        assumed = replace(one, assumptions=program.assumptions)
        return ask(assumed, model, replace(question, timeout=left), engine)

    proved = question.about is Completeness.FINDINGS and engine in ("auto", "protocol")
    prover = _prover(program, model, question, engine) if proved else None
    return check_written_loops(shortened, question.timeout, answer, prover)


def _ask_engines(program: Program, model: Model, question: Question, engine: str, late: set[str] | None) -> Answer:
    """The answer of the first engine of the plan that settles the question, or else the best one."""
    end = None if question.timeout is None else read_clock() + question.timeout

    def asker(name: str, most: float | None) -> Answer:
        left = None if end is None else max(end - read_clock(), 0.0)
        within = min((x for x in (most, left) if x is not None), default=None)
        given = ask_engine(name, program, model, question, within)
        return given if within == left else replace(given, reasons=mark_own_limit(given.reasons))

    def with_fixes(given: Answer) -> Answer:
        return add_tried_fixes(given, program, model, question, None if end is None else max(end - read_clock(), 0.0))

    chosen = plan_attempts(program, question, engine)
    # Another time would have given a first attempt more, and its answer instead of one that is as whole.
    hurried = question.timeout is not None and chosen != plan_attempts(program, replace(question, timeout=None), engine)
    chosen = chosen.skip_engines(late or ())
    answers: list[Answer] = []
    for attempt in chosen.attempts:
        before = [a for a in answers if a.engine == attempt.engine]
        if before and not before[-1].cut:
            continue
        given = asker(attempt.engine, attempt.seconds if not before else None)
        if is_settled(given, program, question):
            first = chosen.attempts[0].engine
            why = chosen.why if given.engine == first else f"after the {first} engine"
            fixed = with_fixes(given)
            return replace(fixed, chosen=why, cut=fixed.cut or (hurried and _cut(answers)))
        if late is not None and attempt.seconds is not None and given.cut:
            late.add(attempt.engine)
        answers.append(given)
    best = _best_findings(answers) if question.about is Completeness.FINDINGS else _best(answers)
    first = answers[0].engine
    why = chosen.why if best.engine == first else f"the {first} engine gave no complete answer"
    fixed = with_fixes(replace(best, cut=False))
    return replace(fixed, chosen=why, cut=fixed.cut or _cut(answers if hurried else _last(answers)))


def _prover(program: Program, model: Model, question: Question, engine: str) -> Prover:
    """The function that proves all large instances of a program."""

    def suffices(one: Program, given: Answer) -> Answer | None:
        chosen = plan_attempts(one, question, engine)
        if chosen.attempts[0].engine != given.engine or not is_settled(given, one, question):
            return None
        return replace(given, chosen=chosen.why)

    def prove(limit: Limit) -> Proof:
        from mcheck.proofs import parametric_proof

        asked = program, model, question.profile, question.unroll, limit
        return (
            parametric_proof.prove(*asked, suffices, passes=question.passes)
            if program.parameter is not None
            else parametric_proof.prove_long(*asked, passes=question.passes)
        )

    return prove


def _is_shipped(model: Model) -> bool:
    """Whether a model is one of those for which proofs over CTAs were made."""
    from mcheck.cat.algebra.compiled_models import tape_of
    from mcheck.engines.protocol.analysis.model_equivalence import is_equivalent

    return is_equivalent(tape_of(model))


def _cut(answers: Iterable[Answer]) -> bool:
    return any(a.cut for a in answers)


def _last(answers: list[Answer]) -> Iterable[Answer]:
    """The last answer of each engine."""
    return {a.engine: a for a in answers}.values()


def _best_findings(answers: list[Answer]) -> Answer:
    """The best answer about findings: one with findings before one without, a verdict before ``unknown``."""
    known = [a for a in answers if a.verdict is not Verdict.UNKNOWN]
    best = next((a for a in known if a.verdict is Verdict.FINDING), known[0] if known else answers[0])
    return best if best.verdict is Verdict.PROVED else _with_limits(best, answers)


def _best(answers: list[Answer]) -> Answer:
    """The last verdict; without one, the fullest answer with the reasons of all."""
    known = [a for a in answers if a.verdict is not Verdict.UNKNOWN]
    if known:
        return _with_limits(known[-1], answers)
    best = max(answers, key=lambda a: (len(a.findings), len(a.outcomes)))
    open_ = (r for a in answers for r in a.reasons if not r.cut)
    return _with_limits(replace(best, reasons=unique_reasons(open_)), answers)


def _with_limits(best: Answer, answers: list[Answer]) -> Answer:
    """The best of several answers, with the limits that stopped each engine's last attempt."""
    limits = (r for a in _last(answers) for r in a.reasons if r.cut)
    return replace(best, reasons=unique_reasons(best.reasons, limits))


def _all(program: Program, model: Model, question: Question) -> Answer:
    """The common answer of all engines that support the program."""
    question = replace(question, thorough=True, excused=None)

    def each(name: str) -> Answer:
        return ask_engine(name, program, model, question, question.timeout)

    if question.about is Completeness.FINDINGS:
        answers = [each(name) for name in ("protocol", "explicit", "z3")]
        return replace(agreement.agree_on_findings(answers), cut=_cut(answers))
    answers = [each("explicit"), each("z3")]
    given = agreement.agree_on_states(answers[0], answers[1], question)
    if question.about is not Completeness.LIVENESS and has_states(program):
        answers.append(each("protocol"))
        given = agreement.agree_with_protocol(given, answers[-1], question)
    return replace(given, cut=_cut(answers))
