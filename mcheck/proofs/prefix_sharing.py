"""One execution of ever larger numbers: what all programs do alike is done once.

Programs that differ in a number are followed as the one with the smallest of them, as long as its steps are those of
the next one, too. Where a step is not, the execution is kept as it is, to be brought to its end some time, and goes on
as one of the next number (``mcheck.proofs.program_diff``). So each number costs what it alone does, its last rounds.

That is an execution of each number from its beginning, and all there are of it if neither what they have in common nor
what is its own could have gone another way, which is for those to see who ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations.scheduler import run_to_end
from mcheck.engines.protocol.state.agent import Agent
from mcheck.proofs.machine_copies import copy_machine
from mcheck.proofs.program_diff import ProgramDiff


class Unshared(Exception):
    """Some number is not alike so far: each has to be followed from its beginning."""


@dataclass(slots=True)
class SharedPrefixes:
    """What numbers from ``number`` on have in common; ``diff`` is that of a number and the next one."""

    diff: Callable[[int], ProgramDiff | None]
    number: int
    kept: dict[int, Machine] = field(default_factory=dict)
    """By number, the execution where it parts from that of larger ones."""
    behind: set[int] = field(default_factory=set)
    """The agents that are past all that numbers differ in."""
    _diff: ProgramDiff | None = None
    _branch: tuple[int, int] | None = None
    """An agent that may have gone there just now, and where that is."""

    def before_step(self, m: Machine, agent: Agent) -> None:
        """Is told of every step before it is made; makes the machine one of the next numbers if they part here."""
        if self._diff is None:
            self._diff = self._found()
        if self._branch is not None:
            who, place = self._branch
            if m.agents[who].pc == place:
                self.behind.add(who)
        while not self._diff.continues_alike(agent, agent.index in self.behind):
            self.kept[self.number] = copy_machine(m)
            self._diff.transfer(m, self.behind)
            self.number += 1
            self._diff = self._found()
            if not self._diff.applies_to(m, self.behind):
                raise Unshared
        target = None if agent.index in self.behind else self._diff.find_exit_target(agent)
        self._branch = None if target is None else (agent.index, target)

    def _found(self) -> ProgramDiff:
        found = self.diff(self.number)
        if found is None:
            raise Unshared
        return found

    def run_instance(self, number: int) -> Machine:
        """The execution of a number, to its end."""
        m = self.kept.pop(number)
        run_to_end(m)
        return m
