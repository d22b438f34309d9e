"""JUnit's XML, in the form that CI servers read: a test case per file, a suite per folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from mcheck.report.lines import plain
from mcheck.report.text import describe
from mcheck.run.case import Result, Summary

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(results: list[Result], summary: Summary) -> str:
    """The whole document. A mismatch is a failure; an unknown answer is an error, for it shows nothing."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>']
    errors = summary.error + summary.unknown
    parts.append(f'<testsuites name="mcheck" {_counts(summary.tests, summary.mismatch, errors, summary.seconds)}>')
    ordered = sorted(results, key=_folder)
    for folder, group in groupby(ordered, key=_folder):
        parts.extend(_suite(folder, list(group)))
    parts.append("</testsuites>\n")
    return "\n".join(parts)


def _folder(result: Result) -> str:
    return os.path.dirname(result.path) or "."


def _suite(folder: str, results: list[Result]) -> Iterator[str]:
    failures = sum(result.status == "mismatch" for result in results)
    errors = sum(result.status in ("error", "unknown") for result in results)
    seconds = sum(result.seconds for result in results)
    yield f"  <testsuite name={_attribute(folder)} {_counts(len(results), failures, errors, seconds)}>"
    for result in results:
        name, seconds = os.path.basename(result.path), result.seconds
        head = (
            f"    <testcase classname={_attribute(folder)} name={_attribute(name)} time={_attribute(f'{seconds:.3f}')}"
        )
        if result.ok:
            yield head + "/>"
            continue
        tag = "failure" if result.status == "mismatch" else "error"
        text = [plain(line) for line in describe(result)]
        message = _attribute(result.reason or "; ".join(line.strip() for line in text[1:2]) or result.status)
        body = escape(_clean("\n".join(text)))
        yield head + ">"
        yield f"      <{tag} type={_attribute(result.status)} message={message}>{body}</{tag}>"
        yield "    </testcase>"
    yield "  </testsuite>"


def _counts(tests: int, failures: int, errors: int, seconds: float) -> str:
    return f'tests="{tests}" failures="{failures}" errors="{errors}" time="{seconds:.3f}"'


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
