"""The numbers whose programs are followed as one, as far as they do the same (``mcheck.proofs.prefix_sharing``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from mcheck.answers.result import Answer
from mcheck.base.errors import InputError, Unsupported
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import NewMbarrier, NewOrder, NewWord, Setup
from mcheck.engines.protocol.state.agent import Agent
from mcheck.ir.loop_unrolling import Aperiodic, LoopPeriodicity
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.proofs.prefix_sharing import SharedPrefixes
from mcheck.proofs.program_diff import ProgramDiff, next_visible
from mcheck.proofs.setup_reuse import SetupReuse

Suffices = Callable[[Program, Answer], Answer | None]
"""What is to be said of a program, from the answer that says that nothing was found; ``None`` if others are asked."""


MAX_PENDING = 24
"""So many executions are kept where they part from larger numbers; the first ones are brought to their ends before."""


class HorizonReached(Exception):
    """The execution has been followed far enough, and is not over."""

    def __init__(self, m: Machine) -> None:
        super().__init__()
        self.machine = m


@dataclass(frozen=True, slots=True)
class CodePositions:
    """Where agents stand in the code of a program, which that of a machine may be the beginning and the end of."""

    code: list[tuple[Op, ...]]
    at: Callable[[Agent], int] = lambda agent: agent.pc

    @staticmethod
    def in_program(setup: Setup) -> CodePositions:
        """In a program by itself."""
        return CodePositions([setup.program.threads[group[0]].code for group in setup.partition])

    def next_visible(self, agent: Agent) -> int:
        """Where the next operation of an agent stands that is not local."""
        return next_visible(self.code[agent.index], self.at(agent))


class Family(Protocol):
    """Programs that differ in a number."""

    rounds: LoopPeriodicity
    suffices: Suffices | None

    def build_instance(self, number: int) -> Program: ...

    def prepare(self, program: Program) -> Setup: ...

    def loop_ends(self, setup: Setup, number: int) -> list[int]: ...

    def judge(self, m: Machine) -> Answer | None: ...

    def explain_non_interleaving(self, setup: Setup) -> str | None: ...


class Instances:
    """The numbers whose executions are one so far (``mcheck.proofs.prefix_sharing``), up to ``most``."""

    def __init__(self, family: Family, whole: Setup, fewest: int, most: int) -> None:
        self.family, self.most = family, most
        self._reuse = SetupReuse(whole)
        self._setups: dict[int, Setup] = {}
        self._diffs: dict[int, ProgramDiff | None] = {}
        self._marks: list[tuple[dict[int, int], int]] = []
        """Where agents stood in their loops, and the number whose execution it was."""
        self.between = 0, 0
        """The marks of the two states that are alike."""
        self.smallest = self._smallest(fewest)
        self._shared = SharedPrefixes(self.diff, self.smallest)
        self._ended: dict[int, Answer | None] = {}
        """The answers of those that are over."""

    def start(self) -> Setup:
        """What is to be executed first."""
        self._shared, self._marks, self._ended = SharedPrefixes(self.diff, self.smallest), [], {}
        return self.setup(self.smallest)

    def positions(self, whole: Setup) -> CodePositions:
        """Where agents stand in the program with a large number, while they are in that with a small one."""
        of_whole = CodePositions.in_program(whole)

        def at(agent: Agent) -> int:
            more = len(of_whole.code[agent.index]) - len(agent.code)
            return agent.pc + more if agent.index in self._shared.behind else agent.pc

        return replace(of_whole, at=at)

    def before_step(self, m: Machine, agent: Agent) -> None:
        """Is told of every step before it is made."""
        self._shared.before_step(m, agent)
        kept = self._shared.kept
        while len(kept) > MAX_PENDING:
            number = next(iter(kept))
            self._ended[number] = self._end(number)
        if self._shared.number >= self.most:
            raise HorizonReached(m)

    def setup(self, number: int) -> Setup:
        """The program with a number as the engine runs it."""
        found = self._setups.get(number)
        if found is None:
            program = self.family.build_instance(number)
            found = self._setups[number] = self._reuse.setup(program) or self.family.prepare(program)
        return found

    def diff(self, number: int) -> ProgramDiff | None:
        """The diff of a number and the next one."""
        if number not in self._diffs:
            self._diffs[number] = ProgramDiff.compare(self.setup(number), self.setup(number + 1))
        return self._diffs[number]

    def _smallest(self, number: int) -> int:
        """The smallest number from which on, up to this one, each is joined to the next one; where nobody asks about
        small ones, this one.
        """
        if self.family.suffices is None:
            return number
        while number > self.family.rounds.least:
            try:
                fits = self.diff(number - 1) is not None
            except (InputError, Unsupported, Aperiodic, Split):
                break
            if not fits:
                break
            number -= 1
        return number

    def mark_places(self, places: dict[int, int]) -> int:
        """A mark for where agents stand now."""
        self._marks.append((places, self._shared.number))
        return len(self._marks) - 1

    def find_first(self, distance: int, steps: int) -> int | None:
        """The smallest number in whose execution all agents are in their loops in the first of the two states, and with
        ``distance`` more rounds in the second one; ``None`` as long as that is one that is not known yet, or some of
        the numbers up to ``steps`` more have not parted.
        """
        earlier, later = (self._first_at(mark) for mark in self.between)
        if earlier is None or later is None:
            return None
        first = max(earlier, later - distance, self.family.rounds.least)
        return first if self._shared.number >= first + steps else None

    def _first_at(self, mark: int) -> int | None:
        places, number = self._marks[mark]
        while number <= self._shared.number:
            ends = self.family.loop_ends(self.setup(number), number)
            if all(at < ends[k] for k, at in places.items()):
                return number
            number += 1
        return None

    def answer(self, number: int) -> Answer | None:
        """The answer of a number, from where it parted; ``None`` if it has to be run from its beginning."""
        if number in self._ended:
            return self._ended[number]
        return self._end(number) if number in self._shared.kept else None

    def _end(self, number: int) -> Answer | None:
        try:
            m = self._shared.run_instance(number)
            return None if m.problems else self.family.judge(m)
        except (Aperiodic, Unsupported, Split, NewMbarrier, NewOrder, NewWord):
            return None

    def answers_below(self, first: int) -> dict[int, Answer]:
        """The answers of those below a number of which nothing else has to be asked."""
        found: dict[int, Answer] = {}
        suffices = self.family.suffices
        if suffices is None:
            return found
        for number in range(self.smallest, first):
            given = self.answer(number)
            if given is None or self.family.explain_non_interleaving(self.setup(number)) is not None:
                continue
            told = suffices(self.setup(number).program, replace(given, complete=False))
            if told is not None:
                found[number] = told
        return found
