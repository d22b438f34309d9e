"""Where the instruction of a fix is written, of places that were inlined.

What comes between two places is written in the function that contains both: there they are two statements, or calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mcheck.base.errors import Span
from mcheck.base.phrase import Site
from mcheck.base.source_files import SourceText
from mcheck.findings.finding import CompiledLine, Finding
from mcheck.findings.fix import BeforeIssue, HandOver, Insert, Meet, Point, Publish, Step
from mcheck.findings.frames import Chain, Statement, count_common_calls, statement_of
from mcheck.report.source_text import Depth


def places_to_write(finding: Finding, texts: SourceText) -> dict[int, Span]:
    """The places of lines of the module between which, or at which, the fix is written, as far as they were inlined."""
    known = {one.line: one for one in finding.lines}
    found: dict[int, Span] = {}
    for step in (step for fix in finding.fixes for step in fix.steps):
        for one, shared in _in_frame(step, known, finding):
            place = Depth(shared).call(one.source, texts) if len(one.source) > shared + 1 else None
            if place is not None:
                found[one.line] = place
    return found


def _in_frame(step: Step, known: Mapping[int, CompiledLine], finding: Finding) -> Iterator[tuple[CompiledLine, int]]:
    """The lines that a step names by their calls, each with the number of calls that contain both ends of the fix."""
    if ends := _ends(step):
        lines = [known[site.line] for site in ends if site.line in known]
        shared = _shared([one.source for one in lines])
        if len(lines) == len(ends) and shared is not None:
            yield from ((one, shared) for one in lines)
    if isinstance(step, Insert) and (step.waits or step.codes[0].startswith(("bar.", "fence.proxy."))):
        between = finding.accesses if step.codes[0].startswith("bar.") else finding.accesses[:1]
        found = [(one, point) for point in step.points if (one := known.get(point.site.line)) is not None]
        depths: dict[Statement, int] = {}
        for one, point in found:
            shared = _shared([one.source, *(access.source for access in between)])
            if shared is not None:
                depth = max(shared, _met(one, point), depths.get(statement_of(one.source[0]), 0))
                depths[statement_of(one.source[0])] = depth
        # Of a function that is inlined several times the finding is about one call, and the others are alike.
        yield from (
            (one, depths[at]) for one, _ in found if one.source and (at := statement_of(one.source[0])) in depths
        )


def _ends(step: Step) -> tuple[Site, ...]:
    """The two statements between which a barrier, or a hand-over, may stand anywhere."""
    match step:
        case Meet(first=Site() as one, second=Site() as other) | HandOver(after=Site() as one, to=Site() as other):
            return one, other
        case BeforeIssue(first=one, issue=other) | Publish(init=one, use=other, fence=""):
            return one, other
    return ()


def _shared(chains: Sequence[Chain]) -> int | None:
    """The number of calls that contain all of these places; ``None`` if they are one place, or one is not known."""
    several = len({tuple(map(statement_of, chain)) for chain in chains}) > 1
    return count_common_calls(chains) if several and all(chains) else None


def _met(one: CompiledLine, point: Point) -> int:
    """How many calls contain the nearest statement that synchronises on the way out of the calls: written farther out,
    the instruction would come to another side of it.
    """
    return one.behind if point.after else one.before
