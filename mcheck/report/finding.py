"""A finding as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcheck.base.errors import Span
from mcheck.findings.finding import Access, Finding
from mcheck.report.errors import window
from mcheck.report.lines import Line
from mcheck.report.trace import abridge_registers, format_trace

MOST = 200
"""The maximum number of characters shown of a source line."""
SEVERITY_STYLES = {"error": "bold red", "review": "yellow", "advice": "cyan"}


def to_json(finding: Finding) -> dict[str, Any]:
    """The JSON object of a finding."""
    return {
        "code": finding.code,
        "kind": finding.kind,
        "severity": finding.severity,
        "message": finding.message,
        "accesses": [_access(access) for access in finding.accesses],
        "missing": finding.missing,
        "spec": {"document": finding.spec.document, "section": finding.spec.section},
        "trace": list(format_trace(finding.trace)),
    }


def _access(access: Access) -> dict[str, Any]:
    found: dict[str, Any] = {
        "thread": access.thread,
        "path": access.path,
        "line": access.line,
        "column": access.column,
        "instruction": access.instruction,
        "object": access.object,
        "bytes": list(access.bytes),
        "proxy": access.proxy,
        "access": access.access,
    }
    if access.source:
        found["source"] = [{"path": s.path, "line": s.line, "column": s.column} for s in access.source]
    return found


def compiled_from(access: Access) -> str:
    """The source location of a compiled access, ``kernel.cu:11:7, inlined in kernel.cu:40:3``; empty without line
    information.
    """
    return ", inlined in ".join(f"{s.path}:{s.line}:{s.column}" for s in access.source)


def lines(
    finding: Finding, source: str = "", *, trace: bool = False, most: int | None = None, width: int | None = None
) -> Iterator[Line]:
    """The lines of a finding: the message, the accesses with their places, the fix, and the section.

    ``source`` is the text of the program, whose lines are quoted; ``width`` the width of the terminal, if there is one;
    ``most`` bounds the accesses.
    """
    style = SEVERITY_STYLES.get(finding.severity, "")
    yield (f"{finding.severity}[{finding.code}]", style), f" {finding.kind}: {finding.message}"
    shown = finding.accesses[:most]
    for access in shown:
        yield from _place(access, source, style, width)
    if len(shown) < len(finding.accesses):
        yield (f"  and {len(finding.accesses) - len(shown)} more",)
    if finding.missing:
        yield (f"  fix: {finding.missing}",)
    if finding.section:
        spec = finding.spec
        many = "s" if "," in spec.section or " and " in spec.section else ""
        yield (f"  see: {spec.document}, section{many} {spec.section}; mcheck explain {finding.code}",)
    if trace and finding.trace:
        yield ("  trace:",)
        for step in format_trace(finding.trace):
            yield (f"    {step}",)


def _place(access: Access, source: str, style: str, width: int | None) -> Iterator[Line]:
    """An access with its line; an operation that accesses no memory has no proxy and no bytes."""
    place = access.place
    what = (
        f"{access.action} by {access.thread} ({access.proxy} proxy) of {place}"
        if place
        else f"executed by {access.thread}"
    )
    span = access.span
    lines = source.split("\n") if span is not None else []
    number = str(span.line) if span is not None else ""
    room = MOST if width is None else min(MOST, max(width - len(number) - 15, 12))
    if span is None or not source or not 0 < span.line <= len(lines) or span.length > room:
        yield (f"  {what}: {abridge_registers(access.instruction)}",)
        if span is not None:
            yield from _at(access, span)
        return
    yield (f"  {what}",)
    yield from _at(access, span)
    text, caret, length = window(lines[span.line - 1].replace("\t", " "), span.column - 1, span.length, room)
    yield f"    {number} | ", text
    yield f"    {' ' * len(number)} | " + " " * caret, ("^" * length, style)


def _at(access: Access, span: Span) -> Iterator[Line]:
    """The place of an access and its source location."""
    yield "    --> ", (f"{span.path}:{span.line}:{span.column}", "dim")
    if access.source:
        yield "    from ", (compiled_from(access), "dim")
