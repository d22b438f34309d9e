"""One schedule of a program from its beginning, for those who want to see it."""

from __future__ import annotations

from dataclasses import dataclass

from mcheck.cat.ast import Model
from mcheck.program.program import Program
from mcheck.protocol import accesses, barriers, control, fences, mbarriers, words
from mcheck.protocol.agents import Split, partition
from mcheck.protocol.machine import Machine
from mcheck.protocol.setup import NewMbarrier, prepare

MODULES = (accesses, barriers, control, fences, mbarriers, words)
"""Imported for the operations that they register."""
ATTEMPTS = 40


@dataclass(frozen=True, slots=True)
class Step:
    """The ``line`` that ``lane`` executes; ``note`` where it is no issue: ``completes``."""

    lane: str
    line: int
    note: str


def sample(program: Program, model: Model, *, profile: str = "ptx", unroll: int = 2) -> tuple[Step, ...]:
    """The steps of the first schedule that the protocol engine looks at; none where lanes part too often."""
    agents = partition(program)
    extra: tuple[int, ...] = ()
    for _ in range(ATTEMPTS):
        try:
            setup = prepare(program, agents, model, profile, unroll, lambda: None, None, extra)
            m = Machine(setup, ())
            m.run()
        except Split as split:
            whole = {t for g in split.groups for t in g}
            rest = [tuple(t for t in a if t not in whole) for a in agents]
            agents = tuple(sorted([g for g in split.groups if g] + [r for r in rest if r]))
            continue
        except NewMbarrier as new:
            extra = (*extra, new.address)
            continue
        return tuple(
            Step(m.name(m.agents[e.agent]), e.op.span.line, e.note or "") for e in m.trace if e.op.span is not None
        )
    return ()
