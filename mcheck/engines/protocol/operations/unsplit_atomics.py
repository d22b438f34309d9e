"""Unsplit atomics: where a write would come between an atomic and what it has read.

No morally strong write may (PTX ISA 9.0 section 8.10.3). An atomic that stores right after an overwritten write comes
between the atomic that follows there and what that one has read, so the model need not be asked. Of a counter that many
threads add to this leaves the latest write alone.
"""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.model_equivalence import has_equivalent_atomicity
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Word, Write
from mcheck.events.event import Event
from mcheck.ir.scopes import scopes_are_mutual


def splits_atomic(m: Machine, agent: Agent, word: Word, k: int, event: Event) -> bool:
    """Whether an atomic's write right after write ``k`` comes between a morally strong atomic and what it has read."""
    if Pass.UNSPLIT_ATOMICS not in m.setup.passes or not has_equivalent_atomicity(m.setup.tape):
        return False
    after = word.writes[k + 1]
    return _is_strong_access(word, event) and _is_morally_strong_atomic(m, agent, word, event, after)


def _is_strong_access(word: Word, event: Event) -> bool:
    """Whether an event is a strong access of a whole word in program order, by the generic proxy."""
    whole = (event.address, event.size) == (word.address, word.size)
    return whole and event.order is not None and Tag.GEN in event.tags and not event.tags & {Tag.WEAK, Tag.MULTIMEM}


def _is_morally_strong_atomic(m: Machine, agent: Agent, word: Word, event: Event, after: Write) -> bool:
    """Whether a write is that of an atomic which is morally strong with a strong access (8.7)."""
    other = after.event
    if other is None or other.rmw is None or not _is_strong_access(word, other) or other.virtual != event.virtual:
        return False
    return scopes_are_mutual(event.scope or "", agent.placement, other.scope or "", m.agents[after.agent].placement)
