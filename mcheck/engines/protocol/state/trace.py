"""The trace of an execution: its steps in order, and the reversals that start other executions."""

from __future__ import annotations

from dataclasses import field

from mcheck.answers.advice.graph import Step
from mcheck.base.records import dataclass
from mcheck.engines.protocol.state.vector_clocks import Vector

Choice = tuple[int, int | tuple[int, ...]]
"""A choice made in a step: (taken, number of options), or (taken, the other options)."""
PlannedStep = tuple[object, tuple[int, ...]]
"""A step to replay: the agent or signal, and its choices."""
Prefix = tuple[PlannedStep, ...]
"""Steps to replay."""


@dataclass(slots=True)
class TraceEntry(Step):
    """A step of the trace."""

    actor: object = -1
    """The agent, or what identifies the signal."""
    choices: list[Choice] = field(default_factory=list)
    note: str = ""
    phase: int = 0
    clock_bound: int = 0
    """For a completion signal, the largest value of clock component ``signal`` while its phase is not over."""
    guess: int | None = None
    """The branch taken where the condition is not known."""
    failed_steps: list[PlannedStep] = field(default_factory=list)
    """Steps tried directly before that chose to keep waiting."""
    start_time: Vector = field(default_factory=list)
    """The time at which an arrival at a barrier was made; ``time`` includes what the barrier waited for."""


Reversal = tuple[int, tuple[TraceEntry, ...], int]
"""A reversal: the position of a step, the steps that may precede it instead, and the length of the trace then."""
PhaseReversal = tuple[int, tuple[int, int], tuple[int, int]]
"""A reversal of two operations in different phases of one mbarrier: its address, and (agent, step) of each."""
