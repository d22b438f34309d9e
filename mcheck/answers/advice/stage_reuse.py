"""Classification of a read that conflicts with a copy: the copy meant for it, or the next fill of the stage."""

from __future__ import annotations

from enum import Enum, auto

from mcheck.answers.advice.graph import ExecutionGraph


class ReadPhase(Enum):
    """Which fill of the bytes of a read an unordered copy is.

    ``OWN``: the fill that the read is meant to see. ``NEXT``: the next one, which overwrites what the read is meant to
    see.
    """

    OWN = auto()
    NEXT = auto()
    EITHER = auto()


def classify_stage_read(g: ExecutionGraph) -> ReadPhase:
    """Classify the later access, if it reads what the earlier one, a copy in flight, writes.

    It is the next fill if an earlier write is complete before the read, and nothing orders the read after the issue. It
    is not if the reading thread has executed the copy's statement as often as the copying one: copies of a round stand
    before its reads then.
    """
    old, new = g.old, g.new
    if not old.asynchronous or not old.write or new.write:
        return ReadPhase.OWN
    if new.time[old.agent] >= old.step:
        return ReadPhase.OWN  # the read comes behind the issue of the copy
    if g.executions(new.agent, old.op, new.step) > g.executions(old.agent, old.op, old.step):
        return ReadPhase.OWN
    fills = [r.position for r in g.others if r.write and r.is_complete_before(new.agent, new.step, new.time)]
    if not fills:
        return ReadPhase.OWN
    issued = g.steps[old.position].time
    read = any(
        not r.write
        and r.agent == new.agent
        and r.op.span == new.op.span
        and max(fills) < r.position
        and r.step <= issued[r.agent]
        for r in g.others
    )
    return ReadPhase.EITHER if read else ReadPhase.NEXT
