"""What synchronisation through awaited words orders in an execution, in every execution with the same waits.

The window knows all that the model orders, but also what it orders because an atomic happened to come after another
one. Here it is only what program order, barriers and the patterns of waits give (8.8, 8.9.4, 8.9.5), and perhaps less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from mcheck.base.declared_state import SHALLOW, Attribute, Unnamed, declare_state, mapped
from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Placement, Write
from mcheck.engines.protocol.state.vector_clocks import Vector, join_clocks
from mcheck.events.event import Event
from mcheck.ir.scopes import scopes_are_mutual

NARROW = frozenset((Tag.RESTRICTED, Tag.MBARRIER_INIT_FENCE))
"""Fences that order some operations only."""


@dataclass(frozen=True, slots=True)
class Release:
    """The head of a release pattern: its scope, the place of its thread, and what comes before it."""

    scope: str
    place: Placement
    time: Vector


@dataclass(slots=True)
class Causality:
    """For each agent, the steps of others that are ordered before its next one."""

    times: dict[int, Vector] = field(default_factory=dict)
    fences: dict[int, dict[str, Release]] = field(default_factory=dict)
    """By agent and scope, the latest release fence."""
    releases: dict[tuple[int, int], tuple[Release, ...]] = field(default_factory=dict)
    """By agent and step, the release patterns that end with a write."""
    observed: dict[int, list[Release]] = field(default_factory=dict)
    """By agent, the patterns that its waits have observed, for the next acquire fence."""

    def known(self, agent: Agent) -> Vector:
        """What is ordered before the present step of an agent, itself included."""
        time = self.times.get(agent.index) or [0] * len(agent.time)
        return [*time[: agent.index], agent.step, *time[agent.index + 1 :]]

    def known_to_each_lane(self, agent: Agent) -> Vector:
        """What is ordered before the present step of each lane of an agent: of the steps of other lanes of the agent
        only those that synchronisation has ordered.
        """
        return self.known(agent) if agent.is_single_thread else self.times.get(agent.index) or [0] * len(agent.time)

    def add_release(self, agent: Agent, event: Event) -> None:
        """Add a write, which may release."""
        found = list(self.fences.get(agent.index, {}).values())
        if Tag.REL in event.tags:
            found.append(Release(event.scope or "sys", agent.placement, self.known(agent)))
        self.releases[agent.index, agent.step] = tuple(found)

    def add_acquire(self, agent: Agent, event: Event, writes: Sequence[Write]) -> None:
        """Add a wait that has observed some writes."""
        found = [head for w in writes for head in self.releases.get((w.agent, w.step), ())]
        if Tag.ACQ in event.tags:
            self._acquire(agent, event, found)
        self.observed.setdefault(agent.index, []).extend(found)

    def add_fence(self, agent: Agent, event: Event) -> None:
        """Add a fence: it acquires what was observed before it, and releases what precedes it."""
        if event.tags & NARROW:
            return
        if event.tags & {Tag.ACQ, Tag.ACQ_REL, Tag.SC}:
            self._acquire(agent, event, self.observed.get(agent.index, ()))
        if event.tags & {Tag.REL, Tag.ACQ_REL, Tag.SC}:
            scope = event.scope or "sys"
            self.fences.setdefault(agent.index, {})[scope] = Release(scope, agent.placement, self.known(agent))

    def add_meeting(self, agents: Sequence[Agent]) -> None:
        """Add a barrier that agents leave together."""
        if not agents:
            return
        time = self.known(agents[0])
        for agent in agents[1:]:
            time = join_clocks(time, self.known(agent))
        for agent in agents:
            self.times[agent.index] = time

    def _acquire(self, agent: Agent, event: Event, releases: Sequence[Release]) -> None:
        time = self.known_to_each_lane(agent)
        for head in releases:
            if scopes_are_mutual(head.scope, head.place, event.scope or "sys", agent.placement):
                time = join_clocks(time, head.time)
        self.times[agent.index] = time


ASKED_OF_WAITS = Unnamed("asked where words are tracked, at which a proof gives up")
declare_state(
    Causality,
    times=Attribute(SHALLOW, ASKED_OF_WAITS),
    fences=Attribute(mapped(SHALLOW), ASKED_OF_WAITS),
    releases=Attribute(SHALLOW, ASKED_OF_WAITS),
    observed=Attribute(mapped(SHALLOW), ASKED_OF_WAITS),
)


@dataclass(slots=True)
class WriteOrder:
    """The writes of a word that come before each other in coherence order in every execution with the same waits: by
    causality (8.10.1), and because a thread has observed the one before it makes the other (8.10.5).
    """

    places: dict[tuple[int, int], int] = field(default_factory=dict)
    """The writes, as agent and step, each with its number."""
    before: list[int] = field(default_factory=list)
    """For each, those that come before it, as a set of numbers."""
    observed: dict[int, int] = field(default_factory=dict)
    """By agent, the writes that it has observed."""

    def add_observed(self, agent: int, writes: Sequence[Write]) -> None:
        """Add what a wait has observed."""
        seen = self.observed.get(agent, 0)
        for w in writes:
            place = self.places.get((w.agent, w.step))
            if place is not None:
                seen |= 1 << place | self.before[place]
        self.observed[agent] = seen

    def add_write(self, agent: Agent, known: Vector) -> None:
        """Add the present step of an agent, before which the steps in ``known`` come."""
        found = self.observed.get(agent.index, 0)
        for (who, step), place in self.places.items():
            if known[who] >= step:
                found |= 1 << place | self.before[place]
        self.places[agent.index, agent.step] = len(self.before)
        self.before.append(found)

    def up_to(self, write: Write) -> int:
        """A write and all that come before it, as a set of numbers."""
        place = self.places[write.agent, write.step]
        return 1 << place | self.before[place]
