"""SARIF 2.1.0: findings for code scanning, with both accesses and the interleaving as a code flow."""

from __future__ import annotations

import json
import re
from typing import Any

from mcheck import __version__
from mcheck.check.case import Checked
from mcheck.errors import Span
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding
from mcheck.report.finding import specification

SCHEMA = "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/main/sarif-2.1/schema/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "review": "warning", "advice": "note"}
_STEP = re.compile(r"^\s*(?P<number>\d+)\s+(?P<line>\d+): (?P<text>.*)$")


def document(results: list[Checked]) -> str:
    """One run with a result per finding; findings that a file suppresses are kept, marked as suppressed."""
    codes = sorted({f.code for r in results for f in (*r.findings, *(g for g, _ in r.suppressed))})
    rules = {code: k for k, code in enumerate(codes)}
    found = [_result(r, f, rules, None) for r in results for f in r.findings]
    found += [_result(r, f, rules, reason) for r in results for f, reason in r.suppressed]
    notes = [_notification(r) for r in results if r.verdict in ("unknown", "error", "bounded")]
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "mcheck",
                "version": __version__,
                "informationUri": "https://docs.nvidia.com/cuda/parallel-thread-execution/",
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": all(r.verdict != "error" for r in results),
                "toolExecutionNotifications": notes,
            }
        ],
        "artifacts": [{"location": {"uri": _uri(path)}} for path in sorted({r.path for r in results})],
        "results": found,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(code: str) -> dict[str, Any]:
    entry = catalogue.get(code)
    return {
        "id": code,
        "name": "".join(part.capitalize() for part in entry.name.split("-")),
        "shortDescription": {"text": entry.name.replace("-", " ")},
        "fullDescription": {"text": entry.explanation},
        "help": {"text": f"{entry.remedy}\nSee {entry.section}."},
        "defaultConfiguration": {"level": LEVELS[entry.severity("ptx")]},
        "properties": {"kind": entry.kind},
    }


def _result(result: Checked, finding: Finding, rules: dict[str, int], reason: str | None) -> dict[str, Any]:
    spec = specification(finding.section)
    text = f"{finding.message}. {finding.missing} ({spec['document']} {spec['section']})"
    places = [a for a in finding.accesses if a.span is not None]
    out: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rules[finding.code],
        "level": LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(places[0].span if places else Span(result.path, 1, 1))],
        "properties": {"kind": finding.kind, "severity": finding.severity},
    }
    if places:
        out["relatedLocations"] = [
            {**_location(a.span), "id": k, "message": {"text": _says(a)}} for k, a in enumerate(places, start=1)
        ]
    flow = _flow(result, finding)
    if flow:
        out["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    if reason is not None:
        out["suppressions"] = [{"kind": "inSource", "justification": reason}]
    return out


def _says(access: Access) -> str:
    where = f" of {access.object}[{access.bytes[0]}:{access.bytes[1]}]" if access.object else ""
    return f"{access.access} by {access.thread} ({access.proxy} proxy){where}: {access.instruction}"


def _flow(result: Checked, finding: Finding) -> list[dict[str, Any]]:
    """The lines of the trace that name a line of the file."""
    out = []
    for step in finding.trace:
        match = _STEP.match(step)
        if match is not None:
            location = _location(Span(result.path, int(match["line"]), 1))
            location["message"] = {"text": match["text"].strip()}
            out.append({"executionOrder": int(match["number"]), "location": location})
    return out


def _location(span: Span | None) -> dict[str, Any]:
    if span is None:
        return {}
    region = {"startLine": span.line, "startColumn": span.column, "endColumn": span.column + max(span.length, 1)}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(span.path)}, "region": region}}


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path.removeprefix("./"))


def _notification(result: Checked) -> dict[str, Any]:
    level = "error" if result.verdict == "error" else "warning"
    text = f"{result.path}: {result.verdict}: {result.reason or 'not every execution was looked at'}"
    return {"level": level, "message": {"text": text}, "locations": [_location(Span(result.path, 1, 1))]}
