"""The fix of one bug at each of its places: a loop that was unrolled has a wait, and a commit, in each copy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcheck.base.phrase import Site
from mcheck.base.records import replace
from mcheck.findings.finding import Finding
from mcheck.findings.fix import Insert, Point, WeakWait
from mcheck.findings.fix_words import mentioned
from mcheck.findings.one_place import kind_of_lack, kind_of_wait, line_before


def fix_at_every_place(finding: Finding, others: Iterable[Finding]) -> Finding:
    """The finding; if its fix is an instruction to insert, with the places of those of one kind that the ``others`` of
    its bug name, as far as the places before do not do for these.
    """
    first = finding.fixes[0].steps[0] if finding.fixes else None
    if not isinstance(first, Insert) or len(finding.fixes[0].steps) > 1:
        return finding
    named = [other for other in others if (step := _insert_of(other)) is not None and _kinds(step) == _kinds(first)]
    steps = [step for one in (finding, *named) if (step := _insert_of(one)) is not None]
    if first.weak is not None:
        every: tuple[Insert, ...] = _strongest(step for step in steps if step.weak is not None)
    elif _is_commit(first):
        points = {_by_place(point.site): point for step in steps for point in step.points}
        every = (replace(first, points=tuple(points[place] for place in sorted(points))),)
    elif first.points and not first.waits and kind_of_lack(finding):
        every = (replace(first, points=_places_for_all(finding, named)),)
    else:
        return finding
    fixes = (replace(finding.fixes[0], steps=every), *finding.fixes[1:])
    known = {line.line: line for one in (*named, finding) for line in one.lines}
    lines = tuple(known[site.line] for site in mentioned(fixes) if site.line in known)
    return replace(finding, fixes=fixes, lines=tuple(dict.fromkeys((*finding.lines, *lines))))


def _places_for_all(finding: Finding, others: Sequence[Finding]) -> tuple[Point, ...]:
    """The places of an instruction: a finding has one, and each other one for which those before do not do."""
    points = list(_points(finding))
    known = [line for one in (finding, *others) for line in one.gap]
    for other in others:
        behind = (line_before(known, point) for point in points)
        lines = {line.line for line in other.gap}
        if lines and lines.isdisjoint(line.line for line in behind if line is not None):
            points += [point for point in _points(other) if point not in points]
    return tuple(sorted(points, key=lambda point: _by_place(point.site)))


def _points(finding: Finding) -> tuple[Point, ...]:
    step = _insert_of(finding)
    return step.points if step is not None else ()


def _insert_of(finding: Finding) -> Insert | None:
    step = finding.fixes[0].steps[0] if finding.fixes else None
    return step if isinstance(step, Insert) else None


def _kinds(step: Insert) -> tuple[str, ...]:
    return tuple(map(kind_of_wait, step.codes))


def _is_commit(step: Insert) -> bool:
    return len(step.codes) == 1 and step.codes[0].endswith(".commit_group")


def _strongest(steps: Iterable[Insert]) -> tuple[Insert, ...]:
    """Of each wait the step that leaves the fewest groups pending, in the order of the text."""
    found: dict[tuple[int, int], Insert] = {}
    for step in steps:
        place = _by_place(_weak(step).site)
        if place not in found or (step.leaves or 0) < (found[place].leaves or 0):
            found[place] = step
    return tuple(found[place] for place in sorted(found))


def _weak(step: Insert) -> WeakWait:
    assert step.weak is not None
    return step.weak


def _by_place(site: Site) -> tuple[int, int]:
    return site.line, site.column
