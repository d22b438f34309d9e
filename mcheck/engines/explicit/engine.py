"""Entry point of the explicit engine."""

from __future__ import annotations

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.cat.ast import Model
from mcheck.engines.explicit.enumeration import Enumeration
from mcheck.engines.search.kept_executions import Kept
from mcheck.engines.search.verdict import conclude
from mcheck.ir.program import Program


def answer(
    program: Program,
    model: Model,
    *,
    prop: str = "spec",
    verdict_only: bool = False,
    unroll: int = 2,
    timeout: float | None = None,
    profile: str = "ptx",
    findings: bool | None = None,
    witnesses: bool = False,
    kept: Kept | None = None,
) -> Answer:
    """The explicit engine's answer about a program; a time-out or an unsupported construct gives the verdict
    ``unknown``.

    ``prop`` is ``spec`` (the final condition) or ``liveness``. ``findings``: search for deadlocks too (default: if the
    file expects findings). ``witnesses``: give each outcome a trace. ``kept`` collects the executions themselves, for
    drawing and explanation.
    """
    limit = Limit(timeout)
    wanted = bool(program.expectation.kinds) if findings is None else findings
    run = Enumeration(program, model, prop, verdict_only, unroll, limit, profile, wanted, kept=kept)
    reason = limit.attempt(run.explore)
    if kept is not None:
        kept.outcomes.update((state, (found.prepared, found.candidate)) for state, found in run.outcomes.items())
    return conclude(run, reason, witnesses=witnesses)
