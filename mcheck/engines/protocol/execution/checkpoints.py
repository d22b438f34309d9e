"""Checkpoints: where an execution begins as the one before it did, the machine is restored there instead of replayed.

What the machine is after the steps of a prefix depends on nothing but these steps: which agents and signals take them,
and with which choices. So while a prefix is replayed, copies of the machine are kept, and an execution whose prefix
begins as the one before it continues from a copy of the last of them that both share. The search goes on from the end
of an execution, so that consecutive prefixes differ at their ends: copies are dense there, and ever farther apart
before. A copy takes as long as eight steps or more: its time grows with the state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.machine_copies import copy_machine
from mcheck.engines.protocol.state.trace import Prefix

NEAREST = 12
"""Steps from the last checkpoint to the end of the prefix. The one before is twice as far from it, and so on: what is
replayed is at most as long as what differs.
"""
MOST = 24
"""The maximum number of checkpoints. Beyond it every second one is given up, so they get farther apart."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state after the first ``length`` steps of a prefix, the last of which ``agent`` made."""

    length: int
    agent: int
    machine: Machine


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of the latest execution of a search, in the order of its steps."""

    prefix: Prefix = ()
    """Its prefix."""
    kept: list[Checkpoint] = field(default_factory=list)
    wanted: frozenset[int] = frozenset()
    """After how many of its steps the state is to be kept."""

    def clear(self) -> None:
        """Give all of them up: steps may have another effect from now on."""
        self.kept.clear()

    def restore(self, prefix: Prefix) -> Checkpoint | None:
        """The longest beginning of a prefix that has been kept, with a machine of its own; none if there is none."""
        shared = _common_length(prefix, self.prefix)
        self.prefix = prefix
        while self.kept and self.kept[-1].length > shared:
            self.kept.pop()
        self.wanted = frozenset(_lengths_to_keep(self.kept[-1].length if self.kept else 0, len(prefix)))
        if not self.kept:
            return None
        found = self.kept[-1]
        machine = copy_machine(found.machine)
        machine.prefix = prefix
        return Checkpoint(found.length, found.agent, machine)

    def offer(self, length: int, agent: int, m: Machine) -> None:
        """Keep the state between two steps of the prefix, if it is wanted."""
        if length not in self.wanted:
            return
        if len(self.kept) == MOST:
            del self.kept[::2]
        self.kept.append(Checkpoint(length, agent, copy_machine(m)))


def _lengths_to_keep(begun: int, end: int) -> Iterator[int]:
    """The lengths at which the state of a prefix of ``end`` steps is kept, that is replayed from ``begun`` on."""
    distance = NEAREST
    while end - distance >= begun + NEAREST:
        yield end - distance
        distance *= 2


def _common_length(a: Prefix, b: Prefix) -> int:
    """The number of steps with which both begin."""
    return next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
