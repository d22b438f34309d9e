"""What ``mcheck check`` asks of a litmus test or a kernel sketch: its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcheck.base.records import dataclass
from mcheck.checking.check.selection import find_all, set_apart
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.single import answer_case, load_program

if TYPE_CHECKING:
    from mcheck.answers.result import Answer
    from mcheck.base.budget import Limit
    from mcheck.cat.ast import Model
    from mcheck.checking.run.result import Result
    from mcheck.ir.program import Program


@dataclass(frozen=True, slots=True)
class FindingsInquiry:
    """The inquiry about the findings of a program, for every number if it has a constant that is any."""

    options: Options = Options()

    @property
    def about(self) -> Completeness:
        """The findings."""
        return Completeness.FINDINGS

    def read(self, case: Case, settings: Settings) -> Program:
        """The program of a file."""
        return load_program(case.path, settings.assume, case.text, every=True)

    def prepare(self, subject: Program, settings: Settings) -> Program:  # noqa: ARG002 - warnings are no errors
        """The program as it was read."""
        return subject

    def ask(self, subject: Program, model: Model, settings: Settings, within: Limit) -> Answer:
        """The answer about the program, selected or not."""
        engine = self.options.engine
        return find_all(lambda asked: ask(subject, model, asked, engine), subject, settings, self.options, within)

    def report(self, result: Result, subject: Program, given: Answer) -> Result:  # noqa: ARG002 - it is in the result
        """The result with unwanted findings set apart."""
        return set_apart(result, given, self.options)


def check_case(case: Case, settings: Settings, options: Options) -> Result:
    """The result of checking one program; raises only ``KeyboardInterrupt``."""
    return answer_case(case, settings, FindingsInquiry(options))
