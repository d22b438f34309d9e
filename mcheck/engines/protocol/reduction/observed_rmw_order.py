"""Commuting atomics whose order matters because a later one observes an earlier one.

Two additions to a word leave the same value in either order, and if nobody uses what they return they are not run in
both orders. But the later one observes the earlier one, and what follows it comes after what it observes in causality
order (PTX ISA 9.0 section 8.9.5): an access of the same bytes may race in the one order and not in the other. Where the
accesses so far show that an order may matter in this way, the word's atomics are run in every order.
"""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import NewOrder
from mcheck.engines.protocol.incremental.entries import to_mask, union
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import NON_COMMUTING, Placement, SyncOperation, Word, Write
from mcheck.events.event import Event
from mcheck.ir.scopes import scopes_are_mutual

FORGOTTEN = "atomics of earlier rounds, whose order may decide what a later access comes after"


def note_rmw_orders(m: Machine, agent: Agent, new: Record, low: int, high: int) -> None:
    """Note the reversals of commuting atomics after which a new access has to be examined."""
    for word in m.tracked_words.values():
        if low < word.address + word.size and word.address < high:
            _check_word(m, agent, new, word)


def _check_word(m: Machine, agent: Agent, new: Record, word: Word) -> None:
    atomics = [w for w in word.writes if w.event is not None and Tag.RMW in w.event.tags]
    strong: dict[tuple[str | None, Placement], bool] = {}
    others = []
    for w in atomics:
        if w.agent == agent.index or w.event is None:
            continue
        key = w.event.scope, m.agents[w.agent].placement
        if key not in strong:
            strong[key] = _is_morally_strong(m, agent, new.event, word, w)
        if not strong[key]:
            others.append(w)
    if not others:
        return
    now = agent.known_time()
    for other in word.operations:
        if other.kind not in NON_COMMUTING and other.agent != agent.index:
            m.note_reversal(other, agent.index, now, agent.is_single_thread)
    if word.address in m.setup.ordered_words or len(atomics) < 2:
        return
    earlier = [w for w in others if now[w.agent] >= w.step]
    if new.proxy == "GEN" and not new.asynchronous:  # what synchronisation orders, it orders whatever was observed
        met = agent.last_barrier_arrivals
        known = m.causality.known(agent) if m.causality is not None and _is_unobserved(word) else m.zero_clock
        earlier = [w for w in earlier if w.step > met.get(w.agent, -1) and w.step > known[w.agent]]
    before = to_mask(e for w in earlier for e in w.entries)
    if before and m.window.has_merged:
        m.not_followed = FORGOTTEN if m.setup.reads_relaxed else m.not_followed
    elif before:
        reads = union(e.edges.get("rmw", 0) for w in atomics for e in w.entries)
        if m.window.find_pairs_without_reads(reads) & before:
            raise NewOrder(word.address)


def _is_unobserved(word: Word) -> bool:
    """Whether only weak accesses have read what the atomics of a word have written."""
    return all(done.kind != "atomic" and not _is_strong_read(done) for done in word.operations)


def _is_strong_read(done: SyncOperation) -> bool:
    return done.kind == "read" and Tag.WEAK not in done.event.tags


def _is_morally_strong(m: Machine, agent: Agent, event: Event, word: Word, other: Write) -> bool:
    """Return whether an access is morally strong with an atomic (8.7.1), and so never races with it."""
    if Tag.WEAK in event.tags or event.order is None or (event.address, event.size) != (word.address, word.size):
        return False
    theirs = other.event.scope if other.event is not None else None
    return scopes_are_mutual(event.scope or "", agent.placement, theirs or "", m.agents[other.agent].placement)
