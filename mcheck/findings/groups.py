"""Groups of findings: one group for each bug, root causes first.

Findings are one group if they have the same code and the same pair of source places: an unrolled loop, or many lanes,
repeat them. Groups are joined if one edit fixes all of them: their fixes are the same instruction at the same source
place. A fix of the catalogue, which names no place, joins only what one barrier orders: accesses of an object in shared
memory, all on the same side of an access that they race with, and no barrier in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mcheck.base.records import dataclass
from mcheck.findings.finding import Finding
from mcheck.findings.repair import parse_fix
from mcheck.findings.root_causes import Place, find_causes, source_place

Edit = tuple[object, ...]
"""A fix without what differs between findings that it fixes all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The findings of one bug. ``members`` are indices of findings, the one to show first; ``pairs`` is the number of
    different pairs of source places; ``follows`` is the number of the group of which this one may be a consequence.
    """

    code: str
    members: tuple[int, ...]
    pairs: int
    follows: int | None = None


def group_findings(findings: Sequence[Finding]) -> tuple[Group, ...]:
    """The groups of findings that are in the order of ``sort_by_cause``; each consequence comes after its cause."""
    pairs: dict[object, list[int]] = {}
    for k, finding in enumerate(findings):
        pairs.setdefault(_pair(finding), []).append(k)
    bugs: list[list[list[int]]] = []
    for members in pairs.values():
        edits = _edits(findings, members)
        bug = next((b for b in bugs if _is_same_bug(findings, b, members, edits)), None)
        if bug is None:
            bugs.append([members])
        else:
            bug.append(members)
    ranked = [sorted((k for part in bug for k in part), key=lambda k: _rank(findings[k], k)) for bug in bugs]
    follows = find_causes([[findings[k] for k in one] for one in ranked])
    order = sorted(range(len(bugs)), key=lambda k: (k, -1) if follows[k] is None else (follows[k], k))
    return tuple(
        Group(
            code=findings[ranked[k][0]].code,
            members=tuple(ranked[k]),
            pairs=len(bugs[k]),
            follows=None if (cause := follows[k]) is None else order.index(cause),
        )
        for k in order
    )


def causes(groups: Iterable[Group]) -> tuple[Group, ...]:
    """The groups that are no consequence of another one: the bugs to count."""
    return tuple(group for group in groups if group.follows is None)


def reads_before_first_fill(finding: Finding) -> bool:
    """Whether the fix is to wait for the copy that is the first to fill what is read."""
    return _FIRST_FILL.match(finding.missing) is not None


# --- pairs of places ----------------------------------------------------------------------------------------------


def place_of_line(finding: Finding, line: int) -> Place:
    """The source place of a line that a fix mentions."""
    chain = next((known.source for known in finding.lines if known.line == line), ())
    return tuple((span.path, span.line, 0) for span in chain) or (("", line, 0),)


def _pair(finding: Finding) -> object:
    return finding.code, finding.severity, frozenset(map(source_place, finding.accesses)) or finding.message


def _rank(finding: Finding, k: int) -> tuple[bool, int, int, int]:
    """The order inside a group: the strongest fix, then the shortest trace."""
    wait = _WAIT.match(finding.missing)
    left = int(wait["left"] or 0) if wait is not None else 0
    return "bar.warp.sync" in finding.missing, left, len(finding.trace) or 1 << 30, k


# --- edits --------------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"Execute (?P<code>fence\S+) after line \d+,.* before the hand-over at line (?P<at>\d+)")
_WAIT = re.compile(
    r"Execute (?P<code>(?:[\w.]+; )?(?:cp\.async|wgmma|tcgen05)[\w.]*wait[\w.]*?)(?:_all|_group)?(?: (?P<left>\d+))?"
    r" before line (?P<at>\d+)"
)
_AFTER_WAIT = re.compile(r"After the wait at line (?P<at>\d+) in .*?, hand over to line \d+: a barrier")
_BEFORE_ISSUE = re.compile(
    r"Order line \d+ before the issue of the operation at line (?P<at>\d+): a barrier(?:.*(?P<fence>, with fence\S+))?"
)
_PHASE = re.compile(
    r"Wait for (?:phase .*?|the phase) of (?P<bar>[^\s(]+).*(?:, which|that) the .*? at line \d+ completes,? before "
)
_FIRST_FILL = re.compile(
    r"Wait for the phase of the mbarrier that line (?P<at>\d+) signals before line \d+, or .*? that did\. Or, if line"
)
_NOTE = re.compile(r"\. (?:The wait at|The test at|What \S+ knows|Nothing that|Leave fewer).*")
"""What follows the fix: remarks on the execution."""
_INITIALISED = re.compile(
    r"(?:Put a barrier such as|Let) (?P<code>bar\S+).*? between (?:the mbarrier\.init at )?line \d+ and line"
    r"|Execute (?P<fence>fence\.mbarrier_init\S*) after line \d+, in the thread that initialises"
)
_SCOPE = re.compile(r"Give scope (?P<scope>\.\w+) .*?at line (?P<at>\d+)")
_COUNT = re.compile(r"Initialise \S+.*? at line (?P<at>\d+) with count (?P<count>\d+)")
_KNOWN = re.compile(r"What \S+ knows of \S+ ends with line (?P<at>\d+) \((?P<code>[\w.]+)")
_GENERAL = re.compile(r"(?:Put a barrier between line \d+ and line \d+, or r|R)elease after the first access")
"""The fix of the catalogue for a race, with what an execution shows of the place."""
_STRONG = re.compile(r"Make the \w+ at line (?P<at>\d+) (?P<code>\w+\.relaxed\.\w+)")
_STAGE = re.compile(r"\[\d+\]|@\d+")
_NUMBER = re.compile(r"\bline (\d+)")
_WHOLE_KERNEL = frozenset({"UB502", "UB503"})
"""Codes of which one cluster barrier, at the end or the beginning of the kernel, fixes all findings."""


def _call(finding: Finding, place: Place) -> Place:
    """Where the function that makes both accesses of a finding calls what leads to a place: a barrier there is between
    the accesses as well. The place itself if one call makes both.
    """
    chains = [source_place(access)[::-1] for access in finding.accesses]
    for depth, frames in enumerate(zip(*chains, strict=False)):
        if len(set(frames)) > 1:
            return place[max(len(place) - 1 - depth, 0) :]
    return place


def _edit(finding: Finding) -> Edit | None:
    """The edit that the fix of a finding names; ``None`` if it names no place."""
    text = _NOTE.sub("", finding.missing).rstrip(".")

    def at(found: re.Match[str]) -> Place:
        return place_of_line(finding, int(found["at"]))

    if _GENERAL.match(text):
        return None
    if finding.code in _WHOLE_KERNEL:
        return (finding.code,)
    if found := _FENCE.match(text):  # anywhere before the hand-over
        return finding.code, "fence", found["code"], at(found)
    if found := _WAIT.match(text):  # a wait that leaves fewer groups pending does as well
        return finding.code, "wait", found["code"], at(found)
    if found := _AFTER_WAIT.match(text):
        return finding.code, "barrier after", at(found)
    if found := _BEFORE_ISSUE.match(text):
        return finding.code, "barrier before", _call(finding, at(found)), found["fence"]
    if found := _PHASE.match(text):
        reader = finding.accesses[-1]
        return finding.code, "phase", _STAGE.sub("", found["bar"]), reader.thread.partition("[")[0]
    if found := _FIRST_FILL.match(text):  # whichever of the reads it is, one wait comes before them
        return finding.code, "first fill", at(found)
    if found := _INITIALISED.match(text):
        return finding.code, "initialised", found["code"] or found["fence"]
    if found := _COUNT.match(text):
        return "count", at(found), found["count"]
    if found := _STRONG.match(text):  # of an inlined function the one statement, whichever call it is
        return finding.code, "strong", found["code"], at(found)[:1]
    if found := _SCOPE.match(text):
        return finding.code, "scope", found["scope"], at(found)
    inserted = parse_fix(finding)
    if inserted:
        places = (place_of_line(finding, one.line) for one in inserted)
        if all(one.code.startswith("bar.sync") for one in inserted):
            places = (_call(finding, place) for place in places)
        return finding.kind, *((one.code, one.after, at) for one, at in zip(inserted, places, strict=True))
    if _NUMBER.search(text):
        said = _NUMBER.sub(lambda found: str(place_of_line(finding, int(found[1]))), text)
        return finding.code, _STAGE.sub("", said)
    return None


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
    found = [re.findall(r"\bline (\d+)", finding.missing)[:2] for finding in findings]
    pairs = [(int(one), int(other)) for one, other in found]
    return max(init for init, _ in pairs) < min(use for _, use in pairs)


def _lack_one_barrier(findings: Sequence[Finding]) -> bool:
    """Whether a barrier at one place orders all these accesses: those of an object in shared memory that race with an
    access at one place, which all stand before it, or all behind it, and no barrier between. A fix that names another
    place than a barrier of the warp says more.
    """
    named = [finding for finding in findings if _edit(finding) is not None]
    if len(named) == len(findings) or any("bar.warp.sync" not in finding.missing for finding in named):
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
    found = [_BEFORE_ISSUE.match(finding.missing) for finding in findings]
    if None in found or len({match and match["fence"] for match in found}) != 1:
        return False
    reads = [source_place(a) for finding in findings for a in finding.accesses if a.access == "read"]
    copies = [source_place(a) for finding in findings for a in finding.accesses if a.access == "write"]
    return {_side(copy, read) for copy in copies for read in reads} in ({-1}, {1})


def _has_barrier_between(findings: Iterable[Finding], one: Finding) -> bool:
    """Whether what the threads of a finding know of each other ends among the accesses of all, or with no barrier. In a
    loop, some of the accesses are then behind that, and some before it: one barrier does not come between all.
    """
    known = _KNOWN.search(one.missing)
    if known is None:
        return False
    accesses = [access for finding in findings for access in finding.accesses]
    chain = place_of_line(one, int(known["at"]))
    at = chain if chain[0][0] else ((accesses[0].path or "", chain[0][1], 0),)
    sides = {_side(source_place(access), at) for access in accesses}
    return not known["code"].startswith(("bar.", "barrier.")) or sides not in ({-1}, {1})


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
