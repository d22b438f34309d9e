"""Launches on different GPUs, which run at the same time: those that may access common bytes are followed together in
one execution graph, all of their clusters if they are few, and with the scopes that the kernels use.

Nothing orders two GPUs but what their programs do, and each runs its launch at once. An answer that covers all clusters
is one about all executions of these launches, so nothing that is open about one of them alone remains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.errors import InputError
from mcheck.base.reasons import Cause, Reason, Reasons, error_reason
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.checking.modules.answer import WHY, follow_clusters
from mcheck.checking.modules.cluster_groups import (
    FEW,
    GROUP_SECONDS,
    MAX_THREADS,
    MAX_TOGETHER,
    Followed,
    FollowTogether,
    with_groups,
    with_residency,
)
from mcheck.checking.modules.launch_races import uncertain_reason
from mcheck.checking.modules.launch_study import LaunchStudy
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Buffer, Extent, Launch, Map
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.module_copies import copy_name, with_copy

MOST_REASONS = 4
"""The maximum number of pairs of accesses that a reason lists."""
SEPARATE = "launches on different GPUs were not followed together"


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """The answer about the launches of these numbers together; ``None`` if there is none, for ``reasons``."""

    numbers: tuple[int, ...]
    answer: Answer | None
    reasons: Reasons = ()


def answer_groups(
    study: LaunchStudy, model: Model, question: Question, engine: str, limit: Limit
) -> Iterator[GroupAnswer]:
    """The answers about launches of different GPUs that may access common bytes."""
    for numbers in study.concurrent_groups():
        obstacle = find_obstacle(study, numbers)
        if obstacle is not None:
            yield GroupAnswer(numbers, None, (_separate(study, numbers, (obstacle,)),))
            continue
        module, launch = join_launches(study.module, [study.launches[k] for k in numbers])

        def follow(launch: Launch, limit: Limit, module: Module = module) -> Followed:
            asked = replace(question, timeout=limit.left())
            found = follow_clusters(module, launch, model, asked, engine, limit, alone=True)
            assert found is not None
            return replace(found, answer=replace(found.answer, chosen=WHY)) if engine == "auto" else found

        try:
            yield _answer_group(study, numbers, launch, follow, question, limit.part(GROUP_SECONDS))
        except InputError as error:
            yield GroupAnswer(numbers, None, (_separate(study, numbers, (error_reason(error),)),))


def _answer_group(
    study: LaunchStudy,
    numbers: tuple[int, ...],
    launch: Launch,
    follow: FollowTogether,
    question: Question,
    limit: Limit,
) -> GroupAnswer:
    clusters = _followed_clusters(launch)
    if clusters is None:
        said = f"one CTA of each has more than {MAX_THREADS} threads in all"
        return GroupAnswer(numbers, None, (_separate(study, numbers, (Reason(Cause.GAP, said),)),))
    launch = with_groups(launch, clusters) if sum(map(len, clusters)) < launch.total_count else _whole(launch)
    found = follow(launch, limit)
    assert found is not None
    given = found.answer if launch.is_sample else with_residency(launch, found, follow, question, limit)
    if given.verdict in (Verdict.PROVED, Verdict.FINDING):
        return GroupAnswer(numbers, given)
    return GroupAnswer(numbers, given, (_separate(study, numbers, given.reasons),))


def _separate(study: LaunchStudy, numbers: Sequence[int], why: Reasons) -> Reason:
    """The reason that launches are not covered together: why, and what they share."""
    conflicts = list(study.concurrent_conflicts(numbers))
    shared = [uncertain_reason(c, study) for c in conflicts[:MOST_REASONS]]
    more = len(conflicts) - MOST_REASONS
    shared += [Reason(Cause.GAP, f"{more} more pairs")] if more > 0 else []
    return Reason(Cause.LAUNCHES, SEPARATE, because=(*why, *shared))


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
    opcodes = {s.opcode[0] for f in study.module.functions.values() for s in f.body}
    if "clusterlaunchcontrol" in opcodes:
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
        return buffer if buffer.declared else replace(buffer, name=copy_name(buffer.name, gpu))

    places: list[tuple[int, Buffer | Map | AnyNumber]] = []
    for offset, place in argument.places:
        match place:
            case Buffer() if place.map is not None:
                held = replace(place.map, buffer=renamed(place.map.buffer))
                places.append((offset, replace(renamed(place), map=held)))
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


def _followed_clusters(launch: Launch) -> tuple[tuple[Extent, ...], ...] | None:
    """The clusters that are followed together: all of each launch, or the first few of each; ``None`` if even one of
    each are too many threads.
    """
    launches = launch.concurrent
    most = max(MAX_TOGETHER // len(launches), 1)
    counts = [launch.total_count, *range(min(most, FEW), 0, -1)]
    return next((some for some in (_first_clusters(launch, n) for n in counts) if _is_small(launch, some)), None)


def _first_clusters(launch: Launch, number: int) -> tuple[tuple[Extent, ...], ...]:
    """The first clusters of each launch, at most so many."""
    found = []
    for one in launch.concurrent:
        x, y, _ = one.cluster_counts
        total = min(number, one.total_count)
        found.append(tuple((k % x, k // x % y, k // (x * y)) for k in range(total)))
    return tuple(found)


def _is_small(launch: Launch, clusters: Sequence[Sequence[Extent]]) -> bool:
    number = sum(map(len, clusters))
    return number <= MAX_TOGETHER and number * prod(launch.cluster) * launch.width <= MAX_THREADS
