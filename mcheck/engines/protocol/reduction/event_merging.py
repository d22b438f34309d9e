"""Merging of indistinguishable events, and the live events that a new edge may still touch."""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import SETTLE_AT, Machine
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.reduction.completion_classes import CompletionClasses, find_completion_classes
from mcheck.engines.protocol.state.sync_objects import KEPT_PHASES

GROWTH_FACTOR = 3
"""Merging is repeated when there are so many times as many events: it costs about a third of adding them."""


SPARE_WRITES = 1
"""Number of writes of a word that are kept besides those that may be read."""


def find_pinned_events(m: Machine, known: CompletionClasses) -> int:
    """Return the events that must not be merged.

    Those are operations of phases that a wait may still observe, incomplete barriers, tracked words, and copies in
    flight whose completion is observed separately.
    """
    out = known.alone
    for bar in m.mbarriers.values():
        phase = bar.state.phase if bar.state is not None else -1
        for (life, number), acts in bar.phases.items():
            if bar.state is None or life != bar.generation or number >= phase - KEPT_PHASES:
                out |= acts.acts | acts.waits
    for thread, looks in m.looks.items():
        out |= looks & ~m.waits_for.get(thread, 0)
    for meeting in m.meetings.values():
        out |= meeting.arrivals | meeting.last
        for arrivals, _ in meeting.brought.values():
            out |= arrivals
    for signal in m.signals.values():
        out |= to_mask(signal.issues)
    for word in m.words.values():
        for written in word.writes[-m.setup.stale - SPARE_WRITES :]:
            out |= written.bits
    for history in m.histories.values():
        for cell in history.cells:
            for record in cell:
                if record.in_flight and id(record) not in known.records:
                    out |= record.bits
    for agent in m.agents:
        if agent.cluster_arrived is not None:
            out |= agent.cluster_arrived.arrivals
    return out


def merge_events(m: Machine, *, every: bool = False) -> None:
    """Merge events that nothing can distinguish from others; where few could go, only if ``every`` one is to."""
    known = find_completion_classes(m)
    together = tuple(known.together.values())
    gone = m.window.merge_indistinguishable(
        find_pinned_events(m, known), m.setup.deadline, every=every, together=together
    )
    m.settle_at = max(SETTLE_AT, GROWTH_FACTOR * m.window.all.bit_count())
    if not gone:
        return
    keep = ~sum(1 << k for k in gone)
    m.before = {t: (b & keep, at, here & keep) for t, (b, at, here) in m.before.items()}
    m.waits_for = {t: m & keep for t, m in m.waits_for.items()}
    m.looks = {t: m & keep for t, m in m.looks.items()}
    m.fences = {k: m & keep for k, m in m.fences.items()}
    m.exits = {k: m & keep for k, m in m.exits.items()}
    for bar in m.mbarriers.values():
        bar.forget(keep)
    for word in m.words.values():
        word.written &= keep
    for agent in m.agents:
        agent.wgmma_groups = [(records, time, before & keep) for records, time, before in agent.wgmma_groups]
        for lane in agent.origin:
            for name, mask in lane.items():
                lane[name] = mask & keep
