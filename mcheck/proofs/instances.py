"""Instances of a program for several values of N, executed together as far as they agree.

``mcheck.proofs.prefix_sharing`` has the argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mcheck.answers.result import Answer
from mcheck.base.errors import InputError, Unsupported
from mcheck.base.records import dataclass, replace
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
"""The answer about an instance, from the answer that no error was found; ``None`` if other engines have to be asked."""


MAX_PENDING = 24
"""Executions kept at the point where they diverge from larger instances; the oldest are then run to their ends."""


class HorizonReached(Exception):
    """The execution has been followed as far as the largest instance allows, and is not over."""

    def __init__(self, m: Machine) -> None:
        super().__init__()
        self.machine = m


@dataclass(frozen=True, slots=True)
class CodePositions:
    """Positions of agents in the code of a program whose first and last operations a machine's program may have."""

    code: list[tuple[Op, ...]]
    at: Callable[[Agent], int] = lambda agent: agent.pc

    @staticmethod
    def in_program(setup: Setup) -> CodePositions:
        """Return the positions in a program itself."""
        return CodePositions([setup.program.threads[group[0]].code for group in setup.partition])

    def next_visible(self, agent: Agent) -> int:
        """Return the position of the agent's next operation that other agents may observe."""
        return next_visible(self.code[agent.index], self.at(agent))


@dataclass(frozen=True, slots=True)
class LoopPositions:
    """Where each agent stands in its loop, and the number of the instance whose execution it is, if there are many."""

    at: dict[int, int]
    instance: int | None


class Family(Protocol):
    """The programs that differ in N."""

    rounds: LoopPeriodicity
    suffices: Suffices | None

    def build_instance(self, number: int) -> Program: ...

    def prepare(self, program: Program) -> Setup: ...

    def loop_ends(self, setup: Setup, number: int) -> list[int]: ...

    def judge(self, m: Machine) -> Answer | None: ...

    def explain_non_interleaving(self, setup: Setup) -> str | None: ...


class Instances:
    """The instances up to ``most`` whose executions agree so far (``mcheck.proofs.prefix_sharing``)."""

    def __init__(self, family: Family, whole: Setup, fewest: int, most: int) -> None:
        self.family, self.most = family, most
        self._reuse = SetupReuse(whole)
        self._setups: dict[int, Setup] = {}
        self._diffs: dict[int, ProgramDiff | None] = {}
        self.between: tuple[LoopPositions, LoopPositions] | None = None
        """Where the agents stood in the two states that are alike."""
        self.smallest = self._smallest(fewest)
        self._shared = SharedPrefixes(self.diff, self.smallest)
        self._ended: dict[int, Answer | None] = {}
        """The answers of those that are over."""

    def start(self) -> Setup:
        """Return the first program to execute."""
        self._shared, self._ended = SharedPrefixes(self.diff, self.smallest), {}
        self.between = None
        return self.setup(self.smallest)

    def positions(self, whole: Setup) -> CodePositions:
        """Return the positions of agents in a large instance while they execute a small one."""
        of_whole = CodePositions.in_program(whole)

        def at(agent: Agent) -> int:
            more = len(of_whole.code[agent.index]) - len(agent.code)
            return agent.pc + more if agent.index in self._shared.behind else agent.pc

        return replace(of_whole, at=at)

    def before_step(self, m: Machine, agent: Agent) -> None:
        """Hook that is called before every step."""
        self._shared.before_step(m, agent)
        kept = self._shared.kept
        while len(kept) > MAX_PENDING:
            number = next(iter(kept))
            self._ended[number] = self._end(number)
        if self._shared.number >= self.most:
            raise HorizonReached(m)

    def setup(self, number: int) -> Setup:
        """Return the setup of an instance."""
        found = self._setups.get(number)
        if found is None:
            program = self.family.build_instance(number)
            found = self._setups[number] = self._reuse.setup(program) or self.family.prepare(program)
        return found

    def diff(self, number: int) -> ProgramDiff | None:
        """Return the difference between an instance and the next one."""
        if number not in self._diffs:
            self._diffs[number] = ProgramDiff.compare(self.setup(number), self.setup(number + 1))
        return self._diffs[number]

    def _smallest(self, number: int) -> int:
        """Return the smallest N from which on each instance up to this one is comparable with the next.

        That is this one if nobody asks about smaller ones.
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

    @property
    def current(self) -> int:
        """The number of the instance that is executed now."""
        return self._shared.number

    def find_first(self, distance: int, steps: int) -> int | None:
        """Return the smallest N for which all agents are in their loops at both equal states.

        They are there at the first state with N, and with ``distance`` more rounds at the second. ``None`` while that
        is not known yet, or while some of the instances up to ``steps`` more have not diverged.
        """
        if self.between is None:
            return None
        earlier, later = (self._first_at(positions) for positions in self.between)
        if earlier is None or later is None:
            return None
        first = max(earlier, later - distance, self.family.rounds.least)
        return first if self._shared.number >= first + steps else None

    def _first_at(self, positions: LoopPositions) -> int | None:
        """Return the smallest N with which all agents are in their loops at these positions."""
        assert positions.instance is not None
        number = positions.instance
        while number <= self._shared.number:
            ends = self.family.loop_ends(self.setup(number), number)
            if all(at < ends[k] for k, at in positions.at.items()):
                return number
            number += 1
        return None

    def answer(self, number: int) -> Answer | None:
        """Return the answer of an instance, run from where it diverged; ``None`` if it has to be run from its
        beginning.
        """
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
        """Return the answers of the instances below N about which nothing else has to be asked."""
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
