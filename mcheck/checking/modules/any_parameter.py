"""A parameter that is every number: the answer without it where that suffices, else a proof for all of them.

The kernel with large numbers is what it is with smaller ones and a loop that runs on
(``mcheck.simt.parametric.periodic_trace``), which is proved for as many periods as there may be
(``mcheck.proofs.parametric_proof``); smaller numbers are looked at one by one, as far as they differ. Without a proof
the first numbers are looked at, and the answer is unknown.
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
from mcheck.base.reasons import Cause, Reason, Reasons, no_time, once
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.checking.modules.answer import answer
from mcheck.checking.modules.grid_coverage import covers_of
from mcheck.checking.policy.number_ranges import Looked, Unproved, attempted
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Launch
from mcheck.frontend.ptx.module import Module
from mcheck.ir.loop_unrolling import Rounds
from mcheck.ir.program import Program
from mcheck.simt.execution.cluster import MissingParameter
from mcheck.simt.grid.coordinate_taint import only_reads
from mcheck.simt.trace_extraction import PathChoices
from mcheck.simt.traces.wgmma_batches import batch_code

if TYPE_CHECKING:
    from mcheck.proofs.parametric_proof import Proof
    from mcheck.simt.parametric.periodic_trace import PeriodicTrace

LAST = {1: 8, 2: 3}
"""The largest number that is tried without a proof, by the number of such parameters; 1 for more of them."""
LARGER = (12, 18, 27, 40, 60, 90)
"""Further ones of a single parameter."""


def answer_for_every(module: Module, launch: Launch, model: Model, question: Question, engine: str) -> Answer:
    """``mcheck.checking.modules.answer.answer``. Where control depends on parameters that are ``"any"``, a finding is
    that of the smallest numbers that have one and names them; without a proof for all of them the answer is
    ``unknown``.
    """
    names = [a.name for a in launch.arguments if _is_any(a)]
    try:
        return answer(module, launch, model, question, engine)
    except MissingParameter:
        if not names:
            raise
    return _of_one(_Every(module, launch, model, question, engine, names).answer(), module, launch)


def _of_one(given: Answer, module: Module, launch: Launch) -> Answer:
    """A proof for all numbers is one for the cluster that was looked at, unless all only read and do the same: how what
    they access goes on with the numbers is not compared.
    """
    covers = covers_of(launch)
    if only_reads(module, launch.entry):
        covers = replace(covers, clusters=covers.of)
    if covers.clusters < covers.of and given.verdict is Verdict.PROVED:
        said = Reason(Cause.CLUSTERS, f"one of {covers.of} clusters of the grid was looked at, for every number")
        verdict, bound = verdict_of(given.findings, covered=False, reasons=(said,))
        return replace(given, verdict=verdict, reasons=(*bound, *given.reasons), covered=False, covers=covers)
    return replace(given, covers=covers, covered=given.covered and covers.clusters == covers.of)


@dataclass(slots=True)
class _Every:
    module: Module
    launch: Launch
    model: Model
    question: Question
    engine: str
    names: list[str]
    limit: Limit = field(init=False)
    looked: Looked[tuple[int, ...]] = field(init=False)

    def answer(self) -> Answer:
        """The answer for all numbers."""
        self.limit = Limit(self.question.timeout)
        self.looked = Looked(self.question.excused)
        why: Reasons = (Reason(Cause.NUMBERS, "several parameters are any number"),)
        try:
            if len(self.names) == 1:
                given = self.of_one()
                if isinstance(given, Answer):
                    return given
                why = given
            for numbers in self.tried():
                if self.look(numbers):
                    self.smallest(numbers)
                    break
        except TimeOut as over:
            late = next(iter(self.looked.slow.values()), None)
            return self.conclusion(late.reasons if late is not None else (no_time(self.question.timeout, str(over)),))
        return self.conclusion(why)

    # --- the proof ------------------------------------------------------------------------------------------------

    def of_one(self) -> Answer | Reasons:
        """The answer about the only such parameter, by a proof or of a number that shows something, or why there is
        none.
        """
        if self.engine not in ("auto", "protocol"):
            return (Reason(Cause.NUMBERS, f"the {self.engine} engine looks at single numbers"),)
        ways = attempted(self.limit, self.repeating)
        return ways.why if isinstance(ways, Unproved) else self.proved(ways)

    def repeating(self, limit: Limit) -> list[PeriodicTrace]:
        """How the ways of the kernel repeat."""
        from mcheck.simt.parametric.periodic_trace import PeriodFinder

        argument = next(a for a in self.launch.arguments if _is_any(a))
        ways: list[PeriodicTrace] = []
        todo = [PathChoices()]
        while todo:
            finder = PeriodFinder(self.module, self.with_number, argument, todo.pop(), limit, argument.name)
            ways.append(finder.find())
            todo += [w for w in finder.alternatives() if not ways[-1].path.last_lane_leads]
        return ways

    def proved(self, ways: list[PeriodicTrace]) -> Answer | Reasons:
        """The answer from proofs for all ways, or of a number that shows something; else why there is none."""
        proofs = attempted(self.limit, lambda limit: [self.proof(way, limit) for way in ways])
        first = ways[0].starts[-1]
        if not isinstance(proofs, Unproved):
            first = max(w.first_number(p.first) for w, p in zip(ways, proofs, strict=True))
        for number in self.below(ways, first):
            if self.look((number,)):
                return self.conclusion(())
            given = self.looked.found[(number,)]
            if not isinstance(proofs, Unproved) and not is_whole(given):
                proofs = Unproved(given.reasons or (Reason(Cause.LEFT_OUT),))
        if isinstance(proofs, Unproved):
            return proofs.why
        last = min(way.last for way in ways)
        rounds = max(p.period // len(w.starts) * w.step for w, p in zip(ways, proofs, strict=True))
        answers = list(self.looked.found.values())
        name = self.names[0]
        often = f"every {rounds}" if rounds > 1 else "with every one"
        said = (
            f"for every number of rounds from 0 on: from {name} = {first} on, the state repeats {often}"
            f" ({name} up to {last}: beyond that a register may overflow)"
        )
        executions = self.looked.executions + sum(p.executions for p in proofs)
        given = replace(answers[0], assumptions=merge_assumptions(answers))
        return merge_proved(given, [*answers, *(p.answer for p in proofs)], executions, Reason(Cause.PERIODIC, said))

    def proof(self, way: PeriodicTrace, limit: Limit) -> Proof:
        """That nothing is found however often the loop of a way runs, from some number on."""
        from mcheck.proofs.parametric_proof import prove

        way = replace(
            way,
            heads=tuple(map(batch_code, way.heads)),
            bodies=tuple(map(batch_code, way.bodies)),
            tails=tuple(tuple(map(batch_code, tail)) for tail in way.tails),
        )

        def sized(size: int) -> Program:
            return way.build_program(size).assuming(self.launch.assume)

        rounds = Rounds(len(way.starts), {}, {}, place=way.loop_bounds)
        program = replace(sized(0), free=self.names[0], sized=sized, rounds=lambda: rounds)
        return prove(program, self.model, self.question.profile, self.question.unroll, limit)

    def below(self, ways: list[PeriodicTrace], first: int) -> Iterator[int]:
        """The numbers below one that differ from those before, in some way."""
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

    def tried(self) -> Iterator[tuple[int, ...]]:
        """The numbers that are tried without a proof."""
        last = LAST.get(len(self.names), 1)
        yield from sorted(product(range(last + 1), repeat=len(self.names)), key=sum)
        if len(self.names) == 1:
            yield from ((number,) for number in LARGER)

    def smallest(self, numbers: tuple[int, ...]) -> None:
        """Looks at the numbers below those of a finding that were left out."""
        if len(numbers) == 1:
            for number in range(numbers[0]):
                if self.look((number,)):
                    break

    def with_number(self, number: int) -> Launch:
        """The launch with a number for the parameter."""
        return _with(self.launch, {self.names[0]: number})

    def look(self, numbers: tuple[int, ...]) -> bool:
        """Looks at numbers; whether they have an error, so that others need not be. Raises ``TimeOut``."""
        if numbers not in self.looked:
            asked = replace(self.question, timeout=self.limit.remaining())
            launch = _with(self.launch, dict(zip(self.names, numbers, strict=True)))
            self.looked.take(numbers, answer(self.module, launch, self.model, asked, self.engine, alone=True))
        if numbers in self.looked.slow:
            raise TimeOut
        return self.looked.ends(self.looked.found[numbers])

    def named(self, numbers: tuple[int, ...]) -> str:
        """Numbers with the names of their parameters."""
        return ", ".join(f"{name} = {number}" for name, number in zip(self.names, numbers, strict=True))

    def conclusion(self, why: Reasons) -> Answer:
        """The answer of the smallest numbers that have a finding; else what is known of those that were looked at."""
        found = self.looked.found
        wrong = min(self.looked.wrong, key=sum, default=None)
        if wrong is not None:
            given = found[wrong]
            findings = tuple(replace(f, message=f"{f.message}, with {self.named(wrong)}") for f in given.findings)
            reasons = once(given.reasons, (r for r in why if r.cut))
            return replace(
                given, findings=findings, covered=False, executions=self.looked.executions, reasons=reasons,
                cut=any(a.cut for a in found.values()),
            )  # fmt: skip
        if not found:
            return Answer(verdict=Verdict.UNKNOWN, engine="protocol", covered=False, reasons=why)
        left = explain_unproved(
            " and ".join(self.names), "number", found, lambda clean: "; ".join(map(_listed, zip(*clean, strict=True))),
            self.named, Reason(Cause.NOT_PERIODIC, "that others add nothing is not proved", because=why),
        )  # fmt: skip
        answers = list(found.values())
        return replace(
            answers[-1], verdict=Verdict.UNKNOWN, reasons=(left,), findings=merge_findings(answers[::-1]),
            covered=False, assumptions=merge_assumptions(answers),
            executions=self.looked.executions, cut=any(a.cut for a in answers),
        )  # fmt: skip


def _is_any(argument: Argument) -> bool:
    return any(isinstance(place, AnyNumber) for _, place in argument.places)


def _with(launch: Launch, numbers: dict[str, int]) -> Launch:
    """The launch with numbers in the places of ``Any``."""
    return replace(launch, arguments=tuple(_given(a, numbers.get(a.name)) for a in launch.arguments))


def _given(argument: Argument, number: int | None) -> Argument:
    if number is None:
        return argument
    data = number.to_bytes(argument.size, "little")
    return replace(argument, data=data, known=((0, argument.size),), places=())


def _listed(numbers: Sequence[int]) -> str:
    some = sorted(set(numbers))
    return ", ".join(map(str, some))
