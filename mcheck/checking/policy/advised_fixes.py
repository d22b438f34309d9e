"""Fixes that the protocol engine has tried, for findings of the engines that enumerate executions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcheck.base.records import replace

if TYPE_CHECKING:
    from mcheck.answers.result import Answer
    from mcheck.cat.ast import Model
    from mcheck.checking.policy.question import Question
    from mcheck.findings.finding import Finding
    from mcheck.ir.program import Program

SMALL = 80
"""The maximum size, in operations, of a program that is explored again."""
FEW = 32
"""The maximum number of executions explored."""
TRIED = frozenset(("RACE001", "RACE002", "DEAD001", "DEAD002", "DEAD003", "DEAD004"))


def add_tried_fixes(given: Answer, program: Program, model: Model, question: Question, timeout: float | None) -> Answer:
    """The answer with the protocol engine's fixes for findings whose advice has that of the catalogue in it."""
    vague = {_key(f) for f in given.findings if f.code in TRIED and _vague(f)}
    small = sum(len(t.code) for t in program.threads) <= SMALL
    if given.engine == "protocol" or not vague or not small or question.brief:
        return given
    if question.wants_fixes is not None and not question.wants_fixes(given):
        return given
    from mcheck.engines.protocol.findings_answer import answer

    told = answer(
        program, model, profile=question.profile, unroll=question.unroll, timeout=timeout, limit=FEW,
        passes=question.passes,
    )  # fmt: skip
    better = {_key(f): f.fixes for f in told.findings if _key(f) in vague and not _is_bare(f)}
    given = replace(given, cut=given.cut or told.cut)
    if not better:
        return given
    found = (replace(f, fixes=better.get(_key(f), f.fixes)) if _vague(f) else f for f in given.findings)
    return replace(given, findings=tuple(found))


def _vague(finding: Finding) -> bool:
    return finding.severity == "error" and any(fix.general for fix in finding.fixes)


def _is_bare(finding: Finding) -> bool:
    """Whether nothing but the remedy of the catalogue is advised."""
    return all(fix.general and not fix.notes for fix in finding.fixes)


def _key(finding: Finding) -> object:
    return finding.code, frozenset((a.span, a.access) for a in finding.accesses)
