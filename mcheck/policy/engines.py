"""The engines by name, each imported when it is first asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mcheck.answers.judgement import judged
from mcheck.findings.order import telling
from mcheck.policy.question import About, Question

if TYPE_CHECKING:
    from mcheck.answers.result import Answer
    from mcheck.cat.ast import Model
    from mcheck.program.program import Program

ENGINES = ("explicit", "z3", "protocol")


def ask_engine(name: str, program: Program, model: Model, question: Question, timeout: float | None) -> Answer:
    """The answer of one engine, its verdict in the words of the question."""
    about = question.about
    prop = "liveness" if about is About.LIVENESS else "spec"
    verdict_only = about is About.VERDICT
    findings = True if about is About.FINDINGS or question.findings else None
    if name == "protocol":
        from mcheck.kernel.answer import answer as kernel

        given = kernel(
            program,
            model,
            prop=prop,
            unroll=question.unroll,
            timeout=timeout,
            profile=question.profile,
            findings=about is About.FINDINGS,
            witnesses=question.witnesses,
            limit=question.limit,
            thorough=question.thorough,
            excused=question.excused,
            brief=question.brief,
        )
    else:
        if name == "z3":
            from mcheck.solve.engine import answer
        else:
            from mcheck.explore.engine import answer
        given = answer(
            program,
            model,
            prop=prop,
            verdict_only=verdict_only,
            unroll=question.unroll,
            timeout=timeout,
            profile=question.profile,
            findings=findings,
            witnesses=question.witnesses,
        )
    given = replace(given, engine=name, findings=telling(given.findings))
    return judged(given) if about is About.FINDINGS else given


def preload(name: str = "explicit") -> None:
    """Imports an engine, so that forked workers have it already."""
    if name == "protocol":
        import mcheck.kernel.answer
    else:
        import mcheck.explore.engine  # noqa: F401 - imported for the workers
