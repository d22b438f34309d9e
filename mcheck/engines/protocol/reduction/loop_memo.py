"""What an agent remembers of loops that it may come to again: rounds that would repeat the last one are not made.

A loop whose head no branch leads back to from where the agent stands is over for good, as a wait that is written out
in a round of a longer loop is in the next one.
"""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.unrolling_limit import MAX_ENDLESS_ITERATIONS
from mcheck.engines.protocol.state.agent import Agent


def loop_state(m: Machine, agent: Agent) -> tuple[object, ...]:
    """What decides whether the next round of a loop is made: which rounds would repeat one, and what else they wait
    for, which a round that has had an effect does not. Places count from where the agent stands, and rounds up to where
    a loop that nothing leaves is given up.
    """
    first = m.setup.facts_of(agent.index).earliest_reachable[agent.pc]
    visits = {head: visit for head, visit in agent.loop_visits.items() if head >= first}
    if not visits:
        return (agent.spinning,)
    idle = any(effects == agent.effect_count for _, effects, _ in visits.values())
    seen = tuple(
        (
            head - agent.pc,
            _registers_at_head(m, agent, state) if effects == agent.effect_count else None,
            min(count, MAX_ENDLESS_ITERATIONS + 1),
        )
        for head, (state, effects, count) in sorted(visits.items())
    )
    looked = {
        (repr(where), _tested_version(m, where, version)) for where, version in agent.polled_versions.items() if idle
    }
    return seen, frozenset(looked), agent.spinning


def _registers_at_head(m: Machine, agent: Agent, state: object) -> tuple[object, ...]:
    """Registers as they were when a head was come to: those of states of mbarriers by whether they are the same."""
    assert isinstance(state, tuple)
    states, now = m.setup.facts_of(agent.index).state_registers, agent.lanes[0].registers
    return tuple(
        (name, "?" if isinstance(value, tuple) else value == now.get(name) if name in states else value)
        for name, value in state
    )


def _tested_version(m: Machine, where: object, version: int) -> object:
    """Whether an object is in the phase that it was found in: once over, a phase does not come again."""
    match where:
        case ("mbarrier", int() as address):
            state = m.mbarriers[address].state
            if m.setup.mbarriers_may_end or state is None:
                return version
            return version == state.phase
        case ("word", int() as address):
            return version == m.tracked_words[address].version
    return version
