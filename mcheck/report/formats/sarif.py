"""SARIF 2.1.0: findings for code scanning, with both accesses and the interleaving as a code flow.

Beyond the minimum of the standard it has what GitHub code scanning reads: Markdown help, severity and tags of a rule,
relative addresses under a base, and fingerprints that survive edits elsewhere in the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mcheck import __version__
from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.base.source_files import SourceText
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding
from mcheck.findings.repair import make_edits, whole_insertions
from mcheck.ir.program import Kinds, describe_kinds
from mcheck.report.help_pages import ISA, help_page, site_url
from mcheck.report.problems import list_problems
from mcheck.report.source_edits import is_table
from mcheck.report.source_text import places_shown, primary_place
from mcheck.report.trace import format_instruction

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "%SRCROOT%"
LEVELS = {"error": "error", "review": "warning", "advice": "note"}
PROBLEMS = {"error": "error", "review": "warning", "advice": "recommendation"}
"""GitHub's names of the severities."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The findings of one file, from either command; ``ok``: they match the ``expect`` lines of the file. ``known``:
    those that a baseline has, ``None`` without one. ``program``: the path of ``source`` if it is another. ``fixes``:
    those of each finding that counts.
    """

    path: str
    source: str
    ok: bool
    expected: Kinds
    found: tuple[Finding, ...]
    suppressed: tuple[tuple[Finding, str], ...] = ()
    known: tuple[Finding, ...] | None = None
    program: str = ""
    fixes: tuple[Object, ...] = ()

    @property
    def all(self) -> tuple[Finding, ...]:
        """The findings, those that are left out as well."""
        return (*self.found, *(f for f, _ in self.suppressed), *(self.known or ()))


def document(results: list[Result], exit_status: int = 0) -> str:
    """The SARIF log of ``mcheck check``: a result per finding, suppressed if the file suppresses or expects it."""
    rules, found = convert_findings(findings_of(r) for r in results)
    return build_log(rules, describe_run(results, exit_status), [r.path for r in results], found)


def findings_of(result: Result) -> Findings:
    """The findings of the result of a file."""
    return Findings(
        path=result.path, source=result.source, ok=result.status == "ok", expected=result.expected_kinds,
        found=result.findings, suppressed=result.suppressed, known=result.known, program=result.program,
    )  # fmt: skip


def describe_run(results: list[Result], exit_status: int) -> Object:
    """The invocation: whether it went well, and what was not read or not checked."""
    return {
        "executionSuccessful": not any(r.verdict is Verdict.ERROR for r in results),
        "exitCode": exit_status,
        "toolExecutionNotifications": [note for r in results for note in _notifications(r)],
    }


def convert_findings(files: Iterable[Findings], first: int = 0) -> tuple[list[Object], list[Object]]:
    """The rules of all findings, numbered from ``first``, and a result for each finding."""
    files = list(files)
    codes = sorted({f.code for one in files for f in one.all})
    numbers = {code: k for k, code in enumerate(codes, start=first)}
    return [_rule(code) for code in codes], [item for one in files for item in _results(one, numbers)]


def build_log(rules: list[Object], invocation: Object, paths: Iterable[str], results: list[Object]) -> str:
    """A SARIF log with one run."""
    run: Object = {
        "tool": {
            "driver": {
                "name": "mcheck",
                "version": __version__,
                "semanticVersion": __version__,
                "informationUri": site_url() or ISA,
                "rules": rules,
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder in which mcheck was started."}}},
        "invocations": [invocation],
        "artifacts": [{"location": artifact(path), "roles": ["analysisTarget"]} for path in sorted(set(paths))],
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


# --- rules and results ----------------------------------------------------------------------------------------


def _rule(code: str) -> Object:
    entry = catalogue.get(code)
    severity = entry.severity("ptx")
    title = entry.name.replace("-", " ")
    markdown = (
        f"## {code}: {title}\n\n{entry.explanation}\n\n**Fix.** {entry.all_remedies}\n\n"
        f"**Incorrect**\n\n```\n{entry.bad.strip()}\n```\n\n"
        f"**Correct**\n\n```\n{entry.good.strip()}\n```\n\nSee {entry.section}.\n"
    )
    return {
        "id": code,
        "name": "".join(part.capitalize() for part in entry.name.split("-")),
        "shortDescription": {"text": title},
        "fullDescription": {"text": entry.explanation},
        "help": {"text": f"{entry.all_remedies}\nSee {entry.section}.", "markdown": markdown},
        "helpUri": help_page(code),
        "defaultConfiguration": {"level": LEVELS[severity]},
        "properties": {"kind": entry.kind, "tags": [entry.kind], "problem.severity": PROBLEMS[severity]},
    }


def _results(result: Findings, rules: dict[str, int]) -> Iterator[Object]:
    """The results of all findings; those that the file suppresses by a comment or expects are marked as suppressed."""
    alike: Counter[str] = Counter()
    fixes: Object = {"fixes": [*result.fixes]} if result.fixes else {}
    own = [(f, _expected(result, f), fixes or _fixes(result, f)) for f in result.found]
    others: list[tuple[Finding, str | None, Object]] = [(f, reason, {}) for f, reason in result.suppressed]
    for finding, reason, more in (*own, *others):
        print_ = _fingerprint(result, finding)
        alike[print_] += 1
        state = {} if result.known is None else {"baselineState": "new"}
        yield _result(result, finding, rules[finding.code], f"{print_}:{alike[print_]}", reason) | state | more
    for finding in result.known or ():
        print_ = _fingerprint(result, finding)
        alike[print_] += 1
        found = _result(result, finding, rules[finding.code], f"{print_}:{alike[print_]}", None)
        accepted = {"kind": "external", "status": "accepted", "justification": "known: it is in the baseline"}
        yield found | {"baselineState": "unchanged", "suppressions": [accepted]}


def _fixes(result: Findings, finding: Finding) -> Object:
    """The fix as edits of the text that was checked, if it is more than words, and the text is not compiled."""
    if any(access.source for access in finding.accesses):
        return {}
    path, lines = result.program or result.path, result.source.split("\n")
    table = bool(whole_insertions(finding.fixes)) and is_table(result.path, result.source)
    edits = make_edits(finding.fixes, lines, table=table)
    if not edits:
        return {}
    replacements = [
        {
            "deletedRegion": {
                "startLine": e.line,
                "startColumn": e.column + 1,
                "endColumn": e.column + 1 + e.length,
            },
            "insertedContent": {"text": e.text},
        }
        for e in edits
    ]
    changes = [{"artifactLocation": artifact(path), "replacements": replacements}]
    return {"fixes": [{"description": {"text": finding.missing}, "artifactChanges": changes}]}


def _expected(result: Findings, finding: Finding) -> str | None:
    """The justification of a finding that matches the ``expect`` line of its file."""
    if not result.ok or not any(finding.kind in line for line in result.expected) or finding.severity == "advice":
        return None
    return f"expected by the file: expect {describe_kinds(result.expected)}"


def _fingerprint(result: Findings, finding: Finding) -> str:
    """A hash of the code and the lines of the accesses, without blanks: moving them or editing others keeps it."""
    lines = result.source.split("\n")
    numbers = [a.span.line for a in finding.accesses if a.span is not None and 0 < a.span.line <= len(lines)]
    parts = [finding.code, *("".join(lines[n - 1].split()) for n in numbers)]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _result(result: Findings, finding: Finding, rule: int, fingerprint: str, reason: str | None) -> Object:
    spec = finding.spec
    text = ". ".join(part.rstrip(". ") for part in (finding.message, finding.missing) if part)
    shown = places_shown(finding, SourceText(result.source, result.program or result.path))
    places = [(a, span) for a, span in zip(finding.accesses, shown, strict=True) if span is not None]
    out: Object = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": LEVELS[finding.severity],
        "message": {"text": f"{text}. ({spec.document} {spec.section})"},
        "locations": [location(primary_place(finding, shown), result.path)],
        "partialFingerprints": {"findingLines/v1": fingerprint},
        "properties": {"kind": finding.kind, "severity": finding.severity},
    }
    if places:
        related = [(span, _says(a)) for a, span in places]
        for access, span in places:
            others = (s for s in access.source if s != span)
            related += [(s, f"compiled from here: {access.instruction}") for s in others]
            if access.span is not None and access.span != span:
                related.append((access.span, f"in the module: {access.instruction}"))
        out["relatedLocations"] = [
            {**location(span, result.path), "id": k, "message": {"text": text}}
            for k, (span, text) in enumerate(related, start=1)
        ]
    flow = _flow(result, finding)
    if flow:
        out["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    if reason is not None:
        out["suppressions"] = [{"kind": "inSource", "status": "accepted", "justification": reason}]
    return out


def _says(access: Access) -> str:
    where = f" of {access.object}[{access.bytes[0]}:{access.bytes[1]}]" if access.object else ""
    return f"{access.action} by {access.thread} ({access.proxy} proxy){where}: {access.instruction}"


def _flow(result: Findings, finding: Finding) -> list[Object]:
    """The steps of a schedule that have a line in the file, as a thread flow."""
    out = []
    for step in finding.trace:
        if step.number is not None and step.span is not None:
            place = location(Span(result.path, step.span.line, 1), result.path)
            place["message"] = {"text": format_instruction(step)}
            out.append({"executionOrder": step.number, "location": place})
    return out


# --- notifications ------------------------------------------------------------------------------


def _notifications(result: Result) -> Iterator[Object]:
    """Notifications of unreadable or incompletely checked files, unmet expectations and unused suppressions."""
    if result.verdict is Verdict.ERROR:
        for span, text in list_problems(result.problem, result.reason or "unknown reason"):
            yield notification("error", f"error: {text}", span, result.path)
    elif result.verdict.is_open:
        why = f"{result.verdict}: {result.reason or 'not every execution was checked'}"
        yield notification("warning", why, _where(result), result.path)
    if result.ignored_text:
        yield notification("note", result.ignored_text, None, result.path)
    if result.status == "finding" and not result.findings:
        unmet = f"expected {describe_kinds(result.expected_kinds)}, found nothing"
        yield notification("error", unmet, result.expectation_span, result.path)
    for message, span in result.warnings:
        yield notification("warning", message, span, result.path)


def _where(result: Result) -> Span | None:
    return result.problem.span if result.problem is not None else None


def notification(level: str, text: str, span: Span | None, path: str) -> Object:
    """A notification at a place in a file, or for the whole file."""
    return {"level": level, "message": {"text": text}, "locations": [location(span, path)]}


# --- places ------------------------------------------------------------------------------------------------------


def location(span: Span | None, path: str) -> Object:
    """The SARIF location of a span; without one, of the whole file."""
    physical: Object = {"artifactLocation": artifact(span.path if span else path), "region": {"startLine": 1}}
    if span is not None:
        end = span.column + max(span.length, 1)
        physical["region"] = {"startLine": span.line, "startColumn": span.column, "endColumn": end}
    return {"physicalLocation": physical}


def artifact(path: str) -> Object:
    """The address of a file: relative to the base if it is below the working directory, absolute otherwise."""
    here, full = Path.cwd(), Path(os.path.abspath(path))
    if full.is_relative_to(here):
        return {"uri": quote(os.fsencode(full.relative_to(here).as_posix())), "uriBaseId": BASE}
    return {"uri": f"file://{quote(os.fsencode(full.as_posix()))}"}
