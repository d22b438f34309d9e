"""One execution with real data against all executions of the model: it ends in a state that the model allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import repeat
from pathlib import Path
from random import Random

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.concrete import result, schedule
from mcheck.engines.concrete.machine import machine
from mcheck.engines.explicit.engine import answer
from mcheck.frontend import litmus
from mcheck.ir.condition import And, Compare, ConstTerm, Formula, MemTerm, Not, Or, RegTerm
from mcheck.ir.program import Program
from tests.fuzz.programs import program as random_program

LITMUS = Path(__file__).parents[3] / "litmus"
SUITES = ("atomics", "bulk", "cp-async", "mbarrier", "reduce", "tensor")
model_of = cache(load_model)


def terms(formula: Formula) -> Iterator[RegTerm | MemTerm]:
    match formula:
        case Compare():
            yield from (t for t in (formula.left, formula.right) if not isinstance(t, ConstTerm))
        case Not():
            yield from terms(formula.part)
        case And() | Or():
            for part in formula.parts:
                yield from terms(part)


def compared(program: Program, found: Answer, seeds: range) -> bool:
    """Whether there was something to compare: an execution that ends well in a program without undefined ones."""
    if found.verdict == "unknown" or found.undefined:
        return False
    allowed = [dict(o.state) for o in found.outcomes]
    shown = [*terms(program.condition.formula), *program.condition.locations]
    some = False
    for seed in seeds:
        m = machine(program, seed=seed)
        schedule.run(m)
        if not all(r.ended for r in m.runners) or any(f.severity == "error" for f in m.findings):
            continue
        final = {t.label: result._term(m, t) for t in shown if not isinstance(t, ConstTerm)}
        fits = [s for s in allowed if all(v is None or s[n] in (v, "unknown") for n, v in final.items())]
        assert fits, f"{program.path}, seed {seed}: {final} is none of {allowed}"
        some = some or bool(final)
    return some


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("suite", SUITES)
def test_suites(suite: str, enumerated: Callable[[Path], Answer]) -> None:
    files = sorted((LITMUS / suite).glob("*.litmus"))
    count = sum(compared(litmus.load(str(f)), enumerated(f), range(2)) for f in files)
    assert count > len(files) / 4


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int) -> None:
    programs = [litmus.parse(random_program(Random(k)), "random.litmus") for k in range(part, 150, 4)]
    answers = [answer(program, model_of(program.model or "ptx-9.0"), timeout=20) for program in programs]
    assert sum(map(compared, programs, answers, repeat(range(3)))) > 10
