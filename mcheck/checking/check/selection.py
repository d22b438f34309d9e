"""Selection of findings by code, and how it affects the search.

A selection is a filter: the file is checked as if all findings were wanted, and unwanted ones are removed from the
answer. An engine stops soon after its first error; so if all errors of the first search are unwanted, it is asked once
more to search past them. Findings of the first search stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mcheck.answers.merged_answers import Excused, is_counted_error, merge_findings
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.case import Options, Settings, Subject
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.case import kinds_hold
from mcheck.findings.finding import Finding
from mcheck.findings.ordering import drop_redundant
from mcheck.findings.suppress import apply_suppressions, parse_suppressions
from mcheck.ir.program import CLEAN, Program


def is_selected(finding: Finding, options: Options) -> bool:
    """Whether the finding's code is selected."""
    if options.select and not finding.code.startswith(options.select):
        return False
    return not (options.ignore and finding.code.startswith(options.ignore))


def find_all(
    ask: Callable[[Question], Answer], program: Program | Subject, settings: Settings, options: Options, within: Limit
) -> Answer:
    """Finds everything in a file, selected or not, with as many searches as the selection needs."""

    def question(excused: Excused, *, thorough: bool = False) -> Question:
        return Question(
            about=Completeness.FINDINGS,
            profile=settings.profile,
            unroll=settings.unroll,
            timeout=within.left(),
            thorough=thorough,
            excused=excused,
            limit=options.limit,
            without=frozenset(settings.without),
        )

    def unwanted(finding: Finding) -> bool:
        wanted = finding.severity == "error" and is_selected(finding, options)
        return not wanted or not apply_suppressions((finding,), program.source, program.path)[0]

    given = ask(question(_nothing))
    if given.verdict is Verdict.FINDING and not (given.covered or _expected(program, given)):
        # What the file expects may be what the engine has not come to.
        more = ask(question(None, thorough=True))
        given = more if _expected(program, more) else replace(given, cut=given.cut or more.cut)
    filtered = options.select or options.ignore or settings.profile != "ptx" or parse_suppressions(program.source)
    ended = not given.covered and any(is_counted_error(f, _nothing) for f in given.findings)
    if filtered and ended and all(map(unwanted, given.findings)):
        given = _joined(given, ask(question(unwanted, thorough=True)))
    return given


def _nothing(_: Finding) -> bool:
    return False


def _expected(program: Program | Subject, given: Answer) -> bool:
    """Whether the answer has findings of the kinds that the file expects, if it expects any."""
    kinds = program.expectation.kinds
    return kinds in ((), CLEAN) or kinds_hold(kinds, given.findings)


def _joined(first: Answer, more: Answer) -> Answer:
    """The second answer with the additional findings of the first."""
    errors = any(f.severity == "error" for f in first.findings)
    return replace(
        more,
        verdict=Verdict.FINDING if errors else more.verdict,
        findings=drop_redundant(merge_findings((more, first))),
        executions=first.executions + more.executions,
        cut=first.cut or more.cut,
    )
