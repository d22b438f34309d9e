"""The findings of an engine in a form that can be compared: kinds and codes."""

from __future__ import annotations

from mcheck.answers.verdict_rules import ACCEPTED
from mcheck.base.reasons import Reasons, format_reasons, without_spans
from mcheck.base.records import dataclass
from mcheck.cat.ast import Model
from mcheck.checking.policy.agreement import COUNTED, counted_kinds
from mcheck.checking.policy.engines import ask_engine
from mcheck.checking.policy.question import Completeness, Question
from mcheck.findings.finding import Finding
from mcheck.ir.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFindings:
    """An engine's findings of severity error or review.

    ``complete``: no other execution could add to them; else ``reasons`` say why.
    """

    complete: bool
    reasons: Reasons
    findings: tuple[Finding, ...]

    @property
    def reason(self) -> str:
        """The reasons as text, without locations."""
        return format_reasons(without_spans(self.reasons)) or ""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the findings."""
        return counted_kinds(self.findings)

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the findings."""
        return frozenset(f.code for f in self.findings if f.severity in COUNTED)

    @property
    def races(self) -> bool:
        """Whether there are races beside those that leave a program proved."""
        return any(f.kind == "race" and f.code not in ACCEPTED for f in self.findings)

    @property
    def causes(self) -> frozenset[str]:
        """The codes, with RACE001 and RACE010 (races between generic accesses of one size) as one."""
        return frozenset("RACE001" if code == "RACE010" else code for code in self.codes)


def engine_findings(
    engine: str, program: Program, model: Model, *, profile: str = "ptx", unroll: int = 2, timeout: float | None = None
) -> EngineFindings:
    """The findings of one engine, without an early stop."""
    question = Question(about=Completeness.FINDINGS, profile=profile, unroll=unroll, thorough=True)
    given = ask_engine(engine, program, model, question, timeout)
    return EngineFindings(complete=given.covered, reasons=given.reasons, findings=given.findings)
