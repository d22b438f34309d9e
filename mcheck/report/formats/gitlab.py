"""GitLab's code quality report: an entry for each finding, at the source line, and for each file without an answer."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from mcheck.base.errors import Span
from mcheck.base.source_files import SourceText
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result
from mcheck.findings.baseline import identify_finding
from mcheck.report.finding import title
from mcheck.report.problems import list_problems

SEVERITIES = {"error": "critical", "review": "minor", "advice": "info"}
"""GitLab's names of the severities."""


def document(results: Iterable[Result]) -> str:
    """The report: what the file expects and what a baseline has is left out."""
    return json.dumps([entry for result in results for entry in _entries(result)], indent=1) + "\n"


def _entries(result: Result) -> Iterator[dict[str, Any]]:
    texts = SourceText(result.source, result.program)
    alike: Counter[str] = Counter()
    for finding in () if result.expected_kinds and result.ok else result.findings:
        print_ = _fingerprint(repr(identify_finding(finding, _relative(result.path), texts)))
        alike[print_] += 1
        place, sentence = title(finding, texts)
        yield _entry(
            finding.code, f"{finding.code}: {sentence}", SEVERITIES[finding.severity], place, result.path,
            _fingerprint(f"{print_}:{alike[print_]}"),
        )  # fmt: skip
    if result.verdict.is_open or result.verdict is Verdict.ERROR:
        severity = "major" if result.verdict.is_open else "critical"
        for span, text in list_problems(result.problem, result.reason or result.verdict):
            said = f"{result.verdict}: {text}"
            yield _entry(str(result.verdict), said, severity, span, result.path, _fingerprint(result.path + said))


def _entry(code: str, text: str, severity: str, place: Span | None, path: str, fingerprint: str) -> dict[str, Any]:
    return {
        "description": text,
        "check_name": code,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {
            "path": _relative(place.path if place is not None else path),
            "lines": {"begin": place.line if place is not None else 1},
        },
    }


def _relative(path: str) -> str:
    """The path below the working directory, which GitLab takes for the root of the repository."""
    here = os.path.relpath(path)
    return path if here.startswith(os.pardir) else here.replace(os.sep, "/")


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
