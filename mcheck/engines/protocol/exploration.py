"""Exploration of schedules: dynamic partial order reduction, one execution per class of equivalent schedules.

Each execution begins with a forced prefix, which is replayed from where the machine can be restored
(``mcheck.engines.protocol.execution.checkpoints``). Where two of its steps could have come in the other
order, with another effect, a new prefix is made of the prefix up to the earlier step, the steps that the later one
needs, and the later step itself. A well-formed pipeline needs one execution.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from mcheck.answers.left_open import LeftOpen, reason_of
from mcheck.answers.merged_answers import Excused, is_counted_error
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import Unsupported
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason
from mcheck.base.records import dataclass
from mcheck.cat.ast import Model
from mcheck.engines.protocol import commuting_arrivals, determined_waits, gc_control
from mcheck.engines.protocol.analysis import sc_fences
from mcheck.engines.protocol.analysis.lane_groups import Partition, Split, is_joint_arrival, partition_lanes
from mcheck.engines.protocol.analysis.model_equivalence import is_equivalent
from mcheck.engines.protocol.analysis.slicing import Watched
from mcheck.engines.protocol.diagnosis.findings import build_finding, finding_key, repeats_deadlock, with_fixes
from mcheck.engines.protocol.execution.checkpoints import Checkpoints
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import NewMbarrier, NewOrder, NewWord, Setup, prepare
from mcheck.engines.protocol.next_prefixes import find_next_prefixes
from mcheck.engines.protocol.operations.scheduler import execute
from mcheck.engines.protocol.passes import ALL_PASSES, Pass, Passes
from mcheck.engines.protocol.reduction import thread_symmetry
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.trace import Prefix
from mcheck.findings.finding import Finding
from mcheck.findings.partial import tell
from mcheck.ir import ops
from mcheck.ir.amendment import Amendment, Insertion, apply_amendments
from mcheck.ir.program import Program

if TYPE_CHECKING:
    from mcheck.engines.protocol.fix_search.trials import Followed, IsFix, Trial
    from mcheck.findings.fix import Fixes

MAX_EXECUTIONS = 2_000
MAX_REPLAYED_STEPS = 4_000_000
"""Maximum steps of all executions together, without the first execution for each set of agents."""
DUPLICATE_STEPS = 2_000
"""Up to this total of steps, reversals are also taken from executions that equal an earlier one up to the order of
commuting steps: each may show another way to an execution that differs from all.
"""
TRIAL_COST = 8
"""The cost, in steps, of asking the model whether it allows an event."""
DEPTH = 16
"""Of so many executions all but one continue where the last one did; that one differs from it as early as possible. An
error that an early choice leads to is found before all that may follow the other choice has been explored.
"""
EXECUTIONS_AFTER_FINDING = 48
STEPS_AFTER_FINDING = 8_000
"""Executions after the first finding of severity error, and their total steps: enough to see its other forms."""
MAX_FIX_EXECUTIONS = 32
"""Maximum executions of a program with a suggested fix."""
MAX_FIX_STEPS = 12_000
"""Maximum steps of all these executions together."""
MIN_FIX_SECONDS = 6.0
"""Processor time for all these executions together, if finding the errors took less: so much that the number of steps
decides, which is the same in each run.
"""
EXECUTIONS_WITHOUT_NEWS = 24
STEPS_WITHOUT_NEWS = 3_000
"""The same since the latest finding: if these showed nothing new, further ones are not expected to."""
MOST_TOLD = 8
"""The number of errors of which each is told at once."""


@dataclass(slots=True)
class Search:
    """A search through the executions of a program, up to a ``limit``, with the findings so far."""

    program: Program
    model: Model
    profile: str
    unroll: int
    limit: int = MAX_EXECUTIONS
    thorough: bool = False
    brief: bool = False
    excused: Excused = None
    """Which errors are left out of the answer and do not end the search; ``thorough`` then stops after any other
    error.
    """
    passes: Passes = ALL_PASSES
    time_limit: Limit = field(default_factory=Limit)
    findings: dict[object, Finding] = field(default_factory=dict)
    errors: list[Finding] = field(default_factory=list)
    """The findings that count as errors."""
    executions: int = 0
    has_consistent_execution: bool = False
    """Whether one of the executions is consistent with the model."""
    reaches_end: bool = False
    """Whether one of the executions runs to its end."""
    stands_for_all: bool = False
    """Whether one of them stands for all executions of the model (``mcheck.engines.protocol.determined_waits``)."""
    bound_text: str | None = None
    branches: set[frozenset[tuple[int, int, int]]] = field(default_factory=set)
    """The values by which executions have left the recorded code, each with all that decided control before it."""
    reordering: str | None = None
    """An operation on an mbarrier that may take effect after a later one of its thread, as a sentence."""
    not_followed: str | None = None
    left_open: set[LeftOpen] = field(default_factory=set)
    """Pairs of accesses that an open question leaves open."""
    extra_mbarriers: tuple[int, ...] = ()
    extra_words: dict[int, int] = field(default_factory=dict)
    ordered_words: frozenset[int] = frozenset()
    reorders_sc_fences: bool = False
    """Whether both orders of fence.sc are explored although they decide nothing that is observed."""
    setup: Setup | None = None
    split_agents: set[tuple[int, ...]] = field(default_factory=set)
    work_at_first_error: tuple[int, int] | None = None
    """The number of executions and steps at the first error."""
    work_at_last_finding: tuple[int, int] = (0, 0)
    """The number of executions and steps at the latest finding."""
    replayed_steps: int = 0
    steps: int = 0
    stale_maps: bool = False
    """Whether copies use the tensor maps as they were at the start."""
    observed_registers: Watched | None = None
    suggests_fixes: bool = True
    """Whether fixes are looked for, and tried out (``mcheck.engines.protocol.fix_search.trials``)."""
    trial_steps: int = 0
    """The steps spent on trying fixes."""
    mended_places: set[object] = field(default_factory=set)
    """Where barriers mended races (``IsFix.mended``)."""
    trials: dict[tuple[object, ...], Followed] = field(default_factory=dict)
    """What was followed with insertions that mended a race: they may mend others."""
    started: float = field(default_factory=time.process_time)
    trial_seconds: float = 0.0
    """Processor time that trials of fixes have taken."""
    fixes_cut: bool = False
    """Whether the time of a trial was over: with more of it, a better fix might be named."""
    on_execution: Callable[[Machine], None] = lambda _: None
    """Called with every execution; with ``observed_registers``, it collects final states."""

    @property
    def has_final_error(self) -> bool:
        """Whether further executions would not change the answer. With final states a deadlock is not final, because
        other executions may end in a state.
        """
        return any(self.observed_registers is None or f.kind != "deadlock" for f in self.errors)

    @property
    def exhaustive(self) -> bool:
        """Whether everything is explored, whatever is found."""
        return self.thorough and self.excused is None

    @property
    def answered_by_error(self) -> bool:
        """Whether an error answers the question, and one has been found."""
        return self.has_final_error and not self.exhaustive

    @property
    def not_followed_reason(self) -> Reason | None:
        """What the engine could not follow, which leaves all executions in doubt."""
        if self.left_open:
            return reason_of(self.left_open)
        return None if self.not_followed is None else Reason(Cause.NOT_FOLLOWED, self.not_followed)

    @property
    def bound_reason(self) -> Reason | None:
        """The bound of the search, if it cut something off."""
        return None if self.bound_text is None else Reason(Cause.BOUND, self.bound_text)

    @property
    def no_execution_ends(self) -> bool:
        """Whether no execution explored so far runs to its end, and an error explains it."""
        return (
            not self.reaches_end
            and self.bound_text is None
            and any(f.severity == "error" for f in self.findings.values())
        )

    def sorted_findings(self) -> tuple[Finding, ...]:
        """The findings, errors first."""
        return tuple(sorted(self.findings.values(), key=lambda f: (f.severity != "error", f.code, f.message)))

    def check_deadline(self) -> None:
        """Raise ``TimeOut`` once the time is over."""
        self.time_limit.check()

    def explore(self, timeout: float | None) -> Reason | None:
        """``run`` with a time limit; the reason if there is no answer."""
        self.time_limit = Limit(timeout)
        with gc_control.collect_rarely():
            return self.time_limit.attempt(self.run)

    def run(self) -> None:
        """Explore with the largest agents, then with smaller ones where lanes have to be distinguished."""
        agents = partition_lanes(self.program, self.passes)
        if self._is_proved_with_joint_arrivals(len(agents)):
            return
        while True:
            try:
                self.setup = prepare(
                    self.program, agents, self.model, self.profile, self.unroll, self.check_deadline, self.setup,
                    self.extra_mbarriers, self.observed_registers, self.extra_words, self.ordered_words,
                    reorder_sc_fences=self.reorders_sc_fences, passes=self.passes,
                )  # fmt: skip
                self.setup.stale_maps, self.setup.follows_causality = self.stale_maps, is_equivalent(self.setup.tape)
                self.setup.advises = self.suggests_fixes
                to_split = self._explore(self.setup)
            except Split as split:
                if self._may_stop():
                    return
                agents = self._split_partition(agents, split.groups)
                continue
            except NewMbarrier as new:
                self.extra_mbarriers = (*self.extra_mbarriers, new.address)
                continue
            except NewWord as word:
                self.extra_words[word.address] = word.size
                continue
            except NewOrder as order:
                self.ordered_words |= {order.address}
                continue
            if self._needs_fence_orders():
                self.reorders_sc_fences, self.work_at_first_error, self.work_at_last_finding = (
                    True,
                    None,
                    (self.executions, self.steps),
                )
                continue
            if not to_split or self.answered_by_error or self.bound_text:
                return
            for k in to_split:
                group = self.setup.partition[k]
                agents = self._split_partition(agents, [group[:1], group[1:]])

    def _is_proved_with_joint_arrivals(self, agents: int) -> bool:
        """Whether one execution in which lanes arrive together stands for all, with fewer agents than otherwise."""
        on = Pass.JOINT_ARRIVALS in self.passes and self.observed_registers is None and not self.stale_maps
        code = self.program.operations
        waits = [op for op in code if isinstance(op, ops.Await) and isinstance(op.inner, ops.Load)]
        if not on or not waits or any(op.followed for op in waits) or not any(map(is_joint_arrival, code)):
            return False
        joint = partition_lanes(self.program, self.passes, joint=True)
        if len(joint) == agents:
            return False
        self.setup = prepare(
            self.program, joint, self.model, self.profile, self.unroll, self.check_deadline, passes=self.passes
        )
        self.setup.follows_causality = is_equivalent(self.setup.tape)
        self.stands_for_all, _ = determined_waits.find_least_execution(self.setup)
        self.executions += self.stands_for_all
        self.has_consistent_execution = self.reaches_end = self.stands_for_all
        return self.stands_for_all

    def _needs_fence_orders(self) -> bool:
        """Whether racing accesses would have another code under an order of fence.sc that was not explored. Then a
        proxy fence is missing (RACE004, RACE006, RACE009).
        """
        if self.brief or self.bound_text or self.setup is None or self.setup.sc_order_matters:
            return False
        return sc_fences.has_sc_fence(self.program) and any(f.code == "RACE003" for f in self.findings.values())

    def _may_stop(self) -> bool:
        """Whether enough has been explored since the first error."""
        if not self.answered_by_error:
            return False
        if self.brief:
            return True
        now = self.executions, self.steps
        if self.work_at_first_error is None:
            self.work_at_first_error = now
            if self.steps > self.executions * STEPS_AFTER_FINDING:  # another execution of this length is too long
                return True
        for then, executions, steps in (
            (self.work_at_first_error, EXECUTIONS_AFTER_FINDING, STEPS_AFTER_FINDING),
            (max(self.work_at_first_error, self.work_at_last_finding), EXECUTIONS_WITHOUT_NEWS, STEPS_WITHOUT_NEWS),
        ):
            if now[0] - then[0] >= executions or now[1] - then[1] > steps:
                return True
        return False

    def _split_partition(
        self, agents: Partition, groups: list[tuple[int, ...]] | tuple[tuple[int, ...], ...]
    ) -> Partition:
        """The partition with one agent split; an agent that was split before is split into single threads."""
        whole = tuple(sorted(t for g in groups for t in g))
        if any(set(whole) < set(earlier) for earlier in self.split_agents):
            groups = [(t,) for t in whole]
        self.split_agents.add(whole)
        out = [a for a in agents if not set(a) & set(whole)]
        rest = [tuple(t for t in a if t not in whole) for a in agents if set(a) & set(whole)]
        out += [g for g in groups if g] + [r for r in rest if r]
        return tuple(sorted(out))

    def _explore(self, setup: Setup) -> set[int]:
        """Run all executions with these agents; return the agents whose lanes have to be distinguished."""
        self.stands_for_all = False
        todo: deque[Prefix] = deque([()])
        checkpoints = Checkpoints()
        planned: set[Prefix] = {()}
        again: list[list[Prefix]] = []
        """The reversals of executions that equal earlier ones up to the order of commuting steps."""
        seen: set[object] = set()
        to_split: set[int] = set()
        alike = thread_symmetry.find_symmetric_threads(setup) if self.observed_registers is not None else {}
        while todo or again:
            if not todo:
                self._schedule(again.pop(), alike, planned, todo)
                continue
            # After a finding, run the prefix that differs most from it; now and then also before one.
            elsewhere = self.has_final_error or self.executions % DEPTH == DEPTH - 1
            forced = todo.popleft() if elsewhere else todo.pop()
            self.check_deadline()
            if self.executions >= self.limit:
                self.bound_text = f"{self.limit} executions"
                return set()
            if setup.brief != self.has_final_error:  # steps that were replayed may have had more ways
                checkpoints.clear()
            setup.brief, setup.thorough = self.has_final_error, self.thorough or self.observed_registers is not None
            machine = execute(setup, forced, checkpoints=checkpoints)
            self.executions += 1
            if self.suggests_fixes:
                plural = "" if self.executions == 1 else "s"
                note(Level.EXECUTIONS, f"{self.executions} execution{plural} explored")
            self.steps += len(machine.trace) + TRIAL_COST * machine.trial_count
            self.replayed_steps += len(machine.trace) if forced else 0
            setup.event_kinds = setup.event_kinds.joined(machine.window.shown)
            if machine.broken_axiom is not None:  # inconsistent with the model
                # Under a model that is not shipped another order may be needed from the start.
                if not is_equivalent(setup.tape):
                    to_split |= machine.agents_to_split
                    self._schedule(find_next_prefixes(machine, self.answered_by_error), alike, planned, todo)
                continue
            self.has_consistent_execution = True
            self.reaches_end = self.reaches_end or (
                machine.outcome == "end" and all(a.status == "done" for a in machine.agents)
            )
            if self.replayed_steps > MAX_REPLAYED_STEPS:
                self.bound_text = f"{self.executions} executions"
                todo.clear()
                again.clear()
            self.collect_findings(machine)
            self.on_execution(machine)
            least: list[Prefix] = []
            if not forced and self.observed_registers is None and determined_waits.has_other_ways(machine):
                stands_for_all, least = determined_waits.find_least_execution(setup)
                self.executions += 1
                if stands_for_all:
                    self.stands_for_all = True
                    return to_split
            to_split |= machine.agents_to_split
            self.bound_text = machine.bound or self.bound_text
            if machine.takes_other_branch:
                self.branches.add(frozenset(machine.branch_values))
            self.reordering = self.reordering or machine.reordering
            if machine.not_followed:
                self.not_followed = machine.not_followed
            if machine.left_open is not None:
                self.left_open.add(machine.left_open)
            if self._may_stop():
                return to_split
            if (
                not forced
                and self.observed_registers is None
                and (more := commuting_arrivals.prove_commuting(setup, machine)) is not None
            ):
                self.executions += more
                return to_split
            alternatives = find_next_prefixes(machine, self.answered_by_error)
            alternatives += least
            if not alternatives:
                continue
            signature = hash(thread_symmetry.execution_signature(machine, alike)), machine.outcome
            # Final states distinguish more than findings do.
            told_apart = self.observed_registers is not None or Pass.EQUIVALENT_EXECUTIONS not in self.passes
            if signature not in seen or told_apart:
                seen.add(signature)
                self._schedule(alternatives, alike, planned, todo)
            elif self.steps <= DUPLICATE_STEPS:
                again.append(alternatives)
        return to_split

    def _schedule(
        self,
        alternatives: list[Prefix],
        alike: thread_symmetry.SymmetricThreads,
        planned: set[Prefix],
        todo: deque[Prefix],
    ) -> None:
        """Add new prefixes to the work list."""
        for other in alternatives:
            self.check_deadline()
            plan = thread_symmetry.canonical_plan(other, alike)
            if plan in planned:
                continue
            if self.replayed_steps > MAX_REPLAYED_STEPS:
                self.bound_text = f"{self.executions} executions"
                return
            planned.add(plan)
            todo.append(plan)

    def collect_findings(self, machine: Machine) -> None:
        """Collect the new findings of an execution."""
        for problem in _drop_duplicate_races(machine.problems):
            key = finding_key(problem)
            if key not in self.findings and not repeats_deadlock(problem, self.findings.values()):
                found = self.findings[key] = build_finding(machine, problem, self.profile)
                self.work_at_last_finding = self.executions, self.steps
                if self.suggests_fixes and not self.brief and (fixes := self._find_fixes(machine, problem, found)):
                    found = self.findings[key] = with_fixes(found, fixes, problem)
                if is_counted_error(found, self.excused):
                    self.errors.append(found)
                    if self.executions and len(self.errors) <= MOST_TOLD:
                        tell(self.program, self.sorted_findings(), self.executions)

    def _find_fixes(self, machine: Machine, problem: Problem, finding: Finding) -> Fixes:
        from mcheck.engines.protocol.fix_search.advice import find_fix  # correct programs need none

        return find_fix(machine, problem, self._make_fix_check(finding))

    def _seconds_for_fixes(self) -> float:
        """The processor time left for suggested fixes: as much as the errors took, or ``MIN_FIX_SECONDS``."""
        allowed = max(MIN_FIX_SECONDS, time.process_time() - self.started - self.trial_seconds)
        return allowed - self.trial_seconds

    def _make_fix_check(self, finding: Finding) -> IsFix:
        """Create the check of whether an edited program lacks a finding and has no finding of another kind in its
        place. It explores with few steps, whose number is the same each time.
        """
        from mcheck.engines.protocol.fix_search.trials import Followed, IsFix, Trial

        known = {f.code for f in self.findings.values()}
        key, touched = finding_key(finding), _objects(finding)

        def worse(found: Finding) -> bool:
            if found.kind == "race":
                return found.severity == "error" and finding_key(found)[1] == key[1]
            return finding_key(found) == key or found.code not in known

        def mends(amendments: Sequence[Amendment]) -> Trial:
            edit = tuple((a.op.text, a.span, a.after) for a in amendments if isinstance(a, Insertion))
            if (known := self.trials.get(edit)) is not None and len(edit) == len(amendments):
                return judge(known)
            followed = follow(amendments)
            judged = Trial(passed=False) if followed is None else judge(followed)
            if judged and followed is not None and len(edit) == len(amendments):  # else it may have ended at a finding
                self.trials[edit] = followed
            return judged

        def judge(followed: Followed) -> Trial:
            passed = not any(map(worse, followed.findings))
            leaves = sum(f.kind == "race" and not touched.isdisjoint(_objects(f)) for f in followed.findings)
            return Trial(passed, leaves, followed.executions, followed.whole)

        def follow(amendments: Sequence[Amendment]) -> Followed | None:
            if self.trial_steps > MAX_FIX_STEPS:
                return None
            left, before = self._seconds_for_fixes(), time.process_time()
            if left <= 0:
                self.fixes_cut = True
                return None
            program = apply_amendments(self.program, amendments)
            each = self.steps // max(self.executions, 1) + 1
            few = max(2, min(MAX_FIX_EXECUTIONS, (MAX_FIX_STEPS - self.trial_steps) // each))
            trial = Search(
                program, self.model, self.profile, self.unroll, few, thorough=True, excused=lambda f: not worse(f),
                suggests_fixes=False, time_limit=self.time_limit.share(left), passes=self.passes,
            )  # fmt: skip
            try:
                trial.run()
            except Unsupported:
                return None
            except TimeOut:
                self.fixes_cut = True
                return None
            finally:
                self.trial_seconds += time.process_time() - before
                self.trial_steps += trial.steps + sum(len(t.code) for t in program.threads) // 8
            if not trial.has_consistent_execution or trial.not_followed is not None:
                return None
            return Followed(tuple(trial.findings.values()), trial.executions, not trial.bound_text)

        return IsFix(mends, self.mended_places, finding)


def _objects(finding: Finding) -> set[str]:
    """What the accesses of a finding touch."""
    return {access.object for access in finding.accesses}


def _drop_duplicate_races(problems: list[Problem]) -> list[Problem]:
    """Two copies of one cp.async group that write the same bytes are UB106, without a race beside it."""
    groups = [p for p in problems if p.code == "UB106"]
    if not groups:
        return problems
    threads = {a.thread for p in groups for a in p.accesses}
    return [
        p
        for p in problems
        if p.code != "RACE003"
        or len({a.thread for a in p.accesses}) > 1
        or not all(a.thread in threads and a.instruction.startswith("cp.async.c") for a in p.accesses)
    ]
