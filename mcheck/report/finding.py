"""A finding as text and as the JSON object of the interface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcheck.findings.finding import Access, Finding
from mcheck.report.lines import Line

DOCUMENT = "PTX ISA"
_REFERENCE = re.compile(r"(?P<document>PTX ISA(?: \d+\.\d+)?),?:? (?:sections? )?(?P<section>.+)")
SEVERITY_STYLES = {"error": "bold red", "review": "yellow", "advice": "cyan"}


def to_json(finding: Finding) -> dict[str, Any]:
    """The object that stands in ``findings``."""
    return {
        "code": finding.code,
        "kind": finding.kind,
        "severity": finding.severity,
        "message": finding.message,
        "accesses": [_access(access) for access in finding.accesses],
        "missing": finding.missing,
        "spec": specification(finding.section),
        "trace": list(finding.trace),
    }


def specification(section: str) -> dict[str, str]:
    """Document and section of a reference such as ``PTX ISA 9.0 section 9.7.9.1``; the document may be left out."""
    found = _REFERENCE.match(section)
    if found is None:
        return {"document": DOCUMENT, "section": section}
    return {"document": found["document"], "section": found["section"]}


def _access(access: Access) -> dict[str, Any]:
    span = access.span
    return {
        "thread": access.thread,
        "path": span.path if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "instruction": access.instruction,
        "object": access.object,
        "bytes": list(access.bytes),
        "proxy": access.proxy,
        "access": access.access,
    }


def lines(finding: Finding, *, trace: bool = False) -> Iterator[Line]:
    """The finding in words: what, which accesses where, what is missing, by which section."""
    style = SEVERITY_STYLES.get(finding.severity, "")
    yield (f"{finding.severity}[{finding.code}]", style), f" {finding.kind}: {finding.message}"
    for access in finding.accesses:
        yield (f"  {access.access} by {access.thread} ({access.proxy} proxy): {access.instruction}",)
        where = [f"{access.object}[{access.bytes[0]}:{access.bytes[1]}]"] if access.object else []
        if access.span:
            where.insert(0, f"{access.span.path}:{access.span.line}:{access.span.column}")
        if where:
            yield "    --> ", (", ".join(where), "dim")
    if finding.missing:
        yield (f"  missing: {finding.missing}",)
    if finding.section:
        spec = specification(finding.section)
        many = "s" if "," in spec["section"] or " and " in spec["section"] else ""
        yield (f"  see: {spec['document']}, section{many} {spec['section']}",)
    if trace and finding.trace:
        yield ("  an execution:",)
        for step in finding.trace:
            yield (f"    {step}",)
