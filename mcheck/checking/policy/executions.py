"""Executions for drawing and explanation, from the engines that keep them."""

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
"""Seconds for forbidden states, beyond the time of the answer itself."""


def preload() -> None:
    """Imports what draws executions, before workers are forked."""
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
    """Every outcome with an execution, and forbidden states with the violated axioms.

    By the explicit engine, the only one that enumerates executions one by one.
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
    """Why the model forbids a state, by the explicit engine."""
    from mcheck.engines.explicit.exploration import forbidden_state

    return forbidden_state(program, model, state, profile=question.profile, unroll=question.unroll)


def schedule(program: Program, model: Model, question: Question) -> Trace:
    """One schedule from its beginning, by the protocol engine; empty if there is none."""
    from mcheck.engines.protocol.schedule import sample

    return sample(program, model, profile=question.profile, unroll=question.unroll)
