"""Findings with their catalogue entries and pictures of their schedules."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mcheck.findings.finding import Finding
from mcheck.findings.ordering import sort_by_cause
from mcheck.report.site.content import Found, Picture
from mcheck.report.trace import format_trace


def describe_finding(finding: Finding, picture: int) -> Found:
    """A finding with its catalogue entry and the number of its ``picture``."""
    from mcheck.findings import catalogue

    entry = catalogue.get(finding.code)
    paragraphs = tuple(" ".join(p.split()) for p in re.split(r"\n\s*\n", entry.explanation.strip()))
    return Found(
        finding,
        entry.name.replace("-", " "),
        paragraphs,
        " ".join((finding.missing or entry.remedy).split()),
        entry.section,
        picture,
    )


def draw_findings(
    findings: Iterable[Finding], name: str, model: str, most: int
) -> tuple[tuple[Found, ...], tuple[Picture, ...]]:
    """The findings, causes first, with pictures of the first ``most`` of them."""
    from mcheck.report.picture.svg import draw
    from mcheck.report.picture.timeline import draw_timeline

    pictures: list[Picture] = []
    found = []
    for finding in sort_by_cause(findings):
        drawn = draw_timeline(finding, name, model) if len(pictures) < most else None
        number = -1
        if drawn is not None:
            number = len(pictures) + 1
            svg = draw(drawn, prefix=f"p{number}", style=False)
            steps = format_trace(finding.trace) or drawn.describe()
            title = f"{finding.code}: {'trace' if finding.trace else drawn.subject}"
            pictures.append(Picture(number, title, svg, steps))
        found.append(describe_finding(finding, number))
    return tuple(found), tuple(pictures)
