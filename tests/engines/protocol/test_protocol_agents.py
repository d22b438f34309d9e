"""The state of an agent."""

from __future__ import annotations

from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.vector_clocks import join_clocks


def test_a_step_has_one_vector_clock() -> None:
    """Whatever asks for it within the step has the same list; a later step, or more that is known, has its own."""
    agent = Agent(1, (0,), [], [], (), (0, 0, 0), time=[4, 0, 0], step=2)
    first = agent.current_time()
    assert first == [4, 2, 0]
    assert agent.current_time() is first
    agent.step = 3
    second = agent.current_time()
    assert (second, first) == ([4, 3, 0], [4, 2, 0])
    agent.time = join_clocks(agent.time, [6, 1, 5])
    assert agent.current_time() == [6, 3, 5]
    assert (second, agent.time) == ([4, 3, 0], [6, 1, 5])
