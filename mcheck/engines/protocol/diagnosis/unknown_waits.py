"""Waits that an unknown value ended: what comes behind them is possible only if the value is one that does."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.answers.advice.graph import find_step, site_of
from mcheck.base.phrase import OnlyIf, Phrase, join, say
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.ir import ops

MOST = 2
"""The maximum number of waits that are told."""


def explain_unknown_waits(m: Machine, problem: Problem) -> Phrase:
    """The clause of a message that names waits, before the accesses of a problem in the order that their threads know
    of, which ended by a value that is not known: mostly contents that no launch file gives. In another execution such a
    wait may end by a value that is known, or not at all.
    """
    ends = list(_ends(m, problem))
    waits: dict[Phrase, None] = {}
    for fact in m.decisions:
        match fact:
            case (int(agent), int(step), "reads", int(address), int(writer), int(written)):
                word = m.tracked_words.get(address)
                found = find_step(m.trace, agent, step)
                if word is None or found is None or not isinstance(found.op, ops.Await) or found.op.followed:
                    continue
                write = next((w for w in word.writes if (w.agent, w.step) == (writer, written)), None)
                if write is None or write.value is not None or not any(_is_behind(end, found) for end in ends):
                    continue
                waits[say("what {} holds ends the wait at {}", m.thing_at(address), site_of(found.op))] = None
    return (OnlyIf(join([*waits][:MOST])),) if waits else ()


def _ends(m: Machine, problem: Problem) -> Iterator[TraceEntry]:
    """The steps of the accesses; of a deadlock the last steps of its threads."""
    if problem.code.startswith("DEAD"):
        last = {entry.agent: entry for entry in m.trace}
        yield from (last[agent] for agent in problem.agents if agent in last)
    else:
        yield from m.trace[problem.first_step : problem.first_step + 1] if problem.first_step else ()
        yield from m.trace[: problem.last_step][-1:]


def _is_behind(end: TraceEntry, wait: TraceEntry) -> bool:
    own = end.agent == wait.agent
    return end.step >= wait.step if own else end.time[wait.agent] >= wait.step
