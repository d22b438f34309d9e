"""Awaited values that were written and overwritten before they were observed (PTX ISA 9.0 section 8.10.1)."""

from __future__ import annotations

from mcheck.answers.advice.graph import find_step, site_of
from mcheck.answers.step_text import text_of
from mcheck.base.phrase import Phrase, say
from mcheck.base.records import dataclass
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search import trials
from mcheck.engines.protocol.fix_search.trials import IsFix
from mcheck.engines.protocol.operations.coherence_positions import may_satisfy
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Word, Write
from mcheck.findings.fix import Fixes, Note, advise
from mcheck.ir import ops


@dataclass(frozen=True, slots=True)
class Overwritten:
    """A write of a value that would end a wait, and the next write in coherence order, which would not."""

    wanted: Write
    over: Write


def find_overwritten(m: Machine, agent: Agent, word: Word) -> Overwritten | None:
    """Return the overwritten write of the last value that an agent waits for; ``None`` if there was none."""
    op = agent.code[agent.pc]
    inner = ops.performed_operation(op)
    if not isinstance(op, ops.Await) or op.compare is None or not isinstance(inner, ops.ScalarRead):
        return None
    relation, right = op.compare
    value = m.evaluate(agent, 0, right)
    if not isinstance(value, int):
        return None
    fits = [w.value is not None and may_satisfy(w.value, inner.type, relation, value) for w in word.writes]
    for k in range(len(fits) - 2, -1, -1):
        over = word.writes[k + 1]
        if fits[k] and not fits[k + 1] and over.event is not None:
            return Overwritten(word.writes[k], over)
    return None


def describe_overwritten(m: Machine, found: Overwritten) -> Phrase:
    """Describe which write has overwritten which value."""
    assert found.over.event is not None
    op = found.over.event.op
    by = m.name(m.agents[found.over.agent])
    what = f" ({text_of(op)}) of {by} overwrote the {found.wanted.value} that would end the wait"
    return say(": {}{}", site_of(op), what)


def suggest_preserving(m: Machine, agent: Agent, word: Word, is_fix: IsFix) -> Fixes:
    """Suggest how to preserve an awaited value.

    The other write comes before, by a release and an acquire that were tried, or it waits until the value has been
    observed.
    """
    found = find_overwritten(m, agent, word)
    if found is None or found.over.event is None:
        return ()
    waiter, owner, wait = m.name(agent), m.name(m.agents[found.over.agent]), agent.code[agent.pc]
    over, waits = site_of(found.over.event.op), site_of(wait)
    entries = [find_step(m.trace, w.agent, w.step) for w in (found.over, found.wanted) if w.agent >= 0]
    if len(entries) == 2 and entries[0] is not None and entries[1] is not None:
        first, second = entries[0], entries[1]
        if m.trace.index(first) < m.trace.index(second) and (fix := trials.suggest_fences(m, first, second, is_fix)):
            return (fix.noted(Note(say("Else {} may come behind {} in coherence order", over, site_of(second.op)))),)
    if found.over.agent == agent.index:
        return ()
    release = say("by a release of {} behind {} that {} acquires before {}", waiter, waits, owner, over)
    takes = say("The write at {} takes away what {} waits for at {}", over, waiter, waits)
    seen = say("let it wait until {} has seen the value, {}", waiter, release)
    return (advise("{}: {}; or never take the value back", takes, seen),)


def find_writers(m: Machine, stuck: list[Agent]) -> tuple[int, ...]:
    """Return the agents that wrote what the agents wait for, and those that overwrote it."""
    found = (find_overwritten(m, a, a.blocked_on) for a in stuck if isinstance(a.blocked_on, Word))
    both = (w.agent for f in found if f is not None for w in (f.wanted, f.over))
    return tuple(dict.fromkeys(k for k in both if k >= 0))
