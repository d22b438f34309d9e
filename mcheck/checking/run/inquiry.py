"""What ``mcheck run`` asks of a litmus test: whether its condition holds, and the final states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass, replace
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.single import answer_case, conclude, load_program

if TYPE_CHECKING:
    from mcheck.answers.result import Answer
    from mcheck.base.budget import Limit
    from mcheck.cat.ast import Model
    from mcheck.checking.run.result import Result
    from mcheck.ir.program import Program


@dataclass(frozen=True, slots=True)
class VerdictInquiry:
    """The inquiry about a test's verdict and states; ``expected`` is the verdict from a CSV file, if there is one."""

    expected: str | None = None

    @property
    def about(self) -> Completeness:
        """The states, unless the settings ask for less."""
        return Completeness.STATES

    def read(self, case: Case, settings: Settings) -> Program:
        """The program of a test."""
        return load_program(case.path, settings.assume, case.text)

    def prepare(self, subject: Program, settings: Settings) -> Program:
        """The program, unless its warnings count as errors."""
        if settings.warnings_as_errors and subject.warnings:
            message, span = subject.warnings[0]
            raise InputError(message, span, hint="a warning, treated as an error by --warnings-as-errors")
        return subject

    def ask(self, subject: Program, model: Model, settings: Settings, within: Limit) -> Answer:
        """The answer about the program."""
        from mcheck.checking.policy.ask import ask

        question = make_question(subject, replace(settings, timeout=within.left()))
        if not settings.fixes_where_expected:
            question = replace(question, wants_fixes=lambda given: not self._is_as_expected(subject, settings, given))
        return ask(subject, model, question, settings.engine)

    def _is_as_expected(self, subject: Program, settings: Settings, given: Answer) -> bool:
        found = conclude(subject, given, settings, self)
        return (found if self.expected is None else replace(found, expected=self.expected)).ok

    def report(self, result: Result, subject: Program, given: Answer) -> Result:  # noqa: ARG002 - it is in the result
        """The result with the assumptions that the user chose; the others are those of every run."""
        return replace(result, assumptions=subject.assumptions.describe())


def make_question(program: Program, settings: Settings) -> Question:
    """The question about a test. Findings are included if the file expects some; then the engine may not stop at the
    verdict.
    """
    short = settings.verdict_only and not program.expectation.kinds
    about = (
        Completeness.LIVENESS if settings.prop == "liveness" else Completeness.VERDICT if short else Completeness.STATES
    )
    return Question(
        about=about,
        profile=settings.profile,
        unroll=settings.unroll,
        timeout=settings.timeout,
        witnesses=settings.witnesses,
        without=frozenset(settings.without),
    )


def run_case(case: Case, settings: Settings) -> Result:
    """The result of running one test; raises only ``KeyboardInterrupt``."""
    return answer_case(case, settings, VerdictInquiry(case.expected))
