"""The exhaustive engine's answer about one program."""

from __future__ import annotations

from mcheck.cat.ast import Model
from mcheck.explore.kept import Kept
from mcheck.explore.result import Answer
from mcheck.explore.run import Run
from mcheck.explore.tapes import tape_of
from mcheck.explore.verdict import conclude
from mcheck.limit import Limit, TimeOut
from mcheck.program.program import Program


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
    """What the model allows of the program; never raises for a time-out or an unmodelled construct (verdict
    ``unknown``).

    ``prop`` is ``spec`` (the final condition) or ``liveness``; ``findings`` asks for deadlocks too (default: if the
    file expects
    findings); ``witnesses`` gives each outcome an execution in words; ``kept`` is
    filled with the executions themselves, for those who draw or explain them.
    """
    limit = Limit(timeout)
    wanted = bool(program.expectation.kinds) if findings is None else findings
    run = Run(program, model, prop, verdict_only, unroll, limit, profile, wanted, kept=kept)
    reason = limit.attempt(run.explore)
    if kept is not None:
        kept.outcomes.update((state, (found.solver, found.candidate)) for state, found in run.outcomes.items())
    return conclude(run, reason, witnesses=witnesses)


__all__ = ["TimeOut", "answer", "tape_of"]
