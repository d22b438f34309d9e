"""The engines by name, each imported on first use."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.records import replace
from mcheck.checking.policy.question import Completeness, Question
from mcheck.findings.ordering import drop_redundant

if TYPE_CHECKING:
    from mcheck.answers.result import Answer
    from mcheck.cat.ast import Model
    from mcheck.ir.program import Program

ENGINES = ("explicit", "z3", "protocol")


def ask_engine(name: str, program: Program, model: Model, question: Question, timeout: float | None) -> Answer:
    """The answer of one engine, with a verdict that fits the question."""
    about = question.about
    prop = "liveness" if about is Completeness.LIVENESS else "spec"
    verdict_only = about is Completeness.VERDICT
    findings = True if about is Completeness.FINDINGS or question.findings else None
    if name == "protocol":
        from mcheck.engines.protocol.answer import answer as protocol_answer

        given = protocol_answer(
            program,
            model,
            prop=prop,
            unroll=question.unroll,
            timeout=timeout,
            profile=question.profile,
            findings=about is Completeness.FINDINGS,
            witnesses=question.witnesses,
            limit=question.limit,
            thorough=question.thorough,
            excused=question.excused,
            brief=question.brief,
            passes=question.passes,
        )
    else:
        if name == "z3":
            from mcheck.engines.z3.engine import answer
        else:
            from mcheck.engines.explicit.engine import answer
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
    given = replace(given, engine=name, findings=drop_redundant(given.findings))
    return add_verdict(given) if about is Completeness.FINDINGS else given


def preload(name: str = "explicit") -> None:
    """Imports an engine before workers are forked."""
    if name == "protocol":
        import mcheck.engines.protocol.answer
    else:
        import mcheck.engines.explicit.engine  # noqa: F401 - imported for the workers


def compiled_functions() -> AbstractSet[object]:
    """What the protocol engine has compiled in this process, by which that from which it was forked compiles it too."""
    from mcheck.engines.protocol.incremental.compiled_kinds import compiled_kinds

    return compiled_kinds()


def compile_functions(found: AbstractSet[object]) -> None:
    """Compile what a fork of this process has compiled."""
    from mcheck.engines.protocol.incremental.compiled_kinds import CompiledKind, compile_kinds

    compile_kinds(one for one in found if isinstance(one, CompiledKind))
