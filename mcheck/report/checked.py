"""The reports of ``mcheck check``: text, JSON, GitHub annotations and JUnit XML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mcheck.answers.result import AnyCtas, Covers, LaunchAnswer
from mcheck.answers.verdict_rules import is_decisive
from mcheck.base.source_files import SourceText
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import list_reasons
from mcheck.checking.run.summary import Summary
from mcheck.findings.finding import Finding
from mcheck.findings.groups import causes, group_findings
from mcheck.findings.ordering import select_causes
from mcheck.ir.program import describe_kinds
from mcheck.report.bugs import collect_bugs, count_bugs, describe_findings
from mcheck.report.errors import printable
from mcheck.report.finding import groups_to_json, title, to_json
from mcheck.report.formats.json_ import header
from mcheck.report.lines import Line, Printer, plain
from mcheck.report.longer_limits import suggest_limits
from mcheck.report.problems import list_problems
from mcheck.report.problems import to_json as problems_to_json
from mcheck.report.program_words import words_of_module
from mcheck.report.reasons import to_json as reasons_to_json
from mcheck.report.text import count

if TYPE_CHECKING:
    from mcheck.base.errors import Span
    from mcheck.report.formats.junit import Case

ANY = "any"
HEADLINE_STYLES = {
    "clean": "green",
    "bounded": "yellow",
    "race": "bold red",
    "undefined": "bold red",
    "deadlock": "bold red",
    "ignored": "yellow",
    "unknown": "yellow",
    "error": "bold red",
}


# --- text ---------------------------------------------------------------------------------------------------


class TextReport:
    """The text report, written answer by answer. ``details``: all bugs of every file, ``every``: each finding,
    ``verbose``: with schedules and assumptions; ``quiet``: only files that are not as expected; ``alone``: errors are
    shown nowhere else.
    """

    def __init__(
        self,
        printer: Printer,
        *,
        details: bool,
        quiet: bool,
        every: bool = False,
        verbose: bool = False,
        most: int | None = None,
        alone: bool = False,
    ) -> None:
        self._printer = printer
        self._alone = alone
        self._details = details
        self._every = every
        self._verbose = verbose
        self._bugs = 0
        self._codes: set[str] = set()
        self._findings = 0
        self._quiet = quiet
        self._most = most

    def result(self, result: Result) -> None:
        """Write the answer about one file."""
        self._findings += len(result.findings)
        bugs = causes(group_findings(result.findings))
        self._bugs += len(bugs)
        self._codes |= {bug.code for bug in bugs}
        if self._quiet and result.status == "ok":
            return
        for line in describe(
            result,
            details=self._details,
            every=self._every,
            verbose=self._verbose,
            most=self._most,
            width=self._printer.width,
            errors=self._alone,
        ):
            self._printer.line(*line)

    def _counted(self) -> str:
        if not self._findings:
            return ""
        codes = ", ".join(sorted(self._codes))
        return f" ({count(self._bugs, 'bug', 'bugs')}, {count(self._findings, 'finding', 'findings')}: {codes})"

    def finish(self, summary: Summary) -> None:
        """Write the counts."""
        self._printer.line(
            f"{count(summary.tests, 'file', 'files')}: ",
            (f"{summary.proved} proved", "green" if summary.proved == summary.tests else ""),
            ", ",
            (f"{summary.findings - summary.ignored} with findings", "bold red" if summary.exit_status == 1 else ""),
            self._counted(),
            _only_ignored(summary),
            f", {summary.open} unknown, {count(summary.error, 'error', 'errors')}",
        )


def _only_ignored(summary: Summary) -> str:
    return f", {summary.ignored} with ignored findings only" if summary.ignored else ""


def describe(
    result: Result,
    *,
    details: bool = True,
    every: bool = False,
    verbose: bool = False,
    most: int | None = None,
    width: int | None = None,
    errors: bool = True,
) -> Iterator[Line]:
    """The lines of an answer. ``width`` is the width of the terminal, if there is one; ``errors``: include an error,
    which is not shown elsewhere. The other options are those of ``TextReport``.
    """
    word, say = headline(result), words_of_module(result.source, result.program)
    yield (f"{word:<9}", HEADLINE_STYLES[word]), f" {result.path}{say(_beside(result))}"
    if result.status == "finding" and result.expected_kinds and not result.as_expected:
        kinds = sorted({f"{f.kind} ({f.severity})" for f in result.findings}) or ["nothing"]
        yield (f"  expected {describe_kinds(result.expected_kinds)}, found {', '.join(kinds)}",)
    if result.reason and (errors or result.verdict is not Verdict.ERROR):
        for reason in list_reasons(result.reason, result.problem):
            yield (f"  {say(reason)}",)
    if result.verdict is Verdict.UNKNOWN and result.problem is not None and result.problem.hint:
        yield (f"  hint: {result.problem.hint}",)
    if stages := describe_filled_once(result):
        yield (f"  {stages}",)
    if helps := suggest_limits(result):
        yield (f"  {helps}",)
    shown = result.findings if details or every or verbose else select_causes(result.findings)
    if result.findings and _is_expected(result) and not (details or every or verbose):
        shown = ()
    for line in describe_findings(
        shown, result.source, result.program, every=every, verbose=verbose, most=most, width=width
    ):
        yield ("  ", *line)
    if len(shown) > 1:
        yield (f"  {count_bugs(shown)}",)
    if verbose:
        yield from _basis(result)
    elif details and result.assumptions:
        listed = count(len(result.assumptions), "assumption", "assumptions")
        also = "schedules, instructions and " if shown else ""
        yield (f"  {_executed(result)}; -v shows {also}{listed}",)


def headline(result: Result) -> str:
    """The answer in a word: ``clean`` if proved, the kind of the first bug if there is one, otherwise the verdict."""
    if result.verdict is Verdict.PROVED:
        return "clean"
    if result.verdict is not Verdict.FINDING or result.all_ignored:
        return result.headline
    bugs = [result.findings[bug.members[0]] for bug in causes(group_findings(result.findings))]
    first = next((f for f in bugs if f.severity == "error"), None)
    return (first or next(filter(is_decisive, result.findings), result.findings[0])).kind


def _beside(result: Result) -> str:
    """What stands beside the path: what ``clean`` means, whether it was expected, and what was left out."""
    covers = result.covers
    parts = ["proved"] if result.verdict is Verdict.PROVED else []
    if covers is not None and covers.clusters < covers.total:
        parts.append(f"{covers.clusters} of {covers.total} clusters")
    if result.ctas is not None and not result.ctas.every and result.verdict.is_open:
        parts.append(f"up to {result.ctas.together} of any number of CTAs")
    if _is_expected(result):
        parts.append("as expected")
    if result.ignored_text:
        parts.append(result.ignored_text)
    return f" ({', '.join(parts)})" if parts else ""


def describe_filled_once(result: Result) -> str:
    """The rings of which a proved launch fills no stage twice, as text."""
    if result.verdict is not Verdict.PROVED or not result.filled_once:
        return ""
    names = ", ".join(f"`{name}`" for name in result.filled_once)
    return f"this launch fills no stage of {names} twice, so refills were not checked: they take more rounds"


def filled_once_entry(result: Result) -> dict[str, object]:
    """The same for JSON, if there is something to say."""
    return {"filled_once": list(result.filled_once)} if describe_filled_once(result) else {}


def _is_expected(result: Result) -> bool:
    """Whether the file expects what was found, with an ``expect`` line."""
    return bool(result.expected_kinds) and result.status == "ok" and not result.verdict.is_open


def _executed(result: Result) -> str:
    engines = "engines" if " and " in result.engine else "engine"
    return f"{count(result.executions, 'execution', 'executions')} by the {result.engine} {engines}"


def _basis(result: Result) -> Iterator[Line]:
    """What the answer rests on."""
    if result.assumptions:
        why = f" ({result.chosen})" if result.chosen else ""
        yield (f"  {_executed(result)}{why}, assuming:",)
        for assumption in result.assumptions:
            yield (f"    - {assumption}",)


# --- one line ------------------------------------------------------------------------------------------------


def concise(results: list[Result]) -> str:
    """A line for each bug, ``file:line:column: error[CODE] sentence``, and for each file that has no answer."""
    said = []
    for result in results:
        texts = SourceText(result.source, result.program)
        for bug in collect_bugs(result.findings, texts):
            place, text = title(bug.finding, texts)
            where = f"{texts.name(place.path)}:{place.line}:{place.column}" if place is not None else result.path
            said.append(f"{where}: {bug.finding.severity}[{bug.finding.code}] {text}")
        if result.verdict.is_open or result.verdict is Verdict.ERROR:
            said += [
                f"{_where(span, result.path)}: {result.verdict}: {printable(why.splitlines()[0])}"
                for span, why in list_problems(result.problem, result.reason or result.verdict)
            ]
    return "".join(f"{line}\n" for line in said)


def _where(span: Span | None, path: str) -> str:
    return f"{span.path}:{span.line}:{span.column}" if span is not None else path


# --- JSON ---------------------------------------------------------------------------------------------------


def document(model: str, profile: str, results: list[Result], summary: Summary) -> str:
    """The document of ``mcheck check --format json``."""
    head = json.dumps(header(model=model, profile=profile))[:-1]
    rows = ",\n".join(json.dumps(_result(r)) for r in results)
    return f'{head},\n"results": [\n{rows}\n],\n"summary": {json.dumps(_summary(summary))}}}\n'


def _told(result: Result) -> list[str]:
    """What was not covered or, if proved, the restriction under which it is."""
    if not result.reason:
        return []
    return [result.reason if result.verdict is Verdict.PROVED else f"not covered: {result.reason}"]


def _result(result: Result) -> dict[str, Any]:
    return {
        "path": result.path,
        "name": result.name,
        "verdict": result.verdict,
        "findings": [{**to_json(f), **_state(result, "new")} for f in result.findings],
        **({"known": [{**to_json(f), **_state(result, "unchanged")} for f in result.known]} if result.known else {}),
        "groups": groups_to_json(result.findings),
        "assumptions": [*_told(result), *result.assumptions],
        "executions": result.executions,
        "seconds": round(result.seconds, 6),
        **reasons_to_json(result.reasons, cut=result.cut),
        **({"errors": problems_to_json(result.problem)} if result.verdict is Verdict.ERROR and result.problem else {}),
        **_grid(result.covers),
        **_any_ctas(result.ctas),
        **filled_once_entry(result),
        **({"launches": [_launch(one) for one in result.launches]} if result.launches else {}),
        **(_left_out(result) if result.suppressed or result.ignored else {}),
    }


def _state(result: Result, state: str) -> dict[str, str]:
    """How a finding compares with the baseline, if there is one."""
    return {} if result.known is None else {"baseline": state}


def _grid(covers: Covers | None) -> dict[str, Any]:
    """The part of a grid that an answer covers, if it is about one."""
    if covers is None:
        return {}
    return {"covers": {"clusters": covers.clusters, "of": covers.total, "together": covers.together}}


def _any_ctas(ctas: AnyCtas | None) -> dict[str, Any]:
    """What an answer covers of any number of CTAs, if it is about that."""
    if ctas is None:
        return {}
    return {"covers": {"clusters": ANY if ctas.every else ctas.together, "of": ANY, "together": ctas.together}}


def _launch(one: LaunchAnswer) -> dict[str, Any]:
    return {"entry": one.entry, "gpu": one.gpu, "verdict": one.verdict, **_grid(one.covers)}


def _left_out(result: Result) -> dict[str, Any]:
    return {
        "headline": result.ignored_text or result.headline,
        "suppressed": len(result.suppressed),
        "ignored": [_ignored(result, f) for f in result.ignored],
    }


def _ignored(result: Result, finding: Finding) -> dict[str, Any]:
    """A finding that is left out, and by what: a comment of the file, the selection of codes, or the baseline."""
    by = "selection" if finding in result.deselected else "baseline" if finding in (result.known or ()) else "comment"
    line = next((a.line for a in finding.accesses if a.line is not None), None)
    return {"code": finding.code, "kind": finding.kind, "severity": finding.severity, "line": line, "by": by}


def _summary(summary: Summary) -> dict[str, int]:
    return {
        "files": summary.tests,
        "clean": summary.proved,
        "findings": summary.findings,
        "unknown": summary.open,
        "error": summary.error,
        **({"ignored": summary.ignored} if summary.ignored else {}),
    }


# --- GitHub --------------------------------------------------------------------------------------------------


def github(results: list[Result], summary: Summary) -> str:
    """GitHub workflow commands: an annotation per bug, at its primary place."""
    from mcheck.report.formats.github import annotate_findings, annotation, place_of

    lines = []
    for result in results:
        texts = SourceText(result.source, result.program)
        expected = result.status == "ok"
        lines += annotate_findings(result.findings, result.path, expected=expected, texts=texts)
        if result.ignored_text:
            lines.append(annotation("notice", place_of(None, result.path), "ignored", result.ignored_text))
        if result.status in ("unknown", "error"):
            level = "error" if result.status == "error" else "warning"
            lines += [
                annotation(level, place_of(span, result.path), result.verdict, text) for span, text in _why(result)
            ]
        elif result.status == "finding" and not result.findings:
            place = place_of(result.expectation_span, result.path)
            lines.append(annotation("error", place, "expectation", _unmet(result)))
    codes = sorted({f.code for result in results for f in result.findings})
    listed = f" ({', '.join(codes)})" if codes else ""
    counts = (
        f"{summary.proved} of {summary.tests} files proved, {summary.findings - summary.ignored} with findings{listed}"
        f"{_only_ignored(summary)}"
    )
    errors = count(summary.error, "error", "errors")
    lines.append(f"::notice title=mcheck::{counts}, {summary.open} unknown, {errors}")
    return "\n".join(lines) + "\n"


def _why(result: Result) -> list[tuple[Span | None, str]]:
    """Why there is no answer: each error of the text with its place, what was expected and a hint."""
    from mcheck.report.formats.github import summarize_problem

    if result.problem is None or result.status != "error":
        return list_problems(result.problem, result.reason or result.verdict)
    return [(one.span, "\n".join(summarize_problem(one))) for one in result.problem.all_errors]


# --- JUnit -----------------------------------------------------------------------------------------------------


def junit(results: list[Result]) -> str:
    """JUnit XML with a test case per file."""
    from mcheck.report.formats.junit import render

    return render(_case(result) for result in results)


def _case(result: Result) -> Case:
    from mcheck.report.formats.junit import Case, error_case

    if result.status == "ok":
        return Case(result.path, result.seconds, "ok", result.ignored_text)
    if result.verdict is Verdict.ERROR and result.problem is not None:
        return error_case(result.path, result.seconds, result.status, result.reason, result.problem)
    text = "\n".join(plain(line) for line in describe(result))
    message = result.reason or (_first(result) if result.findings else _unmet(result))
    return Case(result.path, result.seconds, result.status, message, text)


def _first(result: Result) -> str:
    """The first finding in a line: its code, its place in the source, its message."""
    finding = result.findings[0]
    span, _ = title(finding, SourceText(result.source, result.program))
    where = f" at {span.path}:{span.line}" if span is not None else ""
    return f"{finding.code}{where}: {finding.message}"


def _unmet(result: Result) -> str:
    return (
        f"expected {describe_kinds(result.expected_kinds)}, found nothing" if result.expected_kinds else result.verdict
    )
