"""The executions of a test that pictures and explanations are made of."""

from __future__ import annotations

from mcheck.answers.exploration import Exploration
from mcheck.base.budget import Limit
from mcheck.checking.policy.executions import executions
from mcheck.checking.policy.question import Question
from mcheck.checking.run.case import Settings
from mcheck.checking.run.single import choose_model, load_program
from mcheck.ir.program import Program


def explore(path: str, settings: Settings, *, forbidden: int, drawn: int) -> tuple[Program, Exploration]:
    """The test at ``path``, and its outcomes: so many with a drawing, and so many forbidden ones."""
    within = Limit(settings.timeout)
    program = load_program(path, settings.assume)
    model = choose_model(settings.model, program.model, program.path, program.model_span)
    question = Question(profile=settings.profile, unroll=settings.unroll, timeout=within.left())
    return program, executions(program, model, question, forbidden=forbidden, drawn=drawn)
