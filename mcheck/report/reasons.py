"""Reasons as JSON: for programs the name of the cause, for people the text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcheck.base.reasons import Reason, format_reasons


def to_json(reasons: Iterable[Reason], *, cut: bool) -> dict[str, Any]:
    """The fields of a result: ``reasons`` if there are any, and ``cut`` if a limit cut the answer."""
    listed = [_reason(reason) for reason in reasons]
    return {**({"reasons": listed} if listed else {}), **({"cut": True} if cut else {})}


def _reason(reason: Reason) -> dict[str, Any]:
    span = reason.span
    return {
        "cause": reason.cause,
        "text": format_reasons((reason,)),
        **({"seconds": reason.seconds} if reason.seconds is not None else {}),
        **({"path": span.path, "line": span.line, "column": span.column} if span is not None else {}),
        **(
            {"source": [{"path": s.path, "line": s.line, "column": s.column} for s in reason.source]}
            if reason.source
            else {}
        ),
        **({"because": [_reason(r) for r in reason.because]} if reason.because else {}),
    }
