"""Merging of indistinguishable events, and the live events that a new edge may still touch."""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import MERGE_THRESHOLD, Machine
from mcheck.engines.protocol.incremental.entries import to_mask
from mcheck.engines.protocol.passes import Pass
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
            if bar.state is None or life != bar.lifetime or number >= phase - KEPT_PHASES:
                out |= acts.operations | acts.waits
    for thread, looks in m.polls.items():
        out |= looks & ~m.control_sources.get(thread, 0)
    for meeting in m.barriers.values():
        out |= meeting.arrivals | meeting.previous_events
        for arrivals, _ in meeting.arrival_events.values():
            out |= arrivals
    for signal in m.signals.values():
        out |= to_mask(signal.issues)
    kept = m.setup.max_stale_writes + SPARE_WRITES
    for word in m.tracked_words.values():
        # A wait that returns the first write that ends it may return any (``determined_waits``).
        for written in word.writes[-kept:] if m.waits is None else word.writes:
            out |= written.event_set
    for history in m.histories.values():
        for cell in history.cells:
            for record in cell:
                if record.in_flight and id(record) not in known.records:
                    out |= record.event_set
    for agent in m.agents:
        if agent.cluster_arrival is not None:
            out |= agent.cluster_arrival.arrivals
    return out


def merge_events(m: Machine, *, every: bool = False) -> None:
    """Merge events that nothing can distinguish from others; where few could go, only if ``every`` one is to, as before
    a canonical form is built, of which completion classes are a part.
    """
    known = find_completion_classes(m)
    if Pass.COMPLETION_CLASSES not in m.setup.passes and not every:
        known = known.split_up()
    together = tuple(known.together.values())
    gone = m.window.merge_indistinguishable(
        find_pinned_events(m, known), m.setup.check_deadline, every=every, together=together
    )
    m.merge_threshold = max(MERGE_THRESHOLD, GROWTH_FACTOR * m.window.all.bit_count())
    if not gone:
        return
    keep = ~sum(1 << k for k in gone)
    m.program_order = {t: (b & keep, at, here & keep) for t, (b, at, here) in m.program_order.items()}
    m.control_sources = {t: m & keep for t, m in m.control_sources.items()}
    m.polls = {t: m & keep for t, m in m.polls.items()}
    m.fences = {k: m & keep for k, m in m.fences.items()}
    m.exits = {k: m & keep for k, m in m.exits.items()}
    for bar in m.mbarriers.values():
        bar.drop_dead_events(keep)
    for word in m.tracked_words.values():
        word.write_events &= keep
    for agent in m.agents:
        agent.wgmma_groups = [(records, time, before & keep) for records, time, before in agent.wgmma_groups]
        for lane in agent.sources:
            for name, mask in lane.items():
                lane[name] = mask & keep
