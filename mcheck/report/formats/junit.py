"""JUnit XML for CI servers: a test case per file, a suite per folder.

It follows the stricter of the two schemas in use, that of Apache Ant, whose documents are also valid for Jenkins:
required parts of a suite are present even if empty (host, output), and the counts are attributes of the suites, not of
the root.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from mcheck import __version__
from mcheck.base.errors import McheckError
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result
from mcheck.report.errors import render as in_words
from mcheck.report.lines import plain
from mcheck.report.text import describe

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FAILURES = ("mismatch", "finding")
"""Statuses that are failures; all others but ``ok`` are errors."""


@dataclass(frozen=True, slots=True)
class Case:
    """The test case of a file; ``message`` and ``text`` say why it is not ``ok``, or what was found nevertheless."""

    path: str
    seconds: float
    status: str
    message: str = ""
    text: str = ""


def document(results: Iterable[Result], when: datetime | None = None) -> str:
    """The document of ``mcheck run --format junit``. A mismatch is a failure, an unknown answer an error."""
    return render([_case(result) for result in results], when)


def _case(result: Result) -> Case:
    if result.ok:
        found = f"{', '.join(result.unexpected_errors)} found" if result.unexpected_errors else ""
        return Case(result.path, result.seconds, "ok", found)
    if result.verdict is Verdict.ERROR and result.problem is not None:
        return error_case(result.path, result.seconds, result.status, result.reason, result.problem)
    lines = [plain(line) for line in describe(result)]
    message = result.reason or "; ".join(line.strip() for line in lines[1:2]) or result.status
    return Case(result.path, result.seconds, result.status, message, "\n".join(lines))


def error_case(path: str, seconds: float, status: str, reason: str | None, problem: McheckError) -> Case:
    """The test case of a file that could not be read, with the same text as on a terminal."""
    return Case(path, seconds, status, reason or problem.message, in_words(problem))


def render(cases: Iterable[Case], when: datetime | None = None) -> str:
    """The XML of the cases, with the time stamp ``when`` (default: now, in UTC)."""
    stamp = (when or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S")
    root = Element("testsuites")
    for number, (folder, group) in enumerate(groupby(sorted(cases, key=_folder), key=_folder)):
        _suite(root, number, folder, list(group), stamp)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _folder(case: Case) -> str:
    return os.path.dirname(case.path) or "."


def _suite(root: Element, number: int, folder: str, cases: list[Case], stamp: str) -> None:
    failures = sum(case.status in FAILURES for case in cases)
    errors = sum(case.status not in ("ok", *FAILURES) for case in cases)
    name = _clean(folder).strip() or "."  # empty names are invalid
    attributes = {"name": name, "package": name, "id": str(number), "timestamp": stamp, "hostname": "localhost"}
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": str(errors)}
    suite = SubElement(root, "testsuite", attributes | counts | {"time": _seconds(sum(c.seconds for c in cases))})
    SubElement(SubElement(suite, "properties"), "property", {"name": "mcheck", "value": __version__})
    for case in cases:
        head = {"classname": name, "name": _clean(os.path.basename(case.path)), "time": _seconds(case.seconds)}
        element = SubElement(suite, "testcase", head)
        if case.status != "ok":
            tag = "failure" if case.status in FAILURES else "error"
            why = SubElement(element, tag, {"type": case.status, "message": _clean(case.message)})
            why.text = _clean(case.text)
    found = [f"{os.path.basename(case.path)}: {case.message}" for case in cases if case.status == "ok" and case.message]
    SubElement(suite, "system-out").text = _clean("\n".join(found)) or None
    SubElement(suite, "system-err")


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


def _clean(text: str) -> str:
    """``text`` without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
