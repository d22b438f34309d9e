"""Modules with a parameter that is any number: a proof for every number, or the answers for some.

A kernel with a large number is the kernel with a smaller one whose loop runs on
(``mcheck.simt.parametric.periodic_trace``). That is proved for any number of periods
(``mcheck.proofs.parametric_proof``); smaller numbers that differ are checked one by one. Without a proof the first
numbers are checked, and the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from mcheck.answers.merged_answers import explain_unproved, is_whole, merge_assumptions, merge_findings, merge_proved
from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import verdict_of
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.reasons import Cause, Reason, Reasons, timeout_reason, unique_reasons
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.modules.grid_coverage import uncovered_grid
from mcheck.checking.policy.number_ranges import CheckedNumbers, Unproved, attempt_proof
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir.loop_unrolling import LoopPeriodicity
from mcheck.ir.program import Program
from mcheck.simt.execution.cluster import MissingParameter
from mcheck.simt.grid.coordinate_taint import only_reads
from mcheck.simt.trace_extraction import PathChoices
from mcheck.simt.traces.wgmma_batches import batch_code

if TYPE_CHECKING:
    from mcheck.proofs.parametric_proof import Proof
    from mcheck.simt.parametric.periodic_trace import PeriodicTrace

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
    try:
        return answer_launch(module, launch, model, question, engine)
    except MissingParameter:
        if not names:
            raise
    return _of_one(_Every(module, launch, model, question, engine, names).answer(), module, launch)


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


@dataclass(slots=True)
class _Every:
    module: Module
    launch: Launch
    model: Model
    question: Question
    engine: str
    names: list[str]
    limit: Limit = field(init=False)
    checked: CheckedNumbers[tuple[int, ...]] = field(init=False)

    def answer(self) -> Answer:
        """The answer for all numbers."""
        self.limit = Limit(self.question.timeout)
        self.checked = CheckedNumbers(self.question.excused)
        why: Reasons = (Reason(Cause.NUMBERS, "more than one parameter is any number"),)
        try:
            if len(self.names) == 1:
                given = self.prove_single()
                if isinstance(given, Answer):
                    return given
                why = given
            for numbers in self.sample_numbers():
                if self.check_numbers(numbers):
                    self.check_smaller(numbers)
                    break
        except TimeOut as over:
            late = next(iter(self.checked.slow.values()), None)
            return self.conclude(
                late.reasons if late is not None else (timeout_reason(self.question.timeout, str(over)),)
            )
        return self.conclude(why)

    # --- the proof ------------------------------------------------------------------------------------------------

    def prove_single(self) -> Answer | Reasons:
        """The answer for a single such parameter: a proof or an error for some number, or why there is neither."""
        if self.engine not in ("auto", "protocol"):
            return (Reason(Cause.NUMBERS, f"the {self.engine} engine cannot prove all numbers"),)
        ways = attempt_proof(self.limit, self.find_periodic_traces)
        return ways.why if isinstance(ways, Unproved) else self.answer_from_proofs(ways)

    def find_periodic_traces(self, limit: Limit) -> list[PeriodicTrace]:
        """The periodic trace of each path of the kernel."""
        from mcheck.simt.parametric.periodic_trace import PeriodFinder

        argument = next(a for a in self.launch.arguments if _is_any(a))
        ways: list[PeriodicTrace] = []
        todo = [PathChoices()]
        while todo:
            finder = PeriodFinder(self.module, self.with_number, argument, todo.pop(), limit, argument.name)
            ways.append(finder.find())
            todo += [w for w in finder.alternatives() if not ways[-1].path.last_lane_leads]
        return ways

    def answer_from_proofs(self, ways: list[PeriodicTrace]) -> Answer | Reasons:
        """The answer if every path is proved, or some number has an error; else why there is no proof."""
        proofs = attempt_proof(self.limit, lambda limit: [self.prove_trace(way, limit) for way in ways])
        first = ways[0].starts[-1]
        if not isinstance(proofs, Unproved):
            first = max(w.first_number(p.first) for w, p in zip(ways, proofs, strict=True))
        for number in self.smaller_numbers(ways, first):
            if self.check_numbers((number,)):
                return self.conclude(())
            given = self.checked.found[(number,)]
            if not isinstance(proofs, Unproved) and not is_whole(given):
                proofs = Unproved(given.reasons or (Reason(Cause.LEFT_OUT),))
        if isinstance(proofs, Unproved):
            return proofs.why
        last = min(way.last for way in ways)
        rounds = max(p.period // len(w.starts) * w.step for w, p in zip(ways, proofs, strict=True))
        answers = list(self.checked.found.values())
        name = self.names[0]
        often = f"every {rounds}" if rounds > 1 else "with every one"
        said = (
            f"for every number of rounds from 0 on: from {name} = {first} on, the state repeats {often}"
            f" ({name} up to {last}: above that a register may overflow)"
        )
        executions = self.checked.executions + sum(p.executions for p in proofs)
        given = replace(answers[0], assumptions=merge_assumptions(answers))
        return merge_proved(given, [*answers, *(p.answer for p in proofs)], executions, Reason(Cause.PERIODIC, said))

    def prove_trace(self, way: PeriodicTrace, limit: Limit) -> Proof:
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
        return prove(program, self.model, asked.profile, asked.unroll, limit, passes=asked.passes)

    def smaller_numbers(self, ways: list[PeriodicTrace], first: int) -> Iterator[int]:
        """The numbers below ``first`` with which some path differs from smaller ones."""
        found: set[int] = set()
        for way in ways:
            found.update(way.differing_below)
            found.update(way.starts)
            size = len(way.starts)
            while (number := way.first_number(size)) < first:
                found.add(number)
                size += 1
        yield from sorted(n for n in found if n < max(first, ways[0].starts[-1] + 1))

    # --- numbers one by one ---------------------------------------------------------------------------------------

    def sample_numbers(self) -> Iterator[tuple[int, ...]]:
        """The numbers that are checked without a proof."""
        last = LAST.get(len(self.names), 1)
        yield from sorted(product(range(last + 1), repeat=len(self.names)), key=sum)
        if len(self.names) == 1:
            yield from ((number,) for number in LARGER)

    def check_smaller(self, numbers: tuple[int, ...]) -> None:
        """Checks the numbers below ``numbers`` that were skipped."""
        if len(numbers) == 1:
            for number in range(numbers[0]):
                if self.check_numbers((number,)):
                    break

    def with_number(self, number: int) -> Launch:
        """The launch with a number for the parameter."""
        return _with(self.launch, {self.names[0]: number})

    def check_numbers(self, numbers: tuple[int, ...]) -> bool:
        """Checks the kernel with ``numbers``; whether it has an error that ends the search. Raises ``TimeOut``."""
        if numbers not in self.checked:
            asked = replace(self.question, timeout=self.limit.remaining())
            launch = _with(self.launch, dict(zip(self.names, numbers, strict=True)))
            self.checked.record(numbers, answer_launch(self.module, launch, self.model, asked, self.engine, alone=True))
        if numbers in self.checked.slow:
            raise TimeOut
        return self.checked.ends_search(self.checked.found[numbers])

    def format_numbers(self, numbers: tuple[int, ...]) -> str:
        """Numbers with the names of their parameters, as text."""
        return ", ".join(f"{name} = {number}" for name, number in zip(self.names, numbers, strict=True))

    def conclude(self, why: Reasons) -> Answer:
        """The answer for the smallest numbers that have an error; else ``unknown``, with what the checked numbers
        showed.
        """
        found = self.checked.found
        wrong = min(self.checked.with_errors, key=sum, default=None)
        if wrong is not None:
            given = found[wrong]
            findings = tuple(
                replace(f, message=f"{f.message}, with {self.format_numbers(wrong)}") for f in given.findings
            )
            reasons = unique_reasons(given.reasons, (r for r in why if r.cut))
            return replace(
                given, findings=findings, covered=False, executions=self.checked.executions, reasons=reasons,
                cut=any(a.cut for a in found.values()),
            )  # fmt: skip
        if not found:
            return Answer(verdict=Verdict.UNKNOWN, engine="protocol", covered=False, reasons=why)
        left = explain_unproved(
            " and ".join(self.names), "number", found, lambda clean: "; ".join(map(_listed, zip(*clean, strict=True))),
            self.format_numbers, Reason(Cause.NOT_PERIODIC, "other values are not proved safe", because=why),
        )  # fmt: skip
        answers = list(found.values())
        return replace(
            answers[-1], verdict=Verdict.UNKNOWN, reasons=(left,), findings=merge_findings(answers[::-1]),
            covered=False, assumptions=merge_assumptions(answers),
            executions=self.checked.executions, cut=any(a.cut for a in answers),
        )  # fmt: skip


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
