"""The execution of whole CTAs from where all of their threads load what one of them has found in a word of another
cluster (``mcheck.simt.grid.looks.handed_looks``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Protocol

import numpy as np

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.grid.looks.handed_looks import HandedExploration, HandedLook, find_handed_looks
from mcheck.simt.grid.looks.known_bits import Bits, anything
from mcheck.simt.grid.looks.warp_exploration import NOT_FOLLOWED
from mcheck.simt.grid.looks.warp_states import Look, State
from mcheck.simt.grid.looks.word_values import Words
from mcheck.simt.grid.pairs.reduction import NotReducible


class Watch(Protocol):
    """What is asked of the watch on an execution of clusters that look at words."""

    compiler: Compiler
    numbers: tuple[int, ...]
    found: Words

    @property
    def check_time(self) -> Callable[[], None]:
        """Raises if there is no time left."""
        ...

    def bits(self, unit: Unit, operand: ptx.Operand) -> Bits:
        """What is known of an operand, in all lanes."""
        ...

    def set_lanes(self, row: int, mask: Mask, bits: Bits) -> None:
        """Set a register of these lanes."""
        ...

    def looks_of(self, number: int, c: Cluster) -> Look:
        """What words may hold where a cluster of this number looks at them."""
        ...

    def go_on(self, c: Cluster, unit: Unit, mine: Mask, place: int, state: State) -> None:
        """Let the lanes of a warp go on from where an exploration has led them."""
        ...


@dataclass(slots=True)
class HandedTakeover:
    """Takes CTAs over where they load what one of their threads has found."""

    watch: Watch
    is_look: Callable[[ptx.Statement], bool]
    handed: dict[int, Mapping[int, HandedLook]] = field(default_factory=dict)
    """By the first place of a function, the looks that are handed on, by ``id`` of each of their instructions."""

    def _of(self, unit: Unit) -> Mapping[int, HandedLook]:
        if unit.start not in self.handed:
            body = unit.function.body
            found = list(find_handed_looks(unit.function, self.is_look))
            self.handed[unit.start] = {id(body[at]): one for one in found for at in one.places}
        return self.handed[unit.start]

    def leave_out(self, unit: Unit, statement: ptx.Statement) -> Step | None:
        """A step for a look that is handed on: what it finds matters where all threads load it. None for others."""
        if id(statement) not in self._of(unit):
            return None
        rows = [unit.frame + r.index for r in statement.defs]

        def run(c: Cluster, mask: Mask) -> None:
            mine = self.watch.compiler.guarded(unit, statement.guard, mask)
            for row in rows:
                self.watch.set_lanes(row, mine, anything(64, mine.shape))
            c.pc[mask] += 1

        return run

    def take_over(self, unit: Unit, at: int, step: Step) -> Step:
        """The step, if it is such a load one behind which CTAs are taken over."""
        statement = unit.function.body[at - unit.start]
        first = self._of(unit).get(id(statement))
        if first is None or unit.start + first.read != at:
            return step

        def run(c: Cluster, mask: Mask) -> None:
            step(c, mask)
            c.span = statement.span
            for cta in distinct(c.lanes.cta[mask]).tolist():
                lanes = c.lanes.cta == cta
                if not mask[lanes].all():
                    raise NotReducible(NOT_FOLLOWED, c.span)
                self._explore(c, unit, first, lanes)

        return run

    def _explore(self, c: Cluster, unit: Unit, first: HandedLook, lanes: Mask) -> None:
        """Follow the first warp of a CTA, and the others, if they may find something else; all go the same way."""
        guard = unit.function.body[first.look].guard
        assert guard is not None
        looks = self._hold(unit, lanes, guard.register)
        if looks.unknown.any() or np.count_nonzero((looks.value != 0) ^ guard.negated) != 1:
            raise NotReducible(NOT_FOLLOWED, c.span)
        ways: list[tuple[Mask, int, State]] = []
        others: dict[int, Bits] | None = None
        for warp in distinct(np.flatnonzero(lanes) // WARP).tolist():
            mine = np.zeros_like(lanes)
            mine[warp * WARP : (warp + 1) * WARP] = True
            if others is None:
                explored = self._exploration(c, unit, first, lanes, mine)
                place, state = explored.run(first.read, np.ones(WARP, np.bool_), ())
                others = None if ways else explored.of_others(state)
            else:
                state = State(registers=others)
            ways.append((mine, place, state))
        if len({place for _, place, _ in ways}) != 1 or ways[0][1] == first.read:
            raise NotReducible(NOT_FOLLOWED, c.span)
        for mine, place, state in ways:
            self.watch.go_on(c, unit, mine, place, state)

    def _exploration(self, c: Cluster, unit: Unit, first: HandedLook, lanes: Mask, mine: Mask) -> HandedExploration:
        """That of the ways of a warp of a CTA."""
        number = self.watch.numbers[int(c.lanes.cluster[lanes][0])]
        return HandedExploration(
            unit, partial(self._hold, unit, mine), self.watch.found.explored, self.watch.looks_of(number, c),
            self.is_look, self.watch.found.reads.update, self.watch.check_time,
            first=first, handed=self._of(unit), whole=partial(self._hold, unit, lanes),
        )  # fmt: skip

    def _hold(self, unit: Unit, those: Mask, operand: ptx.Operand) -> Bits:
        """What is known of an operand, in some lanes."""

        def of(values: Word) -> Word:
            return np.broadcast_to(values, those.shape)[those]

        found = self.watch.bits(unit, operand)
        return Bits(of(found.value), of(found.unknown))
