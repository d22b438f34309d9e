"""SARIF 2.1.0 of ``mcheck run``: a result per mismatch, at the line of the expectation, and one per finding, as in
``mcheck check``.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.checking.run.result import Result
from mcheck.checking.run.summary import Summary
from mcheck.report.formats.sarif import Findings, Object, build_log, convert_findings, location, notification
from mcheck.report.lines import plain
from mcheck.report.problems import list_problems
from mcheck.report.text import describe

RULE: Object = {
    "id": "mismatch",
    "name": "Mismatch",
    "shortDescription": {"text": "a test does not answer as expected"},
    "fullDescription": {
        "text": "The verdict or the findings of a litmus test differ from those that its file or a table expects."
    },
    "defaultConfiguration": {"level": "error"},
}


def document(results: list[Result], summary: Summary) -> str:
    """The SARIF log; tests without an answer and warnings are notifications."""
    invocation: Object = {
        "executionSuccessful": summary.error == 0,
        "exitCode": summary.exit_status,
        "toolExecutionNotifications": [note for r in results for note in _notifications(r)],
    }
    mismatches = [_mismatch(r) for r in results if r.status == "mismatch"]
    files = (
        Findings(path=r.path, source=r.source, ok=r.status == "ok", expected=r.expected_kinds, found=r.findings)
        for r in results
    )
    rules, found = convert_findings(files, first=1)
    return build_log([RULE, *rules], invocation, [r.path for r in results], mismatches + found)


def _mismatch(result: Result) -> Object:
    return {
        "ruleId": RULE["id"],
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "\n".join(plain(line) for line in describe(result, states=10, findings=False))},
        "locations": [location(result.expectation_span, result.path)],
        "partialFingerprints": {"test/v1": result.name},
    }


def _notifications(result: Result) -> Iterator[Object]:
    if result.status in ("error", "unknown"):
        level = "error" if result.status == "error" else "warning"
        for span, text in list_problems(result.problem, result.reason or "unknown reason"):
            yield notification(level, f"{result.status}: {text}", span, result.path)
    for message, span in result.warnings:
        yield notification("warning", message, span, result.path)
