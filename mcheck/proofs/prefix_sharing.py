"""Shared prefixes: what the executions of all instances have in common is executed once.

Programs that differ in N are executed as the smallest of them as long as its steps are those of the next one, too. At a
step that differs, a copy of the execution is kept, to be run to its end later, and the execution continues as that of
the next N (``mcheck.proofs.program_diff``). So each N costs only what is its own, its last rounds.

The result is an execution of each N from its beginning. It is the only one if neither the common part nor the own part
could have taken another course, which the caller has to check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.machine_copies import copy_machine
from mcheck.engines.protocol.operations.scheduler import run_to_end
from mcheck.engines.protocol.state.agent import Agent
from mcheck.proofs.program_diff import ProgramDiff


class Unshared(Exception):
    """Some N differs from the beginning: each instance has to be executed separately."""


@dataclass(slots=True)
class SharedPrefixes:
    """What the instances from ``number`` on have in common; ``diff`` gives the difference between N and N + 1."""

    diff: Callable[[int], ProgramDiff | None]
    number: int
    kept: dict[int, Machine] = field(default_factory=dict)
    """By N, the execution at the point where it diverges from larger instances."""
    behind: set[int] = field(default_factory=set)
    """The agents that are past everything that the instances differ in."""
    _diff: ProgramDiff | None = None
    _branch: tuple[int, int] | None = None
    """An agent that may just have branched there, and the place."""

    def before_step(self, m: Machine, agent: Agent) -> None:
        """Hook before every step: continues as the next instance if they diverge here."""
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
        """Run the execution of an instance to its end."""
        m = self.kept.pop(number)
        run_to_end(m)
        return m
