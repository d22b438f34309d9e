"""A note: a diagnostic with its place, its severity and its fix."""

from __future__ import annotations

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.findings.repair import Edit

SEVERITIES = ("error", "warning", "information", "hint")
_OF_FINDINGS = {"error": "error", "review": "warning", "advice": "information"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A diagnostic. ``code`` is the code of an error or a finding; ``edits`` implement the fix of a finding, or correct
    a misspelt word.
    """

    span: Span
    severity: str
    message: str
    code: str = ""
    related: tuple[tuple[Span, str], ...] = ()
    edits: tuple[Edit, ...] = ()
    remedy: str = ""


def note_severity(severity: str) -> str:
    """The severity of a note about a finding."""
    return _OF_FINDINGS[severity]
