"""Comparison of what is said of a program as a litmus test and as a PTX module.

    python -m benchmarks.agreement --modules 2000 --families polled

The litmus front end shares nothing with ``mcheck.simt``, which follows one way, one lane or one round where it stands
for others. A module that is ``proved`` although an engine finds something in the litmus test is wrong; a finding about
a module in whose litmus test nothing is found is an invented one.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from mcheck.base.budget import processor_time
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.modules import check_text
from mcheck.checking.policy.agreement import COUNTED
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx import launch_reader
from tests.fuzz.as_module import write
from tests.fuzz.comparisons import Plan
from tests.fuzz.differential import DEFAULT_MODEL, EngineAnswer, model_of, run_engine
from tests.fuzz.draft import Draft
from tests.fuzz.minimise import minimise
from tests.fuzz.programs import FAMILIES, draft
from tests.fuzz.record import Record

TOLD = tuple(name for name in FAMILIES if name not in ("wgmma", "tensormap", "proxies", "strong"))
"""Families whose programs have a form as a module, most of them."""


@dataclass(frozen=True, slots=True)
class TwoForms:
    """A program in both forms, and the answers; ``what`` is empty if they do not contradict each other."""

    draft: Draft
    module: str
    launch: dict[str, Any]
    told: Result
    judge: EngineAnswer
    what: str

    @property
    def outcome(self) -> str:
        """What came of it, in a few words."""
        if self.what:
            return self.what
        return f"{self.told.verdict}, the judge left it open" if self.judge.kinds is None else str(self.told.verdict)


def compare(made: Draft, seed: str, seconds: float) -> TwoForms | None:
    """The answers to both forms, each in so many seconds of the processor; ``None`` if there is no form as a module.
    ``seed`` chooses how the module spells loops and blocks.
    """
    written = write(made, Random(seed))
    if written is None:
        return None
    text, launch = written
    name = made.model or DEFAULT_MODEL
    with processor_time():
        told = check_text(
            text, "<ptx>", launch_reader.from_object(launch), Settings(timeout=seconds, model=name), Options()
        )
    program = parse(made.text(), "two-forms.litmus")
    judge = run_engine("protocol", program, model_of(name), seconds)
    if judge.kinds is None:
        judge = run_engine("explicit", program, model_of(name), seconds)
    return TwoForms(made, text, launch, told, judge, contradiction(told, judge))


def contradiction(told: Result, judge: EngineAnswer) -> str:
    """The contradiction of two answers: an error that was not found, or one that there is not."""
    if told.verdict == Verdict.ERROR:
        return f"the module is an error: {told.reason}"
    if judge.verdict == "crash":
        return "crash"
    if judge.codes is None:
        return ""
    missing = judge.codes - {f.code for f in told.findings}
    if told.verdict == Verdict.PROVED and missing:
        return f"missed {', '.join(sorted(missing))}"
    if told.verdict == Verdict.FINDING and not judge.codes:
        return f"invented {', '.join(sorted({f.code for f in told.findings if f.severity in COUNTED}))}"
    return ""


def compare_forms(plan: Plan, number: int, record: Record) -> None:
    """A random program in both forms; one about which the answers differ is made small and kept."""
    made = draft(plan.random(number), plan.families or TOLD)
    seed = f"{plan.seed}:{number}"
    record.count("programs", made.name)
    found = compare(made, seed, plan.timeout)
    record.count("answers", found.outcome if found is not None else "no module")
    if found is None or not found.what:
        return
    record.differs(f"{plan.seed}-{number}", [found.what])
    if plan.save is not None:
        what = found.what

        def shows(smaller: Draft) -> bool:
            again = compare(smaller, seed, plan.timeout)
            return again is not None and again.what == what

        small = compare(minimise(made, shows, seconds=plan.patience), seed, plan.timeout) or found
        plan.save.mkdir(parents=True, exist_ok=True)
        path = plan.save / f"{plan.seed}-{number}.litmus"
        path.write_text(small.draft.text(), encoding="utf-8")
        path.with_suffix(".ptx").write_text(f"// {small.launch}\n{small.module}", encoding="utf-8")
