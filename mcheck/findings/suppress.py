"""Suppressions: ``// mcheck: ignore CODE reason``, at the line of an access or above it.

A suppression without a reason has no effect; an unused suppression is reported as a warning.
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
    """A suppression of codes, or prefixes of codes, at a line, with its reason."""

    codes: tuple[str, ...]
    reason: str
    line: int
    column: int
    own_line: bool
    """Whether the comment is alone on its line, so that it applies to the next line."""

    def applies_to(self, code: str, span: Span | None, path: str) -> bool:
        """Whether it suppresses this code at a place."""
        here = span is not None and span.path == path and span.line == self.line + self.own_line
        return here and code.startswith(self.codes)

    def matches(self, finding: Finding, path: str) -> bool:
        """Whether it suppresses a finding: by code, at the line of one of its accesses."""
        return any(self.applies_to(finding.code, access.span, path) for access in finding.accesses)


@lru_cache(maxsize=16)
def parse_suppressions(text: str) -> tuple[Suppression, ...]:
    """Parse the suppressions of a file."""
    if "mcheck:" not in text:
        return ()
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        match = _COMMENT.search(line)
        if match is not None:
            codes = tuple(code.strip().upper() for code in match["codes"].split(","))
            reason = match["reason"].strip(" -:—")
            own_line = not line[: match.start()].strip()
            found.append(Suppression(codes, reason, number, match.start() + 1, own_line))
    return tuple(found)


def is_suppressed(text: str, path: str, code: str, span: Span | None) -> bool:
    """Whether a file suppresses, with a reason, findings of this code at this place."""
    return any(s.reason and s.applies_to(code, span, path) for s in parse_suppressions(text))


def apply_suppressions(
    findings: tuple[Finding, ...], text: str, path: str, *, all_found: bool = True
) -> tuple[tuple[Finding, ...], tuple[tuple[Finding, str], ...], list[tuple[str, Span | None]]]:
    """Split findings into (kept, suppressed with reasons, warnings). Without ``all_found`` the exploration stopped
    early, and the warning about an unused suppression says so.
    """
    asked = parse_suppressions(text)
    if not asked:
        return findings, (), []
    kept: list[Finding] = []
    left: list[tuple[Finding, str]] = []
    used: set[Suppression] = set()
    for finding in findings:
        match = next((s for s in asked if s.reason and s.matches(finding, path)), None)
        if match is None:
            kept.append(finding)
        else:
            used.add(match)
            left.append((finding, match.reason))
    warnings: list[tuple[str, Span | None]] = []
    for s in asked:
        span = Span(path, s.line, s.column)
        if not s.reason:
            warnings.append((f"the suppression of {', '.join(s.codes)} has no effect without a reason", span))
        elif s not in used:
            seen = "" if all_found else " was found before the exploration stopped at another error"
            warnings.append((f"unused suppression: no finding {' or '.join(s.codes)} at this line{seen}", span))
    return tuple(kept), tuple(left), warnings
