"""Findings for races between two clusters of the grid."""

from __future__ import annotations

from math import prod

from mcheck.base.errors import Span
from mcheck.checking.modules.grid_coverage import DOES, Clash, Coverage
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding
from mcheck.findings.fix import advise, remedy
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.footprints.footprint import REDUCE, UPDATE

CODE = "RACE001"
_FIX = "Let each {} write its own bytes, or order the accesses by a release and an acquire at scope gpu"
_WIDEN = advise("Give scope .gpu to the atomics: strong accesses that include each other's threads do not race")
_ATOMIC = frozenset((REDUCE, UPDATE))


def cluster_race_findings(coverage: Coverage, module: Module, launch: Launch, profile: str) -> tuple[Finding, ...]:
    """The findings for definite races between clusters, one for each pair of source locations."""
    unit = "CTA" if prod(launch.cluster) * prod(launch.together) == 1 else "cluster"
    texts = {s.span: s.text for f in module.functions.values() for s in f.body} if coverage.clashes else {}
    return tuple(
        {
            tuple(side.span for side in clash.sides): _race(clash, texts, unit, profile) for clash in coverage.clashes
        }.values()
    )


def _race(clash: Clash, texts: dict[Span, str], unit: str, profile: str) -> Finding:
    entry = catalogue.get(CODE)
    accesses = tuple(
        Access(
            thread=side.cta, instruction=texts.get(side.span, "") if side.span is not None else "", span=side.span,
            object=clash.object, bytes=clash.bytes, access="write" if side.kind in _ATOMIC else side.kind,
            strong=side.kind in _ATOMIC,
        )
        for side in clash.sides
    )  # fmt: skip
    first, second = clash.sides
    message = (
        f"{first.cta} {DOES[first.kind]} bytes of {clash.object} that {second.cta} {DOES[second.kind]}, "
        f"and nothing in the kernel orders the two {unit}s"
    )
    return Finding(
        code=CODE, kind=entry.kind, severity=entry.severity(profile), said=(message,), accesses=accesses,
        fixes=(_WIDEN if {first.kind, second.kind} <= _ATOMIC else remedy(_FIX.format(unit)),),
        section=entry.section,
    )  # fmt: skip
