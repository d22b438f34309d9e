"""The trace of an execution: its steps in their order, and what the next execution is to do otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.ir.ops import Op

Choice = tuple[int, int | tuple[int, ...]]
"""A choice made in a step: (taken, of how many), or (taken, the others)."""
PlannedStep = tuple[object, tuple[int, ...]]
"""A step to replay: who, and which choices."""
Prefix = tuple[PlannedStep, ...]
"""Steps to replay."""


@dataclass(slots=True)
class TraceEntry:
    """A step of the trace."""

    actor: object
    agent: int
    step: int
    time: Vector
    op: Op
    choices: list[Choice] = field(default_factory=list)
    note: str = ""
    signal: int = -1
    phase: int = 0
    clock_bound: int = 0
    """Of a completion signal, what the component ``signal`` of a time is at most while its phase is not over."""
    pc: int = -1
    """Where in the code the operation stands."""
    guess: int | None = None
    """The way that was taken where what decides is not known."""
    failed_steps: list[PlannedStep] = field(default_factory=list)
    """What was tried just before, and went on waiting although it might have gone on."""
    start_time: Vector = field(default_factory=list)
    """What was over in time when an arrival at a barrier was made; ``time`` has what it waited for there, too."""


Reversal = tuple[int, tuple[TraceEntry, ...], int]
"""The position of a step, those that may come before it instead, how far the trace had come."""
PhaseReversal = tuple[int, tuple[int, int], tuple[int, int]]
"""The address of an mbarrier, and of two operations on it the agents and the numbers of their steps."""
