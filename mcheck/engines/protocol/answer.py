"""The protocol engine's answer to any question about a program."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.answers.final_states import terms_of
from mcheck.answers.result import Answer
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.engines.protocol import findings_answer
from mcheck.engines.protocol.exploration import MAX_EXECUTIONS
from mcheck.engines.protocol.passes import ALL_PASSES, Passes
from mcheck.findings.finding import Finding
from mcheck.ir.program import Program


def answer(
    program: Program,
    model: Model,
    *,
    prop: str = "spec",
    unroll: int = 2,
    timeout: float | None = None,
    profile: str = "ptx",
    findings: bool = False,
    witnesses: bool = False,
    limit: int | None = None,
    thorough: bool = False,
    excused: Callable[[Finding], bool] | None = None,
    brief: bool = False,
    passes: Passes = ALL_PASSES,
) -> Answer:
    """Answer a question about a program: its findings, or the final states that its condition names.

    With ``findings`` only findings are sought. A sketch without a condition passes once it has been explored. Liveness
    fails with the first deadlock.
    """
    if prop == "spec" and not findings and terms_of(program.condition):
        from mcheck.engines.protocol import final_states  # kernels have no condition

        return final_states.answer(
            program, model, unroll=unroll, timeout=timeout, profile=profile, witnesses=witnesses, passes=passes
        )
    given = findings_answer.answer(
        program,
        model,
        unroll=unroll,
        timeout=timeout,
        profile=profile,
        limit=limit or MAX_EXECUTIONS,
        thorough=thorough,
        excused=excused,
        brief=brief,
        passes=passes,
    )
    if findings:
        return given
    if prop == "liveness" and any(f.kind == "deadlock" for f in given.findings):
        return replace(given, verdict=Verdict.FAIL, reasons=())
    if given.reasons and not any(f.severity == "error" for f in given.findings):
        return replace(given, verdict=Verdict.UNKNOWN)
    return given
