"""The examination of one file: all its checks share one time limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter, process_time

from mcheck.base.errors import McheckError
from mcheck.base.reasons import Reason
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.check.files import is_module
from mcheck.checking.fences.candidates import apply_edits
from mcheck.checking.fences.expectations import state_clean
from mcheck.checking.fences.instructions import Instruction, find_module_instructions, find_test_instructions
from mcheck.checking.fences.mending import Search, mend, say_unmended
from mcheck.checking.fences.removal import Removals, Trial, find_removals, is_proved
from mcheck.checking.fences.repairs import Repairs
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.pool import run_cases
from mcheck.checking.run.result import Result
from mcheck.findings.finding import Finding
from mcheck.frontend.litmus.source import read_source

CONDITION = "condition"
"""The code of a changed answer to the condition of a test."""
PATIENCE = 10.0
"""The time of a trial, as a multiple of what the program itself took: without an answer by then the trial is open."""
LEAST = 10.0
"""The least time of a trial, in seconds."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A file with the verdict on it as it is; ``removals`` of a proved one, or why there are none; ``repairs`` of one
    with findings. ``text``: the program.
    """

    path: str
    verdict: Verdict
    removals: Removals | None
    reason: str | None = None
    repairs: Repairs | None = None
    text: str = ""

    @property
    def fixed(self) -> str | None:
        """The text with the cheapest repair, or without what can go together; none if there is nothing to change."""
        if self.repairs is not None and self.repairs.found:
            return state_clean(self.repairs.found[0].text)
        if self.removals is not None and self.removals.together:
            return apply_edits(self.text, self.removals.together)
        return None


def examine(
    path: str,
    timeout: float | None,
    options: Options | None = None,
    jobs: int = 1,
    *,
    text: str | None = None,
    search: Search | None = None,
    processor_time: bool = False,
) -> Examined:
    """What the program at ``path`` can do without, or its repairs; ``timeout`` is for all checks of it together,
    ``jobs`` of which go on at one time. ``options`` say how a module is launched. ``text``: the program, if known.
    """
    clock = process_time if processor_time else perf_counter
    options, started, began = options or Options(), clock(), process_time()

    def remaining() -> float | None:
        return None if timeout is None else timeout - (clock() - started)

    def left(most: float | None) -> Settings:
        rest = remaining()
        limits = [limit for limit in (None if rest is None else max(rest, 0.001), most) if limit is not None]
        return Settings(timeout=min(limits, default=None), processor_time=processor_time)

    first = check_case(Case(path, text=text), left(None), options)
    if first.verdict is Verdict.FINDING and not is_module(path):
        repairs = mend(path, first, process_time() - began, remaining, search or Search())
        return Examined(path, first.verdict, None, say_unmended(repairs), repairs, first.source)
    if first.verdict is not Verdict.PROVED:
        return Examined(path, first.verdict, None, first.reason or "only what is proved is examined: see mcheck check")
    try:
        program = _read_module(path, options) if is_module(path) else _read_test(path, text)
    except McheckError as error:
        return Examined(path, first.verdict, None, error.message)
    most = max(PATIENCE * (clock() - started), LEAST)
    asked = first.kind != "none"
    answer = _condition_answer(Case(path, text=program.text), left(None)) if asked else None
    brief = replace(options, brief=True)

    def task(case: Case, _: Settings) -> Trial:  # each has the time that is left when it begins
        trial = _trial(check_case(case, left(most), brief), first)
        if answer is None or not trial.is_proved:
            return trial
        return _compared(answer, _condition_answer(case, left(most)))

    def check(changed: Sequence[str]) -> Sequence[Trial]:
        cases = [Case(path, text=text) for text in changed]
        if jobs == 1 or len(cases) == 1:
            return [task(case, Settings()) for case in cases]
        return [*run_cases(cases, left(most), jobs, task, _lost)]

    removals = find_removals(program.text, program.instructions, check)
    return Examined(path, first.verdict, removals, text=program.text)


def _lost(_: Case, __: Settings, ___: Reason, ____: float) -> Trial:
    """The trial whose process was stopped or died."""
    return Trial(Verdict.UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Program:
    text: str
    instructions: tuple[Instruction, ...]


def _read_test(path: str, text: str | None) -> _Program:
    text = read_source(path) if text is None else text
    return _Program(text, find_test_instructions(text, path))


def _read_module(path: str, options: Options) -> _Program:
    from mcheck.checking.check.modules import ModuleInquiry  # imports what reads modules, which tests never need

    inquiry = ModuleInquiry(options)
    subject = inquiry.prepare(inquiry.read(Case(path), Settings()), Settings())
    entries = {launch.entry for launch in subject.launches}
    return _Program(subject.source, find_module_instructions(subject.source, subject.module, entries))


def _trial(result: Result, first: Result) -> Trial:
    """The trial by the result of an edited program: what the program has without the edit does not count."""
    if is_proved(result):
        return Trial(Verdict.PROVED)
    known = set(map(_identity, _all_findings(first)))
    codes = {finding.code for finding in _all_findings(result) if _identity(finding) not in known}
    if result.crashed:
        return Trial(Verdict.UNKNOWN)
    verdict = Verdict.FINDING if codes and result.verdict is Verdict.PROVED else result.verdict
    return Trial(verdict, tuple(sorted(codes)))


def _all_findings(result: Result) -> tuple[Finding, ...]:
    return (*result.findings, *(finding for finding, _ in result.suppressed))


def _identity(finding: Finding) -> object:
    return finding.code, frozenset(access.span.line for access in finding.accesses if access.span is not None)


def _condition_answer(case: Case, settings: Settings) -> Verdict:
    """Whether the condition of a test holds."""
    return run_case(case, replace(settings, verdict_only=True)).verdict


def _compared(before: Verdict, now: Verdict) -> Trial:
    """The trial of a program that is proved, by the answer to its condition."""
    if not (before.is_of_condition and now.is_of_condition):
        return Trial(Verdict.UNKNOWN)
    return Trial(Verdict.PROVED) if now is before else Trial(Verdict.FINDING, (CONDITION,))
