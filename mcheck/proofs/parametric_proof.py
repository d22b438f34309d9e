"""Parametric proofs: a program with a constant N that may be any number, for all N from one on.

The text says that code is alike in rounds a period apart (``mcheck.ir.loop_unrolling``). One execution is followed
until, at the end of a period of one agent, it has the same canonical form
(``mcheck.engines.protocol.reduction.canonical_form``) as some periods before, all agents standing in their loops, as
many rounds further on. Up to there nothing could have gone another way: no reversal and no choice was noted. Let p be
the number of rounds between the two, and M an N for which all agents are still in their loops at the earlier one.

The programs with M, M + 1, ... M + p - 1 are run to their ends, epilogues included, from where they diverge from larger
ones: what all have in common is executed once (``mcheck.proofs.prefix_sharing``), and smaller N are followed as well.
Where that is impossible, each is run from its beginning.

If each of them has only this execution, without a finding, so has the program with any larger N, by induction: up to
the later of the two states it does what was seen, whatever N is, because no agent leaves its loop before. From there on
it has to execute what the program with N - p has to execute from the earlier one: equal code, from an equal form. So it
continues as that one does, which has one execution without a finding.

The argument does not depend on the order in which independent steps are taken. Mostly the first agent that can run
does, which gets no further ahead than the others let it. Agents that wait for nobody would run to their ends one after
the other, and the state that the first ones leave would grow: where no state repeats, all agents are kept in step.

Mostly rounds closer than a period of the text are equal up to a *rotation* of names
(``mcheck.proofs.rotation_symmetry``): then forms are compared with the rotation undone, and p is the number of rounds
between two equal ones. What is said of N - p above is said of it with the names rotated. If the code after the loops is
not invariant under the rotation, p is the number of rounds after which the rotation is the identity.

The execution is an ordinary one, except that at the end of every period, before its last operation that others may
observe, the window is normalised, so that nothing but what a form shows is carried over. Which operation of a period it
is makes no difference to the argument. Before the last one M is smallest: the agent is still in its loop there with as
many rounds as it has begun, and after it only with more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from math import lcm

from mcheck.answers.merged_answers import merge_findings
from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import INTERLEAVING_ASSUMPTION, add_verdict, assumptions
from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.effects.unwritten_objects import find_unwritten_objects
from mcheck.engines.protocol import exploration, gc_control
from mcheck.engines.protocol.analysis.delayed_waits import explain_delayed_waits
from mcheck.engines.protocol.analysis.lane_groups import Split, partition_lanes
from mcheck.engines.protocol.analysis.non_interleaving import find_non_interleaving
from mcheck.engines.protocol.analysis.slicing import memory_matters, needed_objects, needed_registers, object_names
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import MAX_TRACKED_WORDS, NewMbarrier, NewOrder, NewWord, Setup, prepare
from mcheck.engines.protocol.operations.scheduler import execute, first_runnable, run_to_end
from mcheck.engines.protocol.passes import ALL_PASSES, Pass, Passes
from mcheck.engines.protocol.state.cyclic_names import Ring
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.loop_unrolling import Aperiodic, LoopPeriodicity
from mcheck.ir.program import Program
from mcheck.proofs.instances import CodePositions, Instances, Suffices
from mcheck.proofs.periodic_registers import PROBED_ROUNDS, Folding, find_folding, may_fold
from mcheck.proofs.prefix_sharing import Unshared
from mcheck.proofs.program_diff import ProgramDiff
from mcheck.proofs.rotation_symmetry import find_rotation
from mcheck.proofs.state_recurrence import (
    FOUND,
    SEVERAL,
    WORDS,
    NoRecurrence,
    Periods,
    SplitAccess,
    check_deterministic,
    pause_each_period,
)
from mcheck.proofs.streaming_writes import Loop, find_streaming_writes
from mcheck.semantics.tensor_footprint import extent

HORIZONS = (5, 12), (8, 40)
"""Pairs (periods, rounds ahead of them) to follow: first few, and more where no state repeats among these."""
MOST_ROUNDS = 400
FEW = 32
"""The number of iterations up to which instances are checked one by one at once."""
RECENT_WRITES = 3
"""Number of latest writes of a word that are tracked: the model has to order all others before."""
READS = "the model may relate reads to each other, and reads of unwritten memory accumulate with the rounds"


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof for every N from ``first`` on, or for one: no finding except those in ``answer``, which are for review.

    The state repeats every ``period`` rounds. ``answer`` is that of the instances that were run to their ends,
    ``executions`` is their number.
    """

    first: int
    period: int
    answer: Answer
    executions: int
    smaller: Mapping[int, Answer] = field(default_factory=dict)
    """Answers about instances below ``first`` that the proof came across: those without a finding."""
    turns: bool = False
    """Whether the state repeats only up to a rotation of names (``mcheck.proofs.rotation_symmetry``)."""


def prove(
    program: Program, model: Model, profile: str, unroll: int, limit: Limit, suffices: Suffices | None = None,
    passes: Passes = ALL_PASSES,
) -> Proof:  # fmt: skip
    """Prove a program for all N from one on; smaller N have answers where ``suffices`` accepts them.

    Raises ``Aperiodic`` with the obstacle, ``TimeOut`` and ``Unsupported``.
    """
    if program.rounds is None or program.instance is None:
        raise Aperiodic("the program has a fixed size")

    def prove_with(rounds: LoopPeriodicity) -> Proof:
        return _with_mode(_Prover(program, model, profile, unroll, limit, rounds, suffices, passes), _Prover.prove_all)

    early = None
    try:
        rounds = program.rounds()
        if rounds.least > FEW:
            early = _prove_early(program, prove_with)
        proof = prove_with(rounds)
    except Aperiodic as error:
        error.known, change = early or _prove_early(program, prove_with)
        error.turn = change if error.turn is None else error.turn
        raise
    known = {} if early is None else early[0]
    return replace(proof, smaller={n: a for n, a in known.items() if n < proof.first} | dict(proof.smaller))


def _prove_early(
    program: Program, prove_with: Callable[[LoopPeriodicity], Proof]
) -> tuple[Mapping[int, Answer], int | None]:
    """Answers for the numbers with which no late comparison has changed its result, and the first number with one.

    They are instances of a program whose code is alike in all iterations, so the argument is the same. No answers if
    there is no such comparison, or no proof.
    """
    try:
        rounds = program.early_rounds() if program.early_rounds is not None else None
        if rounds is None or rounds.until is None:
            return {}, None
        with suppress(Aperiodic):
            proof = prove_with(rounds)
            rest = replace(proof.answer, executions=0)
            return {**dict.fromkeys(range(proof.first, rounds.until + 1), rest), **proof.smaller}, rounds.until + 1
        return {}, rounds.until + 1
    except Aperiodic:
        return {}, None


def prove_long(
    program: Program, model: Model, profile: str, unroll: int, limit: Limit, passes: Passes = ALL_PASSES
) -> Proof:
    """Prove a program whose loops have many iterations (``Program.long``).

    ``first`` of the proof is a round from which on the state repeats. Raises as ``prove``.
    """
    assert program.shortened is not None
    if Pass.LONG_LOOPS not in passes:
        raise Aperiodic("every round is executed")
    prover = _Prover(program, model, profile, unroll, limit, program.shortened.rounds, passes=passes)
    return _with_mode(prover, _Prover.prove_long)


def _with_mode(prover: _Prover, prove: Callable[[_Prover, int], Proof]) -> Proof:
    prover = replace(prover, rounds=prover.extend_period())
    folded = prover.fold_registers()
    if folded is not None:
        with suppress(_NoRotation):
            return _with_retries(folded, prove)
    return _with_retries(prover, prove)


def _with_retries(prover: _Prover, prove: Callable[[_Prover, int], Proof]) -> Proof:
    rounds = prover.rounds
    few, most = (periods * rounds.period + ahead for periods, ahead in HORIZONS)
    too_long = Aperiodic(f"the rounds repeat after {rounds.period} only")
    if few > MOST_ROUNDS or (rounds.until is not None and rounds.least + most + rounds.period > rounds.until):
        raise too_long
    try:
        with gc_control.collect_rarely():
            for count, in_step in ((few, False), (few, True)):
                prover.in_step = in_step
                with suppress(NoRecurrence):
                    return _whole(prover, prove, count)
            if most > MOST_ROUNDS:
                raise too_long
            prover.in_step = False
            return _whole(prover, prove, most)
    except Split:
        raise Aperiodic("lanes that diverge in a later round") from None
    except NewWord as word:
        if len(prover.words) >= MAX_TRACKED_WORDS:
            raise Aperiodic(WORDS) from None
        return _with_retries(replace(prover, words=prover.words | {word.address: word.size}), prove)
    except (NewMbarrier, NewOrder):
        raise Aperiodic("objects that are used in a later round only") from None


def _whole(prover: _Prover, prove: Callable[[_Prover, int], Proof], count: int) -> Proof:
    try:
        return prove(prover, count)
    except SplitAccess:
        if prover.folding is not None:
            raise _NoRotation from None
        prover.turns = False
        return prove(prover, count)


class _NoRotation(Exception):
    """With registers as constants there is no rotation from a round to the next one: they do not help."""


@dataclass(slots=True)
class _Prover:
    program: Program
    model: Model
    profile: str
    unroll: int
    limit: Limit
    rounds: LoopPeriodicity
    suffices: Suffices | None = None
    passes: Passes = ALL_PASSES
    in_step: bool = False
    """Whether no agent enters its next period while others can continue in theirs."""
    turns: bool = True
    """Whether to look for rounds that are equal up to a rotation (``mcheck.proofs.rotation_symmetry``)."""
    folding: Folding | None = None
    """The periodic registers of the loops, replaced by constants."""
    periods: Periods = field(init=False)
    """The division of the rounds into periods."""
    circles: dict[int, Ring] = field(default_factory=dict)
    """The rings that the rotation acts on (``Setup.rings``)."""
    words: dict[int, int] = field(default_factory=dict)
    """The words that have turned out to need tracking (``exploration.Search.extra_words``)."""
    first: exploration.Search = field(init=False)

    def __post_init__(self) -> None:
        # What one thread alone touches in a program, others may touch in one of its family that continues its execution
        # (`mcheck.proofs.prefix_sharing`).
        self.passes -= {Pass.UNSHARED_ACCESSES}

    def prove_all(self, count: int) -> Proof:
        """Prove all N."""
        count += self.rounds.least
        try:
            return self._prove_all(count)
        except Aperiodic as error:
            if str(error).startswith(FOUND) and error.turn is None:
                error.turn = count  # the execution is one of this number
            raise

    def _prove_all(self, count: int) -> Proof:
        rounds = self.rounds
        whole = self.build_instance(count)
        fewest = rounds.least + rounds.period
        small = self.build_instance(fewest)
        setup = self.prepare_whole(small, whole)
        if rounds.place is not None:
            self.periods, loops = Periods(rounds, rounds, in_step=self.in_step), self.given_loops(setup, count)
        else:
            loops = self.find_loops(setup, lambda every: self.build_loops(setup, every, small, count - fewest))
        numbers: Instances | None = None
        try:
            if self.in_step or Pass.PREFIX_SHARING not in self.passes:
                raise Unshared
            numbers = Instances(self, setup, fewest, count)
            found = self.periods.find_recurrence(setup, loops, numbers)
            smallest = numbers.find_first(found.distance, found.steps)
            assert smallest is not None, "the recurrence was found when it was known"
            first = smallest
        except Unshared:
            numbers = None
            found = self.periods.find_recurrence(setup, loops)
            first = max(count - self.periods.unit.period * found.spare, rounds.least)
        lead, steps = found.lead, found.steps
        self.check_growth(self.build_instance(first), self.build_instance(first + self.periods.unit.period))
        answers = [
            (None if numbers is None else numbers.answer(number))
            or self.judge_alone(
                self.prepare(self.build_instance(number)),
                loops[lead],
                lead,
                f"with {self.program.parameter} = {number}",
            )
            for number in range(first, first + steps)
        ]
        answer = replace(answers[-1], findings=merge_findings(answers))
        smaller = {} if numbers is None else numbers.answers_below(first)
        return Proof(first, steps, answer, len(answers) + 1, smaller, turns=steps % rounds.period > 0)

    def prove_long(self, count: int) -> Proof:
        """Prove a program with long loops: the rounds that are left out add nothing."""
        rounds, period = self.rounds, self.rounds.period
        kept = rounds.ahead + count
        whole = self.leave_out_rounds(kept, period)
        setup = self.prepare_whole(self.program, whole)
        loops = self.find_loops(setup, lambda every: self.build_loops(setup, every, kept=kept))
        states: dict[int, Machine] = {}
        found = self.periods.find_recurrence(setup, loops, states=states)
        self.check_growth(whole, whole)
        unit = self.periods.unit.period
        kept -= unit * found.spare
        steps = lcm(found.steps, period)  # what is left out is as the text has it
        fewer, lead = self.prepare(self.leave_out_rounds(kept, steps, unit)), found.lead
        answer = self.judge_continuation(states[found.earlier], fewer) or self.judge_alone(
            fewer, loops[lead], lead, "in the rounds"
        )
        return Proof(kept, steps, answer, 2)

    def judge_continuation(self, m: Machine, setup: Setup) -> Answer | None:
        """Return the answer about a program of which another program's execution is a prefix.

        ``None`` if it has to be run from its beginning.
        """
        if Pass.PREFIX_SHARING not in self.passes:
            return None
        diff = ProgramDiff.compare(m.setup, setup)
        if diff is None or not diff.is_straight or not diff.applies_to(m, set()):
            return None
        diff.transfer(m, set())
        run_to_end(m)
        return None if m.problems else self.judge(m)

    def prepare_whole(self, small: Program, whole: Program) -> Setup:
        """Return the setup of ``whole``, with the agents of one execution of a ``small`` program of its family.

        Raises ``Aperiodic`` if that execution shows that more than the state may decide.
        """
        self.first = exploration.Search(
            small, self.model, self.profile, self.unroll, 1, time_limit=self.limit, passes=self.passes
        )
        self.first.run()
        if self.first.not_followed is not None:
            raise Aperiodic(self.first.not_followed)
        if self.first.has_final_error:
            raise Aperiodic(FOUND, turn=self.rounds.least + self.rounds.period)
        if self.first.bound_text is not None:
            raise Aperiodic(SEVERAL)
        self.words = self.words | self.first.extra_words
        setup = self.prepare(whole)
        if setup.reads_conflict:
            raise Aperiodic(READS)
        if setup.tracked_words and any(
            isinstance(ops.performed_operation(op), ops.Atomic) for op in setup.program.operations
        ):
            raise Aperiodic(WORDS)
        more = self.explain_non_interleaving(setup)
        if more is not None:
            raise Aperiodic(more)
        return setup

    def explain_non_interleaving(self, setup: Setup) -> str | None:
        """Return why a program may have executions that are no interleaving of its steps."""
        program, needed = setup.program, setup.sliced_registers
        return find_non_interleaving(program, needed, setup.partition, setup.tape) or explain_delayed_waits(
            program, needed
        )

    def build_instance(self, number: int) -> Program:
        """Return the program for an N, under the same assumptions."""
        self.limit.check()
        assert self.program.instance is not None
        return self._of_family(self.program.instance(number))

    def leave_out_rounds(self, kept: int, every: int, least: int | None = None) -> Program:
        """Return the program without as many rounds as possible, in multiples of ``every``.

        The first ``kept`` rounds remain, and the last ones, which are a period or at least ``least``.
        """
        self.limit.check()
        assert self.program.shortened is not None
        return self._of_family(self.program.shortened.without(kept, self.rounds.left_out(kept, every, least)))

    def _of_family(self, program: Program) -> Program:
        found = replace(program, assumptions=self.program.assumptions)
        return found if self.folding is None else self.folding.program(found)

    def extend_period(self) -> LoopPeriodicity:
        """Return the rounds with a period after which the stored values that matter are the same."""
        rounds = self.rounds
        uneven = {name: every for name, every in rounds.aperiodic_values().items() if every is not None}
        if not uneven:
            return rounds
        probe = (
            self.program if self.program.shortened is not None else self.build_instance(rounds.least + rounds.period)
        )
        if not memory_matters(probe):
            return rounds
        asked = needed_objects(probe, needed_registers(probe))
        names = uneven.keys() if asked is None else object_names(probe, asked)
        return rounds.with_period(lcm(rounds.period, *(every for name, every in uneven.items() if name in names)))

    def fold_registers(self) -> _Prover | None:
        """Return a prover with periodic registers as constants, where that gives the rounds a longer period."""
        rounds = self.rounds
        if Pass.PERIODIC_REGISTERS not in self.passes or rounds.place is not None or not may_fold(self.program):
            return None
        if self.program.shortened is not None:
            probe = self.leave_out_rounds(rounds.ahead + PROBED_ROUNDS, rounds.period)
        else:
            probe = self.build_instance(rounds.least + PROBED_ROUNDS)
        folding = find_folding(probe, rounds)
        return None if folding is None else replace(self, rounds=folding.rounds, folding=folding)

    def prepare(self, program: Program) -> Setup:
        """Return the setup of a program of this family with the agents of the smallest one."""
        known = self.first.setup
        assert known is not None
        whole = {t: k for k, group in enumerate(partition_lanes(program, self.passes)) for t in group}
        if any(len({whole[t] for t in group}) > 1 for group in known.partition):
            raise Split(())
        out = prepare(
            program, known.partition, self.model, self.profile, self.unroll, self.limit.check, None,
            self.first.extra_mbarriers,
            None, self.words, passes=self.passes,
        )  # fmt: skip
        out.rings, out.max_stale_writes = self.circles, RECENT_WRITES
        return out

    def find_loops(self, setup: Setup, loops_by: Callable[[int], dict[int, Loop]]) -> dict[int, Loop]:
        """Return the loops, divided into the shortest periods that a rotation maps to each other, or else those of the
        text.
        """
        self.periods = Periods(self.rounds, self.rounds, in_step=self.in_step)
        setup.rings = self.circles = {}
        period = self.rounds.period
        turns = self.turns and Pass.ROTATION_SYMMETRY in self.passes
        turns = turns and not setup.tracked_words and not memory_matters(setup.program)
        for every in range(1, period) if turns else ():
            if period % every == 0:
                with suppress(Aperiodic):
                    cut = loops_by(every)
                    rotation = find_rotation(setup, cut, self.rounds, every)
                    if rotation is not None:
                        unit = self.rounds.with_period(every)
                        find_streaming_writes(setup.program, setup, cut, unit)
                        self.periods = replace(self.periods, unit=unit, rotation=rotation)
                        setup.rings = self.circles = rotation.rings_by_object(setup.program.memory)
                        return cut
        if self.folding is not None:
            raise _NoRotation
        return loops_by(period)

    def loop_ends(self, setup: Setup, number: int) -> list[int]:
        """Return where the rounds that are alike end in the code of each agent.

        Raises ``Aperiodic`` where a loop does not grow with N.
        """
        out = []
        for group in setup.partition:
            if self.rounds.place is not None:
                _, end, length = self.rounds.place(group[0], number)
                out.append(end if length else 0)
                continue
            thread = setup.program.threads[group[0]]
            found = [span for span in thread.rounds if span in self.rounds.loops]
            begins = thread.rounds[found[0]] if len(found) == 1 else (0,)
            last = len(begins) - 1 - self.rounds.loops[found[0]].behind if len(found) == 1 else 0
            out.append(begins[max(last, 0)])
        return out

    def given_loops(self, setup: Setup, number: int) -> dict[int, Loop]:
        """Return the loops of the agents, where the program itself says for each thread and N where they are."""
        assert self.rounds.place is not None
        out = {}
        for k, group in enumerate(setup.partition):
            first, end, length = self.rounds.place(group[0], number)
            out[k] = Loop(first, end, length, first) if length else NO_LOOP
        return out

    def build_loops(
        self, setup: Setup, every: int, small: Program | None = None, more: int = 0, kept: int = 0
    ) -> dict[int, Loop]:
        """Return the loops of the agents, ``every`` rounds to a period: the rounds that are alike, of the first
        ``kept`` if given.

        Compared with a ``small`` program they have ``more`` rounds.
        """
        cuts = self.rounds.loops
        missing = (kept, self.rounds.left_out(kept, self.rounds.period)) if kept else (0, 0)
        out = {}
        for k, group in enumerate(setup.partition):
            thread = setup.program.threads[group[0]]
            found = [span for span in thread.rounds if span in cuts]
            if len(found) > 1:
                raise Aperiodic("two loops of one thread", found[1])
            if not found:
                out[k] = NO_LOOP
                continue
            begins, cut = thread.rounds[found[0]], cuts[found[0]]
            last = len(begins) - 1 - cut.behind
            alike = begins[cut.ahead : (min(last, kept) if kept else last) + 1]
            if small is not None and len(small.threads[group[0]].rounds[found[0]]) + more != len(begins):
                raise Aperiodic("how often a loop runs", found[0])
            out[k] = replace(_build_loop(thread.code, alike, every), begins=begins, cut=cut, missing=missing)
        return out

    def check_growth(self, one: Program, more: Program) -> None:
        """Raise ``Aperiodic`` if addresses grow into objects that are written, or that do not grow as much.

        ``one`` and ``more`` are programs a period apart, possibly the same.
        """
        read_only = find_unwritten_objects(one) if self.rounds.growing or self.rounds.coordinates else frozenset()
        for name, by in self.periods.unit.growing.items():
            small, large = (next(i for i in p.memory.instances if i.object.name == name) for p in (one, more))
            if small.base not in read_only and name not in self.rounds.written:
                raise Aperiodic(f"addresses in {name}, which the program writes, grow with the rounds")
            if one is not more and large.object.size - small.object.size < by:
                raise Aperiodic(f"addresses in {name} grow with the rounds, and its size does not")
            if large.object.held or (large.object.init is not None and large.object.init.strip(b"\0")):
                raise Aperiodic(f"addresses in {name}, whose contents are not the same all over, grow with the rounds")
        if self.rounds.coordinates:
            _check_tile_independence(one, read_only)

    def judge_alone(self, setup: Setup, loop: Loop, lead: int, which: str) -> Answer:
        """Return the answer about one instance from its only execution; raise ``Aperiodic`` if it has an error.

        Findings for review stop no agent, so that they occur with every larger N as they do here.
        """
        at_rest = pause_each_period(
            CodePositions.in_program(setup), {lead: loop}, lead,
            lambda *_: None,
            lambda _, turn: self.periods.is_compared(turn), set(),
        )  # fmt: skip
        given = self.judge(execute(setup, before_step=at_rest, choose_agent=first_runnable))
        if given is None:
            raise Aperiodic(f"{FOUND} {which}")
        return given

    def judge(self, m: Machine) -> Answer | None:
        """Return the answer about a program from its only execution, ``None`` if that has an error.

        Raises ``Aperiodic`` if the execution could have taken another course.
        """
        check_deterministic(m)
        search = exploration.Search(m.program, self.model, self.profile, self.unroll, passes=self.passes)
        search.collect_findings(m)
        given = add_verdict(
            Answer(
                verdict=Verdict.PASS, findings=search.sorted_findings(), covered=True,  # it is the only execution
                assumptions=(*assumptions(m.program), INTERLEAVING_ASSUMPTION), executions=1,
                engine="protocol",
            )
        )  # fmt: skip
        ended = m.outcome == "end" and all(a.status == "done" for a in m.agents)
        return given if ended and not search.errors and given.verdict in (Verdict.PROVED, Verdict.FINDING) else None


NO_LOOP = Loop(0, 0, 0)


def _build_loop(code: tuple[ops.Op, ...], alike: tuple[int, ...], period: int) -> Loop:
    """Return a loop whose rounds begin at these places in the code; raise ``Aperiodic`` if the text disagrees."""
    if len(alike) < 2 * period + 1:
        raise Aperiodic("a loop that does not run on")
    first, length = alike[0], alike[period] - alike[0]
    end = alike[(len(alike) - 1) // period * period]
    for before, after in zip(alike, alike[period:], strict=False):
        if after - before != length:
            raise Aperiodic("rounds of another length")
    for pc in range(first, end - length):
        one, other = code[pc], code[pc + length]
        if one is not other and (type(one), one.span) != (type(other), other.span):
            raise Aperiodic("rounds that are not alike", one.span)
    start = next((pc for pc in range(first, first + length) if not code[pc].facets.computes), None)
    if start is None:
        return NO_LOOP
    return Loop(start, end, length, first)


def _check_tile_independence(program: Program, read_only: frozenset[int]) -> None:
    """Raise ``Aperiodic`` unless a load by tensor map is legal and conflicts with nothing, whichever tile it loads."""
    for op in program.operations:
        if not isinstance(op, ops.TensorCopy):
            continue
        where = op.tensor_map.value if isinstance(op.tensor_map, Const) else None
        instance = None if where is None else program.memory.find(where)
        maps = () if instance is None or instance.base not in read_only else instance.object.tensor_map
        if not maps:
            raise Aperiodic("coordinates that grow with the rounds, of a map that is not known", op.span)
        for spec in maps:
            low, size = extent(spec)
            inside = program.memory.find(low)
            tile = op.mode == "tile" and spec.interleave_layout == "none"
            whole = inside is not None and low + size <= inside.base + inside.object.size
            if not tile or not whole or inside is None or inside.base not in read_only:
                raise Aperiodic("coordinates that grow with the rounds", op.span)
