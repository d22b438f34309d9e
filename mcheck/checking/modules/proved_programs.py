"""Programs of a launch that are proved, each of which stands for those that do the same at other places."""

from __future__ import annotations

from dataclasses import field

from mcheck.answers.result import Answer
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.ir.program import Program
from mcheck.proofs.translation import is_translation

MOST = 8
"""The maximum number of programs that another one is compared with."""


@dataclass(slots=True)
class ProvedPrograms:
    """The programs about which one question was asked under one model, as far as they are proved without a finding."""

    known: list[tuple[Program, Answer]] = field(default_factory=list)

    def answer_of(self, program: Program) -> Answer | None:
        """The answer about a program that a translation maps to a proved one."""
        for one, given in self.known:
            if is_translation(one, program):
                return replace(given, executions=0)
        return None

    def add(self, program: Program, given: Answer) -> None:
        """Note the answer about a program, if it stands for others: a finding names places."""
        whole = given.verdict is Verdict.PROVED and given.covered and not given.cut
        if whole and not given.findings and not given.branches and len(self.known) < MOST:
            self.known.append((program, given))
