"""Modules with a parameter that is any number: a proof for every number, or the answers for some.

A kernel with a large number is the kernel with a smaller one whose loop runs on
(``mcheck.simt.parametric.periodic_trace``). That is proved for any number of periods
(``mcheck.proofs.parametric_proof``); smaller numbers that differ are checked one by one. Without a proof the first
numbers are checked, and the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

from mcheck.answers.merged_answers import explain_unproved, merge_assumptions, merge_findings, merge_proved
from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import verdict_of
from mcheck.base.budget import Limit
from mcheck.base.phrase import say
from mcheck.base.reasons import Cause, Reason, Reasons, unique_reasons
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.checking.modules.answer import answer_launch, describe_followed
from mcheck.checking.modules.grid_coverage import uncovered_grid
from mcheck.checking.policy.every_number import (
    Attempt,
    CheckedNumbers,
    FollowingErrors,
    Proved,
    TimeShares,
    Unproved,
    answer_every_number,
    attempt_proof,
)
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir.loop_unrolling import LoopPeriodicity
from mcheck.ir.program import Program
from mcheck.simt.execution.cluster import MissingParameter
from mcheck.simt.grid.footprints.coordinate_taint import only_reads
from mcheck.simt.trace_extraction import PathChoices
from mcheck.simt.traces.wgmma_batches import batch_code

if TYPE_CHECKING:
    from mcheck.proofs.parametric_proof import Proof
    from mcheck.simt.parametric.periodic_trace import PeriodicTrace

Numbers = tuple[int, ...]
"""A number for each parameter that is any number."""
LAST = {1: 8, 2: 3}
"""The largest number that is checked without a proof, by the number of such parameters; 1 for more of them."""
LARGER = (12, 18, 27, 40, 60, 90)
"""Further numbers to check for a single parameter."""


def answer_for_every(module: Module, launch: Launch, model: Model, question: Question, engine: str) -> Answer:
    """The answer for every number: ``mcheck.checking.modules.answer.answer_launch`` for parameters that are ``"any"``.

    A finding is that of the smallest numbers that have one, and names them; without a proof for all numbers the answer
    is ``unknown``.
    """
    names = [a.name for a in launch.arguments if _is_any(a)]

    def every(module: Module, launch: Launch, limit: Limit) -> tuple[Answer, Sequence[int]]:
        return prove_every(module, launch, model, replace(question, timeout=limit.left()), engine)

    try:
        return answer_launch(module, launch, model, question, engine, every=every)
    except MissingParameter:
        if not names:
            raise
    family = _Launches(module, launch, model, question, engine, names)
    return _of_one(
        answer_every_number(family, question.timeout, question.excused, brief=question.brief), module, launch
    )


def prove_every(
    module: Module, launch: Launch, model: Model, question: Question, engine: str
) -> tuple[Answer, Sequence[int]]:
    """The answer about one cluster for every number that a parameter may be, unknown unless it is proved or a finding;
    and, if it is proved, the numbers with which it differs (``ProveEvery``). Raises ``TimeOut``.
    """
    names = [a.name for a in launch.arguments if _is_any(a)]
    family = _Launches(module, launch, model, question, engine, names)
    limit = Limit(question.timeout)
    proof = family.prove(limit)
    if isinstance(proof, Unproved):
        return Answer(verdict=Verdict.UNKNOWN, engine="protocol", covered=False, reasons=proof.why), ()
    checked = CheckedNumbers[Numbers]()
    for number in proof.numbers:
        given = family.answer(number, limit.remaining())
        if checked.record(number, given) or not checked.are_whole:
            return given, ()
    given, scope = family.conclude_proved(proof, checked), describe_followed(launch, None)
    answer = replace(given, assumptions=tuple(a for a in given.assumptions if a != scope))
    return answer, [number for (number,) in proof.numbers]


def _of_one(given: Answer, module: Module, launch: Launch) -> Answer:
    """Limits a proof for all numbers to the cluster that was checked, unless all clusters only read and do the same:
    how their accesses depend on the number is not compared.
    """
    covers = uncovered_grid(launch)
    if only_reads(module, launch.entry):
        covers = replace(covers, clusters=covers.total)
    if covers.clusters < covers.total and given.verdict is Verdict.PROVED:
        said = Reason(Cause.CLUSTERS, f"one of {covers.total} clusters of the grid was checked, for every number")
        verdict, bound = verdict_of(given.findings, covered=False, reasons=(said,))
        return replace(given, verdict=verdict, reasons=(*bound, *given.reasons), covered=False, covers=covers)
    return replace(given, covers=covers, covered=given.covered and covers.clusters == covers.total)


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launches of a module, one for each number, or for numbers for each of several parameters."""

    module: Module
    launch: Launch
    model: Model
    question: Question
    engine: str
    names: list[str]

    @property
    def shares(self) -> TimeShares:
        """A number has all time that is left; if that is not enough, larger ones are not checked."""
        return TimeShares()

    def answer(self, number: Numbers, seconds: float | None) -> Answer:
        """The answer about the launch with a number for each parameter."""
        launch = _with(self.launch, dict(zip(self.names, number, strict=True)))
        asked = replace(self.question, timeout=seconds)
        return answer_launch(self.module, launch, self.model, asked, self.engine, alone=True)

    # --- the proof ------------------------------------------------------------------------------------------------

    def prove(self, limit: Limit) -> Attempt[Numbers]:
        """The proof for all large numbers of a single parameter, or why there is none."""
        if len(self.names) > 1:
            return Unproved((Reason(Cause.NUMBERS, "more than one parameter is any number"),))
        if self.engine not in ("auto", "protocol"):
            return Unproved((Reason(Cause.NUMBERS, f"the {self.engine} engine cannot prove all numbers"),))
        ways = attempt_proof(limit, self._find_periodic_traces)
        if isinstance(ways, Unproved):
            return ways
        proofs = attempt_proof(limit, lambda left: [self._prove_trace(way, left) for way in ways])
        if isinstance(proofs, Unproved):
            return replace(proofs, numbers=self._smaller_numbers(ways, ways[0].starts[-1]))
        first = max(w.first_number(p.first) for w, p in zip(ways, proofs, strict=True))
        rounds = max(p.period // len(w.starts) * w.step for w, p in zip(ways, proofs, strict=True))
        name, last = self.names[0], min(way.last for way in ways)
        often = f"every {rounds}" if rounds > 1 else "with every one"
        said = (
            f"for every number of rounds from 0 on: from {name} = {first} on, the state repeats {often}"
            f" ({name} up to {last}: above that a register may overflow)"
        )
        return Proved(
            numbers=self._smaller_numbers(ways, first), answers=tuple(p.answer for p in proofs),
            executions=sum(p.executions for p in proofs), said=said,
        )  # fmt: skip

    def _find_periodic_traces(self, limit: Limit) -> list[PeriodicTrace]:
        """The periodic trace of each path of the kernel."""
        from mcheck.simt.parametric.periodic_trace import PeriodFinder

        argument = next(a for a in self.launch.arguments if _is_any(a))
        ways: list[PeriodicTrace] = []
        todo = [PathChoices()]
        while todo:
            finder = PeriodFinder(self.module, self._launch_with, argument, todo.pop(), limit, argument.name)
            ways.append(finder.find())
            todo += [w for w in finder.alternatives() if not ways[-1].path.last_lane_leads]
        return ways

    def _prove_trace(self, way: PeriodicTrace, limit: Limit) -> Proof:
        """The proof for one path that no number of loop iterations, from some number on, has a finding."""
        from mcheck.proofs.parametric_proof import prove

        way = replace(
            way,
            heads=tuple(map(batch_code, way.heads)),
            bodies=tuple(map(batch_code, way.bodies)),
            tails=tuple(tuple(map(batch_code, tail)) for tail in way.tails),
        )

        def instance(size: int) -> Program:
            return way.build_program(size).with_assumptions(self.launch.assume)

        rounds = LoopPeriodicity(len(way.starts), {}, {}, place=way.loop_bounds)
        program = replace(instance(0), parameter=self.names[0], instance=instance, rounds=lambda: rounds)
        asked = self.question
        proof = prove(program, self.model, asked.profile, asked.unroll, limit, passes=asked.passes)
        way.check_loads(proof.first + 2 * proof.period)
        return proof

    def _smaller_numbers(self, ways: list[PeriodicTrace], first: int) -> list[Numbers]:
        """The numbers below ``first`` with which some path differs from smaller ones."""
        found: set[int] = set()
        for way in ways:
            found.update(way.differing_below)
            found.update(way.starts)
            size = len(way.starts)
            while (number := way.first_number(size)) < first:
                found.add(number)
                size += 1
        return [(n,) for n in sorted(found) if n < max(first, ways[0].starts[-1] + 1)]

    # --- which numbers --------------------------------------------------------------------------------------------

    def numbers(self, proof: Attempt[Numbers], checked: CheckedNumbers[Numbers]) -> Iterator[Numbers]:
        """The numbers with which some path differs; if that proves nothing, the smallest ones and some larger ones."""
        yield from proof.numbers
        if isinstance(proof, Proved) and checked.are_whole:
            return
        last = LAST.get(len(self.names), 1)
        yield from sorted(product(range(last + 1), repeat=len(self.names)), key=sum)
        if len(self.names) == 1:
            yield from ((number,) for number in LARGER)

    def skipped(self, number: Numbers, proof: Attempt[Numbers], checked: CheckedNumbers[Numbers]) -> Iterator[Numbers]:
        """The smaller numbers, unless some path differs with this one: then it does not with those between."""
        if len(number) == 1 and number not in proof.numbers:
            yield from ((k,) for k in range(number[0]) if (k,) not in checked)

    def following(self, _: Numbers, __: CheckedNumbers[Numbers]) -> Iterable[Numbers]:
        """None: what larger numbers show is not told."""
        return ()

    def name(self, number: Numbers) -> str:
        """Numbers with the names of their parameters, as text."""
        return ", ".join(f"{name} = {one}" for name, one in zip(self.names, number, strict=True))

    # --- conclusions ----------------------------------------------------------------------------------------------

    def conclude_proved(self, proof: Proved[Numbers], checked: CheckedNumbers[Numbers]) -> Answer:
        """The answer for every number."""
        answers = list(checked.found.values())
        given = replace(answers[0], assumptions=merge_assumptions(answers))
        executions = checked.executions + proof.executions
        return merge_proved(given, [*answers, *proof.answers], executions, Reason(Cause.PERIODIC, proof.said))

    def conclude_error(
        self, number: Numbers, proof: Attempt[Numbers], checked: CheckedNumbers[Numbers],
        _: FollowingErrors[Numbers],
    ) -> Answer:  # fmt: skip
        """The answer for the smallest numbers that have an error; a proof that time cut would not have shown others
        with which some path differs.
        """
        given = checked.found[number]
        why = () if number in proof.numbers or isinstance(proof, Proved) else proof.why
        findings = tuple(replace(f, said=say("{}, with {}", f.said, self.name(number))) for f in given.findings)
        return replace(
            given, findings=findings, covered=False, executions=checked.executions,
            reasons=unique_reasons(given.reasons, (r for r in _late(checked) or why if r.cut)),
            cut=any(a.cut for a in checked.found.values()),
        )  # fmt: skip

    def conclude_open(self, why: Reasons, checked: CheckedNumbers[Numbers]) -> Answer:
        """The answer with what the checked numbers showed."""
        found, why = checked.found, _late(checked) or why
        if not found:
            return Answer(verdict=Verdict.UNKNOWN, engine="protocol", covered=False, reasons=why)
        left = explain_unproved(
            " and ".join(self.names), "number", found, lambda clean: "; ".join(map(_listed, zip(*clean, strict=True))),
            self.name, Reason(Cause.NOT_PERIODIC, "other values are not proved safe", because=why),
        )  # fmt: skip
        answers = list(found.values())
        return replace(
            answers[-1], verdict=Verdict.UNKNOWN, reasons=(left,), findings=merge_findings(answers[::-1]),
            covered=False, assumptions=merge_assumptions(answers), executions=checked.executions,
            cut=any(a.cut for a in answers),
        )  # fmt: skip

    def _launch_with(self, number: int) -> Launch:
        """The launch with a number for the parameter."""
        return _with(self.launch, {self.names[0]: number})


def _late(checked: CheckedNumbers[Numbers]) -> Reasons:
    """Why the time did not suffice, if it did not: as an engine says, or else that it is over."""
    return next((given.reasons for given in checked.slow.values()), checked.late)


def _is_any(argument: Argument) -> bool:
    return any(isinstance(place, AnyNumber) for _, place in argument.places)


def _with(launch: Launch, numbers: dict[str, int]) -> Launch:
    """The launch with numbers for the parameters that are ``Any``."""
    return replace(launch, arguments=tuple(_given(a, numbers.get(a.name)) for a in launch.arguments))


def _given(argument: Argument, number: int | None) -> Argument:
    if number is None:
        return argument
    data = number.to_bytes(argument.size, "little")
    return replace(argument, data=data, known=((0, argument.size),), places=())


def _listed(numbers: Sequence[int]) -> str:
    some = sorted(set(numbers))
    return ", ".join(map(str, some))
