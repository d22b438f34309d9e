"""Findings that a file asks to leave out: ``// mcheck: ignore CODE reason``, on the line of an access or above it.

A suppression without a reason suppresses nothing; one that meets no finding is reported as a warning.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.findings.finding import Finding

_COMMENT = re.compile(r"//\s*mcheck:\s*ignore\s+(?P<codes>[A-Za-z]+\d*(?:\s*,\s*[A-Za-z]+\d*)*)(?P<reason>[^\n]*)")


@dataclass(frozen=True, slots=True)
class Suppression:
    """Codes (or their beginnings) that are left out at a line, and why."""

    codes: tuple[str, ...]
    reason: str
    line: int
    column: int
    alone: bool
    """Whether the comment has its line to itself, so that it speaks of the next line."""

    def speaks_of(self, code: str, span: Span | None, path: str) -> bool:
        """Whether it accepts this code at a place."""
        here = span is not None and span.path == path and span.line == self.line + self.alone
        return here and code.startswith(self.codes)

    def meets(self, finding: Finding, path: str) -> bool:
        """Whether the finding has one of the codes and an access at the line."""
        return any(self.speaks_of(finding.code, access.span, path) for access in finding.accesses)


@lru_cache(maxsize=16)
def suppressions(text: str) -> tuple[Suppression, ...]:
    """The suppressions of a file."""
    if "mcheck:" not in text:
        return ()
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        match = _COMMENT.search(line)
        if match is not None:
            codes = tuple(code.strip().upper() for code in match["codes"].split(","))
            reason = match["reason"].strip(" -:—")
            alone = not line[: match.start()].strip()
            found.append(Suppression(codes, reason, number, match.start() + 1, alone))
    return tuple(found)


def is_suppressed(text: str, path: str, code: str, span: Span | None) -> bool:
    """Whether a file accepts, with a reason, that an operation at this place has a finding of this code."""
    return any(s.reason and s.speaks_of(code, span, path) for s in suppressions(text))


def apply_suppressions(
    findings: tuple[Finding, ...], text: str, path: str, *, all_found: bool = True
) -> tuple[tuple[Finding, ...], tuple[tuple[Finding, str], ...], list[tuple[str, Span | None]]]:
    """(findings that stay, those that are left out with the reason, warnings). Without ``all_found`` a suppression that
    has nothing to suppress might have if more were looked at, which its warning says.
    """
    asked = suppressions(text)
    if not asked:
        return findings, (), []
    kept: list[Finding] = []
    left: list[tuple[Finding, str]] = []
    used: set[Suppression] = set()
    for finding in findings:
        match = next((s for s in asked if s.reason and s.meets(finding, path)), None)
        if match is None:
            kept.append(finding)
        else:
            used.add(match)
            left.append((finding, match.reason))
    warnings: list[tuple[str, Span | None]] = []
    for s in asked:
        span = Span(path, s.line, s.column)
        if not s.reason:
            warnings.append((f"a suppression of {', '.join(s.codes)} without a reason has no effect", span))
        elif s not in used:
            seen = "" if all_found else " in what was looked at before the search ended at another error"
            warnings.append((f"nothing to suppress here: no finding {' or '.join(s.codes)} at this line{seen}", span))
    return tuple(kept), tuple(left), warnings
