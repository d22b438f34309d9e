"""Groups of clusters that share memory, followed together in one execution graph.

One cluster comes first. If no other one conflicts with it, its answer is that of the grid. Otherwise boxes of clusters
are tried, the smallest first, until no box conflicts with another one: the clusters of an output tile in split-K, all
clusters of a grid barrier. A box is executed as one cluster is; the argument that extends its answer to the grid is the
same. If no box is small enough, a few clusters are followed together, and the answer is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import prod
from typing import Protocol

from mcheck.answers.result import Answer, Covers
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import Unsupported
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason, name_share, share_reason, timeout_reason
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.closed_boxes import find_closed_box
from mcheck.checking.modules.counted_grid import answer_counted
from mcheck.checking.modules.grid_coverage import is_conflict
from mcheck.checking.modules.looking_grid import answer_looking
from mcheck.checking.modules.signalled_grid import answer_signalled
from mcheck.checking.policy.question import Question
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding
from mcheck.frontend.ptx.launch import Extent, Launch, cta_name
from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.program import Program
from mcheck.isa.kinds import CANCELS
from mcheck.simt.grid.grid_classes import Clash, Incomparable, find_clashes, find_classes, follow_each
from mcheck.simt.grid.grid_counter import EndlessLook, NotCounted
from mcheck.simt.trace_extraction import ClusterTrace

MAX_TOGETHER = 8
"""Maximum number of clusters that are followed together."""
MAX_THREADS = 2048
"""Maximum number of threads of such clusters."""
GROUP_SECONDS = 20.0
"""Maximum time for groups of clusters; half of what is left of a longer time limit."""
COUNTED_SECONDS = 30.0
"""Maximum time for the argument about clusters that count themselves; half of what is left of a longer time limit."""
TOGETHER = "following clusters together"
IN_PAIRS = "following pairs of clusters"
IN_CLASSES = "following a cluster of each class"
PAIR = 2
"""The number of clusters that stand for all if they count themselves."""
MAX_ASKED = 40
"""Maximum number of clusters of which each is asked about by itself."""
FEW = 3
"""The number of clusters that are followed together if no group is closed."""
MAX_RESIDENT = 5
"""The size of groups up to which each of its subsets is followed by itself."""
NOT_RESIDENT = "DEAD007"
BY_CLASSES = "one cluster of each of {} classes was checked; all of a class behave alike, and no two clusters conflict"
OPEN = "clusters outside of this group may take part in what it does"
NO_PAIR = "no pair of clusters stands for all of them"
LATE = "it was not followed whether a cluster that another GPU waits for begins in time"
SUBSETS = "it was not checked whether the clusters also end if only some of them are resident"


@dataclass(frozen=True, slots=True)
class Followed:
    """The answer about the clusters that were followed; ``scope`` is the one of its assumptions that names them.
    ``deadlocks`` of theirs that other clusters might resolve are not in it. ``waiting`` are those that wait for a word
    of global memory, by their numbers among the executed ones. ``late``: there was no time to follow the values that
    other threads write.
    """

    answer: Answer
    scope: str
    deadlocks: tuple[Finding, ...] = ()
    waiting: frozenset[int] = frozenset()
    late: bool = False


class Follow(Protocol):
    """Follows the clusters that a launch executes together; with ``whole`` only if no others conflict with them, with
    ``apart`` because it is known that none do. ``trace`` is what they do, if that is known.
    """

    def __call__(
        self, launch: Launch, limit: Limit, *, whole: bool = False, apart: bool = False,
        trace: ClusterTrace | None = None,
    ) -> Followed | None: ...  # fmt: skip


FollowTogether = Callable[[Launch, Limit], Followed | None]
"""Follows the clusters that a launch, and those beside it, execute together."""


def answer_together(
    module: Module, launch: Launch, first: Followed, follow: Follow, question: Question, limit: Limit
) -> Answer:
    """The answer about a launch, given that about one of its clusters."""
    if not _needs_group(module, launch, first.answer):
        return first.answer
    seconds = max(GROUP_SECONDS, (limit.left() or 0) / 2)
    share = limit.share(seconds)
    small = prod(launch.cluster_counts) <= MAX_TOGETHER
    several = small and prod(launch.cluster_counts) > PAIR

    def more() -> Limit:
        return limit.share(seconds) if several else share

    late = False
    try:
        given = _answer_from_classes(module, launch, first, follow, share, more)
    except _ClassesLate:
        given, late = None, True
    if given is not None:
        return given
    by_choices: Answer | Reason | None = None
    if several:  # three clusters draw tickets in six orders
        by_choices = _answer_from_pairs(module, launch, first, follow, question, limit, only_choices=True)
        if isinstance(by_choices, Answer):
            return by_choices
        share = limit.share(seconds)
    counted = None if small else _answer_from_pairs(module, launch, first, follow, question, limit)
    if isinstance(counted, Answer):
        return counted
    if counted is not None:
        share = limit.share(seconds)
    if late:  # all of them at once would take longer still
        why = share_reason(IN_CLASSES, seconds)
        given = replace(first.answer, cut=True) if limit.is_over() else _with_reason(first.answer, why)
    else:
        given = _answer_together(launch, first, follow, question, share)
    if small and given.verdict not in (Verdict.PROVED, Verdict.FINDING):
        counted = _answer_from_pairs(module, launch, first, follow, question, limit)
        if isinstance(counted, Answer):
            return counted
        counted = counted if counted is not None and counted.cut else None
    if not late and share.is_over() and not limit.is_over():
        given = _with_late_groups(given, seconds)
    given = replace(given, cut=given.cut or (given is first.answer and share.is_over()))
    if counted is None and isinstance(by_choices, Reason) and given.verdict is Verdict.UNKNOWN:
        counted = by_choices
    return given if counted is None else _with_reason(given, counted)


def _with_late_groups(given: Answer, seconds: float) -> Answer:
    """The answer with the reason that following groups of clusters was not finished in its share of the time."""
    named = replace(given, reasons=name_share(given.reasons, TOGETHER, seconds))
    decided = given.verdict in (Verdict.PROVED, Verdict.FINDING)
    return named if decided or named.reasons != given.reasons else _with_reason(given, share_reason(TOGETHER, seconds))


def _with_reason(given: Answer, why: Reason) -> Answer:
    """The answer with one more reason why it is not about all clusters."""
    about = [r for r in given.reasons if r.cause is Cause.CLUSTERS and r.because] or given.reasons[-1:]
    reasons = (replace(r, because=(*r.because, why)) if r in about else r for r in given.reasons)
    return replace(given, reasons=tuple(reasons), cut=given.cut or why.cut)


class _ClassesLate(Exception):
    """No two clusters of the launch conflict, but there was no time to follow one of each class."""


def _answer_from_classes(
    module: Module, launch: Launch, first: Followed, follow: Follow, limit: Limit, more: Callable[[], Limit]
) -> Answer | None:
    if {reason.cause for reason in first.answer.reasons} != {Cause.CLUSTERS}:
        return None
    try:
        return answer_by_classes(module, launch, first, follow, limit, more)
    except (TimeOut, Unsupported, Incomparable):
        return None


def _answer_together(launch: Launch, first: Followed, follow: Follow, question: Question, limit: Limit) -> Answer:
    for box in closed_boxes(launch):
        if limit.is_over():
            break
        note(Level.CLUSTERS, f"{prod(box)} clusters together")
        boxed = replace(launch, together=box, first=_origin(launch, box))
        group = follow(boxed, limit, whole=True)
        if group is not None:
            return _better(first.answer, with_residency(boxed, group, follow, question, limit))
    given = first.answer
    for number, some in enumerate(few_clusters(launch)):
        if limit.is_over():
            break
        group = follow(replace(launch, group=some), limit)
        assert group is not None
        found = _better(first.answer, _explain(group.answer, first.answer))
        if number == 0 or found.verdict is Verdict.FINDING:
            given = found
        if given.verdict is Verdict.FINDING:
            break
    return given


def _answer_from_pairs(
    module: Module,
    launch: Launch,
    first: Followed,
    follow: Follow,
    question: Question,
    limit: Limit,
    *,
    only_choices: bool = False,
) -> Answer | Reason | None:
    """The answer of a grid by the arguments about clusters that count themselves, or wait for each other's signals, or
    why they do not apply, if there is a counter or a signal at all. ``only_choices``: only if clusters draw tickets, or
    look early at what they wait for.
    """
    if launch.beside:
        return None

    def follow_pair(pair: Launch, limit: Limit, trace: ClusterTrace | None = None) -> Answer | None:
        return _without_scope(follow(pair, limit, apart=True, trace=trace))

    def count(share: Limit) -> Answer | None:
        return answer_counted(module, launch, follow_pair, share)

    def count_in_boxes(share: Limit) -> Answer | None:
        boxed = find_closed_box(module, launch, share, counts=True)
        return None if boxed is None else answer_counted(module, boxed, follow_pair, share)

    def signal(share: Limit) -> Answer | None:
        boxed = None if only_choices else find_closed_box(module, launch, share, counts=False)
        return answer_signalled(module, boxed or launch, follow_pair, share, only_choices=only_choices)

    def look(share: Limit) -> Answer | None:
        return answer_looking(module, launch, follow_pair, share)

    seconds = max(COUNTED_SECONDS, (limit.left() or 0) / 2)
    share = limit.share(seconds)
    why: NotCounted | None = None
    for argue in [signal, look] if only_choices else [count, count_in_boxes, signal, look]:
        try:
            given = argue(share)
            if given is not None:
                return given
        except NotCounted as error:
            alone = _waits_alone(launch, first, question) if isinstance(error, EndlessLook) else None
            if alone is not None:
                return alone
            why = error if error.counter else why
        except TimeOut:
            return timeout_reason(question.timeout) if limit.is_over() else share_reason(IN_PAIRS, seconds)
        except Unsupported:
            pass
    return (
        None if why is None else Reason(Cause.TIME if why.late else Cause.GAP, f"{NO_PAIR}: {why.why}", span=why.span)
    )


def _waits_alone(launch: Launch, first: Followed, question: Question) -> Answer | None:
    """The answer about a launch whose first cluster waits for words that no cluster before it stores to."""
    if launch.cooperative or launch.beside or not first.deadlocks or prod(launch.cluster_counts) == 1:
        return None
    alone = replace(launch, group=(launch.executed_clusters[0],))
    stuck = tuple(_not_resident(alone, finding, question.profile) for finding in first.deadlocks)
    return add_verdict(replace(first.answer, findings=(*first.answer.findings, *stuck)))


def _without_scope(given: Followed | None) -> Answer | None:
    """The answer about clusters that stand for all, if they wait for nothing from others."""
    if given is None or given.deadlocks:
        return None
    return replace(given.answer, assumptions=tuple(a for a in given.answer.assumptions if a != given.scope))


def _explain(together: Answer, alone: Answer) -> Answer:
    """The answer about a few clusters, with what is known of those left out from the answer about one of them."""
    why = tuple(r for reason in alone.reasons if reason.cause is Cause.CLUSTERS for r in reason.because)
    reasons = (replace(r, because=why or r.because) if r.cause is Cause.CLUSTERS else r for r in together.reasons)
    return replace(together, reasons=tuple(reasons))


def says_something(given: Answer) -> bool:
    """Whether everything was followed that could be: what an open question leaves open stays so."""
    return given.verdict is not Verdict.UNKNOWN or any(r.cause is Cause.OPEN_QUESTION for r in given.reasons)


def _better(alone: Answer, together: Answer) -> Answer:
    """The answer that says more, that about several clusters if both say as much; the time of either cuts it."""
    if not says_something(together):
        return replace(alone, cut=alone.cut or together.cut)
    return together


def _needs_group(module: Module, launch: Launch, given: Answer) -> bool:
    """Whether more is known of the launch if several clusters are followed together."""
    if prod(launch.cluster_counts) == 1 or given.verdict in (Verdict.PROVED, Verdict.FINDING) or given.cut:
        return False
    causes = {reason.cause for reason in given.reasons}
    if not causes <= {Cause.CLUSTERS, Cause.OTHER_CLUSTERS, Cause.GAP, Cause.BRANCHES, Cause.NOT_FOLLOWED}:
        return False
    return not cancels_clusters(module)


def cancels_clusters(module: Module) -> bool:
    """Whether a cluster can take the place of another one (9.7.13.17)."""
    return any(s.kind in CANCELS for f in module.functions.values() for s in f.body)


def closed_boxes(launch: Launch) -> list[Extent]:
    """The extents of boxes of clusters that are small enough, the smallest first; they divide those of the grid."""
    counts = launch.cluster_counts
    divisors = [[d for d in range(1, min(n, MAX_TOGETHER) + 1) if n % d == 0] for n in counts]
    boxes = [(x, y, z) for x, y, z in product(*divisors) if x * y * z > 1 and _is_small(launch, x * y * z)]
    return sorted(boxes, key=lambda box: (prod(box), box))


def _origin(launch: Launch, box: Extent) -> Extent:
    """The first CTA of the box that contains the executed cluster."""
    x, y, z = (f // (c * b) * c * b for f, c, b in zip(launch.first, launch.cluster, box, strict=True))
    return x, y, z


def few_clusters(launch: Launch) -> Iterator[tuple[Extent, ...]]:
    """A few neighbours of the executed cluster along each axis of the grid, itself among them, if they are not too many
    threads.
    """
    counts, at = launch.cluster_counts, launch.executed_clusters[0]
    for axis in (k for k in range(3) if counts[k] > 1):
        for number in range(min(FEW, counts[axis]), 1, -1):
            if _is_small(launch, number):
                low = min(at[axis], counts[axis] - number)
                places = [[*at] for _ in range(number)]
                for k, place in enumerate(places):
                    place[axis] = low + k
                yield tuple((x, y, z) for x, y, z in places)
                break


def _is_small(launch: Launch, clusters: int) -> bool:
    return clusters <= MAX_TOGETHER and clusters * prod(launch.cluster) * launch.width <= MAX_THREADS


# --- classes of clusters --------------------------------------------------------------------------------------------


def answer_by_classes(
    module: Module, launch: Launch, first: Followed, follow: Follow, limit: Limit, more: Callable[[], Limit]
) -> Answer | None:
    """The answer from one cluster of each class, if those of any two keep apart, or from two clusters that do not;
    ``None`` if neither answers. ``first`` is what is known of one cluster, in which nothing but the others is missing.

    Once it is known that clusters keep apart, there is ``more`` time to follow one of each class, that for following
    all of them together, which is more work and would show no more. Raises ``_ClassesLate`` if that is not enough.
    """
    alone = first.answer
    classes = find_classes(module, launch, limit)
    if classes.unplaced:
        classes = follow_each(module, launch, limit)
    elif classes.lost:
        return None
    executions = alone.executions
    clash = next(find_clashes(classes, is_conflict, limit), None)
    if clash is not None:
        pair = _answer_about_pair(launch, clash, follow, limit)
        if pair is not None or classes.lost:
            return pair
        classes = find_classes(module, launch, limit, exact=True)
        clash = None if classes.lost else next(find_clashes(classes, is_conflict, limit), None)
        if clash is not None:
            return _answer_about_pair(launch, clash, follow, limit)
    if classes.lost or len(classes.firsts) > MAX_ASKED:
        return None
    findings, cut, limit = alone.findings, alone.cut, more()
    for number, at in enumerate(classes.firsts[1:], 2):
        note(Level.CLUSTERS, f"class {number} of {len(classes.firsts)} of clusters")
        one = follow(replace(launch, first=at), limit, apart=True)
        assert one is not None
        executions += one.answer.executions
        cut = cut or one.answer.cut
        if one.answer.verdict not in (Verdict.PROVED, Verdict.FINDING):
            if limit.is_over():
                raise _ClassesLate
            return None
        findings = (*findings, *(f for f in one.answer.findings if f not in findings))
    reasons = tuple(r for r in alone.reasons if r.cause is not Cause.CLUSTERS)
    said = BY_CLASSES.format(len(classes.firsts))
    assumed = (*(a for a in alone.assumptions if a != first.scope), said)
    total = prod(launch.cluster_counts)
    given = replace(
        alone, findings=findings, covered=True, reasons=reasons, executions=executions, cut=cut, assumptions=assumed,
        covers=Covers(clusters=total, total=total),
    )  # fmt: skip
    return add_verdict(given)


def _answer_about_pair(launch: Launch, clash: Clash, follow: Follow, limit: Limit) -> Answer | None:
    """The answer about two clusters that conflict, if it is a finding."""
    pair = follow(replace(launch, group=tuple(dict.fromkeys((clash.first, clash.second)))), limit)
    assert pair is not None
    return pair.answer if pair.answer.verdict is Verdict.FINDING else None


# --- clusters that are not there ------------------------------------------------------------------------------------


def waiting_clusters(program: Program) -> frozenset[int]:
    """The clusters of which a thread waits for a word of global memory, which another cluster may write."""
    waited = {id(op): op for op in program.operations if isinstance(op, ops.Await) and not op.followed}
    words = {key for key, op in waited.items() if _is_global(getattr(op.inner, "address", None))}
    if not words:
        return frozenset()
    return frozenset(t.place.cta.cluster for t in program.threads if any(id(op) in words for op in t.code))


def _is_global(address: object) -> bool:
    values = address.values if isinstance(address, Lanes) else (address.value,) if isinstance(address, Const) else ()
    return any(GLOBAL_BASE <= value < SHARED_BASE for value in values)


def with_residency(launch: Launch, found: Followed, follow: FollowTogether, question: Question, limit: Limit) -> Answer:
    """The answer about a group, with whether its clusters also end if others of them begin only after them.

    Nothing promises that two clusters of a grid are resident at the same time, unless the launch is cooperative. A
    cluster that is not resident begins when another one ends. So each subset has to end by itself: then there is no
    execution in which some clusters wait for others that cannot begin. Of launches beside it, each has begun with at
    least one cluster, and the others of a launch begin unless one that has begun waits.
    """
    given = found.answer
    loose = sum(len(one.executed_clusters) for one in launch.concurrent if not _is_resident(one))
    if not loose or not found.waiting or given.verdict is not Verdict.PROVED:
        return given
    if loose > MAX_RESIDENT:
        reasons = (*given.reasons, Reason(Cause.CLUSTERS, SUBSETS))
        return add_verdict(replace(given, covered=False, reasons=reasons))
    executions = given.executions
    for begun in _begun_launches(launch, found.waiting):
        if limit.is_over():
            late = timeout_reason(question.timeout, "checking clusters that are not all resident")
            return add_verdict(replace(given, covered=False, reasons=(*given.reasons, late)))
        alone = follow(begun, limit)
        assert alone is not None
        executions += alone.answer.executions
        if alone.deadlocks and not _is_certain(launch, begun, alone.deadlocks):
            reasons = (*given.reasons, Reason(Cause.CLUSTERS, LATE))
            return add_verdict(replace(given, covered=False, reasons=reasons, executions=executions))
        if alone.deadlocks:
            stuck = tuple(_not_resident(begun, f, question.profile) for f in alone.deadlocks)
            return add_verdict(replace(given, findings=(*given.findings, *stuck), executions=executions))
        left = tuple(r for r in alone.answer.reasons if r.cause is not Cause.CLUSTERS)  # clusters are left out
        if left or alone.answer.cut:
            given = replace(given, covered=False, reasons=(*given.reasons, *left), cut=given.cut or alone.answer.cut)
            return add_verdict(given)
    return replace(given, executions=executions)


def _is_resident(launch: Launch) -> bool:
    """Whether all clusters that a launch executes are there at once."""
    return launch.cooperative or len(launch.executed_clusters) == 1


def _begun_launches(launch: Launch, waiting: frozenset[int]) -> Iterator[Launch]:
    """The launches, and those beside them, with fewer of their clusters, the fewest first: those that may have begun
    while the others wait for one of them to end. Of several launches each that lacks clusters has one that waits.
    """
    choices: list[list[tuple[Extent, ...]]] = []
    before = 0
    for one in launch.concurrent:
        group = one.executed_clusters
        waits = {at for number, at in enumerate(group, before) if number in waiting}
        before += len(group)
        sizes = [len(group)] if _is_resident(one) else range(1, len(group) + 1)
        begun = [some for number in sizes for some in combinations(group, number)]
        choices.append([s for s in begun if not launch.beside or len(s) == len(group) or waits.intersection(s)])
    total = launch.executed_count
    for groups in sorted(product(*choices), key=lambda groups: sum(map(len, groups))):
        if sum(map(len, groups)) < total:
            yield with_groups(launch, groups)


def with_groups(launch: Launch, groups: Sequence[tuple[Extent, ...]]) -> Launch:
    """The launch, and those beside it, with these clusters of each."""
    first, *others = (replace(one, group=some) for one, some in zip(launch.concurrent, groups, strict=True))
    return replace(first, beside=tuple(others))


def _is_certain(launch: Launch, begun: Launch, deadlocks: Sequence[Finding]) -> bool:
    """Whether a deadlock is one while other clusters have not begun: of each GPU that has more of them a thread is
    stuck.
    """
    if not launch.beside:
        return True
    pairs = zip(launch.concurrent, begun.concurrent, strict=True)
    lacking = [one.gpu for one, some in pairs if len(some.executed_clusters) < len(one.executed_clusters)]
    threads = [{access.thread for access in finding.accesses} for finding in deadlocks]
    return any(all(any(t.startswith(f"gpu{g}.") for t in stuck) for g in lacking) for stuck in threads)


def _not_resident(begun: Launch, stuck: Finding, profile: str) -> Finding:
    """The finding for a wait that only a cluster that need not be resident can end, from the deadlock without it."""
    entry = catalogue.get(NOT_RESIDENT)
    resident = [
        cta_name(at, one.cluster) + (f" of GPU {one.gpu}" if begun.beside else "")
        for one in begun.concurrent for at in one.executed_clusters
    ]  # fmt: skip
    accesses = tuple(sorted(stuck.accesses, key=lambda access: not _reads_memory(access)))
    waits = accesses[0]
    message = (
        f"{waits.thread} waits for {waits.object} until another CTA writes it, but if only {' and '.join(resident)} "
        f"{'is' if len(resident) == 1 else 'are'} resident, no other CTA begins before this wait ends"
    )
    return replace(
        stuck, code=NOT_RESIDENT, kind=entry.kind, severity=entry.severity(profile), message=message,
        accesses=accesses, fixes=(entry.fix,), section=entry.section,
    )  # fmt: skip


def _reads_memory(access: Access) -> bool:
    """Whether a stuck thread polls a word: others wait for it at barriers, which name no object, or at mbarriers."""
    return bool(access.object) and "mbarrier." not in access.instruction
