"""Groups of clusters that share memory, followed together in one execution graph.

One cluster comes first. If no other one conflicts with it, its answer is that of the grid. Otherwise boxes of clusters
are tried, the smallest first, until no box conflicts with another one: the clusters of an output tile in split-K, all
clusters of a grid barrier. A box is executed as one cluster is; the argument that extends its answer to the grid is the
same. If no box is small enough, a few clusters are followed together, and the answer is bounded.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from math import prod
from typing import Protocol

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.budget import Limit
from mcheck.base.reasons import Cause, Reason, timeout_reason
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.question import Question
from mcheck.findings import catalogue
from mcheck.findings.finding import Finding
from mcheck.frontend.ptx.launch import Extent, Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.program import Program

MAX_TOGETHER = 8
"""Maximum number of clusters that are followed together."""
MAX_THREADS = 2048
"""Maximum number of threads of such clusters."""
GROUP_SECONDS = 30.0
"""Maximum time for groups of clusters, if the question has no time limit of its own or a longer one."""
FEW = 3
"""The number of clusters that are followed together if no group is closed."""
MAX_RESIDENT = 5
"""The size of groups up to which each of its subsets is followed by itself."""
NOT_RESIDENT = "DEAD007"
OPEN = "clusters outside of this group may take part in what it does"
SUBSETS = "it was not checked whether the clusters also end if only some of them are resident"


@dataclass(frozen=True, slots=True)
class Followed:
    """The answer about the clusters that were followed; ``deadlocks`` of theirs that other clusters might resolve are
    not in it. ``waits``: one of them waits for a word of global memory.
    """

    answer: Answer
    deadlocks: tuple[Finding, ...] = ()
    waits: bool = False


class Follow(Protocol):
    """Follows the clusters that a launch executes together; with ``whole`` only if no others conflict with them."""

    def __call__(self, launch: Launch, limit: Limit, *, whole: bool = False) -> Followed | None: ...


def answer_together(
    module: Module, launch: Launch, first: Followed, follow: Follow, question: Question, limit: Limit
) -> Answer:
    """The answer about a launch, given that about one of its clusters."""
    if not _needs_group(module, launch, first.answer):
        return first.answer
    limit = limit.part(GROUP_SECONDS)
    for box in closed_boxes(launch):
        if limit.is_over():
            break
        found = follow(replace(launch, together=box, first=_origin(launch, box)), limit, whole=True)
        if found is not None:
            return _better(first.answer, _with_residency(launch, box, found, follow, question, limit))
    some = few_clusters(launch)
    if some is None or limit.is_over():
        return first.answer
    found = follow(replace(launch, group=some), limit)
    assert found is not None
    return _better(first.answer, _explain(found.answer, first.answer))


def _explain(together: Answer, alone: Answer) -> Answer:
    """The answer about a few clusters, with what is known of those left out from the answer about one of them."""
    why = tuple(r for reason in alone.reasons if reason.cause is Cause.CLUSTERS for r in reason.because)
    reasons = (replace(r, because=why or r.because) if r.cause is Cause.CLUSTERS else r for r in together.reasons)
    return replace(together, reasons=tuple(reasons))


def _better(alone: Answer, together: Answer) -> Answer:
    """The answer that says more, that about several clusters if both say as much; the time of either cuts it."""
    if together.verdict is Verdict.UNKNOWN:
        return replace(alone, cut=alone.cut or together.cut)
    return together


def _needs_group(module: Module, launch: Launch, given: Answer) -> bool:
    """Whether more is known of the launch if several clusters are followed together."""
    if prod(launch.cluster_counts) == 1 or given.verdict in (Verdict.PROVED, Verdict.FINDING) or given.cut:
        return False
    causes = {reason.cause for reason in given.reasons}
    if not causes <= {Cause.CLUSTERS, Cause.OTHER_CLUSTERS, Cause.GAP, Cause.BRANCHES}:
        return False
    opcodes = {s.opcode[0] for f in module.functions.values() for s in f.body}
    return "clusterlaunchcontrol" not in opcodes  # a cluster can take the place of another one


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


def few_clusters(launch: Launch) -> tuple[Extent, ...] | None:
    """A few neighbours of the executed cluster, itself among them; ``None`` if even these are too many threads."""
    counts, at = launch.cluster_counts, launch.executed_clusters[0]
    axis = max(range(3), key=lambda k: (counts[k] > 1, -k))
    for number in range(min(FEW, counts[axis]), 1, -1):
        if _is_small(launch, number):
            low = min(at[axis], counts[axis] - number)
            places = [[*at] for _ in range(number)]
            for k, place in enumerate(places):
                place[axis] = low + k
            return tuple((x, y, z) for x, y, z in places)
    return None


def _is_small(launch: Launch, clusters: int) -> bool:
    return clusters <= MAX_TOGETHER and clusters * prod(launch.cluster) * launch.width <= MAX_THREADS


# --- clusters that are not there ------------------------------------------------------------------------------------


def waits_for_global_word(program: Program) -> bool:
    """Whether a thread waits for a word of global memory, which another cluster may write."""
    waited = {id(op): op for t in program.threads for op in t.code if isinstance(op, ops.Await)}
    return any(_is_global(getattr(op.inner, "address", None)) for op in waited.values() if not op.followed)


def _is_global(address: object) -> bool:
    values = address.values if isinstance(address, Lanes) else (address.value,) if isinstance(address, Const) else ()
    return any(GLOBAL_BASE <= value < SHARED_BASE for value in values)


def _with_residency(
    launch: Launch, box: Extent, found: Followed, follow: Follow, question: Question, limit: Limit
) -> Answer:
    """The answer about a group, with whether its clusters also end if others of them begin only after them.

    Nothing promises that two clusters of a grid are resident at the same time, unless the launch is cooperative. A
    cluster that is not resident begins when another one ends. So each subset has to end by itself: then there is no
    execution in which some clusters wait for others that cannot begin.
    """
    given = found.answer
    if launch.cooperative or not found.waits or given.verdict is not Verdict.PROVED:
        return given
    group = replace(launch, together=box, first=_origin(launch, box)).executed_clusters
    if len(group) > MAX_RESIDENT:
        reasons = (*given.reasons, Reason(Cause.CLUSTERS, SUBSETS))
        return add_verdict(replace(given, covered=False, reasons=reasons))
    executions = given.executions
    for number in range(1, len(group)):
        for some in combinations(group, number):
            if limit.is_over():
                late = timeout_reason(question.timeout, "checking clusters that are not all resident")
                return add_verdict(replace(given, covered=False, reasons=(*given.reasons, late)))
            alone = follow(replace(launch, group=some), limit)
            assert alone is not None
            executions += alone.answer.executions
            if alone.deadlocks:
                stuck = tuple(_not_resident(launch, some, f, question.profile) for f in alone.deadlocks)
                return add_verdict(replace(given, findings=(*given.findings, *stuck), executions=executions))
            if alone.answer.verdict is Verdict.UNKNOWN:
                return add_verdict(replace(given, covered=False, reasons=(*given.reasons, *alone.answer.reasons)))
    return replace(given, executions=executions)


def _not_resident(launch: Launch, resident: tuple[Extent, ...], stuck: Finding, profile: str) -> Finding:
    """The finding for a wait that only a cluster that need not be resident can end, from the deadlock without it."""
    entry = catalogue.get(NOT_RESIDENT)
    names = " and ".join(_cta(launch, at) for at in resident)
    waits = stuck.accesses[0]
    message = (
        f"{waits.thread} waits for {waits.object} until another CTA writes it, but if only {names} "
        f"{'is' if len(resident) == 1 else 'are'} resident, no other CTA begins before this wait ends"
    )
    return replace(
        stuck, code=NOT_RESIDENT, kind=entry.kind, severity=entry.severity(profile), message=message,
        missing=entry.remedy, section=entry.section,
    )  # fmt: skip


def _cta(launch: Launch, at: Extent) -> str:
    return f"CTA ({', '.join(str(a * c) for a, c in zip(at, launch.cluster, strict=True))})"
