"""The search that the enumerating engines share: one question about one program.

Paths of the threads are combined; every combination is an event structure whose consistent executions an engine finds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import chain, product
from math import prod
from typing import ClassVar

from mcheck.answers.final_states import final_addresses, memory_ranges, terms_of
from mcheck.answers.left_open import LeftOpen, is_question, left_open_by
from mcheck.answers.result import State
from mcheck.answers.verdict_rules import makes_undefined
from mcheck.answers.witnesses import FlagReport, flag_findings, misstep_finding, misuse_finding
from mcheck.base.budget import Limit
from mcheck.base.errors import UnknownData, Unsupported
from mcheck.base.phrase import Phrase
from mcheck.base.reasons import Cause, Reason, Reasons
from mcheck.base.records import dataclass, replace
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.cat.algebra.tape import Tape
from mcheck.cat.ast import Model
from mcheck.cat.tags import Tag
from mcheck.engines.search import prefixes
from mcheck.engines.search.kept_executions import Kept, Shown
from mcheck.events.choices import barrier_generations, convergence, divergent_lanes, mbarrier_phases
from mcheck.events.choices.candidate import Candidate, Choice, final_choices, read_choices
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Event, Misstep, Path
from mcheck.events.failed_attempts import FailedAttempts
from mcheck.events.model_options import Semantics
from mcheck.events.model_options import model_semantics as semantics_of
from mcheck.events.paths import Walker
from mcheck.events.read_values import PossibleValues
from mcheck.events.structure import Node, Structure, build_structure
from mcheck.findings.finding import Finding
from mcheck.ir import ops
from mcheck.ir.aligned_operations import DIVERGENT_BARRIERS, explain_divergent_wgmma
from mcheck.ir.condition import RegTerm
from mcheck.ir.def_use import read_registers, written_registers
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.terms import Uid

MAX_COMBINATIONS = 50_000
"""The maximum number of combinations of paths that may wait forever."""


@dataclass(slots=True)
class Reached:
    """A final state that was reached: an execution that ends in it, and their number."""

    prepared: Prepared
    candidate: Candidate
    executions: int = 0


@dataclass(slots=True)
class Run(ABC):
    """One question about one program; subclasses implement the solving of a structure."""

    made: ClassVar[tuple[barrier_generations.Quorum, barrier_generations.Rounds]] = (
        barrier_generations.quorum_choice,
        barrier_generations.rounds_choice,
    )
    """Constructors of the choices of barriers with a quorum, and of those with rounds."""

    program: Program
    model: Model
    prop: str
    verdict_only: bool
    unroll: int
    limit: Limit
    profile: str
    findings_wanted: bool
    blocking_wanted: bool = False
    note: Reasons = ()
    thread_paths: list[list[Path]] = field(default_factory=list)
    """The paths of each thread."""
    built: Structure | None = None
    ends: bool = False
    """Whether some execution is known to end."""
    kept: Kept | None = None
    tape: Tape = field(init=False)
    semantics: Semantics = field(init=False)
    outcomes: dict[State, Reached] = field(default_factory=dict)
    executions: int = 0
    findings: dict[object, Finding] = field(default_factory=dict)
    left_open: set[LeftOpen] = field(default_factory=set)
    uses_left_open: bool = False
    """Whether the value of a weak read that is left open may decide something."""
    undefined: bool = False
    bounded: bool = False
    failed: dict[str, int] = field(default_factory=dict)
    cut: dict[object, Path] = field(default_factory=dict)
    diverged: dict[object, tuple[Path, ...]] = field(default_factory=dict)
    """Paths of two lanes of a warp that arrive at different aligned barriers; the last lane stops there."""
    partings_asked: int = 0
    """How many of them have been searched for."""
    seen: prefixes.Seen = field(default_factory=set)
    complete: bool = True
    explore_prefixes: bool = False
    """Whether executions that stop early may be searched."""
    decided: bool = False
    only_with_others: bool = False
    """Whether some misuse was found only together with another one, which may be its cause."""

    def __post_init__(self) -> None:
        self.tape = tape_of(self.model)
        self.semantics = semantics_of(
            self.model, dialect=self.program.dialect, names_static_barriers="syncbar" in self.tape.bases
        )
        self.blocking_wanted = self.findings_wanted or _may_be_undefined(self.program)

    def deadline(self) -> None:
        """Raises ``TimeOut`` when the time is up."""
        self.limit.check()

    # --- paths ------------------------------------------------------------------------------------------

    def paths(self) -> list[list[Path]]:
        """The paths of each thread.

        They are computed again until the values that operands may take no longer grow, and it is known what the reads
        of failed loop iterations may race with.
        """
        wanted = self._wanted_registers()
        values, rounds = PossibleValues(self.program), FailedAttempts(self.program)
        while True:
            found = [
                Walker(
                    self.program,
                    t,
                    self.semantics,
                    self.unroll,
                    frozenset(wanted.get(t.index, ())),
                    values.of,
                    values.open,
                    rounds.can_race,
                    self.deadline,
                ).run()
                for t in self.program.threads
            ]
            grown = values.grow(found)
            if not rounds.grow(found) and not grown:
                return found

    def _wanted_registers(self) -> dict[int, set[str]]:
        wanted: dict[int, set[str]] = {}
        for t in terms_of(self.program.condition):
            if isinstance(t, RegTerm):
                wanted.setdefault(t.thread, set()).add(t.reg)
        return wanted

    # --- structures ---------------------------------------------------------------------------------------

    def structures(self, paths: tuple[Path, ...], *, partial: bool = False) -> Iterator[tuple[Structure, list[Choice]]]:
        """The event structure of a combination of paths with its choices; none if it has no execution."""
        condition = self.program.condition
        s = self._structure(paths)
        stuck = frozenset[Uid]() if partial else frozenset(u for p in paths if p.end == "stuck" for u in p.stuck)
        choices = read_choices(s, stuck)
        met = self._barriers(s)
        if met is None:
            return
        choices += met
        assigned = self.phase_choices(s, stuck)
        if assigned is not None:
            self._cut_short(s, met + assigned)
            yield s, choices + assigned + final_choices(s, final_addresses(s, condition))

    def _structure(self, paths: tuple[Path, ...]) -> Structure:
        """The event structure of a combination of paths; the last one is kept, since several questions come in turn."""
        kept = self.built
        if (
            kept is None
            or len(kept.paths) != len(paths)
            or any(a is not b for a, b in zip(kept.paths, paths, strict=True))
        ):
            kept = self.built = build_structure(self.program, paths, memory_ranges(self.program.condition))
        return kept

    def phase_choices(self, s: Structure, stuck: frozenset[Uid]) -> list[Choice] | None:
        """The choices of the phases of mbarrier operations; ``None`` if these paths are impossible."""
        return mbarrier_phases.choices(s, stuck, self.deadline)

    def _barriers(self, s: Structure) -> list[Choice] | None:
        """The choices of the barriers; ``None`` if these paths are impossible."""
        parting = [] if self.semantics.static_barriers else barrier_generations.find_divergent_arrivals(s)
        for lanes in parting:
            self._part(s, lanes)
        met = None if parting else self.barrier_choices(s)
        if met is None:  # a thread may stop before it comes to what cannot be
            possible = filter(None, barrier_generations.each_choice(s, *self.made) if self.explore_prefixes else ())
            self.only_with_others = self._cut_short(s, list(possible)) or self.only_with_others
            return None
        if not self.program.assumptions.converged:
            return met
        together = convergence.converge_lanes(s)
        return None if together is None else met + together

    def barrier_choices(self, s: Structure) -> list[Choice] | None:
        """The choices of the barriers at which warps are not divided."""
        quorum, rounds = self.made
        dynamic = barrier_generations.dynamic_choices(s, quorum, rounds)
        if dynamic is None or not self.semantics.static_barriers:
            return dynamic
        static = barrier_generations.static_choices(s, quorum)
        return None if static is None else static + dynamic

    # --- questions ------------------------------------------------------------------------------------------

    def explore(self) -> None:
        """Explores all complete executions and, if findings are wanted, those that never end."""
        every = self.thread_paths = self.paths()
        complete = [[p for p in paths if p.end == "end"] for paths in every]
        self.explore_prefixes = self.findings_wanted or any(
            p.end not in ("end", "stuck") for paths in every for p in paths
        )
        warps = {t.place.own_warp for t in self.program.threads}
        self.explore_prefixes = self.explore_prefixes or len(warps) < len(self.program.threads)
        if self.prop == "liveness":
            self.search_deadlocks(every)
            return
        self.solve_all(complete)
        if self.decided:
            return
        self._missteps(every)
        if self.blocking_wanted:
            self.search_deadlocks(every)
            self._partings(every)
        stopped = any(p.end == "undefined" for paths in every for p in paths)
        undefined = self.only_with_others or any(f.kind == "undefined" for f in self.findings.values())
        beside = stopped or (self.findings_wanted and undefined)
        if beside:
            self._ill_ended(every)
        told = len(self.findings)
        self._bound(every)
        if self.findings_wanted and not beside and len(self.findings) > told:
            self._ill_ended(every)

    def solve_all(self, complete: list[list[Path]]) -> None:
        """Explores the executions of all combinations of complete paths, or until the verdict is known if only that is
        asked.
        """
        self.solve_each(complete)

    def solve_each(self, complete: list[list[Path]]) -> None:
        """Explores the executions of one combination of paths after the other."""
        for combination in product(*complete):
            self.deadline()
            self._solve(combination)
            if self.decided:
                return

    @abstractmethod
    def _solve(self, paths: tuple[Path, ...]) -> None:
        """Explores all executions of one combination of complete paths, and reports their findings."""

    def record_state(self, state: State, prepared: Prepared, candidate: Candidate) -> None:
        """Counts an execution that ends in this state."""
        self.outcomes.setdefault(state, Reached(prepared, candidate)).executions += 1
        self.ends = True

    # --- findings -----------------------------------------------------------------------------------------------

    def _cut_short(self, s: Structure, choices: list[Choice]) -> bool:
        """Records the paths of threads that stop at a misuse, if they will be searched; whether there are any."""
        found = list(self.culprits(s, choices)) if self.explore_prefixes else []
        for path, uid in found:
            short = prefixes.cut_short(path, uid)
            self.cut.setdefault(prefixes.name_of(short), short)
        return bool(found)

    def culprits(self, s: Structure, choices: list[Choice]) -> Iterator[tuple[Path, Uid]]:
        """The path and the event of every misuse among the options of some choice."""
        return prefixes.culprits(s, choices)

    def _part(self, s: Structure, lanes: tuple[Node, Node]) -> None:
        """Records the paths of lanes of a warp that stop before different aligned barriers: both, or the later one."""
        stopped = []
        for node in lanes:
            event = node.source
            assert event is not None
            short = prefixes.cut_short(s.paths[event.uid[0]], event.uid)
            short = replace(short, misstep=Misstep("UB305", DIVERGENT_BARRIERS, event.op))
            stopped.append(self.cut.setdefault(prefixes.name_of(short), short))
        one, other = stopped
        for ways in ((one, other), (s.paths[one.thread], other), (s.paths[other.thread], one)):
            self.diverged.setdefault(tuple(map(id, ways)), ways)

    def _ill_ended(self, every: list[list[Path]]) -> None:
        """Reports races in executions in which a thread stops at undefined behaviour, and lanes that diverge at aligned
        barriers.
        """
        for combination in prefixes.combinations_of(every, self.cut):
            self.deadline()
            for s, choices in self._beginnings(combination):
                self._races_of(s, choices)
        self._partings(every)

    @abstractmethod
    def _races_of(self, s: Structure, choices: list[Choice]) -> None:
        """Reports the races and misuses of a structure whose executions do not end."""

    def _report(self, prepared: Prepared, flag: FlagReport) -> None:
        self.seen.add(prefixes.key_of(prepared, flag.name, flag.pair))
        if is_question(flag.name):
            events = [prepared.s.nodes[k].source for k in flag.pair]
            self.left_open.add(left_open_by(flag.name, [e for e in events if e is not None]))
            self.uses_left_open |= any(e is not None and self._is_used(e) for e in events)
        for finding in flag_findings(prepared, flag, self.profile):
            key = (finding.code, tuple((a.span, a.object, a.access) for a in finding.accesses))
            self.findings.setdefault(key, finding)
            self._show(finding, prepared, flag.candidate, flag.pair)
            if makes_undefined(finding):
                self.undefined = True

    def _is_used(self, event: Event) -> bool:
        """Whether this is a weak read whose value some operation of its thread uses."""
        if not {Tag.R, Tag.WEAK} <= event.tags:
            return False
        written = {name for name, _ in written_registers(event.op)}
        code = self.program.threads[event.uid[0]].code
        return isinstance(event.op, ops.Await) or any(name in written for op in code for name, _ in read_registers(op))

    def _show(
        self, finding: Finding, prepared: Prepared, candidate: Candidate, marked: Iterable[int] = (), note: str = ""
    ) -> None:
        """Keeps the execution that shows a finding, for drawing."""
        if self.kept is not None:
            self.kept.findings.setdefault(finding, Shown(prepared, candidate, tuple(marked), note))

    def _unfinished(self, prepared: Prepared, candidate: Candidate, paths: tuple[Path, ...]) -> None:
        """Reports asynchronous copies that may still read shared memory when their thread exits (Q18), and aligned
        instructions that not all lanes of a warp execute.
        """
        lone = divergent_lanes.find_divergent_wgmma(self.program, paths)
        if lone is not None:
            uid, instead = lone
            misuse = ("UB307", explain_divergent_wgmma(instead), uid)
            finding = self._show_misuse(prepared, candidate, misuse, "not all lanes execute it")
            self.undefined = self.undefined or finding.severity == "error"
        for path in paths:
            for uid in path.unfinished:
                text = "exits without waiting until this copy has read its source in shared memory"
                finding = misuse_finding(prepared, ("UB501", text, uid), self.profile)
                finding = self.findings.setdefault((finding.code, finding.accesses[0].span), finding)
                self._show(
                    finding, prepared, candidate, prepared.s.nodes_of[uid], "may still read when its thread exits"
                )
                self.undefined = self.undefined or finding.severity == "error"

    def _missteps(self, every: list[list[Path]]) -> None:
        """Reports undefined behaviour on a path if some consistent execution reaches it."""
        for thread, paths in enumerate(every):
            for path in paths:
                if path.end != "undefined" or path.misstep is None:
                    continue
                key = (path.misstep.code, path.misstep.op.span)
                if key in self.findings:
                    continue
                for reached in self._reaching(every, {thread: [path]}):
                    self._misstep(path, reached)
        self._partings(every)

    def _partings(self, every: list[list[Path]]) -> None:
        """Reports lanes of a warp that arrive at different aligned barriers, if a consistent execution reaches them."""
        while self.partings_asked < len(self.diverged):  # more of them may be met on the way
            lanes = list(self.diverged.values())[self.partings_asked]
            self.partings_asked += 1
            last = lanes[-1].misstep
            if last is None or (last.code, last.op.span) not in self.findings:
                for reached in self._reaching(every, {path.thread: [path] for path in lanes}):
                    self._misstep(lanes[-1], reached)

    def _misstep(self, path: Path, reached: tuple[Prepared, Candidate] | None) -> None:
        assert path.misstep is not None
        op = path.misstep.op
        found = misstep_finding(self.program, path, self.profile)
        finding = self.findings.setdefault((path.misstep.code, op.span), found)
        self.undefined = self.undefined or finding.severity == "error"
        if self.kept is not None and reached is not None:
            self.kept.findings[finding] = Shown(*reached, stops=((path.thread, op, f"{finding.code}: undefined"),))

    def _reachable(self, every: list[list[Path]], fixed: dict[int, list[Path]]) -> bool:
        """Whether paths that do not end occur in a consistent execution."""
        return any(True for _ in self._reaching(every, fixed))

    def _reaching(
        self, every: list[list[Path]], fixed: dict[int, list[Path]]
    ) -> Iterator[tuple[Prepared, Candidate] | None]:
        """A consistent execution in which paths that do not end occur, with any prefixes of the other threads.

        ``None`` as the candidate if it has no values; nothing if there is no such execution.
        """
        try:
            for s, choices in self._with(every, fixed):
                found = self.consistent(s, choices)
                if found is not None:
                    yield found
                    return
        except Unsupported:
            yield None

    def _with(self, every: list[list[Path]], fixed: dict[int, list[Path]]) -> Iterator[tuple[Structure, list[Choice]]]:
        """The structures in which paths that do not end occur, with any prefixes of the other threads."""
        tried: set[tuple[int, ...]] = set()
        known = -1
        while known < len(self.cut):  # a misuse that is met on the way gives further paths to try
            known = len(self.cut)
            pools = prefixes.pools(every, self.cut)
            for k, paths in fixed.items():
                pools[k] = [p for path in paths for p in (path, *prefixes.variants(path, self.cut))]
            for combination in product(*pools):
                if (key := tuple(map(id, combination))) in tried:
                    continue
                tried.add(key)
                self.deadline()
                yield from self._beginnings(combination)

    def _beginnings(self, combination: tuple[Path, ...]) -> Iterator[tuple[Structure, list[Choice]]]:
        """``structures`` of paths that need not end, without choices of the final memory."""
        for s, choices in self.structures(combination, partial=True):
            yield s, [c for c in choices if c.kind != "final"]

    @abstractmethod
    def consistent(self, s: Structure, choices: list[Choice]) -> tuple[Prepared, Candidate] | None:
        """A consistent execution of the structure without misuse, if there is one."""

    @abstractmethod
    def _stuck(self, combination: tuple[Path, ...]) -> Finding | None:
        """The finding of an execution in which these paths wait forever; reports races and misuses on the way."""

    def search_deadlocks(self, every: list[list[Path]], *, first: bool = False) -> None:
        """Finds executions, or the ``first``, in which some threads wait forever and the others end or wait forever
        too.
        """
        candidates = [[p for p in paths if p.end in ("end", "stuck")] for paths in every]
        if prod(len(paths) for paths in candidates) > MAX_COMBINATIONS:
            text = "executions that never end were not explored: too many combinations of waiting threads"
            self.note = (Reason(Cause.LEFT_OUT, text),)
            if self.findings_wanted or self.prop == "liveness":
                raise Unsupported(text)
            return
        for combination in product(*candidates):
            if not any(p.end == "stuck" for p in combination):
                continue
            self.deadline()
            finding = self._stuck(combination)
            if finding is not None:
                key = (finding.code, tuple(a.span for a in finding.accesses))
                self.findings.setdefault(key, finding)
                if first or self.prop == "liveness":
                    return
        if any(p.end in ("cut", "unknown") for paths in every for p in paths):
            self._bound(every)

    def _misused(self, prepared: Prepared, candidate: Candidate, *, ended: bool = True) -> bool:
        """Whether this execution has a misuse; reports it.

        A misuse that shows when all threads have ended or wait forever is reported for executions without another
        misuse. Of two misuses one may be caused by what a thread does after the other, where it has stopped: each is
        reported for executions in which it is the only one, for which the threads of the others stop early
        (``_ill_ended``).
        """
        chosen = [choice.options[taken] for choice, taken in zip(prepared.choices, candidate, strict=True)]
        missteps = [option.misstep for option in chosen if option.misstep is not None]
        before = [misuse for misuse in missteps if misuse[0] not in prefixes.AT_THE_END]
        for remark in () if missteps or not ended else chain.from_iterable(option.remarks for option in chosen):
            self._show_misuse(prepared, candidate, remark, remark[0])
        blamed = {uid for _, _, uid in before}
        if self.findings_wanted and (len(blamed) > 1 or not all(map(prepared.alone, blamed))):
            self.only_with_others = True
            return True
        for misuse in missteps if ended and not before else before:
            finding = self._show_misuse(prepared, candidate, misuse, f"{misuse[0]}: undefined")
            self.undefined = self.undefined or finding.severity == "error"
        return bool(missteps)

    def _show_misuse(
        self, prepared: Prepared, candidate: Candidate, misuse: tuple[str, str | Phrase, Uid], note: str
    ) -> Finding:
        """Reports a misuse, or a remark, once for each source location."""
        finding = misuse_finding(prepared, misuse, self.profile)
        finding = self.findings.setdefault((finding.code, finding.accesses[0].span), finding)
        self._show(finding, prepared, candidate, prepared.s.nodes_of[misuse[2]], note)
        return finding

    def _bound(self, every: list[list[Path]]) -> None:
        """Whether the unrolling bound may hide an execution; reports misuse on paths that only the bound cuts."""
        if self.bounded:
            return
        for thread, paths in enumerate(every):
            for path in paths:
                if path.end not in ("cut", "unknown"):
                    continue
                if not self._reachable(every, {thread: [path]}):
                    for s, choices in self._with(every, {thread: [path]}):
                        self._races_of(s, choices)
                elif path.end == "cut":
                    self.bounded = True
                    return
                else:
                    raise UnknownData(
                        "an address, a size, a barrier or a tensor map depends on unknown initial contents, or on a "
                        f"division by zero{_line(path)}"
                    )


def _line(path: Path) -> str:
    """The text for the location at which a path ends."""
    return f" (line {path.at.span.line})" if path.at is not None and path.at.span is not None else ""


def _may_be_undefined(program: Program) -> bool:
    """Whether executions that never end must be searched to know if any is undefined: one may misuse an mbarrier, race
    with an asynchronous operation, or mix sizes.
    """
    inner = [ops.performed_operation(op) for op in program.operations]
    sizes = {type_size(op.type) for op in inner if isinstance(op, ops.ScalarAccess)}
    return len(sizes) > 1 or any(
        isinstance(op, ops.MbarrierInit | ops.TensormapReplace)
        or (op.facets.asynchronous and (op.facets.reads or op.facets.writes))
        for op in inner
    )
