"""Counts of backward jumps of lanes to loop heads, with the register values at each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import Mask

BeforeStep = Callable[[Cluster, Mask], None]
"""Runs before an instruction, for the lanes that execute it."""


@dataclass(frozen=True, slots=True)
class LoopMark:
    """The loop of a lane: its head, the visit at which a period begins, and the number of ``visits`` of a period."""

    head: int
    first: int
    visits: int


@dataclass(slots=True)
class LoopVisits:
    """The backward jumps of lanes, and their registers at their marks."""

    marks: Mapping[int, LoopMark] = field(default_factory=dict)
    loops: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """By lane and loop head, the number of the lane's recorded operations at each backward jump to it."""
    states: dict[int, list[tuple[Word, NDArray[np.uint8]]]] = field(default_factory=dict)
    """By lane, its registers at its mark and at the ends of the first two periods."""

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the steps."""
        out = list(steps)
        for at, statement, unit in statements(compiler):
            if statement.kind is Kind.BRANCH:
                out[at] = with_action(compiler, unit, statement, self._jump(unit, statement, at), steps[at])
        return out

    def _jump(self, unit: Unit, statement: ptx.Statement, at: int) -> BeforeStep | None:
        target = jump_target(unit, statement)
        if target > at:
            return None

        def before(c: Cluster, mine: Mask) -> None:
            for lane in np.flatnonzero(mine).tolist():
                visits = self.loops.setdefault((lane, target), [])
                visits.append(len(c.recorded.code[lane]))
                mark = self.marks.get(lane)
                if mark is not None and mark.head == target and len(visits) >= mark.first:
                    done, rest = divmod(len(visits) - mark.first, mark.visits)
                    if not rest and done < 3:
                        state = c.lanes.values[:, lane].copy(), c.lanes.quality[:, lane].copy()
                        self.states.setdefault(lane, []).append(state)

        return before


def statements(compiler: Compiler) -> Iterator[tuple[int, ptx.Statement, Unit]]:
    for unit in compiler.code.units:
        for at, statement in enumerate(unit.function.body):
            yield unit.start + at, statement, unit


def jump_target(unit: Unit, statement: ptx.Statement) -> int:
    label = statement.operands[0]
    return unit.start + unit.function.labels[label.name] if isinstance(label, ptx.Label) else 0


def with_action(
    compiler: Compiler, unit: Unit, statement: ptx.Statement, before: BeforeStep | None, step: Step,
    sure: Callable[[ptx.Statement, ptx.Register, int, Mask], None] | None = None,
) -> Step:  # fmt: skip
    """A step with an action before it, for the lanes whose guard holds."""
    guard = statement.guard
    if before is None and (guard is None or sure is None):
        return step

    def run(c: Cluster, mask: Mask) -> Mask | None:
        if guard is not None and sure is not None:
            sure(statement, guard.register, unit.frame + guard.register.index, mask)
        mine = compiler.guarded(unit, guard, mask)
        if before is not None and mine.any():
            before(c, mine)
        return step(c, mask)

    return run
