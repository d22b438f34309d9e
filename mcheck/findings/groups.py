"""Groups of findings: one group for each bug, root causes first.

Findings are one group if they have the same code and the same pair of source places: an unrolled loop, or many lanes,
repeat them. Groups are joined if one edit fixes all of them: their fixes are the same instruction at the same source
place, or of one kind, and one place is between the accesses of all (``one_place``). A fix of the catalogue, which names
no place, joins only what one barrier orders: accesses of an object in shared memory, all on the same side of an access
that they race with, and no barrier in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeGuard

from mcheck.base.phrase import Part, Site, Sites, Thing, plain, sites
from mcheck.base.records import dataclass
from mcheck.findings.finding import Access, CompiledLine, Finding
from mcheck.findings.fix import (
    Await,
    BeforeIssue,
    Change,
    Condition,
    HandOver,
    Insert,
    Known,
    Meet,
    Property,
    Publish,
    Repeat,
    Step,
    insertions,
)
from mcheck.findings.fix_words import told_shortly
from mcheck.findings.frames import inside_frame, statement_of
from mcheck.findings.one_place import Lack, common_places, kind_of_wait, lack_of, line_before, place_in_gap
from mcheck.findings.one_place import Place as GapPlace
from mcheck.findings.root_causes import Place, find_causes, source_place

_LOOP = 1 << 20
"""More lines than there are between two statements."""
Edit = tuple[object, ...]
"""A fix without what differs between findings that it fixes all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The findings of one bug. ``members`` are indices of findings, the one to show first; ``pairs`` is the number of
    different pairs of source places in the function that makes both accesses; ``follows`` is the number of the group of
    which this one may be a consequence; ``gap`` has the places of one barrier for all, if that is what they lack.
    """

    code: str
    members: tuple[int, ...]
    pairs: int
    follows: int | None = None
    gap: frozenset[GapPlace] = frozenset()


def group_findings(findings: Sequence[Finding]) -> tuple[Group, ...]:
    """The groups of findings that are in the order of ``sort_by_cause``; each consequence comes after its cause."""
    pairs: dict[object, list[int]] = {}
    for k, finding in enumerate(findings):
        pairs.setdefault(_pair(finding), []).append(k)
    bugs: list[list[list[int]]] = []
    lacks: list[Lack] = []
    for members in pairs.values():
        edits, lack = _edits(findings, members), lack_of(findings[k] for k in members)
        same = (
            k
            for k, b in enumerate(bugs)
            if _is_same_bug(findings, b, members, edits)
            or (_code(findings, b[0]) == _code(findings, members) and lack.is_of(lacks[k]))
        )
        bug = next(same, None)
        if bug is None:
            bugs.append([members])
            lacks.append(lack)
        else:
            bugs[bug].append(members)
            lacks[bug] &= lack
    ranked = [
        sorted(
            (k for part in bug for k in part),
            key=lambda k: (
                _is_for_review(findings[k]),
                _names_warp_barrier(findings[k])
                and not all(_is_of_one_warp(findings[j]) for part in bug for j in part),
                _misses(findings[k], lack.gap, [line for part in bug for j in part for line in findings[j].gap]),
                *_rank(findings[k], k),
            ),
        )
        for bug, lack in zip(bugs, lacks, strict=True)
    ]
    follows = find_causes([[findings[k] for k in one] for one in ranked])
    order = sorted(range(len(bugs)), key=lambda k: (k, -1) if follows[k] is None else (follows[k], k))
    return tuple(
        Group(
            code=findings[ranked[k][0]].code,
            members=tuple(ranked[k]),
            pairs=len({_pair_inside(findings[member]) for member in ranked[k]}),
            follows=None if (cause := follows[k]) is None else order.index(cause),
            gap=lacks[k].gap if lacks[k].barrier else frozenset(),
        )
        for k in order
    )


def causes(groups: Iterable[Group]) -> tuple[Group, ...]:
    """The groups that are no consequence of another one: the bugs to count."""
    return tuple(group for group in groups if group.follows is None)


def reads_before_first_fill(finding: Finding) -> bool:
    """Whether the fix is to wait for the copy that fills what is read before, perhaps by the right parity, or at a
    barrier before the read, to which what a wait completes is handed over.
    """
    steps = [step for fix in finding.fixes for step in fix.steps]
    if any(isinstance(step, Await) and step.first for step in steps):
        return True
    if finding.code != "RACE003" or [a.access for a in finding.accesses] != ["read", "write"]:
        return False
    read = finding.accesses[0].span
    to = {(s.to.line, s.to.column) for s in steps if isinstance(s, HandOver) and s.to is not None}
    ahead = {(p.site.line, p.site.column) for s in steps if _is_barrier(s) for p in s.points if not p.after}
    late = {(s.before.line, s.before.column) for s in steps if isinstance(s, Change) and s.before is not None}
    return read is not None and (read.line, read.column) in ahead | to | late


def overwritten_while_read(finding: Finding) -> bool:
    """Whether a read meets a copy of a later round: the fix orders the read before the issue of the copy, by a barrier
    behind the one or in front of the other.
    """
    if len(finding.accesses) != 2 or not finding.fixes:
        return False
    issue, read = (access.span for access in finding.accesses)
    step = finding.fixes[0].steps[0]
    if isinstance(step, BeforeIssue):
        return issue is not None and step.issue == Site(issue.line, issue.column)
    if isinstance(step, Await):
        return issue is not None and step.nobody and step.before == Site(issue.line, issue.column)
    if not _is_barrier(step) or issue is None or read is None:
        return False
    ends = (issue.line, issue.column, False), (read.line, read.column, True)
    return any((point.site.line, point.site.column, point.after) in ends for point in step.points)


def _is_barrier(step: Step) -> TypeGuard[Insert]:
    return isinstance(step, Insert) and step.codes[0].startswith("bar.sync")


# --- pairs of places ----------------------------------------------------------------------------------------------


def place_of_line(finding: Finding, line: int) -> Place:
    """The source place of a line that a fix mentions."""
    chain = next((known.source for known in finding.lines if known.line == line), ())
    return tuple((span.path, span.line, 0) for span in chain) or (("", line, 0),)


def _pair(finding: Finding) -> object:
    return finding.code, finding.severity, frozenset(map(source_place, finding.accesses)) or finding.message


def _pair_inside(finding: Finding) -> object:
    """The pair of places in the function that makes both accesses, which may be inlined several times."""
    chains = [access.source for access in finding.accesses]
    places = frozenset(tuple(map(statement_of, inside_frame(chain, chains))) for chain in chains if chain)
    return places or _pair(finding)


def _code(findings: Sequence[Finding], members: Sequence[int]) -> tuple[str, str]:
    return findings[members[0]].code, findings[members[0]].severity


def _is_for_review(finding: Finding) -> bool:
    return finding.severity != "error"


def _misses(finding: Finding, gap: frozenset[GapPlace], lines: Sequence[CompiledLine]) -> bool:
    """Whether the fix inserts an instruction at a place outside of the gap that does for all findings, behind another
    one of the ``lines`` of the gaps of all.
    """
    step = finding.fixes[0].steps[0] if finding.fixes else None
    if not gap or not isinstance(step, Insert):
        return False
    behind = (line_before(lines, point) for point in step.points)
    return not common_places(gap, frozenset(place_in_gap(line) for line in behind if line is not None))


def _rank(finding: Finding, k: int) -> tuple[bool, int, int, int, bool, int, int]:
    """The order inside a group: what orders CTAs, the strongest wait, the least choice of its place, threads of two
    warps, the shortest trace.
    """
    left = next((step.leaves or 0 for step in insertions(finding.fixes)), 0)
    narrow = _distance(finding), len(finding.gap)
    return not finding.between_ctas, left, *narrow, _is_of_one_warp(finding), len(finding.trace) or 1 << 30, k


def _is_of_one_warp(finding: Finding) -> bool:
    return len({access.thread.partition("[")[0] for access in finding.accesses}) < 2


def _distance(finding: Finding) -> int:
    """The source lines between the two ends of a barrier's place, 0 if the fix is no barrier. What goes round a loop
    comes last.
    """
    match finding.fixes[0].steps[0] if finding.fixes else None:
        case (
            Meet(first=Site() as first, second=Site() as second) | HandOver(to=Site() as second, after=Site() as first)
        ):
            ends = [place_of_line(finding, site.line)[0] for site in (first, second)]
            forward = ends[0][0] == ends[1][0] and ends[0][1] < ends[1][1]
            return ends[1][1] - ends[0][1] if forward else _LOOP
        case BeforeIssue():
            return _LOOP
    return 0


# --- edits --------------------------------------------------------------------------------------------------------

_STAGE = re.compile(r"\[\d+\]|@\d+")
_WHOLE_KERNEL = frozenset({"UB502", "UB503", "UB604"})
"""Codes of which one edit at the end or the beginning of the kernel fixes all findings: a cluster barrier, or to free
tensor memory later.
"""
_EARLY_USES = frozenset({"UB701", "UB702"})
"""Codes whose message names the instruction that one wait behind it fixes all uses of."""


def _edit(finding: Finding) -> Edit | None:
    """The edit that the fix of a finding names; ``None`` if it names no place."""
    if not finding.fixes:
        return None
    code, fix, step = finding.code, finding.fixes[0], finding.fixes[0].steps[0]

    def at(site: Site) -> Place:
        return place_of_line(finding, site.line)

    def inside(site: Site, accesses: Sequence[Access] = finding.accesses[:1]) -> tuple[object, ...]:
        """The place in the function that makes the earlier access, whichever call of that it is."""
        chain = next((known.source for known in finding.lines if known.line == site.line), ())
        frame = inside_frame(chain, [access.source for access in accesses])
        return tuple(map(statement_of, frame)) if chain else at(site)

    def beside(site: Site) -> object:
        """The statement of the function that makes both accesses: a barrier beside it is between them as well."""
        return inside(site, finding.accesses)[-1]

    if isinstance(step, Meet):  # the remedy of the catalogue, with what an execution shows of the place
        return None
    if code in _WHOLE_KERNEL:
        return (code,)
    if code in _EARLY_USES and (made := [*sites(finding.said)]):
        return code, "wait", at(made[0])
    match step:
        case Insert() if (over := step.at(Condition.BEFORE_HAND_OVER)) is not None:  # anywhere before the hand-over
            return code, "fence", step.codes, inside(over)
        case Insert() if step.waits and step.points:  # a wait that leaves fewer groups pending does as well
            return code, "wait", tuple(map(kind_of_wait, step.codes)), inside(step.points[0].site)
        case HandOver() if step.after is not None:
            return code, "barrier after", beside(step.after)
        case BeforeIssue():
            return code, "barrier before", beside(step.issue), step.fence
        case Await() if step.nobody and not step.first:  # one wait before the slot is filled, whatever meets the copy
            return code, "refill", at(step.signal)
        case Await() if step.phases and not step.far:
            reader = finding.accesses[-1].thread.partition("[")[0]
            return code, "phase", step.phases[0].bar.ring, reader
        case Await() if step.first:  # whichever of the reads it is, one wait comes before them
            return code, "first fill", at(step.signal)
        case Repeat():
            return code, "test", at(step.test)
        case Publish():
            return code, "initialised", step.fence or step.cluster
        case Change(what=Property.COUNT):
            return "count", at(step.sites[0]), step.new
        case Change(what=Property.BYTES):  # of an inlined function the one statement, whichever call it is
            return "bytes", at(step.sites[0])[:1], step.new
        case Change(what=Property.PARITY):
            return code, "parity", at(step.sites[0])
        case Change(what=Property.STRENGTH):  # of an inlined function the one statement, whichever call it is
            return code, "strong", step.new, at(step.sites[0])[:1]
        case Change(what=Property.SCOPE, subject=()) if step.sites:
            return code, "scope", step.new, at(step.sites[0])
    inserted = [(one.codes, place) for one in insertions(finding.fixes) for place in one.points]
    if inserted:
        place = beside if all(codes[0].startswith("bar.sync") for codes, _ in inserted) else inside
        return finding.kind, *((codes, one.after, place(one.site)) for codes, one in inserted)
    said = tuple(part for phrase in told_shortly(fix) for part in phrase)
    if any(True for _ in sites(said)):
        return code, *(at(part) if isinstance(part, Site) else _alike(finding, part) for part in said)
    return None


def _alike(finding: Finding, part: Part) -> object:
    """A part of a fix without the stage that it is about."""
    if isinstance(part, Sites):
        return tuple(place_of_line(finding, site.line) for site in part.sites)
    if isinstance(part, Thing) and part.stage is not None:
        return part.ring, part.stage.count
    return _STAGE.sub("", plain((part,)))


def _edits(findings: Sequence[Finding], members: Iterable[int]) -> frozenset[Edit]:
    """The edits that fix all these findings; empty if one of them names none."""
    edits = [_edit(findings[k]) for k in members]
    return frozenset(edit for edit in edits if edit is not None) if None not in edits else frozenset()


def _is_same_bug(findings: Sequence[Finding], bug: list[list[int]], members: list[int], edits: frozenset[Edit]) -> bool:
    """Whether each edit that the members need is one that the bug needs as well, or the other way round; or whether one
    barrier is missing.
    """
    everything = [findings[k] for part in bug for k in part] + [findings[k] for k in members]
    needed = _edits(findings, bug[0])
    if not edits or not needed or not (edits <= needed or needed <= edits):
        return _lack_one_barrier(everything) or _lack_barrier_before_copies(everything)
    return not any(edit[1:2] == ("initialised",) for edit in edits) or _is_one_barrier(everything)


def _is_one_barrier(findings: Iterable[Finding]) -> bool:
    """Whether one barrier can stand after all of the initialisations and before all uses."""
    steps = [step for finding in findings for step in finding.fixes[0].steps if isinstance(step, Publish)]
    return max(step.init.line for step in steps) < min(step.use.line for step in steps)


def _names_warp_barrier(finding: Finding) -> bool:
    inserted = insertions(finding.fixes)
    return any(code.startswith("bar.warp.sync") for step in inserted for code in step.codes)


def _lack_one_barrier(findings: Sequence[Finding]) -> bool:
    """Whether a barrier at one place orders all these accesses: those of an object in shared memory that race with an
    access at one place, which all stand before it, or all behind it, and no barrier between. A fix that names another
    place than a barrier of the warp says more.
    """
    named = [finding for finding in findings if _edit(finding) is not None]
    if len(named) == len(findings) or not all(map(_names_warp_barrier, named)):
        return False
    objects = {access.object for finding in findings for access in finding.accesses}
    if any(finding.code != "RACE001" for finding in findings) or len(objects) != 1 or "@" not in objects.pop():
        return False
    if any(_has_barrier_between(findings, finding) for finding in findings):
        return False
    pairs = [[(source_place(access), access.access) for access in finding.accesses] for finding in findings]
    for common in set[tuple[Place, str]](pairs[0]).intersection(*pairs):
        others = [next((one for one in pair if one != common), common)[0] for pair in pairs]
        sides = [_side(other, common[0]) for other in others]
        in_one_line = (finding for finding, side in zip(findings, sides, strict=True) if side == 0)
        if None not in sides and not {-1, 1} <= set(sides) and all(map(_is_carried, in_one_line)):
            return True
    return False


def _lack_barrier_before_copies(findings: Sequence[Finding]) -> bool:
    """Whether a barrier at one place comes between all reads and the copies that overwrite what they read, tiles of
    several arrays in a loop: no copy stands among the reads.
    """
    fences = {_fence_before_issue(finding) for finding in findings}
    if len(fences) != 1 or None in fences:
        return False
    reads = [source_place(a) for finding in findings for a in finding.accesses if a.access == "read"]
    copies = [source_place(a) for finding in findings for a in finding.accesses if a.access == "write"]
    return {_side(copy, read) for copy in copies for read in reads} in ({-1}, {1})


def _fence_before_issue(finding: Finding) -> bool | None:
    """Whether the fix is a barrier before the issue of a copy with a proxy fence, or without one; else ``None``."""
    step = finding.fixes[0].steps[0] if finding.fixes else None
    return step.fence if isinstance(step, BeforeIssue) else None


def _has_barrier_between(findings: Iterable[Finding], one: Finding) -> bool:
    """Whether what the threads of a finding know of each other ends among the accesses of all, or with no barrier. In a
    loop, some of the accesses are then behind that, and some before it: one barrier does not come between all.
    """
    known = next((note for fix in one.fixes for note in fix.notes if isinstance(note, Known)), None)
    if known is None:
        return False
    accesses = [access for finding in findings for access in finding.accesses]
    chain = place_of_line(one, known.at.line)
    at = chain if chain[0][0] else ((accesses[0].path or "", chain[0][1], 0),)
    sides = {_side(source_place(access), at) for access in accesses}
    return not known.code.startswith(("bar.", "barrier.")) or sides not in ({-1}, {1})


def _is_carried(finding: Finding) -> bool:
    """Whether its accesses are in different rounds of a loop, so that a barrier can stand between them though they are
    in one line.
    """
    first, last = finding.trace[:1], finding.trace[-1:]
    spans = {step.span for step in (*first, *last)}
    rounds = {step.iteration for step in (*first, *last)}
    return spans == {access.span for access in finding.accesses} and len(rounds - {""}) == 2


def _side(place: Place, other: Place) -> int | None:
    """Whether a place stands before another one in the text (-1), behind it (1), or in one line; ``None`` if they are
    in different files. Of inlined places the calls are compared.
    """
    for one, two in zip(reversed(place), reversed(other), strict=False):
        if one[0] != two[0]:
            return None
        if one[1] != two[1]:
            return -1 if one[1] < two[1] else 1
    return 0
