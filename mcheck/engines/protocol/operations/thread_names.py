"""Threads as messages name them."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.answers.number_text import format_ranges
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.agent import Agent


def format_threads(m: Machine, agents: Iterable[Agent]) -> str:
    """Format threads by role, with ranges: ``consumer[0..63]``."""
    numbers: dict[str, list[int]] = {}
    alone: list[str] = []
    for agent in agents:
        for t in agent.threads:
            thread = m.program.threads[t]
            if thread.name == thread.role:
                alone.append(thread.name)
            else:
                numbers.setdefault(thread.role, []).append(thread.number)
    return ", ".join(alone + [f"{role}[{format_ranges(sorted(found))}]" for role, found in numbers.items()])
