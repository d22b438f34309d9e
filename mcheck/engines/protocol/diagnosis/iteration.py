"""The loop iteration that a step belongs to."""

from __future__ import annotations

from mcheck.answers.advice.graph import find_step
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.agent import Agent


def iteration_at(m: Machine, k: int) -> str:
    """Return the iteration of a step of the trace; for a completion, that of its operation."""
    entry = m.trace[k]
    agent = m.agents[entry.agent]
    issued = entry if entry.pc >= 0 else find_step(m.trace, entry.agent, entry.step)
    return iteration_of(m, agent, issued.pc) if issued is not None else ""


def iteration_of(m: Machine, agent: Agent, place: int) -> str:
    """Return the iteration of the operation at a place of an agent's code.

    That is the variables of the loops around it or, in a module, how often the thread has reached the statement. Empty
    where it is reached once, or nothing is known.
    """
    turns = m.program.threads[agent.threads[0]].iterations
    if turns is not None:
        return turns.label_at(place) if turns.length == len(agent.code) else ""
    if m.program.terms is None or not 0 <= place < len(agent.code):
        return ""
    span = agent.code[place].span
    again = [at for at, op in enumerate(agent.code) if op.span == span]
    return f"#{again.index(place) + 1}" if len(again) > 1 else ""
