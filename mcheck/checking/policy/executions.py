"""Executions themselves, for those who draw or explain them: only some engines keep any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcheck.checking.policy.question import Question

if TYPE_CHECKING:
    from mcheck.answers.exploration import Exploration, Forbidden
    from mcheck.answers.result import State
    from mcheck.cat.ast import Model
    from mcheck.findings.trace import Trace
    from mcheck.ir.program import Program

BUDGET = 5.0
"""Seconds for what is not allowed, beyond the time of the answer itself."""


def preload() -> None:
    """Imports what shows executions, before processes are forked."""
    import mcheck.engines.explicit.exploration  # noqa: F401 - imported for the workers


def executions(
    program: Program,
    model: Model,
    question: Question,
    *,
    forbidden: int,
    drawn: int,
    budget: float = BUDGET,
    networks: bool = False,
) -> Exploration:
    """Every outcome with an execution, and states that none has with what forbids them: by the explicit engine, which
    alone looks at executions one by one.
    """
    from mcheck.engines.explicit.exploration import explore

    return explore(
        program,
        model,
        profile=question.profile,
        unroll=question.unroll,
        timeout=question.timeout,
        forbidden=forbidden,
        drawn=drawn,
        budget=budget,
        networks=networks,
    )


def explain_forbidden(program: Program, model: Model, state: State, question: Question) -> Forbidden | None:
    """What forbids a state, by the explicit engine."""
    from mcheck.engines.explicit.exploration import forbidden_state

    return forbidden_state(program, model, state, profile=question.profile, unroll=question.unroll)


def schedule(program: Program, model: Model, question: Question) -> Trace:
    """One schedule from its beginning, by the engine that follows schedules; empty if there is none to show."""
    from mcheck.engines.protocol.schedule import sample

    return sample(program, model, profile=question.profile, unroll=question.unroll)
