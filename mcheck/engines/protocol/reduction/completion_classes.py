"""Completion classes: copies whose completion is observed together, so that no later step distinguishes them by it.

A wait for groups completes all groups of its thread except the latest ones (PTX ISA 9.7.9.25.3.3), and an arrive on
copies tracks all that its thread has issued (9.7.13.15.15). So the committed groups that are older than any wait of the
thread leaves pending have one future, a later such wait, and so has all of the group that is still open. Whoever
observes a phase of an mbarrier observes all copies that signalled it.

Events of such copies may be merged although an edge from them is still to come
(``mcheck.engines.protocol.incremental.indistinguishable``): it comes from all of them or from none. More recent groups
are kept apart: a wait may complete the groups before them alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.engines.protocol.analysis.code_facts import PendingDepths
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.events.thread_state import AsyncRecord, Groups

WGMMA = "wgmma"
"""Groups of warps, which each warp waits for separately (``Agent.wgmma_groups``)."""


@dataclass(slots=True)
class CompletionClasses:
    """The accesses of copies by how their completion is observed.

    ``alone`` are the events that a later edge may touch separately, ``together`` the sets of which it touches all or
    none, ``records`` the accesses in such sets.
    """

    alone: int = 0
    together: dict[tuple[object, ...], int] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)

    def add_member(self, key: tuple[object, ...], record: Record) -> None:
        """Add a record to a set."""
        self.together[key] = self.together.get(key, 0) | record.event_set
        self.records[id(record)] = record

    def split_up(self) -> CompletionClasses:
        """The same events, each of which a later edge may touch separately."""
        alone = self.alone
        for members in self.together.values():
            alone |= members
        return CompletionClasses(alone)


def find_completion_classes(m: Machine) -> CompletionClasses:
    """Return the completion classes of an execution's copies."""
    out = CompletionClasses()
    for agent in m.agents:
        for lane, state in enumerate(agent.lanes):
            for family, groups in state.groups.items():
                if family != WGMMA:
                    _classify_groups(
                        out, agent, lane, (family, groups), m.setup.facts_of(agent.index).pending_depths(family)
                    )
            if m.setup.facts_of(agent.index).arrives_on_cp_async:
                for copy in state.cp_async:
                    for record in find_records(agent, lane, (*copy.reads, *copy.writes)):
                        out.add_member(("arrive",), record)
    for bar in m.mbarriers.values():
        for when, acts in bar.phases.items():
            if acts.copies:
                key: tuple[object, ...] = ("phase", bar.address, bar.merged_phase_of(when))
                out.together[key] = out.together.get(key, 0) | acts.copies
    for key, signal in m.signals.items():
        for record in signal.records:
            out.add_member(("signal", key), record)
    return out


def _classify_groups(
    out: CompletionClasses, agent: Agent, lane: int, named: tuple[str, Groups], known: PendingDepths | None
) -> None:
    family, groups = named
    if known is None:
        for copy in (*groups.open, *(copy for group in groups.committed for copy in group)):
            for record in find_records(agent, lane, (*copy.reads, *copy.writes)):
                out.alone |= record.event_set if record.in_flight else 0
        return
    for copy in groups.open:
        _classify_copy(out, agent, lane, copy, (family, "open", "open"))
    count = len(groups.committed)
    for number, group in enumerate(groups.committed):
        depth = count - 1 - number
        reads = "deep" if depth >= known.reads else ""
        writes = "deep" if depth >= known.writes else ""
        for copy in group:
            _classify_copy(out, agent, lane, copy, (family, reads, writes))


def _classify_copy(
    out: CompletionClasses, agent: Agent, lane: int, copy: AsyncRecord, where: tuple[str, str, str]
) -> None:
    family, *sets = where
    for kind, name, uids in (("reads", sets[0], copy.reads), ("writes", sets[1], copy.writes)):
        for record in find_records(agent, lane, uids):
            if name:
                out.add_member((family, kind, name), record)
            else:
                out.alone |= record.event_set


def find_records(agent: Agent, lane: int, uids: Iterable[tuple[int, int]]) -> Iterable[Record]:
    """Return the records of some events of a lane; events without possible conflicts have none."""
    found = agent.records_by_event
    return (record for uid in uids if (record := found.get((lane, uid))) is not None)
