"""Reads of a waiting thread that precede the one that ends the wait: they may race where the last one does not.

The last read may have observed what orders a write before it; an earlier one has not. Of the earlier ones the first is
ordered least, so it stands for all. Later writes need no such check: what the last read precedes or races with, an
earlier read of its thread does too.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations.access_records import make_record
from mcheck.engines.protocol.operations.races import check_accesses
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.events.event import Event
from mcheck.ir.scopes import scope_instance


def check_earlier_read(m: Machine, agent: Agent, event: Event, edges: dict[str, int], writes: Iterable[int]) -> None:
    """Check a failed read of a waiting agent for races with earlier accesses. It returns the first of ``writes``
    (events that do not end the wait, in coherence order) that the model allows.
    """
    low, high = event.address, event.address + event.size
    _, history = m.history_at(low)
    cells = (history.cells[k] for k in history.split_cells(low, high))
    if not any(old.write and _may_race(m, agent, event, old) for cell in cells for old in cell):
        return
    for source in writes:
        saved, known, reported = m.save(), len(m.problems), set(m.reported)
        record = make_record(m, agent, event, None)
        check_accesses(
            m, agent, [(record, low, high)], [{**edges, "rf": source} for _ in agent.representatives], exact=True
        )
        possible = m.broken_axiom is None
        problems, keys, open_order = m.problems[known:], m.reported - reported, m.reordering
        m.restore(saved)
        if possible:
            m.problems += problems
            m.reported |= keys
            m.reordering = m.reordering or open_order
            return


def _may_race(m: Machine, agent: Agent, event: Event, old: Record) -> bool:
    """Whether a strong read and a write of another thread may not be morally strong (8.7)."""
    if old.agent == agent.index:
        return False
    other = old.event
    if Tag.WEAK in other.tags or old.asynchronous or (other.address, other.size) != (event.address, event.size):
        return True
    one, two = (m.program.threads[m.agents[k].threads[0]].place.cta for k in (old.agent, agent.index))
    scopes = (other.scope or "sys", event.scope or "sys")
    return any(scope_instance(one, scope) != scope_instance(two, scope) for scope in scopes)
