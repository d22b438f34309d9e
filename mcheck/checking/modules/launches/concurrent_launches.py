"""Launches on different GPUs, which run at the same time: those that may access common bytes are followed together in
one execution graph, all of their clusters if they are few, and with the scopes that the kernels use.

Nothing orders two GPUs but what their programs do, and each runs its launch at once. An answer that covers all clusters
is one about all executions of these launches, so nothing that is open about one of them alone remains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.errors import InputError
from mcheck.base.reasons import Cause, Reason, Reasons, error_reason, name_share
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.checking.modules.answer import WHY, follow_clusters
from mcheck.checking.modules.cluster_groups import (
    FEW,
    GROUP_SECONDS,
    MAX_THREADS,
    MAX_TOGETHER,
    TOGETHER,
    says_something,
)
from mcheck.checking.modules.followed_clusters import Followed
from mcheck.checking.modules.launches.launch_races import uncertain_reason
from mcheck.checking.modules.launches.launch_study import LaunchStudy
from mcheck.checking.modules.residency import with_groups, with_residency
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Buffer, Extent, Launch, Map
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.module_copies import copy_name, with_copy
from mcheck.simt.grid.pairs.reduction import cancels_clusters

MOST_REASONS = 4
"""The maximum number of pairs of accesses that a reason lists."""
SEPARATE = "launches on different GPUs were not followed together"


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """The answer about the launches of these numbers together, ``None`` if there is none; ``reasons`` are why it does
    not cover them. ``whole``: all of their clusters were followed.
    """

    numbers: tuple[int, ...]
    answer: Answer | None
    reasons: Reasons = ()
    whole: bool = False

    @property
    def says_more(self) -> bool:
        """Whether more is known of the launches together than of each by itself."""
        return self.whole and self.answer is not None and says_something(self.answer)


def answer_groups(
    study: LaunchStudy, model: Model, question: Question, engine: str, limit: Limit
) -> Iterator[GroupAnswer]:
    """The answers about launches of different GPUs that may access common bytes.

    Those with pointers to common buffers are followed together if they are few clusters. If that leaves something
    open, the bytes that they access tell which of them have to be.
    """

    def answer(numbers: tuple[int, ...]) -> GroupAnswer:
        share = limit.share(GROUP_SECONDS)
        given = _answer_group(study, numbers, model, question, engine, share)
        if not share.is_over() or limit.is_over():
            return given
        return replace(given, reasons=name_share(given.reasons, TOGETHER, GROUP_SECONDS))

    for numbers in study.sharing_groups():
        first = answer(numbers) if is_small(study, numbers) else None
        if first is not None and not first.reasons:
            yield first
            continue
        for some in study.meeting_groups(numbers):
            given = first if first is not None and some == numbers else answer(some)
            yield replace(given, reasons=_explain(study, given)) if given.reasons else given


def _answer_group(
    study: LaunchStudy, numbers: tuple[int, ...], model: Model, question: Question, engine: str, limit: Limit
) -> GroupAnswer:
    """The answer about launches together, with the reasons that it does not cover them, if so."""
    obstacle = find_obstacle(study, numbers)
    if obstacle is not None:
        return GroupAnswer(numbers, None, (obstacle,))
    module, launch = join_launches(study.module, [study.launches[k] for k in numbers])
    clusters = _followed_clusters(launch)
    if clusters is None:
        said = f"one CTA of each has more than {MAX_THREADS} threads in all"
        return GroupAnswer(numbers, None, (Reason(Cause.GAP, said),))
    launch = with_groups(launch, clusters) if sum(map(len, clusters)) < launch.total_count else _whole(launch)

    def follow(launch: Launch, limit: Limit) -> Followed:
        asked = replace(question, timeout=limit.left())
        found = follow_clusters(module, launch, model, asked, engine, limit, alone=True)
        assert found is not None
        return replace(found, answer=replace(found.answer, chosen=WHY)) if engine == "auto" else found

    try:
        found = follow(launch, limit)
        given = found.answer if launch.is_sample else with_residency(launch, found, follow, question, limit)
    except InputError as error:
        return GroupAnswer(numbers, None, (error_reason(error),))
    settled = given.verdict in (Verdict.PROVED, Verdict.FINDING)
    return GroupAnswer(numbers, given, () if settled else given.reasons, whole=not launch.is_sample)


def _explain(study: LaunchStudy, given: GroupAnswer) -> Reasons:
    """The reason that launches are not covered together: why, and what they share if they were not followed."""
    if given.says_more:
        return (Reason(Cause.LAUNCH, " and ".join(map(study.name, given.numbers)), because=given.reasons),)
    conflicts = list(study.concurrent_conflicts(given.numbers))
    shared = [uncertain_reason(c, study) for c in conflicts[:MOST_REASONS]]
    more = len(conflicts) - MOST_REASONS
    shared += [Reason(Cause.GAP, f"{more} more pairs")] if more > 0 else []
    return (Reason(Cause.LAUNCHES, SEPARATE, because=(*given.reasons, *shared)),)


# --- which launches can be followed together --------------------------------------------------------------------------


def find_obstacle(study: LaunchStudy, numbers: Sequence[int]) -> Reason | None:
    """Why launches cannot be followed together, if so."""
    launches = [study.launches[k] for k in numbers]
    for number, launch in zip(numbers, launches, strict=True):
        before = [k for k in study.streams[launch.gpu][0] if k < number and study.may_share(k, number)]
        if before:
            return Reason(Cause.GAP, f"{study.name(before[-1])} on the same GPU begins before {study.name(number)}")
        if any(isinstance(place, AnyNumber) for a in launch.arguments for _, place in a.places):
            return Reason(Cause.NUMBERS, f"a parameter of {study.name(number)} may be any number")
        if study.has_unknown_pointer(number):
            return Reason(Cause.GAP, f"{study.name(number)} has a pointer that is not given")
    if len({launch.gpu for launch in launches}) < len(launches):
        return Reason(Cause.GAP, "several of them run on one GPU")
    if len({launch.cluster for launch in launches}) > 1:
        return Reason(Cause.GAP, "their clusters are of different sizes")
    if len({launch.assume for launch in launches}) > 1:
        return Reason(Cause.GAP, "they make different assumptions")
    if any(v.is_managed for _, v in study.module.all_variables):
        return Reason(Cause.GAP, "the module has variables in managed memory, which all GPUs share")
    if cancels_clusters(study.module):
        return Reason(Cause.GAP, "the module has clusterlaunchcontrol")
    return None


def join_launches(module: Module, launches: Sequence[Launch]) -> tuple[Module, Launch]:
    """Launches as one whose others are beside it, and the module with an entry for each."""
    joined: list[Launch] = []
    for launch in launches:
        own = replace(launch, arguments=tuple(_with_own_names(a, launch.gpu) for a in launch.arguments))
        if joined:
            module = with_copy(module, launch.entry, launch.gpu)
            own = replace(own, entry=copy_name(launch.entry, launch.gpu))
        joined.append(own)
    return module, replace(joined[0], beside=tuple(joined[1:]))


def _with_own_names(argument: Argument, gpu: int) -> Argument:
    """The argument, the memory that no other launch knows named after its GPU."""

    def renamed(buffer: Buffer) -> Buffer:
        if buffer.declared:
            return buffer
        return replace(
            buffer,
            name=copy_name(buffer.name, gpu),
            maps=tuple(replace(held, buffer=renamed(held.buffer)) for held in buffer.maps),
            pointers=tuple((offset, renamed(target)) for offset, target in buffer.pointers),
        )

    places: list[tuple[int, Buffer | Map | AnyNumber]] = []
    for offset, place in argument.places:
        match place:
            case Buffer():
                places.append((offset, renamed(place)))
            case Map():
                places.append((offset, replace(place, buffer=renamed(place.buffer))))
            case AnyNumber():
                places.append((offset, place))
    return replace(argument, places=tuple(places))


# --- which of their clusters --------------------------------------------------------------------------------------


def _whole(launch: Launch) -> Launch:
    """The launches with all of their clusters executed together."""
    first, *others = (replace(one, together=one.cluster_counts, first=(0, 0, 0)) for one in launch.concurrent)
    return replace(first, beside=tuple(others))


def is_small(study: LaunchStudy, numbers: Sequence[int]) -> bool:
    """Whether all clusters of launches are few enough to be followed together."""
    clusters = sum(study.launches[k].total_count for k in numbers)
    lanes = max(prod(study.launches[k].cluster) * study.launches[k].width for k in numbers)
    return _fits(clusters, lanes)


def _followed_clusters(launch: Launch) -> tuple[tuple[Extent, ...], ...] | None:
    """The clusters that are followed together: all of each launch, or the first few of each; ``None`` if even one of
    each are too many threads.
    """
    launches = launch.concurrent
    most = max(MAX_TOGETHER // len(launches), 1)
    counts = [launch.total_count, *range(min(most, FEW), 0, -1)]
    lanes = prod(launch.cluster) * launch.width
    return next((c for c in (_first_clusters(launch, n) for n in counts) if _fits(sum(map(len, c)), lanes)), None)


def _first_clusters(launch: Launch, number: int) -> tuple[tuple[Extent, ...], ...]:
    """The first clusters of each launch, at most so many."""
    found = []
    for one in launch.concurrent:
        x, y, _ = one.cluster_counts
        total = min(number, one.total_count)
        found.append(tuple((k % x, k // x % y, k // (x * y)) for k in range(total)))
    return tuple(found)


def _fits(clusters: int, lanes: int) -> bool:
    """Whether so many clusters, each of so many lanes, are followed together."""
    return clusters <= MAX_TOGETHER and clusters * lanes <= MAX_THREADS
