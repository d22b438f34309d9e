"""The examination of one file: all its checks share one time limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import ceil, log2
from time import perf_counter, process_time

from mcheck.base.errors import McheckError
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.backends import AnswerStore, Backend
from mcheck.checking.check.command import check_case, check_command
from mcheck.checking.check.files import is_module
from mcheck.checking.fences.candidates import apply_edits
from mcheck.checking.fences.computation import computation_of, describe_changes
from mcheck.checking.fences.costs import Costs, read_costs
from mcheck.checking.fences.expectations import state_clean
from mcheck.checking.fences.given_up import GivenUp
from mcheck.checking.fences.instructions import Instruction, find_module_instructions, find_test_instructions
from mcheck.checking.fences.module_repairs import find_module_repairs
from mcheck.checking.fences.removal import Removals, Trial, find_removals, is_proved
from mcheck.checking.fences.repairs import Repairs, find_repairs
from mcheck.checking.result_cache import compute_uncached, open_result_cache
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.command import RUN
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.pool import run_cases
from mcheck.checking.run.result import Result
from mcheck.checking.suite import Command
from mcheck.findings.finding import Finding
from mcheck.frontend.litmus.source import read_source

TRIALS = 400
"""As many programs are checked for repairs of one, unless the user says otherwise."""
LONGER = 8
LEAST = 2.0
"""One check of a changed program may take ``LONGER`` times as long as that of the program, at least so many seconds.
It is given up after the next power of two of seconds, the same in each examination of the program.
"""
MONOTONE = frozenset(("ptx-9.0", "ptx-9.3"))
"""The models in which fewer fences allow more executions with more findings (``mcheck.checking.fences.removal``). Not
ptx-9.5: where the release half of reads orders an access across CTAs, a fence on one side adds RACE005.
"""
CONDITION = "condition"
"""The code of a changed answer to the condition of a test."""
BLOCK = re.compile(r"@[^{}|;]*\{")
"""The beginning of a role in block form."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A file with the verdict on it as it is; ``removals`` of a proved one, or why there are none, ``repairs`` of one
    with findings, its text, and what the check of it said.
    """

    path: str
    verdict: Verdict
    removals: Removals | None
    reason: str | None = None
    repairs: Repairs | None = None
    text: str = ""
    result: Result | None = None

    @property
    def fixed(self) -> str | None:
        """The text with the cheapest repair, or without what can go together; none if there is nothing to change."""
        if self.repairs is not None and self.repairs.found:
            return state_clean(self.repairs.found[0].text)
        if self.removals is not None and self.removals.together:
            return apply_edits(self.text, self.removals.together)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of the examination of a file: seconds, those of the processor or not, trials of repairs, and how many
    checks of removals go on at one time.
    """

    timeout: float | None = None
    processor_time: bool = False
    trials: int = TRIALS
    jobs: int = 1


def examine(
    path: str, limits: Limits, costs: Costs | None = None, options: Options | None = None,
    settings: Settings | None = None, store: AnswerStore | None = None,
) -> Examined:  # fmt: skip
    """What the program at ``path`` can do without, or what fixes it; the limits are for all checks of it together.
    ``options`` say how a module is launched, ``settings`` under which model and profile all is checked. The answers
    about changed programs are kept in the ``store``.
    """
    try:
        text = _read_text(path)
    except McheckError as error:
        return Examined(path, Verdict.ERROR, None, error.message)
    return examine_text(path, text, costs, limits, options, settings, store)


def _read_text(path: str) -> str:
    if is_module(path):
        from mcheck.frontend.ptx import reader  # imports what reads modules, which tests never need

        return reader.read_text(path)
    return read_source(path)


def examine_text(
    path: str, text: str, costs: Costs | None, limits: Limits, options: Options | None = None,
    settings: Settings | None = None, store: AnswerStore | None = None,
) -> Examined:  # fmt: skip
    """What ``examine`` says, of a text."""
    options = options or Options()
    clock = _Clock(limits, settings or Settings(), perf_counter(), process_time(), store)
    began = process_time()
    first = check_case(Case(path, text=text), clock.settings(None), options)
    each = 2.0 ** ceil(log2(max(LONGER * (process_time() - began), LEAST)))
    return replace(_examine_checked(first, text, costs or read_costs(), options, clock, each), result=first)


def _examine_checked(
    first: Result, text: str, costs: Costs, options: Options, clock: _Clock, most: float
) -> Examined:  # fmt: skip
    path = first.path
    if first.verdict is Verdict.PROVED:
        try:
            removals = _find_removals(first, text, costs, options, clock, most)
        except McheckError as error:
            return Examined(path, first.verdict, None, error.message)
        return Examined(path, first.verdict, removals, text=text)
    if first.verdict is not Verdict.FINDING or not (is_module(path) or BLOCK.search(text)):
        reason = first.reason or "only what is proved is examined: see mcheck check"
        return Examined(path, first.verdict, None, reason)
    find = _find_module_repairs if is_module(path) else _find_repairs
    repairs = find(first, text, costs, options, clock, most)
    return Examined(path, first.verdict, None, _unmended(repairs), repairs, text)


@dataclass(frozen=True, slots=True)
class _Clock:
    """The limits of a file, what else is set for its checks, and when its examination began: the time, and that of the
    processor. Answers are kept in the ``store``.
    """

    limits: Limits
    base: Settings
    started: float
    used: float
    store: AnswerStore | None = None

    def left(self) -> float | None:
        """The seconds that are left."""
        if self.limits.timeout is None:
            return None
        now = process_time() - self.used if self.limits.processor_time else perf_counter() - self.started
        return self.limits.timeout - now

    def settings(self, most: float | None) -> Settings:
        """The settings of a check that may take so many seconds of the processor, whatever else the machine does."""
        left = self.left()
        rest = None if left is None else max(left, 0.001)
        if most is not None and (rest is None or most < rest):
            return replace(self.base, timeout=most, processor_time=True)
        return replace(self.base, timeout=rest, processor_time=self.limits.processor_time)

    def check(self, path: str, changed: str, most: float, options: Options) -> Result | None:
        """The check of a changed program, which may take so many seconds; none if no time is left."""
        if not self.has_time():
            return None
        (result,) = self.answer_all([Case(path, text=changed)], most, check_command(options))
        return result

    def has_time(self) -> bool:
        """Whether the examination may go on."""
        left = self.left()
        return left is None or left > 0

    def answer_all(self, cases: Sequence[Case], most: float, command: Command) -> list[Result]:
        """The answers about changed programs, those of the store or of checks, each of which has the time that is left
        when it begins. What was given up after as much time is not tried again.
        """

        def task(case: Case, _: Settings) -> Result:
            return command.task(case, self.settings(most))

        def compute(these: Sequence[Case]) -> Iterator[Result]:
            if self.limits.jobs == 1 or len(these) < 2:
                return (task(case, self.base) for case in these)
            return run_cases(these, self.settings(most), self.limits.jobs, task, command.lost)

        if self.store is None:
            return [*compute(cases)]
        kept = open_result_cache(
            Backend(store=self.store), Result, command.name, self.base, command.texts, **command.options
        )
        given_up = GivenUp(self.store, command, self.base, most, self.has_time)

        def compute_untried(these: Sequence[Case]) -> Iterator[Result]:
            return compute_uncached(these, given_up, compute)

        return [*compute_uncached(cases, kept, compute_untried)]

    def about_conditions(self) -> _Clock:
        """The same for answers to the conditions of tests."""
        return replace(self, base=replace(self.base, verdict_only=True))


# --- what can go --------------------------------------------------------------------------------------------------


def _find_removals(
    first: Result, text: str, costs: Costs, options: Options, clock: _Clock, most: float
) -> Removals:  # fmt: skip
    """What a proved program can do without, with the same answer to its condition if it has one."""
    path = first.path
    instructions = _of_module(path, text, options) if is_module(path) else find_test_instructions(text, path)
    conditions = clock.about_conditions()
    answer = run_case(Case(path, text=text), conditions.settings(None)).verdict if first.kind != "none" else None
    command = check_command(replace(options, brief=True))

    def check(changed: Sequence[str]) -> Sequence[Trial]:
        cases = [Case(path, text=text) for text in changed]
        trials = [_trial(result, first) for result in clock.answer_all(cases, most, command)]
        if answer is None:
            return trials
        proved = [case for case, trial in zip(cases, trials, strict=True) if trial.is_proved]
        answers = iter(conditions.answer_all(proved, most, RUN))
        return [_compared(t.verdict, answer, next(answers).verdict) if t.is_proved else t for t in trials]

    monotone = first.model in MONOTONE and is_proved(first)
    return find_removals(text, instructions, check, costs, monotone=monotone)


def _of_module(path: str, text: str, options: Options) -> tuple[Instruction, ...]:
    from mcheck.checking.check.modules import ModuleInquiry  # imports what reads modules, which tests never need

    inquiry = ModuleInquiry(options)
    subject = inquiry.prepare(inquiry.read(Case(path, text=text), Settings()), Settings())
    return find_module_instructions(text, subject.module, {launch.entry for launch in subject.launches})


def _trial(result: Result, first: Result) -> Trial:
    """The trial by the result of an edited program: what the program has without the edit does not count."""
    if is_proved(result):
        return Trial(result.verdict)
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


def _compared(checked: Verdict, before: Verdict, now: Verdict) -> Trial:
    """The trial of a program whose check says ``checked``, by the answer to its condition."""
    if not (before.is_of_condition and now.is_of_condition):
        return Trial(Verdict.UNKNOWN)
    return Trial(checked) if now is before else Trial(Verdict.FINDING, (CONDITION,))


# --- what is missing ----------------------------------------------------------------------------------------------


def _find_repairs(
    first: Result, text: str, costs: Costs, options: Options, clock: _Clock, most: float
) -> Repairs:  # fmt: skip
    """What fixes a program with findings, so that it is proved and its condition answered as the file expects."""
    path = first.path

    def run(changed: str) -> Result:
        return run_case(Case(path, text=changed), replace(clock.base, timeout=most, processor_time=True))

    asks = first.kind != "none" and run(text).expected is not None

    def try_repair(changed: str) -> Result | None:
        result = clock.check(path, changed, most, replace(options, brief=True))
        if result is not None and result.verdict is Verdict.PROVED and asks and not run(state_clean(changed)).ok:
            return replace(result, verdict=Verdict.UNKNOWN)
        return result

    def explain(changed: str) -> Result | None:
        return clock.check(path, changed, most, options)

    before = computation_of(text, path)

    def describe(changed: str) -> tuple[str, ...] | None:
        after = None if before is None else computation_of(changed, path)
        return None if before is None or after is None else describe_changes(before, after)

    return find_repairs(first, text, try_repair, explain, describe, costs, clock.limits.trials)


def _find_module_repairs(
    first: Result, text: str, costs: Costs, options: Options, clock: _Clock, most: float
) -> Repairs:  # fmt: skip
    """The insertions that fix a module with findings, so that it is proved for its launch."""
    brief = replace(options, brief=True)

    def check(changed: str) -> Result | None:
        return clock.check(first.path, changed, most, brief)

    return find_module_repairs(first, text, check, costs, clock.limits.trials)


def _unmended(repairs: Repairs) -> str | None:
    """Why there is no repair, if there is none."""
    if repairs.found:
        return None
    tried = f"{repairs.trials} changed programs were checked, and none is proved"
    return f"{tried}: {repairs.limit}" if repairs.limit else tried
