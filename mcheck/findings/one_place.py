"""One place for the fix of several races: where one barrier, wait or fence stands between the accesses of all."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from mcheck.base.phrase import Site
from mcheck.base.records import dataclass, replace
from mcheck.findings.finding import CompiledLine, Finding
from mcheck.findings.fix import BeforeIssue, HandOver, Insert, Meet, Point, insertions
from mcheck.findings.frames import Statement, statement_of

Place = tuple[Statement, ...]
"""A statement, with the calls up to the function that makes both accesses of a race."""

BARRIER = "barrier"
"""What a barrier does, or a release that is acquired."""


@dataclass(frozen=True, slots=True)
class Lack:
    """What races lack: instructions of these kinds, behind a statement of the gap, which is empty if no place does for
    all. A barrier before the issue of a copy is a kind of its own: what the copy overwrites is the other direction.
    """

    kinds: frozenset[str]
    gap: frozenset[Place]

    def __and__(self, other: Lack) -> Lack:
        return Lack(self.kinds | other.kinds, common_places(self.gap, other.gap))

    def is_of(self, other: Lack) -> bool:
        """Whether one instruction does for both: at one place, of a kind that both lack."""
        alike = self.kinds <= other.kinds or other.kinds <= self.kinds
        return alike and self.meets(other)

    def meets(self, other: Lack) -> bool:
        """Whether one place is in the gaps of both."""
        return bool(common_places(self.gap, other.gap))

    @property
    def barrier(self) -> bool:
        """Whether barriers do."""
        return all(kind.startswith(BARRIER) for kind in self.kinds)


def lack_of(findings: Iterable[Finding]) -> Lack:
    """What these races lack together."""
    return reduce(Lack.__and__, map(_lack, findings))


def _lack(finding: Finding) -> Lack:
    kind = kind_of_lack(finding)
    return Lack(frozenset({kind}), frozenset(map(place_in_gap, finding.gap)) if kind else frozenset())


def place_in_gap(behind: CompiledLine) -> Place:
    """The place of a statement of a gap."""
    return tuple(map(statement_of, behind.source)) or (("", behind.line),)


def line_before(lines: Iterable[CompiledLine], point: Point) -> CompiledLine | None:
    """The last line before a place."""
    until = point.site.line if point.after else point.site.line - 1
    return max((line for line in lines if line.line <= until), key=lambda line: line.line, default=None)


def common_places(one: frozenset[Place], other: frozenset[Place]) -> frozenset[Place]:
    """The places that two gaps share: one in a function stands for all of its calls."""
    return (one & _in_calls(other)) | (_in_calls(one) & other)


def _in_calls(places: frozenset[Place]) -> frozenset[Place]:
    """The places, and as places of the functions that they call."""
    return frozenset(place[:depth] for place in places for depth in range(1, len(place) + 1))


def kind_of_lack(finding: Finding) -> str:
    """The kind of instruction that the fix begins with; empty if its place does not matter alone."""
    match finding.fixes[0].steps[0] if finding.fixes else None:
        case BeforeIssue():
            return f"{BARRIER} before an issue"
        case Meet() | HandOver():
            return BARRIER
        case Insert(codes=codes) if codes[0].startswith(("bar.", "barrier.")):
            return BARRIER
        case Insert() as step if step.waits:
            return " ".join(map(kind_of_wait, step.codes))
        case Insert(codes=codes) if codes[0].startswith("fence.proxy"):
            return codes[0]
    return ""


def place_for_all(finding: Finding, gap: frozenset[Place], others: Iterable[Finding]) -> Finding:
    """The finding with a barrier of the CTA behind a place of the gap as its fix, where it says that this may stand
    between two statements, and only some places between them do for the other races. One of those has to lack such a
    barrier: all threads come by then.
    """
    step = finding.fixes[0].steps[0] if finding.fixes else None
    fits = [one for one in finding.gap if place_in_gap(one) in _in_calls(gap)]
    if not isinstance(step, Meet | HandOver) or len(fits) in (0, len(finding.gap)):
        return finding
    barrier = next((one for other in others for one in insertions(other.fixes) if one.codes == ("bar.sync 0",)), None)
    if barrier is None:
        return finding
    behind = Insert(codes=barrier.codes, points=(Point(Site(fits[0].line), after=True),), given=barrier.given)
    known = (fits[0],) if fits[0].source and all(one.line != fits[0].line for one in finding.lines) else ()
    fixes = (replace(finding.fixes[0], steps=(behind,), instead=None), *finding.fixes[1:])
    return replace(finding, fixes=fixes, lines=(*finding.lines, *known))


def kind_of_wait(code: str) -> str:
    """A wait without the number of groups that it leaves pending."""
    return code.partition(" ")[0].removesuffix("_all").removesuffix("_group")
