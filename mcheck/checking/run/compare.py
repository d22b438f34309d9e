"""Compares one test under two models: the states that only one allows, and the other model's axiom against each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mcheck.answers.result import Answer, State
from mcheck.base.budget import Limit
from mcheck.base.errors import McheckError, Unsupported
from mcheck.base.reasons import Reason, format_reasons
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.rules import find_missing_rules
from mcheck.findings.trace import Trace
from mcheck.ir.condition import Notation

if TYPE_CHECKING:
    from mcheck.cat.ast import Model
    from mcheck.checking.policy.question import Question
    from mcheck.ir.program import Program


@dataclass(frozen=True, slots=True)
class OneSidedState:
    """A state that only ``model`` allows: an execution, and the other model's violated axiom with its ``cycle``, step
    by step and on one line.
    """

    model: str
    state: State
    witness: Trace
    axiom: str = ""
    cycle: tuple[str, ...] = ()
    explanation: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of one test under two models.

    Pairs are (first model's, second model's). ``unknown``: why the comparison is incomplete; ``silent``: why there is
    nothing to compare.
    """

    path: str
    name: str
    verdicts: tuple[str, str] = ("", "")
    undefined: tuple[bool, bool] = (False, False)
    codes: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    alone: tuple[OneSidedState, ...] = ()
    size: int = 0
    notation: tuple[tuple[str, Notation], ...] = ()
    problem: str = ""
    unknown: str = ""
    silent: str = ""

    @property
    def differs(self) -> bool:
        """Whether the verdicts, the states or the undefined executions differ."""
        verdicts = Verdict.UNKNOWN not in self.verdicts and self.verdicts[0] != self.verdicts[1]
        return not self.problem and (
            verdicts or bool(self.alone) or (not self.unknown and self.undefined[0] != self.undefined[1])
        )


def compare_all(
    cases: Sequence[Case],
    settings: Settings,
    first: str,
    second: str,
    jobs: int,
    each: Callable[[Comparison], None] = lambda _: None,
) -> list[Comparison]:
    """All comparisons, those that differ first, the smallest program leading; ``each`` is called with each as it is
    ready.
    """
    from mcheck.checking.policy.executions import preload as preload_executions
    from mcheck.checking.run.command import preload
    from mcheck.checking.run.pool import run_cases
    from mcheck.checking.run.single import load_model

    preload(settings)
    models = (load_model(first), load_model(second))
    preload_executions()

    def task(case: Case, given: Settings) -> Comparison:
        return compare(case, given, (first, second), models)

    def lost(case: Case, _: Settings, reason: Reason, seconds: float) -> Comparison:  # noqa: ARG001 - the pool gives it
        return Comparison(path=case.path, name=case.path, unknown=format_reasons((reason,)) or "")

    found: list[Comparison] = []
    for entry in run_cases(cases, settings, jobs, task, lost):
        found.append(entry)
        each(entry)
    return sorted(found, key=lambda c: (not c.differs, c.size))


def compare(case: Case, settings: Settings, names: tuple[str, str], models: tuple[Model, Model]) -> Comparison:
    """The comparison of one test; raises nothing."""
    from mcheck.checking.run.single import crash_error, format_located, load_program

    limit = Limit(settings.timeout)

    def left() -> Settings:
        """The settings with what is left of the limit, which is for the test and not for each question about it."""
        return replace(settings, timeout=limit.left())

    try:
        program = load_program(case.path)
        for name, model in zip(names, models, strict=True):
            if lacking := find_missing_rules(program, model):
                return Comparison(path=case.path, name=program.name, silent=f"{name} has no rules for {lacking}")
        answers = tuple(_ask(program, m, left()) for m in models)
    except Unsupported as error:
        return Comparison(path=case.path, name=case.path, unknown=format_located(error))
    except McheckError as error:
        return Comparison(path=case.path, name=case.path, problem=format_located(error))
    except Exception as error:  # noqa: BLE001 - a crash in one test must not take the others with it
        return Comparison(path=case.path, name=case.path, problem=str(crash_error(error)))
    a, b = answers
    states = tuple({o.state: o.witness for o in x.outcomes} for x in answers)
    alone: list[OneSidedState] = []
    for mine, other, here, there in ((0, 1, a, b), (1, 0, b, a)):
        if not there.complete:
            continue
        for state, witness in states[mine].items():
            if state not in states[other]:
                why = _against(program, models[other], state, left())
                alone.append(OneSidedState(names[mine], state, witness, *why[:3], size=why[3] or len(witness)))
        del here
    alone.sort(key=lambda x: (x.size, names.index(x.model)))
    incomplete = [x.reason or "not all states are known" for x in answers if not x.complete]
    return Comparison(
        path=case.path,
        name=program.name,
        verdicts=(a.verdict, b.verdict),
        undefined=(a.undefined, b.undefined),
        codes=(_codes(a), _codes(b)),
        alone=tuple(alone),
        size=sum(len(t.code) for t in program.threads),
        notation=program.condition.notation,
        unknown=incomplete[0] if incomplete else "",
    )


def _codes(answer: Answer) -> tuple[str, ...]:
    return tuple(sorted({f.code for f in answer.findings if f.severity == "error"}))


def _ask(program: Program, model: Model, settings: Settings) -> Answer:
    from mcheck.checking.policy.ask import ask

    return ask(program, model, _question(settings), "explicit")


def _question(settings: Settings) -> Question:
    from mcheck.checking.policy.question import Question

    return Question(profile=settings.profile, unroll=settings.unroll, timeout=settings.timeout, witnesses=True)


def _against(program: Program, model: Model, state: State, settings: Settings) -> tuple[str, tuple[str, ...], str, int]:
    """Why ``model`` forbids the state: the axiom, the cycle by steps and on one line, and the number of boxes in its
    execution.
    """
    from mcheck.checking.policy.executions import explain_forbidden

    found = explain_forbidden(program, model, state, _question(settings))
    if found is None or found.execution is None:
        return "", (), "", 0
    return found.axiom, found.cycle_steps, found.explanation, len(found.execution.boxes)
