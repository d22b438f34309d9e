"""Trials: what the model would say if events were added to an execution, which are removed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.events.event import Event

T = TypeVar("T")


def answer_trial(
    m: Machine, threads: Sequence[int], events: Iterable[Event], edges: dict[str, int], back: dict[str, int] | None,
    question: tuple[object, ...], ask: Callable[[], T],
) -> T:  # fmt: skip
    """What a trial answers that adds ``events`` of these threads with these edges, and removes them again.
    ``question`` is all else that its answer depends on. Executions with the same first steps ask it once.
    """
    histories = m.window.histories
    if histories is None or m.broken_axiom is not None:
        return ask()
    own = tuple((t, m.program_order.get(t), m.control_sources.get(t), m.polls.get(t)) for t in threads)
    added = tuple(map(histories.number_of_event, events))
    key = m.window.past, own, added, tuple(edges.items()), tuple((back or {}).items()), question
    if key in histories.answers:
        m.trial_count += 1  # the search ends at the same bounds
        found: T = histories.answers[key]
    else:
        m.window.histories = None  # what a trial adds is in no history
        found = ask()
        m.window.histories = histories
        histories.remember(key, found)
    return found
