"""Loop memo: the registers at loop heads, so that an iteration that would repeat the last one is not executed.

A loop whose head is not reachable from where the agent stands is over for good, as a wait that is written out in an
iteration of a longer loop is in the next one.
"""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.unrolling_limit import MAX_ENDLESS_ITERATIONS
from mcheck.engines.protocol.state.agent import Agent


def loop_state(m: Machine, agent: Agent) -> tuple[object, ...]:
    """Return the state that decides whether the next iteration of a loop is executed.

    That is which iterations would repeat one, and what else they wait for, unless the iteration has had an effect.
    Places are relative to the agent's, and iterations are counted up to the number at which a loop without exit is
    given up.
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
    """Return the registers at the last visit of a head; mbarrier states by whether they are unchanged."""
    assert isinstance(state, tuple)
    states, now = m.setup.facts_of(agent.index).state_registers, agent.lanes[0].registers
    return tuple(
        (name, "?" if isinstance(value, tuple) else value == now.get(name) if name in states else value)
        for name, value in state
    )


def _tested_version(m: Machine, where: object, version: int) -> object:
    """Return whether an object is still in the phase in which it was tested: a completed phase does not recur."""
    match where:
        case ("mbarrier", int() as address):
            state = m.mbarriers[address].state
            if m.setup.mbarriers_may_end or state is None:
                return version
            return version == state.phase
        case ("word", int() as address):
            return version == m.tracked_words[address].version
    return version
