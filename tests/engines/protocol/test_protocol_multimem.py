"""Multimem instructions: the engines agree on random programs."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.checking.policy.engines import ask_engine
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.fuzz.multimem_programs import multimem_program


def found_by(engine: str, program: Program) -> frozenset[str] | None:
    """The codes of an engine's findings, a scope that is too narrow (RACE010) as any race; ``None`` if it leaves
    something out.
    """
    question = Question(about=Completeness.FINDINGS, profile="ptx", unroll=2)
    with processor_time():
        given = ask_engine(engine, program, load_model("ptx-9.0"), question, 5)
    codes = frozenset(f.code.replace("RACE010", "RACE001") for f in given.findings if f.severity != "advice")
    return codes if given.covered or codes else None


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("first", range(4))
def test_engines_agree(first: int) -> None:
    compared = 0
    for k in range(first, 32, 4):
        program = parse(multimem_program(Random(f"multimem:{k}")), f"random-{k}")
        here, there, third = (found_by(engine, program) for engine in ("protocol", "explicit", "z3"))
        for one, other in ((here, there), (third, there)):
            if one is not None and other is not None:
                compared += 1
                assert one == other, k
    assert compared >= 10
