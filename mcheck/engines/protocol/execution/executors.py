"""The functions that execute operations in a schedule, by kind of operation, and how one of them stops its agent."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.agent import Agent
from mcheck.ir.ops import Op


class Undefined(Exception):
    """The execution ends here: a precondition is violated."""


class Blocked(Exception):
    """The agent cannot continue; ``blocked_on`` is what it waits for."""

    def __init__(self, blocked_on: object) -> None:
        super().__init__("blocked")
        self.blocked_on = blocked_on


Executor = Callable[[Machine, Agent, Op], None]
EXECUTORS: dict[type[Op], Executor] = {}


def executes(*kinds: type[Op]) -> Callable[[Executor], Executor]:
    """Register the function that executes operations of these kinds."""

    def register(executor: Executor) -> Executor:
        for kind in kinds:
            EXECUTORS[kind] = executor
        return executor

    return register
