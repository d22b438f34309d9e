"""One question about one program, put to its event structures.

Paths of the threads are combined; every combination is an event structure whose consistent executions an engine finds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, product
from math import prod
from typing import ClassVar

from mcheck.answers.final_states import final_addresses, memory_ranges, terms_of
from mcheck.answers.result import State
from mcheck.answers.verdict_rules import makes_undefined
from mcheck.answers.witnesses import FlagReport, flag_findings, misstep_finding, misuse_finding
from mcheck.base.budget import Limit
from mcheck.base.errors import UnknownData, Unsupported
from mcheck.base.reasons import Cause, Reason, Reasons
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.cat.algebra.tape import Tape
from mcheck.cat.ast import Model
from mcheck.engines.search import prefixes
from mcheck.engines.search.kept_executions import Kept, Shown
from mcheck.events.choices import barrier_generations, convergence, divergent_lanes, mbarrier_phases
from mcheck.events.choices.candidate import Candidate, Choice, final_choices, read_choices
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Misstep, Path
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
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.terms import Uid

MAX_COMBINATIONS = 50_000
"""Combinations of paths that may wait forever."""


@dataclass(slots=True)
class Reached:
    """A final state: an execution that ends in it, and how many do."""

    prepared: Prepared
    candidate: Candidate
    executions: int = 0


@dataclass(slots=True)
class Run(ABC):
    """One question about one program; how its structures are looked at is the engine's."""

    made: ClassVar[tuple[barrier_generations.Quorum, barrier_generations.Rounds]] = (
        barrier_generations.quorum_choice,
        barrier_generations.rounds_choice,
    )
    """What makes the choices of barriers with a quorum, and of those with rounds."""

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
    every: list[list[Path]] = field(default_factory=list)
    """The paths of each thread."""
    ends: bool = False
    """Whether some execution is known to end."""
    kept: Kept | None = None
    tape: Tape = field(init=False)
    semantics: Semantics = field(init=False)
    outcomes: dict[State, Reached] = field(default_factory=dict)
    executions: int = 0
    findings: dict[object, Finding] = field(default_factory=dict)
    undefined: bool = False
    bounded: bool = False
    failed: dict[str, int] = field(default_factory=dict)
    cut: dict[object, Path] = field(default_factory=dict)
    parted: dict[object, tuple[Path, ...]] = field(default_factory=dict)
    """Paths of two lanes of a warp that come to different aligned barriers, the last one of which stops there."""
    partings_asked: int = 0
    """How many of them have been looked for."""
    seen: prefixes.Seen = field(default_factory=set)
    complete: bool = True
    early: bool = False
    """Whether executions may be asked for that stop early."""
    hit: bool = False
    beside: bool = False
    """Whether some misuse was found only beside another one, which may be what leads to it."""

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
        """The paths of each thread, found again until the values that operands may take no longer grow, and it
        is known what reads of failed attempts may race with.
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
        """The event structure of a combination of paths with its choices; none if it is no execution at all."""
        condition = self.program.condition
        s = build_structure(self.program, paths, memory_ranges(condition))
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

    def phase_choices(self, s: Structure, stuck: frozenset[Uid]) -> list[Choice] | None:
        """Into which phases the operations on mbarriers may fall, ``None`` if these paths cannot be."""
        return mbarrier_phases.choices(s, stuck, self.deadline)

    def _barriers(self, s: Structure) -> list[Choice] | None:
        """How the barriers are filled, ``None`` if these paths cannot be."""
        parting = [] if self.semantics.static_barriers else barrier_generations.find_divergent_arrivals(s)
        for lanes in parting:
            self._part(s, lanes)
        met = None if parting else self.meetings(s)
        if met is None:  # a thread may stop before it comes to what cannot be
            possible = filter(None, barrier_generations.each_choice(s, *self.made) if self.early else ())
            self.beside = self._cut_short(s, list(possible)) or self.beside
            return None
        if not self.program.assumptions.converged:
            return met
        together = convergence.converge_lanes(s)
        return None if together is None else met + together

    def meetings(self, s: Structure) -> list[Choice] | None:
        """The choices of the barriers, for which warps are not divided."""
        quorum, rounds = self.made
        dynamic = barrier_generations.dynamic_choices(s, quorum, rounds)
        if dynamic is None or not self.semantics.static_barriers:
            return dynamic
        static = barrier_generations.static_choices(s, quorum)
        return None if static is None else static + dynamic

    # --- questions ------------------------------------------------------------------------------------------

    def explore(self) -> None:
        """All complete executions (and, where findings are wanted, those that never end)."""
        every = self.every = self.paths()
        complete = [[p for p in paths if p.end == "end"] for paths in every]
        self.early = self.findings_wanted or any(p.end not in ("end", "stuck") for paths in every for p in paths)
        warps = {t.place.own_warp for t in self.program.threads}
        self.early = self.early or len(warps) < len(self.program.threads)
        if self.prop == "liveness":
            self.liveness(every)
            return
        self.solve_all(complete)
        if self.hit:
            return
        self._missteps(every)
        if self.blocking_wanted:
            self.liveness(every)
            self._partings(every)
        stopped = any(p.end == "undefined" for paths in every for p in paths)
        undefined = self.beside or any(f.kind == "undefined" for f in self.findings.values())
        beside = stopped or (self.findings_wanted and undefined)
        if beside:
            self._ill_ended(every)
        told = len(self.findings)
        self._bound(every)
        if self.findings_wanted and not beside and len(self.findings) > told:
            self._ill_ended(every)

    def solve_all(self, complete: list[list[Path]]) -> None:
        """The executions of all combinations of paths that end, until the verdict is known if that is all."""
        self.solve_each(complete)

    def solve_each(self, complete: list[list[Path]]) -> None:
        """The executions of one combination of paths after the other."""
        for combination in product(*complete):
            self.deadline()
            self._solve(combination)
            if self.hit:
                return

    @abstractmethod
    def _solve(self, paths: tuple[Path, ...]) -> None:
        """All executions of one combination of paths that end, with what is found in them."""

    def reach(self, state: State, prepared: Prepared, candidate: Candidate) -> None:
        """Counts an execution that ends in this state."""
        self.outcomes.setdefault(state, Reached(prepared, candidate)).executions += 1
        self.ends = True

    # --- findings -----------------------------------------------------------------------------------------------

    def _cut_short(self, s: Structure, choices: list[Choice]) -> bool:
        """Remembers the paths of threads that stop where they misuse something, if anybody will ask for them; whether
        there are such.
        """
        found = list(self.culprits(s, choices)) if self.early else []
        for path, uid in found:
            short = prefixes.cut_short(path, uid)
            self.cut.setdefault(prefixes.name_of(short), short)
        return bool(found)

    def culprits(self, s: Structure, choices: list[Choice]) -> Iterator[tuple[Path, Uid]]:
        """The path and the event of every misuse that some choice has among its options."""
        return prefixes.culprits(s, choices)

    def _part(self, s: Structure, lanes: tuple[Node, Node]) -> None:
        """Remembers the paths of lanes of a warp that stop before different aligned barriers: both, or the one that
        comes later.
        """
        stopped = []
        for node in lanes:
            event = node.source
            assert event is not None
            short = prefixes.cut_short(s.paths[event.uid[0]], event.uid)
            short = replace(short, misstep=Misstep("UB305", DIVERGENT_BARRIERS, event.op))
            stopped.append(self.cut.setdefault(prefixes.name_of(short), short))
        one, other = stopped
        for ways in ((one, other), (s.paths[one.thread], other), (s.paths[other.thread], one)):
            self.parted.setdefault(tuple(map(id, ways)), ways)

    def _ill_ended(self, every: list[list[Path]]) -> None:
        """Races in executions in which a thread stops because what it does is undefined, and lanes that part there."""
        for combination in prefixes.combinations_of(every, self.cut):
            self.deadline()
            for s, choices in self._beginnings(combination):
                self._races_of(s, choices)
        self._partings(every)

    @abstractmethod
    def _races_of(self, s: Structure, choices: list[Choice]) -> None:
        """The races, and the misuses, of a structure whose executions do not end."""

    def _report(self, prepared: Prepared, flag: FlagReport) -> None:
        self.seen.add(prefixes.key_of(prepared, flag.name, flag.pair))
        for finding in flag_findings(prepared, flag, self.profile):
            key = (finding.code, tuple((a.span, a.object, a.access) for a in finding.accesses))
            self.findings.setdefault(key, finding)
            self._show(finding, prepared, flag.candidate, flag.pair)
            if makes_undefined(finding):
                self.undefined = True

    def _show(
        self, finding: Finding, prepared: Prepared, candidate: Candidate, marked: Iterable[int] = (), note: str = ""
    ) -> None:
        """Keeps the execution that shows a finding, for those who draw."""
        if self.kept is not None:
            self.kept.findings.setdefault(finding, Shown(prepared, candidate, tuple(marked), note))

    def _unfinished(self, prepared: Prepared, candidate: Candidate, paths: tuple[Path, ...]) -> None:
        """Sources in shared memory that an asynchronous copy may still be reading when its thread exits (Q18), and
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
        """Undefined behaviour on a path counts if some consistent execution gets there."""
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
        """Lanes of a warp that come to different aligned barriers, if some consistent execution gets there."""
        while self.partings_asked < len(self.parted):  # more of them may be met on the way
            lanes = list(self.parted.values())[self.partings_asked]
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
        """A consistent execution in which paths that do not end occur, the other threads being anywhere; ``None`` for
        one that has no values. Nothing if there is none.
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
        """The structures in which paths that do not end occur, the other threads being anywhere."""
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
        """``structures`` of paths that need not end: nothing is asked of the final memory."""
        for s, choices in self.structures(combination, partial=True):
            yield s, [c for c in choices if c.kind != "final"]

    @abstractmethod
    def consistent(self, s: Structure, choices: list[Choice]) -> tuple[Prepared, Candidate] | None:
        """An execution of the structure that is consistent and misuses nothing."""

    @abstractmethod
    def _stuck(self, combination: tuple[Path, ...]) -> Finding | None:
        """What an execution finds in which these paths wait forever; races and misuses on the way are reported."""

    def liveness(self, every: list[list[Path]], *, first: bool = False) -> None:
        """Executions in which some threads wait forever and the others end or wait forever too; or the ``first``."""
        candidates = [[p for p in paths if p.end in ("end", "stuck")] for paths in every]
        if prod(len(paths) for paths in candidates) > MAX_COMBINATIONS:
            text = "executions that never end were not looked at: too many ways to wait for each other"
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
        """Whether something is misused in this execution; reports it.

        What shows when all threads have ended or wait forever is told of executions that misuse nothing before. Of two
        misuses one may come of what a thread does behind the other, where it has stopped: each is told of executions
        in which it is the only one, for which the threads of the others stop early (``_ill_ended``).
        """
        chosen = [choice.options[taken] for choice, taken in zip(prepared.choices, candidate, strict=True)]
        missteps = [option.misstep for option in chosen if option.misstep is not None]
        before = [misuse for misuse in missteps if misuse[0] not in prefixes.AT_THE_END]
        for remark in () if missteps or not ended else chain.from_iterable(option.remarks for option in chosen):
            self._show_misuse(prepared, candidate, remark, remark[0])
        blamed = {uid for _, _, uid in before}
        if self.findings_wanted and (len(blamed) > 1 or not all(map(prepared.alone, blamed))):
            self.beside = True
            return True
        for misuse in missteps if ended and not before else before:
            finding = self._show_misuse(prepared, candidate, misuse, f"{misuse[0]}: undefined")
            self.undefined = self.undefined or finding.severity == "error"
        return bool(missteps)

    def _show_misuse(
        self, prepared: Prepared, candidate: Candidate, misuse: tuple[str, str, Uid], note: str
    ) -> Finding:
        """Reports a misuse, or a remark, once for each statement."""
        finding = misuse_finding(prepared, misuse, self.profile)
        finding = self.findings.setdefault((finding.code, finding.accesses[0].span), finding)
        self._show(finding, prepared, candidate, prepared.s.nodes_of[misuse[2]], note)
        return finding

    def _bound(self, every: list[list[Path]]) -> None:
        """Whether the unrolling bound may hide an execution; what a thread misuses that comes to it with that alone."""
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
    """Where a path ends."""
    return f" (line {path.at.span.line})" if path.at is not None and path.at.span is not None else ""


def _may_be_undefined(program: Program) -> bool:
    """Whether executions that never end must be looked at to know if any is undefined: one may misuse an mbarrier,
    race with an asynchronous operation, or mix sizes.
    """
    inner = [ops.performed_operation(op) for op in program.operations]
    sizes = {type_size(op.type) for op in inner if isinstance(op, ops.Load | ops.Store | ops.Atomic)}
    return len(sizes) > 1 or any(isinstance(op, UNDEFINABLE) for op in inner)


UNDEFINABLE = (
    ops.MbarrierInit, ops.CpAsync, ops.BulkCopy, ops.TensorCopy, ops.AsyncStore, ops.Wgmma, ops.TensormapReplace,
)  # fmt: skip
"""Operations on mbarriers, and those whose accesses are not in program order."""
