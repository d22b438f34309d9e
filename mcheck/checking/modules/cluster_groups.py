"""Groups of clusters that share memory, followed together in one execution graph.

One cluster comes first. If no other one conflicts with it, its answer is that of the grid. Otherwise boxes of clusters
are tried, the smallest first, until no box conflicts with another one: the clusters of an output tile in split-K, all
clusters of a grid barrier. A box is executed as one cluster is; the argument that extends its answer to the grid is the
same. If no box is small enough, a few clusters are followed together, and the answer is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from mcheck.answers.result import Answer, Covers
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import Unsupported
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason, name_share, share_reason, timeout_reason
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.closed_boxes import find_closed_box
from mcheck.checking.modules.followed_clusters import Follow, Followed, without_scope
from mcheck.checking.modules.grid_coverage import is_conflict
from mcheck.checking.modules.open_clusters import is_decided, with_reason
from mcheck.checking.modules.pairs.counted_grid import answer_counted
from mcheck.checking.modules.pairs.locked_grid import answer_locked
from mcheck.checking.modules.pairs.looking_grid import answer_looking
from mcheck.checking.modules.pairs.signalled_grid import answer_signalled
from mcheck.checking.modules.residency import never_ended, never_ending, waits_for_absent, with_residency
from mcheck.checking.policy.question import Question
from mcheck.findings.finding import Finding
from mcheck.frontend.ptx.launch import Extent, Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.footprints.grid_classes import (
    Clash,
    Incomparable,
    find_clashes,
    find_classes,
    find_mixed,
    follow_each,
)
from mcheck.simt.grid.looks.looking_clusters import StuckFound
from mcheck.simt.grid.pairs.idle_atomics import without_idle_atomics
from mcheck.simt.grid.pairs.reduction import NotReducible, clusters_of, has_signals
from mcheck.simt.grid.pairs.weak_shared import shows_races, with_weak_shared
from mcheck.simt.grid.signals.signal_order import NeverEnds
from mcheck.simt.trace_extraction import ClusterTrace

MAX_TOGETHER = 8
"""Maximum number of clusters that are followed together."""
MAX_THREADS = 2048
"""Maximum number of threads of such clusters."""
GROUP_SECONDS = 20.0
"""Maximum time for groups of clusters; half of what is left of a longer time limit."""
ERRORS_SECONDS = 10.0
"""The same, a sixth of it, where nothing can be proved, for the launch does not give contents that decide."""
WAITING_SECONDS = 3.0
"""Time for groups of clusters before it is asked whether pairs of them stand for all."""
COUNTED_SECONDS = 30.0
"""Maximum time for the argument about clusters that count themselves; half of what is left of a longer time limit."""
AS_WRITTEN_SECONDS = 10.0
"""Maximum time to follow a pair with its strong accesses of shared memory, if it has an error with weak ones."""
TOGETHER = "following clusters together"
IN_PAIRS = "following pairs of clusters"
IN_CLASSES = "following a cluster of each class"
PAIR = 2
"""The number of clusters that stand for all if they count themselves."""
MAX_ASKED = 40
"""Maximum number of clusters of which each is asked about by itself."""
FEW = 3
"""The number of clusters that are followed together if no group is closed."""
BY_CLASSES = "one cluster of each of {} classes was checked; all of a class behave alike, and no two clusters conflict"
NO_PAIR = "the {} clusters share memory in a way that mcheck cannot reduce to pairs of them"


def answer_together(
    module: Module, launch: Launch, first: Followed, follow: Follow, question: Question, limit: Limit
) -> Answer:
    """The answer about a launch, given that about one of its clusters, which leaves others open."""
    left = limit.left() or 0
    seconds = max(ERRORS_SECONDS, left / 6) if first.assumes_contents else max(GROUP_SECONDS, left / 2)
    return _Groups(module, launch, first, follow, question, limit, seconds).answer()


@dataclass(frozen=True, slots=True)
class _Groups:
    """A launch whose clusters may share memory, what is known of one of them, and the time for groups of them."""

    module: Module
    launch: Launch
    first: Followed
    follow: Follow
    question: Question
    limit: Limit
    seconds: float

    def answer(self) -> Answer:
        """The answer from a cluster of each class, or else from groups of clusters."""
        clusters = prod(self.launch.cluster_counts)
        several = PAIR < clusters <= MAX_TOGETHER
        share, late = self._share(), False
        try:
            given = _answer_from_classes(
                self.module, self.launch, self.first, self.follow, share, self._share if several else lambda: share
            )
        except _ClassesLate:
            given, late = None, True
        if given is not None:
            return given
        if clusters <= MAX_TOGETHER:
            return self._answer_small(share, late=late, several=several)
        return self._answer_large(share, late=late)

    def _answer_large(self, share: Limit, *, late: bool) -> Answer:
        """The answer about a grid that is too large to be followed whole: from pairs, if they stand for all."""
        counted = self._ask_pairs()
        if isinstance(counted, Answer):
            return counted
        if counted is not None:
            share = self._share()
        given = self._with_lateness(self._follow_groups(share, late=late), share, late=late)
        return given if counted is None else with_reason(given, counted)

    def _answer_small(self, share: Limit, *, late: bool, several: bool) -> Answer:
        """The answer about a grid that may be followed whole, and from pairs if that says too little. ``several``: it
        has more clusters than a pair; three draw tickets in six orders.
        """
        choices = self._ask_pairs(only_choices=True) if several else None
        if isinstance(choices, Answer):
            return choices
        if several:
            share = self._share()
        share, longer = self._share_before_pairs(share, several=several), share
        given = self._follow_groups(share, late=late)
        counted = None if is_decided(given) else self._ask_pairs()
        if isinstance(counted, Answer) and counted.verdict is Verdict.PROVED:
            return counted
        if share is not longer and share.is_over() and not (is_decided(given) or self.limit.is_over()):
            share = self._share()
            given = self._follow_groups(share, late=late)
        if isinstance(counted, Answer) and not is_decided(given):
            return counted
        why = counted if isinstance(counted, Reason) and counted.cut and not is_decided(given) else None
        given = self._with_lateness(given, share, late=late)
        if why is None and given.verdict is Verdict.UNKNOWN:
            why = choices
        return given if why is None else with_reason(given, why)

    def _share_before_pairs(self, share: Limit, *, several: bool) -> Limit:
        """The time for groups before pairs are asked about: a part of the share, for clusters that wait for each other,
        or draw numbers, have executions without number together, and the argument about pairs mostly takes less. It
        proves nothing where contents are assumed, nor where clusters have nothing to tell each other.
        """
        signals = several and has_signals(self.module)
        pairs = (signals or self.first.deadlocks) and not self.first.assumes_contents
        return self.limit.share(min(WAITING_SECONDS, self.seconds)) if pairs else share

    def _share(self) -> Limit:
        return self.limit.share(self.seconds)

    def _ask_pairs(self, *, only_choices: bool = False) -> Answer | Reason | None:
        try:
            return _answer_from_pairs(
                self.module, self.launch, self.follow, self.question, self.limit, only_choices=only_choices
            )
        except StuckFound as found:
            stuck = waits_for_absent(found.waits, self.question.profile)
            return add_verdict(replace(self.first.answer, findings=(*self.first.answer.findings, stuck)))

    def _follow_groups(self, share: Limit, *, late: bool) -> Answer:
        """The answer from clusters that are followed together; where one of each class was ``late`` already, all of
        them at once would take longer still.
        """
        alone = self.first.answer
        if not late:
            return _answer_together(self.launch, self.first, self.follow, self.question, share)
        if self.limit.is_over():
            return replace(alone, cut=True)
        return with_reason(alone, share_reason(IN_CLASSES, self.seconds))

    def _with_lateness(self, given: Answer, share: Limit, *, late: bool) -> Answer:
        """The answer with whether groups of clusters had too little time."""
        if not late and share.is_over() and not self.limit.is_over():
            given = _with_late_groups(given, self.seconds)
        return replace(given, cut=given.cut or (given is self.first.answer and share.is_over()))


def _with_late_groups(given: Answer, seconds: float) -> Answer:
    """The answer with the reason that following groups of clusters was not finished in its share of the time."""
    named = replace(given, reasons=name_share(given.reasons, TOGETHER, seconds))
    return (
        named
        if is_decided(given) or named.reasons != given.reasons
        else with_reason(given, share_reason(TOGETHER, seconds))
    )


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
    module: Module, launch: Launch, follow: Follow, question: Question, limit: Limit, *, only_choices: bool = False
) -> Answer | Reason | None:
    """The answer of a grid by the arguments about clusters that count themselves, or wait for each other's signals, or
    why they do not apply, if there is a counter or a signal at all. ``only_choices``: only if clusters draw tickets, or
    look early at what they wait for.
    """
    if launch.beside:
        return None
    launched, read = module, without_idle_atomics(module)
    module = with_weak_shared(read)

    def follow_pair(pair: Launch, limit: Limit, trace: ClusterTrace | None = None) -> Answer | None:
        given = without_scope(follow(pair, limit, apart=True, trace=trace, module=module))
        if module is launched or given is None or given.verdict is Verdict.PROVED:
            return given
        if read is not launched or trace is not None:
            return None
        if shows_races(given.findings, module, launch):
            return given
        return without_scope(follow(pair, limit.share(AS_WRITTEN_SECONDS), apart=True, module=launched))

    def find_stuck(alone: Launch, limit: Limit) -> Sequence[Finding]:
        return never_ending(alone, follow, question, limit)

    def count(share: Limit) -> Answer | None:
        return answer_counted(module, launch, follow_pair, share)

    def count_in_boxes(share: Limit) -> Answer | None:
        boxed = find_closed_box(module, launch, share, counts=True)
        return None if boxed is None else answer_counted(module, boxed, follow_pair, share)

    def signal(share: Limit) -> Answer | None:
        boxed = None if only_choices else find_closed_box(module, launch, share, counts=False)
        try:
            return answer_signalled(
                module, boxed or launch, follow_pair, share, only_choices=only_choices, find_stuck=find_stuck
            )
        except NeverEnds as error:
            stuck = clusters_of(boxed or launch)[error.number]
            alone = follow(replace(launch, group=(stuck,)), share, apart=True, module=read)
            found = (
                None if alone is None or not error.sure else never_ended(alone, error.left, prod(launch.cluster_counts))
            )
            if found is None:
                raise
            return found

    def look(share: Limit) -> Answer | None:
        return answer_looking(module, launch, follow_pair, share)

    def lock(share: Limit) -> Answer | None:
        return answer_locked(launched, launch, follow_pair, share)

    seconds = max(COUNTED_SECONDS, (limit.left() or 0) / 2)
    share = limit.share(seconds)
    why: NotReducible | None = None
    for argue in [signal, look, lock] if only_choices else [count, count_in_boxes, signal, look, lock]:
        try:
            given = argue(share)
            if given is not None:
                return given
        except StuckFound:
            raise
        except NotReducible as error:
            if error.applies and (why is None or argue not in (look, lock)):
                why = error
        except TimeOut:
            return timeout_reason(question.timeout) if limit.is_over() else share_reason(IN_PAIRS, seconds)
        except Unsupported:
            pass
    if why is None:
        return None
    said = f"{NO_PAIR.format(prod(launch.cluster_counts))}: {why.why}"
    return Reason(Cause.TIME if why.late else Cause.GAP, said, span=why.span)


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
    if classes.lost:
        return None
    mixed = find_mixed(classes, is_conflict, limit)
    firsts = (*classes.firsts, *mixed)
    if len(firsts) > MAX_ASKED:
        return None
    findings, cut, limit = alone.findings, alone.cut, more()
    others = [at for at in firsts if at != launch.first]
    for number, at in enumerate(others, 2):
        note(Level.CLUSTERS, f"class {number} of {len(firsts)} of clusters")
        one = follow(replace(launch, first=at), limit, apart=True)
        assert one is not None
        executions += one.answer.executions
        cut = cut or one.answer.cut
        if not is_decided(one.answer):
            if limit.is_over():
                raise _ClassesLate
            return None
        findings = (*findings, *(f for f in one.answer.findings if f not in findings))
        if at in mixed and one.answer.verdict is Verdict.FINDING:
            break  # other clusters show the same, at other places
    reasons = tuple(r for r in alone.reasons if r.cause is not Cause.CLUSTERS)
    said = BY_CLASSES.format(len(firsts))
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
