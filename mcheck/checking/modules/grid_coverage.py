"""Grid coverage: whether the answer about one cluster holds for every cluster of the launch.

It does if all clusters do the same and no two access the same bytes in conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, islice, product

from mcheck.answers.result import Covers
from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.reasons import Cause, Reason, Reasons
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.launch import Extent, Launch, cta_name
from mcheck.simt.grid.footprints.footprint import ANY, READ, REDUCE, UPDATE, WRITE, Footprint, Form
from mcheck.simt.grid.footprints.overlap import MAX_ENUMERATED, UNDECIDED, Answer, Pair, find_overlap
from mcheck.simt.grid.footprints.regions import Region, first_common_range, regions_intersect
from mcheck.simt.grid.footprints.space import Space

MOST_CLUSTERS = 1 << 16
"""The number of clusters that are searched for one that behaves differently."""
MOST_SOLVED = 24
"""The maximum number of forms whose pairs Z3 is asked about; of more the classes of clusters tell, by enumeration."""
MOST_REASONS = 3
"""The maximum number of reasons that are listed."""

DOES = {READ: "reads", WRITE: "writes", REDUCE: "adds to", UPDATE: "updates"}


@dataclass(frozen=True, slots=True)
class Side:
    """One access of a race between clusters: the first CTA of its cluster, its location and kind."""

    cta: str
    span: Span | None
    kind: str


@dataclass(frozen=True, slots=True)
class Clash:
    """A race between clusters: accesses of the same bytes that are not morally strong and that nothing can order."""

    sides: tuple[Side, Side]
    object: str
    bytes: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the grid an answer covers.

    ``reasons`` say why other clusters are not covered, each with its location; empty if all are. ``clashes`` are
    definite races between two clusters, if the path that was followed is executed.
    """

    covers: Covers
    reasons: tuple[tuple[Span | None, str], ...] = ()
    clashes: tuple[Clash, ...] = ()

    @property
    def bound_reasons(self) -> Reasons:
        """The reason that only one cluster was checked, and why; empty if all are covered."""
        if not self.reasons:
            return ()
        why = [Reason(Cause.GAP, text, span=span) for span, text in self.reasons]
        more = len(why) - MOST_REASONS
        why = why[:MOST_REASONS] + ([Reason(Cause.GAP, f"{more} more")] if more > 0 else [])
        together = self.covers.together
        said = (
            f"one of {self.covers.total} clusters of the grid was checked"
            if together == 1
            else f"{together} of {self.covers.total} clusters of the grid were checked together"
        )
        return (Reason(Cause.CLUSTERS, said, because=tuple(why)),)


def uncovered_grid(launch: Launch) -> Covers:
    """The coverage if nothing is known of the clusters that were not executed."""
    several = launch.executed_count
    return Covers(clusters=several, total=launch.total_count, together=several)


def compute_coverage(footprints: Sequence[Footprint], launch: Launch, limit: Limit) -> Coverage:
    """The coverage that follows from the footprints of the paths of what was executed: one cluster, or a box of several
    that is one here.
    """
    first = footprints[0]
    cluster = _extent(launch)
    found: list[tuple[Span | None, str]] = []
    clashes: list[Clash] = []
    if any(not _same(first, other) for other in footprints[1:]):
        found.append((None, "its paths may access different bytes"))
    for footprint in footprints:
        found += _unlike(footprint.space, cluster)
        found += [
            (span, f"in another cluster this may be outside {footprint.buffer_name(buffer)}")
            for buffer, span in footprint.outside
        ]
        found += _meetings(footprint, cluster, limit, clashes, whole=not found)
    reasons = tuple(dict.fromkeys(found))
    alone = uncovered_grid(launch)
    return Coverage(
        replace(alone, clusters=alone.clusters if reasons else alone.total), reasons, tuple(dict.fromkeys(clashes))
    )


def _extent(launch: Launch) -> Extent:
    """The extent, in CTAs, of what was executed."""
    x, y, z = (a * b for a, b in zip(launch.cluster, launch.together, strict=True))
    return x, y, z


def _same(a: Footprint, b: Footprint) -> bool:
    """Whether two paths have the same footprint."""
    if a.space.quotients != b.space.quotients or set(a.beginnings) != set(b.beginnings):
        return False
    return all(a.regions(form) == b.regions(form) for form in a.beginnings)


# --- the class ----------------------------------------------------------------------------------------------------


def _unlike(space: Space, cluster: Extent) -> Iterator[tuple[Span | None, str]]:
    """Why other clusters of the grid may behave differently from the one that was executed."""
    for reason, span in space.reasons_lost.items():
        yield span, reason
    if space.reasons_lost or not space.conditions:
        return
    for condition in space.conditions.values():
        alone = Space(space.low, space.high, space.first, space.quotients, conditions={condition.slopes: condition})
        other = next((c for c in islice(space.all_clusters(), MOST_CLUSTERS) if not alone.contains(c)), None)
        if other is not None:
            yield condition.span, f"{_cta(space, other, cluster)} and others take another branch here"
    if space.cluster_count > MOST_CLUSTERS and all(map(space.contains, islice(space.all_clusters(), MOST_CLUSTERS))):
        yield None, f"the first {MOST_CLUSTERS} clusters take the same path; the others were not examined"


def _cta(space: Space, cluster: Sequence[int], extent: Extent) -> str:
    """The name of a cluster: its first CTA."""
    return cta_name(space.grid_coordinates(cluster), extent)


# --- what they share ----------------------------------------------------------------------------------------------


def is_conflict(a: Form, b: Form) -> bool:
    """Whether accesses of one byte by different clusters have to be ordered.

    Two reads need not be, nor two reductions of the same words that synchronise nothing: they are atomic at scope gpu
    or wider, so the sum is the same in any order.
    """
    if a.kind == READ and b.kind == READ:
        return False
    return not (a.kind == REDUCE and b.kind == REDUCE and a.unit == b.unit and a.proxy == b.proxy)


def _meetings(
    footprint: Footprint, cluster: Extent, limit: Limit, clashes: list[Clash], *, whole: bool
) -> Iterator[tuple[Span | None, str]]:
    """Pairs of conflicting accesses of the same bytes by two clusters, or by one cluster other than the one executed.

    If the class is not the ``whole`` grid, only pairs that are easy to find. Definite races are added to ``clashes``.
    """
    space = footprint.space
    solve = whole and len(footprint.beginnings) <= MOST_SOLVED
    regions: dict[Form, tuple[Region, ...]] = {}
    for a, b in combinations_with_replacement(footprint.beginnings, 2):
        if not is_conflict(a, b) or (a.buffer != b.buffer and ANY not in (a.buffer, b.buffer)):
            continue
        limit.check()
        if a.whole or b.whole or a.shape != b.shape:
            if whole:
                yield _conflict_reason(footprint, cluster, a, b, UNDECIDED)
            continue
        for form in (a, b):
            if form not in regions:
                regions[form] = footprint.regions(form)
        if whole and (footprint.is_clipped(a) or footprint.is_clipped(b)):
            said = "part of this box is outside of the tensor in the cluster that was checked, but not in others"
            yield next(iter(footprint.beginnings[a if footprint.is_clipped(a) else b])), said
        found = find_overlap(space, regions[a], regions[b], limit, apart=True, solve=solve)
        if found is None and a.slopes != b.slopes:
            found = find_overlap(space, regions[a], regions[b], limit, apart=False, solve=solve)
        if isinstance(found, Pair) or (found == UNDECIDED and whole):
            yield _conflict_reason(footprint, cluster, a, b, found)
        weak = (a.plain or b.plain) and a.proxy == b.proxy == "generic"
        sure = a.sure and b.sure and not footprint.may_signal
        if isinstance(found, Pair) and weak and sure and found.first != found.second:
            clashes += _clash(footprint, cluster, a, b, found)


def _clash(footprint: Footprint, cluster: Extent, a: Form, b: Form, pair: Pair) -> Iterator[Clash]:
    space = footprint.space
    here, there = _places(footprint, a, b, pair)
    x, y = space.symbols(pair.first), space.symbols(pair.second)
    mine, theirs = (dict(footprint.places(form))[span] for form, span in ((a, here), (b, there)))
    for p, q in product(mine, theirs):
        found = first_common_range(p.dimensions[0], q.dimensions[0], x, y, MAX_ENUMERATED)
        if found is not None:
            sides = [
                Side(_cta(space, c, cluster), span, form.kind)
                for c, span, form in ((pair.first, here, a), (pair.second, there, b))
            ]
            at = found[0] - a.buffer, found[1] - a.buffer
            yield Clash((sides[0], sides[1]), footprint.buffer_name(a.buffer), at)
            return


def _conflict_reason(footprint: Footprint, cluster: Extent, a: Form, b: Form, found: Answer) -> tuple[Span | None, str]:
    space = footprint.space
    here, there = _places(footprint, a, b, found)
    name = footprint.buffer_name(a.buffer if a.buffer != ANY else b.buffer)
    line = f"line {there.line}" if there is not None and there != here else "the same line"
    does = f"{DOES[a.kind]} bytes of {name} that {line} {DOES[b.kind]}"
    if isinstance(found, Pair) and found.first == found.second:
        return here, f"this {does}, in {_cta(space, found.first, cluster)} but not in the cluster that was checked"
    if isinstance(found, Pair):
        return here, f"{_cta(space, found.first, cluster)} {does} in {_cta(space, found.second, cluster)}"
    return here, f"there may be a cluster in which this {does}"


def _places(footprint: Footprint, a: Form, b: Form, found: Answer) -> tuple[Span | None, Span | None]:
    """The locations of a pair of accesses; the first candidates if it is unknown which they are."""
    first, second = next(iter(footprint.beginnings[a])), next(iter(footprint.beginnings[b]))
    if not isinstance(found, Pair) or len(footprint.beginnings[a]) == len(footprint.beginnings[b]) == 1:
        return first, second
    for here, mine in footprint.places(a):
        for there, theirs in footprint.places(b):
            if _meet_in(footprint.space, mine, theirs, found):
                return here, there
    return first, second


def _meet_in(space: Space, mine: Sequence[Region], theirs: Sequence[Region], pair: Pair) -> bool:
    """Whether regions of two clusters overlap."""
    x, y = space.symbols(pair.first), space.symbols(pair.second)
    return any(regions_intersect(p, q, x, y, MAX_ENUMERATED) for p in mine for q in theirs)
