"""Comparison of the findings with and without a selection of codes or another profile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, processor_time
from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.checking.check.inquiry import FindingsInquiry
from mcheck.checking.check.selection import find_all, is_selected
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Question
from mcheck.checking.run.case import DEFAULT_MODEL, Options, Settings
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import conclude, load_model
from mcheck.findings import catalogue
from mcheck.findings.finding import Finding
from mcheck.ir.program import Program

Found = tuple[str, frozenset[Span | None]]
"""What makes two findings one: the code, and where."""

FAMILIES = tuple(dict.fromkeys(re.sub(r"(?<=RACE|DEAD)\d+|(?<=UB\d)\d+", "", e.code) for e in catalogue.all()))
"""The beginnings of codes that stand for a subject each."""
WITHOUT = "without a selection"


@dataclass(frozen=True, slots=True)
class Held:
    """``lost``: what some selection should have and has not, by the selection; ``more``: what only selections find,
    which look on behind an error that they leave out; ``open``: those that had no time. ``cut``: without a selection
    the search ended before all executions were looked at.
    """

    findings: int
    cut: bool
    selections: int
    lost: Mapping[str, frozenset[Found]] = field(default_factory=dict)
    more: frozenset[Found] = frozenset()
    proved: tuple[str, ...] = ()
    """Selections that say `proved` although there is an error or something for review."""
    open: tuple[str, ...] = ()


def held(program: Program, seconds: float) -> Held:
    """Every family alone, every family that has findings left out, and the other profiles; each in so much time."""
    first, given = _check(program, seconds, Settings(), Options())
    every = {_found(f): f for f in first.findings}
    lost: dict[str, frozenset[Found]] = {}
    more: set[Found] = set()
    proved: list[str] = []
    late: list[str] = [WITHOUT] if first.cut else []
    ways = list(_ways(first.findings)) if not first.cut else []
    for name, settings, options in ways:
        checked, _ = _check(program, seconds, settings, options)
        found = {_found(f) for f in checked.findings}
        wanted = {one for one, f in every.items() if is_selected(f, options)}
        more |= found - wanted
        if wanted - found:
            lost[name] = frozenset(wanted - found)
        if checked.cut:
            late.append(name)
        if checked.verdict == "proved" and first.verdict != "proved" and settings.profile != "permissive":
            proved.append(name)
    return Held(len(every), not given.covered, len(ways), lost, frozenset(more), tuple(proved), tuple(late))


def _ways(findings: Iterable[Finding]) -> Iterator[tuple[str, Settings, Options]]:
    for family in FAMILIES:
        yield f"--select {family}", Settings(), Options(select=(family,))
    for family in FAMILIES:
        if any(f.code.startswith(family) for f in findings):
            yield f"--ignore {family}", Settings(), Options(ignore=(family,))
    for profile in ("strict", "permissive"):
        yield f"--profile {profile}", Settings(profile=profile), Options()


def _check(program: Program, seconds: float, settings: Settings, options: Options) -> tuple[Result, Answer]:
    model = load_model(program.model or DEFAULT_MODEL)

    def asking(question: Question) -> Answer:
        with processor_time():
            return ask(program, model, replace(question, timeout=seconds), options.engine)

    given = find_all(asking, program, settings, options, Limit(settings.timeout))
    return conclude(program, given, settings, FindingsInquiry(options)), given


def _found(finding: Finding) -> Found:
    return finding.code, frozenset(a.span for a in finding.accesses)
