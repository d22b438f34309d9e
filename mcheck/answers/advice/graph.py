"""The execution graph that advice is computed from: steps in one order, what each knows of the others, two accesses.

Each engine hands over the graph of an execution in which two accesses race.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from mcheck.answers.step_text import name_of_threads, thing_at
from mcheck.base.phrase import Site, Thing
from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.memory import Cta
from mcheck.ir.ops import Op
from mcheck.ir.program import Place, Program

Clock = Sequence[int]
"""How far something knows the others: for each agent the number of its steps, then for each signal its progress."""


@dataclass(slots=True)
class Step:
    """A step of an agent, its number ``step``; with a ``signal``, the completion of what it issued at that step.

    ``time`` is what is before it, ``pc`` the place of the operation in the agent's code, ``signal`` the component of
    clocks that a completion advances.
    """

    agent: int
    step: int
    time: list[int]
    op: Op
    pc: int = -1
    signal: int = -1


@dataclass(frozen=True, slots=True)
class GraphAgent:
    """A thread, or lanes that execute as one. ``blocked_at`` is the operation at which it waits forever."""

    index: int
    threads: tuple[int, ...]
    code: tuple[Op, ...]
    ended: bool = False
    blocked_at: Op | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """The signal of a completion to an mbarrier: known where component ``clock`` exceeds ``bound``; ``None`` if it has
    not arrived yet.
    """

    bar: Thing
    cta: Cta | None
    phase: int
    clock: int
    bound: int | None


@dataclass(frozen=True, slots=True)
class GraphAccess:
    """An access: the step that makes or issues it, at ``position`` in the graph.

    ``time`` is what its agent knows there, ``waits`` are the waits for its group as (agent, step), ``signals`` those of
    its completion, ``arrivals`` those of the ``cp.async.mbarrier.arrive`` behind it, of a ``cp.async``.
    """

    agent: int
    step: int
    position: int
    event: Event
    time: Clock
    waits: tuple[tuple[int, int], ...] = ()
    signals: tuple[Signal, ...] = ()
    arrivals: tuple[Signal, ...] = ()

    @property
    def op(self) -> Op:
        """Its operation."""
        return self.event.op

    @property
    def write(self) -> bool:
        """Whether it writes."""
        return Tag.W in self.event.tags

    @property
    def asynchronous(self) -> bool:
        """Whether it is outside program order."""
        return self.event.order is None

    @property
    def proxy(self) -> Tag:
        """The set of its proxy."""
        return next((tag for tag in (Tag.ASYNC, Tag.TMAP) if tag in self.event.tags), Tag.GEN)

    @property
    def is_global(self) -> bool:
        """Whether it accesses global memory."""
        return Tag.GLOBAL in self.event.tags and Tag.SHARED not in self.event.tags

    @property
    def is_modification(self) -> bool:
        """Whether it is to what its operation modifies, which ``.read`` does not wait for: a reduction reads it too."""
        reduces = isinstance(self.op, ops.BulkCopy | ops.TensorCopy) and self.op.reduce is not None
        return self.write or (reduces and self.is_global)

    def is_complete_before(self, agent: int, step: int, time: Clock) -> bool:
        """Whether it is complete before a step of an agent with this time."""
        if not self.asynchronous:
            return (self.agent == agent and self.step < step) or time[self.agent] >= self.step
        signalled = any(s.bound is not None and time[s.clock] > s.bound for s in (*self.signals, *self.arrivals))
        return signalled or any(time[waited] >= at for waited, at in self.waits)


@dataclass(frozen=True)
class ExecutionGraph:
    """An execution and two accesses in it that race: ``old`` and, later in the order of ``steps``, ``new``.

    ``others`` are the accesses to the byte at which the two meet. ``numbered``: reports number the steps.
    """

    program: Program
    agents: tuple[GraphAgent, ...]
    steps: Sequence[Step]
    old: GraphAccess
    new: GraphAccess
    others: Sequence[GraphAccess] = ()
    numbered: bool = False

    def place(self, agent: int) -> Place:
        """The place of the first thread of an agent."""
        return self.program.threads[self.agents[agent].threads[0]].place

    def share_cta(self, agent: int, other: int) -> bool:
        """Whether two agents are in one CTA."""
        return self.place(agent).cta == self.place(other).cta

    def is_known(self, step: Step) -> bool:
        """Whether the later access comes after a step."""
        return step.agent == self.new.agent or self.new.time[step.agent] >= step.step

    def comes_after(self, step: Step, agent: int, other: int) -> bool:
        """Whether a step comes after the step ``other`` of an agent; what it knows leaves its own steps out."""
        return step.step > other if step.agent == agent else step.time[agent] >= other

    def name(self, agent: int) -> str:
        """The name of an agent in reports."""
        return name_of_threads(self.program, self.agents[agent].threads)

    def thing_at(self, address: int) -> Thing:
        """The object at an address."""
        return thing_at(self.program, address)

    def own_steps(self, agent: int, since: int = 0) -> Iterator[Step]:
        """The steps of an agent from a position on, without the completions of what it issued."""
        return (e for e in self.steps[since:] if e.agent == agent and e.signal < 0)

    def executions(self, agent: int, op: Op, until: int) -> int:
        """How often an agent has executed a statement before a step of its own."""
        return sum(1 for e in self.own_steps(agent) if e.step < until and e.op.span == op.span)

    def step_at(self, agent: int, step: int) -> Step | None:
        """What an agent did at a step."""
        return find_step(self.steps, agent, step)


AnyStep = TypeVar("AnyStep", bound=Step)


def find_step(steps: Sequence[AnyStep], agent: int, step: int) -> AnyStep | None:
    """What an agent did at a step of its own."""
    if step <= 0:
        return None
    return next((e for e in reversed(steps) if e.agent == agent and e.signal < 0 and e.step == step), None)


def site_of(op: Op) -> Site:
    """The place of an instruction, as fixes name it."""
    return Site(op.span.line, op.span.column) if op.span is not None else Site(0)


def line_of(op: Op) -> int:
    """The line of an instruction."""
    return op.span.line if op.span is not None else 0
