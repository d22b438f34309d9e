"""Whether clusters that wait for each other also end if not all of them are resident at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.budget import Limit
from mcheck.base.phrase import Lack
from mcheck.base.reasons import Cause, Reason, timeout_reason
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.followed_clusters import Followed, FollowTogether
from mcheck.checking.policy.question import Question
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding
from mcheck.findings.waits import OfWord, Wait
from mcheck.frontend.ptx.launch import Extent, Launch, cta_name
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.program import Program

MAX_RESIDENT = 5
"""The size of groups up to which each of its subsets is followed by itself."""
NOT_RESIDENT = "DEAD007"
LATE = "it was not followed whether a cluster that another GPU waits for begins in time"
SUBSETS = "it was not checked whether the clusters also end if only some of them are resident"


def waiting_clusters(program: Program) -> frozenset[int]:
    """The clusters of which a thread waits for a word of global memory, which another cluster may write."""
    waited = {id(op): op for op in program.operations if isinstance(op, ops.Await) and not op.followed}
    words = {key for key, op in waited.items() if _is_global(getattr(op.inner, "address", None))}
    loops = frozenset(t.place.cta.cluster for t in program.threads if t.labels)  # in a module loops only wait
    if not words:
        return loops
    return loops.union(t.place.cta.cluster for t in program.threads if any(id(op) in words for op in t.code))


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


def never_ending(begun: Launch, follow: FollowTogether, question: Question, limit: Limit) -> tuple[Finding, ...]:
    """The waits that never end if only the clusters of a group are resident, and no others begin before these end."""
    alone = follow(begun, limit)
    return () if alone is None else tuple(_not_resident(begun, f, question.profile) for f in alone.deadlocks)


def never_ended(alone: Followed, left: int, total: int) -> Answer | None:
    """The answer about ``total`` clusters of which one waits for a word that holds ``left`` when nobody goes on, from
    that about this one alone; ``None`` if it does not wait.
    """
    if not alone.deadlocks:
        return None
    stuck = tuple(replace(f, waits=tuple(_holding(w, left) for w in f.waits)) for f in alone.deadlocks)
    reason = Reason(Cause.CLUSTERS, f"the signals of all {total} clusters of the grid were followed")
    return add_verdict(replace(alone.answer, findings=stuck, covered=False, reasons=(reason,)))


def _holding(wait: Wait, left: int) -> Wait:
    """A wait for a word, with what it holds where all clusters have gone as far as they can."""
    if not isinstance(wait.goal, OfWord):
        return wait
    return replace(wait, goal=replace(wait.goal, value=left))


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
    are = "is" if len(resident) == 1 else "are"
    why = Lack((f"if only {' and '.join(resident)} {are} resident, no other CTA begins before this wait ends",))
    said = (f"{waits.thread} waits for {waits.object} until another CTA writes it, but ", why)
    return replace(
        stuck, code=NOT_RESIDENT, kind=entry.kind, severity=entry.severity(profile), said=said,
        accesses=accesses, fixes=(entry.fix,), section=entry.section,
    )  # fmt: skip


def waits_for_absent(waits: Access, profile: str) -> Finding:
    """The finding for a thread that waits for a word which only a cluster that need not have begun writes."""
    entry = catalogue.get(NOT_RESIDENT)
    message = (
        f"{waits.thread} waits for {waits.object} until another CTA writes it, but none that does need begin before "
        "this wait ends"
    )
    return Finding(
        code=NOT_RESIDENT, kind=entry.kind, severity=entry.severity(profile), said=(message,), accesses=(waits,),
        fixes=(entry.fix,), section=entry.section,
    )  # fmt: skip


def _reads_memory(access: Access) -> bool:
    """Whether a stuck thread polls a word: others wait for it at barriers, which name no object, or at mbarriers."""
    return bool(access.object) and "mbarrier." not in access.instruction
