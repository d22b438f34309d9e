"""Threads each of which has a lock that the next one waits for."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import join, say
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search.overwritten_values import find_overwritten
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Word
from mcheck.findings.fix import Fixes, advise
from mcheck.ir import ops

Taken = tuple[Agent, ops.Op, Word]
"""An agent, the atomic by which it has taken a lock, and the lock."""


def suggest_one_order(m: Machine, stuck: Sequence[Agent]) -> Fixes:
    """Suggest that threads take locks in one order, if some of those that wait forever are in such a cycle."""
    cycle = next(filter(None, (_find_cycle(m, agent) for agent in stuck)), ())
    if not cycle:
        return ()
    has = [say("{} has {} ({})", m.name(who), m.thing_at(word.address), site_of(op)) for who, op, word in cycle]
    locks = join([(m.thing_at(word.address),) for *_, word in cycle])
    return (advise("{}, and each waits for what another one has: let all take {} in one order", join(has), locks),)


def _find_cycle(m: Machine, agent: Agent) -> tuple[Taken, ...]:
    """The agents of a cycle, from the one that has what an agent waits for to this one; empty if it is in none."""
    cycle: list[Taken] = []
    holder = _find_holder(m, agent)
    while holder is not None and all(holder[0] is not who for who, *_ in cycle):
        cycle.append(holder)
        if holder[0] is agent:
            return tuple(cycle)
        holder = _find_holder(m, holder[0])
    return ()


def _find_holder(m: Machine, agent: Agent) -> Taken | None:
    """Who has taken what an agent waits for."""
    word = agent.blocked_on
    found = find_overwritten(m, agent, word) if isinstance(word, Word) else None
    if found is None or not isinstance(word, Word) or found.over is not word.writes[-1] or found.over.event is None:
        return None
    op = found.over.event.op
    if found.over.agent in (-1, agent.index) or not isinstance(op, ops.Atomic):
        return None
    return m.agents[found.over.agent], op, word
