"""The answer about the launch of a PTX module: the engine's answers about each path of its clusters, and the gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from math import prod

from mcheck.answers.merged_answers import ends_search
from mcheck.answers.result import NOT_UNDEFINED, Answer
from mcheck.answers.verdict_rules import add_verdict, verdict_of
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import Unsupported
from mcheck.base.reasons import Cause, Reason, Reasons, error_reason, share_reason, timeout_reason, unique_reasons
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.checking.check.missing_atomics import advise_atomics
from mcheck.checking.check.unused_loads import add_left_values
from mcheck.checking.modules.filled_stages import find_filled_once
from mcheck.checking.modules.followed_clusters import Followed, ProveEvery, without_scope
from mcheck.checking.modules.grid_coverage import Coverage, compute_coverage, uncovered_grid
from mcheck.checking.modules.grid_races import cluster_race_findings
from mcheck.checking.modules.open_clusters import OPEN, needs_group, with_reason
from mcheck.checking.modules.proved_programs import ProvedPrograms
from mcheck.checking.modules.residency import waiting_clusters
from mcheck.checking.modules.unsure_deadlocks import given_contents, in_the_grid
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Question
from mcheck.engines.protocol.passes import Pass
from mcheck.findings.finding import Finding
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.program import Program
from mcheck.simt.branch_paths import BranchPaths, Values
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.execution.recorded_operations import Gap
from mcheck.simt.grid.pairs.reduction import has_signals
from mcheck.simt.trace_extraction import LEADERS, ClusterTrace, extract_traces
from mcheck.simt.traces.dependent_grids import early_finding
from mcheck.simt.traces.wgmma_batches import batch_wgmma, has_batches

BRANCH_SECONDS = 10.0
"""Time for the paths that differ from the first ones in values that other threads write, at least."""
BRANCH_PART = 0.25
"""The part of a longer time that is theirs; twice as much where all clusters are followed, and nothing comes after."""
VALUES_PART = 0.75
"""The part of the user's time for what other threads may write. The rest is for the order of one run."""
FOLLOWING_VALUES = "following what other threads may write"
MOST_REASONS = 4
"""The maximum number of gaps that a reason lists."""
WHICH = "one cluster of the grid was checked, that of"
ONE_CLUSTER = "{} CTA {}; others are assumed not to touch its memory"
COMPARED = "{} CTA {}; the bytes it accesses were compared with the others'"
ALL_ALIKE = "{} CTA {}; the others behave alike and do not conflict with it"
WHOLE_GRID = "all clusters of the grid were checked together"
GPUS = "{} clusters of the launches on {} were checked together"
BUFFERS = "buffers do not overlap; accesses to buffers of unknown size are assumed in bounds"
WHY = "the default for modules"
"""Why the protocol engine is used if no engine is named."""


def answer_launch(
    module: Module, launch: Launch, model: Model, question: Question, engine: str = "auto", *, alone: bool = False,
    every: ProveEvery | None = None,
) -> Answer:  # fmt: skip
    """What an engine (by default the protocol engine) finds in a launch.

    If clusters draw tiles from a counter, one stands for all (``mcheck.checking.modules.pairs.drawn_grid``). Otherwise
    one cluster is followed, and the answer extended to the grid if no two clusters conflict. If they may, groups
    of clusters that share memory are followed together (``mcheck.checking.modules.cluster_groups``). ``alone``: only
    this cluster is in question. ``every`` proves one cluster for every number that a parameter may be. Raises
    ``InputError`` if the launch leaves open what control flow or an address of shared memory depends on.
    """
    limit = Limit(question.timeout)
    proved = ProvedPrograms()

    launched = module

    def follow(
        launch: Launch, limit: Limit, *, whole: bool = False, apart: bool = False, trace: ClusterTrace | None = None,
        module: Module | None = None,
    ) -> Followed | None:  # fmt: skip
        asked, module = replace(question, timeout=limit.left()), module or launched
        return follow_clusters(
            module, launch, model, asked, engine, limit, alone=apart, apart=apart, whole=whole, trace=trace,
            proved=proved,
        )  # fmt: skip

    def follow_given(given: Module, one: Launch, limit: Limit) -> Answer | None:
        return without_scope(follow(one, limit, apart=True, module=given))

    tiles = None
    if not alone and prod(launch.cluster_counts) > 1 and has_signals(module):
        from mcheck.checking.modules.pairs.drawn_grid import ask_drawn  # of no use to most launches, and slow to import

        tiles = ask_drawn(module, launch, follow_given, every, limit)
    if isinstance(tiles, Answer):
        return replace(tiles, chosen=WHY) if engine == "auto" else tiles
    part = (question.timeout or 0) * VALUES_PART
    within = limit if alone or question.timeout is None else limit.part(part)
    first = follow_clusters(
        module, launch, model, question, engine, limit, alone=alone, values_limit=within, proved=proved
    )
    assert first is not None
    if first.late:
        again = follow_clusters(module, launch, model, question, engine, limit, one_order=True)
        assert again is not None
        if again.answer.verdict is not Verdict.UNKNOWN:
            first = replace(again, answer=_with_late_values(again.answer, part))
    given = first.answer
    if not alone and needs_group(module, launch, given):
        from mcheck.checking.modules.cluster_groups import answer_together  # likewise

        given = answer_together(module, launch, first, follow, question, limit)
    if tiles is not None and given.verdict not in (Verdict.PROVED, Verdict.FINDING):
        given = with_reason(given, tiles)
    return replace(given, chosen=WHY) if engine == "auto" else given


def follow_clusters(
    module: Module, launch: Launch, model: Model, question: Question, engine: str, limit: Limit, *,
    alone: bool = False, apart: bool = False, whole: bool = False, values_limit: Limit | None = None,
    one_order: bool = False, trace: ClusterTrace | None = None, proved: ProvedPrograms | None = None,
) -> Followed | None:  # fmt: skip
    """Follow the clusters that a launch executes together, and those of launches beside it, on all their paths. With
    ``alone``, what they share with others is not looked at, and the answer is open if there are others, unless it is
    known that they keep ``apart``. With ``whole``, only if no cluster outside of the group may conflict with them, else
    ``None``. The first path on which values that other threads write steer control has until ``values_limit``; with
    ``one_order`` they are those of one run. ``trace`` is their only path, if that is known. ``proved`` are the paths of
    other clusters that are proved.
    """
    unknown: Reasons = ()
    launched: Coverage | None = None
    branches = BranchPaths()
    paths = _Paths(
        launch, model, question, engine, limit, values_limit, branches, limit, proved or ProvedPrograms(), whole=whole
    )
    try:
        ways = extract_traces(
            module, launch, limit, alone=alone, branches=branches, one_order=one_order,
            whole_grid=launch.executed_count == launch.total_count, leaves_rounds_out=True,
        )  # fmt: skip
        for way in ways if trace is None else [trace]:
            if whole and way.footprint is not None:
                paths.coverage = compute_coverage([way.footprint], launch, limit)
                if paths.coverage.reasons:
                    return None
            if not paths.follow(way):
                break
        launched = paths.find_conflicts(module)
    except TimeOut as over:
        unknown = (timeout_reason(question.timeout, str(over)),)
        paths.values_late = values_limit is not None and values_limit.is_over() and not limit.is_over()
    except Unsupported as error:
        unknown = (error_reason(error),)
    found = paths.found
    if not (paths.branches_late or branches.incomplete or branches.pending):
        found = [(way, _without_branches(given)) for way, given in found]
    if paths.branches_late and paths.branch_limit.is_over() and not limit.is_over():
        found = [(way, _with_late_branches(given, paths.branch_seconds)) for way, given in found]
    if launch.is_sample and not apart:
        launched = Coverage(uncovered_grid(launch), ((None, OPEN),))
    scope = "sys" if launch.beside else "gpu"
    found = [(way, _with_updates(given, module, way, scope)) for way, given in found]
    waiting = frozenset[int]().union(*(waiting_clusters(way.program) for way, _ in found))
    joined = _joined(launch, found, unknown, launched)
    if joined.covered:
        entries = [one.entry for one in launch.concurrent]
        joined = replace(joined, filled_once=find_filled_once([way.program for way, _ in found], module, entries))
    joined = replace(joined, cut=joined.cut or paths.branches_late)
    assumes = any(gap.assumes_contents for way, _ in found for gap in way.gaps)
    scope = describe_followed(launch, launched)
    return Followed(joined, scope, paths.outside, waiting, paths.values_late, assumes)


@dataclass(slots=True)
class _Paths:
    """The paths of the clusters that a launch executes together, and the answers about them."""

    launch: Launch
    model: Model
    question: Question
    engine: str
    limit: Limit
    values_limit: Limit | None
    """The time for the first path on which values that other threads write steer control."""
    branches: BranchPaths
    branch_limit: Limit
    """The time for the paths that other values lead to."""
    proved: ProvedPrograms
    whole: bool
    found: list[tuple[ClusterTrace, Answer]] = field(default_factory=list)
    outside: tuple[Finding, ...] = ()
    """Deadlocks that other clusters might resolve."""
    coverage: Coverage | None = None
    """That of the last path, where it was asked for."""
    branch_seconds: float = BRANCH_SECONDS
    """That time when it began."""
    branches_late: bool = False
    """Whether there was no time for the paths that other values lead to."""
    values_late: bool = False
    """Whether there was no time for the first path on which values steer control."""

    def follow(self, way: ClusterTrace) -> bool:
        """Ask about a path; returns whether the next one is to be followed."""
        if way.is_forced and self.branch_limit.is_over():
            self.branches_late = True
            return False
        way = replace(way, program=way.program.with_assumptions(self.launch.assume))
        asked = self._ask(way)
        if self.branches_late:
            return False
        if not way.is_forced:
            part = BRANCH_PART * (2 if self.launch.executed_count == self.launch.total_count else 1)
            self.branch_seconds = max(BRANCH_SECONDS, round((self.limit.left() or 0) * part, 1))
            self.branch_limit = self.limit.share(self.branch_seconds)
        if way.is_forced and not way.observations:
            self.branches.give_up()
        self.branches.require(_branch_values(way.program, asked, self.launch), way.choices)
        given, dropped = (asked, ()) if self.whole else in_the_grid(way.program, self.launch, asked)
        given = given_contents(way.program, given)
        self.outside += dropped
        profile = self.question.profile
        early = [early_finding(e, way.program, self.launch.width, profile) for e in way.early_accesses]
        given = replace(given, findings=(*given.findings, *early)) if early else given
        if way.last_lane_leads and _worst(given.findings):
            trace, first = self.found[0]
            self.found[0] = _by_leader(trace, given), replace(first, cut=first.cut or given.cut)
            return True
        self.found.append((way, given))
        if ends_search(given, self.question.excused) and not self.question.thorough:
            return False
        # The reason says so; report what was found before a limit stops this process.
        return not (given.verdict is Verdict.UNKNOWN and (self.limit.is_over() or self.values_late))

    def _ask(self, way: ClusterTrace) -> Answer:
        """The answer about a path, and whether its time was enough."""
        steered = self.values_limit is not None and _is_steered(way.program)
        within = self.branch_limit if way.is_forced else self.values_limit if steered else None
        within = within or self.limit
        engine = "protocol" if self.engine == "auto" else self.engine
        shares = engine == "protocol" and Pass.TRANSLATED_PROGRAMS in self.question.passes
        known = self.proved.answer_of(way.program) if shares else None
        if known is not None:
            return known
        asked = _asked(way.program, self.model, self.question, engine, within)
        if shares:
            self.proved.add(way.program, asked)
        if way.is_forced and asked.cut and not asked.findings:
            self.branches_late = True
        elif steered and asked.verdict is Verdict.UNKNOWN and within.is_over() and not asked.findings:
            self.values_late = not (way.is_forced or self.limit.is_over())
        return asked

    def find_conflicts(self, module: Module) -> Coverage | None:
        """Which clusters of the grid the paths stand for; races of clusters are added to the findings of the first. If
        that races itself, and nothing worse is known, the races of clusters may matter more.
        """
        footprints = [way.footprint for way, _ in self.found if way.footprint is not None]
        errors = {f.code for _, given in self.found for f in given.findings if f.severity == "error"}
        if not footprints or not errors <= NOT_UNDEFINED:
            return None
        way, given = self.found[0]
        sure = len(self.found) == 1 and given.verdict in (Verdict.PROVED, Verdict.FINDING) and not way.gaps
        if errors and not sure:
            return None
        known = self.coverage if len(footprints) == 1 else None
        launched = known or compute_coverage(footprints, self.launch, self.limit)
        races = cluster_race_findings(launched, module, self.launch, self.question.profile) if sure else ()
        self.found[0] = way, replace(given, findings=(*given.findings, *races))
        return None if errors else launched


def _with_updates(given: Answer, module: Module, way: ClusterTrace, scope: str) -> Answer:
    """The answer with what threads make of the values that they read, and the atomics that they should update by."""
    findings = advise_atomics(given.findings, module, way, scope)
    return replace(
        given, findings=tuple(add_left_values(one, module, way.program, way.joint_stores) for one in findings)
    )


def _is_steered(program: Program) -> bool:
    """Whether values that other threads write steer control, and others are followed."""
    return any(isinstance(op, ops.AssumedValue) and op.branch >= 0 for op in program.operations)


def _with_late_values(given: Answer, seconds: float) -> Answer:
    """The answer from the order of one run, with the reason that there was no time for all values."""
    late = share_reason(FOLLOWING_VALUES, seconds)
    gaps = [r for r in given.reasons if r.cause is Cause.GAP] or list(given.reasons)
    reasons = (replace(r, because=(*r.because, late)) if r is gaps[-1] else r for r in given.reasons)
    return replace(given, reasons=tuple(reasons), cut=True)


def _asked(program: Program, model: Model, question: Question, engine: str, limit: Limit) -> Answer:
    """The answer about one path of the cluster.

    From the shorter program with batched wgmma if that has no finding, or no time is left for the full one.
    """
    with limit.applies():
        if engine == "protocol" and has_batches(program):
            asked = replace(question, timeout=limit.remaining(), brief=not question.thorough)
            given = ask(batch_wgmma(program), model, asked, engine)
            if not given.findings:
                return given
            if limit.is_over():
                late = unique_reasons(given.reasons, (timeout_reason(question.timeout),))
                return add_verdict(replace(given, covered=False, reasons=late))
        return ask(program, model, replace(question, timeout=limit.remaining()), engine)


def _branch_values(program: Program, given: Answer, launch: Launch) -> Iterator[Values]:
    """The values by which executions leave the path, by lane."""
    places = [t.place for t in program.threads]
    lanes = [p.cta.number * launch.width + p.warp * WARP + p.lane for p in places]
    for values in given.branches:
        yield frozenset((lanes[thread], at, value) for thread, at, value in values)


def _without_branches(given: Answer) -> Answer:
    """The answer about a path of which all branches are followed."""
    if not given.branches:
        return given
    reasons = tuple(r for r in given.reasons if r.cause is not Cause.BRANCHES)
    return add_verdict(replace(given, covered=given.covered or not reasons, reasons=reasons, branches=frozenset()))


def _with_late_branches(given: Answer, seconds: float) -> Answer:
    """The answer about a path of which some branches were not followed in time."""
    late = share_reason(FOLLOWING_VALUES, seconds)
    reasons = (replace(r, because=(*r.because, late)) if r.cause is Cause.BRANCHES else r for r in given.reasons)
    return replace(given, reasons=tuple(reasons))


def _by_leader(way: ClusterTrace, other: Answer) -> ClusterTrace:
    """The path with the first lane as the leader, with a note on what happens if the last lane is elected.

    The first lane is elected (open question Q23), and CUTLASS relies on it.
    """
    first = next(f for f in other.findings if f.severity == "error")
    lines = [f"line {access.span.line}" for access in first.accesses if access.span is not None]
    there = f" ({', '.join(dict.fromkeys(lines))})" if lines else ""
    said = f"elect.sync elects the first lane of its mask; if it elected the last, there would be {first.code}{there}"
    return replace(way, assumptions=(*(a for a in way.assumptions if a != LEADERS), said))


def _worst(findings: Iterable[Finding]) -> bool:
    return any(f.severity == "error" for f in findings)


def _joined(
    launch: Launch, found: list[tuple[ClusterTrace, Answer]], unknown: Reasons, launched: Coverage | None
) -> Answer:
    findings: dict[object, Finding] = {}
    for _, given in found:
        for finding in given.findings:
            pair = tuple((a.span, a.access) for a in finding.accesses)
            findings.setdefault((finding.code, finding.between_ctas, pair), finding)
    gaps = _gap_reasons(list(dict.fromkeys(gap for way, _ in found for gap in way.gaps)))
    reasons = unique_reasons(unknown, *(given.reasons for _, given in found if given.verdict is not Verdict.PROVED))
    kept = tuple(findings.values())
    beyond = () if launched is None else launched.bound_reasons
    covered = bool(found) and not reasons and not gaps and not beyond and all(given.covered for _, given in found)
    left_out = reasons if _worst(kept) else (*reasons, *gaps, *beyond)
    verdict, reasons = verdict_of(kept, covered=covered, reasons=left_out)
    first = found[0][1] if found else Answer(verdict=Verdict.UNKNOWN, engine="protocol")
    said = [text for _, given in found for text in given.assumptions]
    said += [describe_followed(launch, launched), BUFFERS]
    said += [text for way, _ in found for text in way.assumptions]
    return replace(
        first,
        verdict=verdict,
        reasons=reasons,
        findings=kept,
        covered=covered,
        assumptions=tuple(dict.fromkeys(said)),
        executions=sum(given.executions for _, given in found),
        undefined=any(given.undefined for _, given in found),
        cut=any(given.cut for _, given in found),
        covers=uncovered_grid(launch) if launched is None else launched.covers,
    )


def describe_followed(launch: Launch, launched: Coverage | None) -> str:
    """Which clusters were followed, and what that says of the others."""
    several = launch.executed_count
    if launch.beside:
        number = "all" if several == launch.total_count else f"{several} of {launch.total_count}"
        gpus = " and ".join(f"GPU {one.gpu}" for one in launch.concurrent)
        return GPUS.format(number, gpus)
    if several == launch.total_count:
        return WHOLE_GRID if several > 1 else ONE_CLUSTER.format(WHICH, ", ".join(map(str, launch.first)))
    text = ONE_CLUSTER
    if launched is not None:
        text = COMPARED if launched.clashes else ONE_CLUSTER if launched.reasons else ALL_ALIKE
    clusters = f"{several} clusters of the grid were checked together, those from" if several > 1 else WHICH
    return text.format(clusters, ", ".join(map(str, launch.first)))


def _gap_reasons(gaps: list[Gap]) -> Reasons:
    """The gaps as reasons in the order of the text, the first ``MOST_REASONS`` of them."""
    placed = {(g.span.line, g.span.column, g.span.path, g.reason): g.span for g in gaps if g.span is not None}
    said = [Reason(Cause.GAP, place[3], span=placed[place]) for place in sorted(placed)]
    said += [Reason(Cause.GAP, gap.reason) for gap in gaps if gap.span is None]
    more = len(said) - MOST_REASONS
    return (*said[:MOST_REASONS], *([Reason(Cause.GAP, f"{more} more places")] if more > 0 else []))
