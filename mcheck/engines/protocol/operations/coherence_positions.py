"""Coherence positions: which writes of a tracked word a read may return, and which ones a write may precede.

The model is asked about one position after the other. What it says of the access at any position is asked first: the
writes that must precede it leave few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import MAX_STALE_WRITES
from mcheck.engines.protocol.operations.remembered_trials import answer_trial
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Word
from mcheck.events.event import Event
from mcheck.ir.expr import apply_binary
from mcheck.semantics.terms import typed

T = TypeVar("T")
FEW_STALE_WRITES = 2
"""Overwritten writes are sought only where more writes than this may be stale."""


def find_readable_writes(
    m: Machine, agent: Agent, word: Word, event: Event, edges: dict[str, int], part: int = 0,
    condition: tuple[str, str, int] | None = None,
) -> list[int]:  # fmt: skip
    """The indices of the writes that a read may return, the latest first.

    A read with a ``condition`` keeps waiting if it reads a write that does not satisfy it. Such a write is tested only
    where it decides whether earlier ones have to be.
    """
    last = len(word.writes) - 1
    found = [last]
    if m.brief:
        return found
    earliest, more = find_first_readable(m, agent, agent.representatives[0], word, event, edges, part)
    for k in range(last - 1, earliest - 1, -1):
        if condition is not None and not may_satisfy(word.writes[k].value, *condition) and not (more and k == earliest):
            continue
        if is_allowed(m, agent, event, {**edges, "rf": word.writes[k].event_set}, part=part):
            found.append(k)
    if more:
        note_history_bound(m, word, found)
    return found


def find_first_readable(
    m: Machine, agent: Agent, thread: int, word: Word, event: Event, edges: dict[str, int], part: int = 0
) -> tuple[int, bool]:
    """The first of the latest writes that a read may return, and whether earlier ones may be readable. All writes
    before one that the model orders before the read are overwritten.
    """
    last = len(word.writes) - 1
    earliest = max(last - m.setup.max_stale_writes + 1, word.first)
    if last - earliest < FEW_STALE_WRITES or Pass.OVERWRITTEN_WRITES not in m.setup.passes:
        return earliest, earliest > word.first
    first = find_latest_before(m, agent, thread, word, event, edges, part)
    return (earliest, earliest > word.first) if first < earliest else (first, False)


def find_latest_before(
    m: Machine, agent: Agent, thread: int, word: Word, event: Event, edges: dict[str, int], part: int = 0
) -> int:
    """The latest write that the model orders before a read, which returns none of those before it; -1 if none is."""
    known = _evaluate_trial(m, agent, (thread,), event, edges, None, part, _overwritten)
    return next((k for k in range(len(word.writes) - 1, -1, -1) if word.writes[k].event_set & known), -1)


def note_history_bound(m: Machine, word: Word, found: list[int]) -> None:
    """Note a bound if the earliest of the tested writes may be read, so that earlier ones might be, too."""
    last, stale = len(word.writes) - 1, m.setup.max_stale_writes
    if last - stale >= 0 and (stale < MAX_STALE_WRITES or found[-1] == last - stale + 1):
        m.note_bound(describe_latest(m, word))


def describe_latest(m: Machine, word: Word) -> str:
    """Describe the writes that are tested."""
    return f"the latest {m.setup.max_stale_writes} writes of {m.thing_at(word.address)}"


def may_satisfy(value: int | None, type_name: str, operator: str, right: int) -> bool:
    """Whether a wait may end with a value; an unknown value might be any."""
    if value is None:
        return True
    left = typed(type_name, value)
    assert isinstance(left, int)
    return bool(apply_binary(operator, left, right))


def find_earlier_places(
    m: Machine, agent: Agent, word: Word, event: Event, edges: dict[str, int], part: int
) -> list[int]:
    """The positions before writes that do not precede this one in time, where the model allows it."""
    out: list[int] = []
    asks = len(word.writes) > 1 and Pass.OVERWRITTEN_WRITES in m.setup.passes
    ahead = _find_preceding_writes(m, agent, word, event, edges, part) if asks else 0
    for at in range(len(word.writes) - 1, word.first, -1):
        if len(word.writes) - at > m.setup.max_stale_writes:
            if m.setup.max_stale_writes < MAX_STALE_WRITES or (out and out[-1] == at + 1):
                m.note_bound(describe_latest(m, word))
            break
        if word.writes[at].event_set & ahead:
            break
        before, after = split_coherence(word, at)
        if is_allowed(m, agent, event, {**edges, "co": before}, {"co": after}, part):
            out.append(at)
    return out


def _find_preceding_writes(m: Machine, agent: Agent, word: Word, event: Event, edges: dict[str, int], part: int) -> int:
    """The writes that precede a new one in coherence order at any position."""
    last = {**edges, "co": word.write_events}
    return _evaluate_trial(m, agent, agent.representatives[:1], event, last, None, part, _predecessors)


def split_coherence(word: Word, at: int) -> tuple[int, int]:
    """The writes before and after a position in coherence order, as sets of the window."""
    after = 0
    for w in word.writes[at:]:
        after |= w.event_set
    return word.write_events & ~after, after


def is_allowed(
    m: Machine, agent: Agent, event: Event, edges: dict[str, int], back: dict[str, int] | None = None, part: int = 0
) -> bool:
    """Whether the model allows the event with these edges."""
    return is_allowed_for(m, agent, agent.representatives, event, edges, back, part)


def is_allowed_for(
    m: Machine, agent: Agent, threads: Sequence[int], event: Event, edges: dict[str, int],
    back: dict[str, int] | None = None, part: int = 0,
) -> bool:  # fmt: skip
    """Whether the model allows the event, for some threads of an agent, with these edges."""
    return _evaluate_trial(m, agent, threads, event, edges, back, part, _is_consistent)


def _evaluate_trial(
    m: Machine, agent: Agent, threads: Sequence[int], event: Event, edges: dict[str, int],
    back: dict[str, int] | None, part: int, answer: Callable[[Machine], T],
) -> T:  # fmt: skip
    """Return what ``answer`` says with the event in the window, and remove the event again."""

    def ask() -> T:
        saved = m.save()
        for thread in threads:
            entry = m.make_entry(
                thread, event, dict(edges), agent.step * 8 + part, ordered=event.order is not None, exact=True,
                where=event.address, back=back,
            )  # fmt: skip
            m.add_entry(entry, ordered=event.order is not None, flags=False)
        given = answer(m)
        m.restore(saved)
        return given

    return answer_trial(m, threads, (event,), edges, back, (answer, agent.step, part), ask)


def _is_consistent(m: Machine) -> bool:
    return m.broken_axiom is None


def _overwritten(m: Machine) -> int:
    return m.window.overwritten_writes


def _predecessors(m: Machine) -> int:
    return m.window.forced_predecessors
