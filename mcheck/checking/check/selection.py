"""Selection of findings by code, and how it affects the search.

A selection is a filter: the file is checked as if all findings were wanted, and unwanted ones are removed from the
answer. An engine stops soon after its first error; so if all errors of the first search are unwanted, it is asked once
more to search past them. Findings of the first search stay.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.answers.merged_answers import Excused, is_counted_error, merge_findings
from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import is_decisive, verdict_of
from mcheck.base.budget import Limit
from mcheck.base.reasons import Cause, Reason
from mcheck.base.records import replace
from mcheck.base.source_files import SourceText
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result, kinds_hold
from mcheck.checking.run.single import Subject
from mcheck.findings.finding import Finding
from mcheck.findings.ordering import drop_redundant, sort_by_cause
from mcheck.findings.partial import tell
from mcheck.findings.suppress import apply_suppressions, parse_suppressions
from mcheck.ir.program import CLEAN


def is_selected(finding: Finding, options: Options) -> bool:
    """Whether the finding's code is selected."""
    if options.select and not finding.code.startswith(options.select):
        return False
    return not (options.ignore and finding.code.startswith(options.ignore))


def find_all(
    ask: Callable[[Question], Answer],
    subject: Subject,
    settings: Settings,
    options: Options,
    within: Limit,
    locate: Callable[[Finding], Finding] = lambda finding: finding,
) -> Answer:
    """Finds everything in a file, selected or not, with as many searches as the selection needs. ``locate`` adds source
    locations to a finding of the engine.
    """
    texts = SourceText(subject.source, subject.path)

    def question(excused: Excused, *, thorough: bool = False) -> Question:
        return Question(
            about=Completeness.FINDINGS,
            profile=settings.profile,
            unroll=settings.unroll,
            timeout=within.left(),
            thorough=thorough,
            brief=options.brief,
            excused=excused,
            limit=options.limit,
            without=frozenset(settings.without),
        )

    def unwanted(finding: Finding) -> bool:
        wanted = finding.severity == "error" and is_selected(finding, options)
        if wanted and options.baseline is not None and options.baseline.knows(locate(finding), subject.path, texts):
            return True
        return not wanted or not apply_suppressions((finding,), subject.source, subject.path)[0]

    if options.thorough:
        return ask(question(None, thorough=True))
    given = ask(question(_nothing))
    if options.brief:
        return given
    if any(f.severity == "error" for f in given.findings):
        tell(subject, [locate(f) for f in given.findings], given.executions)
    if given.verdict is Verdict.FINDING and not (given.covered or _expected(subject, given)):
        # What the file expects may be what the engine has not come to.
        more = ask(question(None, thorough=True))
        given = more if _expected(subject, more) else replace(given, cut=given.cut or more.cut)
    chosen = options.select or options.ignore or options.baseline is not None
    filtered = chosen or settings.profile != "ptx" or parse_suppressions(subject.source)
    ended = not given.covered and any(is_counted_error(f, _nothing) for f in given.findings)
    if filtered and ended and all(map(unwanted, given.findings)):
        given = _joined(given, ask(question(unwanted, thorough=True)))
    return given


def _nothing(_: Finding) -> bool:
    return False


def _expected(subject: Subject, given: Answer) -> bool:
    """Whether the answer has findings of the kinds that the file expects, if it expects any."""
    kinds = subject.expectation.kinds
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


def set_apart(result: Result, given: Answer, options: Options) -> Result:
    """The result with the answer's deselected, suppressed and known findings set apart; they are still counted."""
    others, left, warnings = apply_suppressions(
        given.findings, result.source, result.path, all_found=given.verdict is not Verdict.FINDING or given.covered
    )
    kept = tuple(f for f in others if is_selected(f, options))
    known: tuple[Finding, ...] | None = None
    if options.baseline is not None:
        kept, known = options.baseline.split(kept, result.path, SourceText(result.source, result.path))
    suppressed = tuple((f, reason) for f, reason in left if is_selected(f, options))
    deselected = tuple(f for f in given.findings if not is_selected(f, options))
    assumptions = [*given.assumptions, *(f"{f.code} is suppressed in line {_line(f)}: {why}" for f, why in suppressed)]
    if deselected:
        assumptions.append(f"not selected: {', '.join(sorted({f.code for f in deselected}))}")
    if known:
        assumptions.append(f"in the baseline: {', '.join(sorted({f.code for f in known}))}")
    verdict, reasons = given.verdict, given.reasons
    if verdict is Verdict.FINDING and not given.covered and not any(map(is_decisive, kept)):
        reasons = reasons or (Reason(Cause.FIRST_ERRORS),)  # an engine stops soon after them, and gives no reason
        verdict, reasons = verdict_of(kept, covered=False, reasons=reasons)
    return replace(
        result,
        verdict=verdict,
        findings=sort_by_cause(kept),
        suppressed=suppressed,
        deselected=deselected,
        known=known,
        all_found=given.covered,
        assumptions=tuple(assumptions),
        reasons=reasons,
        warnings=(*result.warnings, *warnings),
    )


def _line(finding: Finding) -> int:
    return next((a.span.line for a in finding.accesses if a.span is not None), 0)
