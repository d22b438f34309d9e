"""What was found, with what the catalogue says of it and the schedules that show it as pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mcheck.findings.finding import Finding
from mcheck.findings.ordering import sort_by_cause
from mcheck.report.site.content import Found, Picture
from mcheck.report.trace import texts


def found_of(finding: Finding, picture: int) -> Found:
    """A finding and its entry in the catalogue; ``picture`` is the number of what shows it."""
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


def with_schedules(
    findings: Iterable[Finding], name: str, model: str, most: int
) -> tuple[tuple[Found, ...], tuple[Picture, ...]]:
    """The findings, what others may follow from first, and a picture for each of the first ones."""
    from mcheck.report.picture.svg import draw
    from mcheck.report.picture.timeline import timeline

    pictures: list[Picture] = []
    found = []
    for finding in sort_by_cause(findings):
        drawn = timeline(finding, name, model) if len(pictures) < most else None
        number = -1
        if drawn is not None:
            number = len(pictures) + 1
            svg = draw(drawn, prefix=f"p{number}", style=False)
            pictures.append(Picture(number, f"{finding.code}: trace", svg, texts(finding.trace)))
        found.append(found_of(finding, number))
    return tuple(found), tuple(pictures)
