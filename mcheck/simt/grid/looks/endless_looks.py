"""Warps that look at words again and again.

Outside of an exploration a warp may come back to a look that it has begun before. It may do so a number of times, as in
a loop of known length. If it then comes back with the same registers, having done nothing else, it always will.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

import numpy as np

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import COLLECTIVES, Kind
from mcheck.simt.execution.cluster import EXITED, Cluster
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.grid.looks.known_bits import Bits
from mcheck.simt.grid.looks.warp_exploration import ENDLESS, QUIET, Exploration
from mcheck.simt.grid.looks.warp_states import Case
from mcheck.simt.grid.looks.word_statements import is_look
from mcheck.simt.grid.looks.word_values import Words
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.instructions.access_operands import to_generic

MAX_VISITS = 64
"""How often a warp may look at the same words at one place, outside of an exploration."""
ROUND = frozenset((Kind.BRANCH, Kind.WARP_BARRIER, *COLLECTIVES, *QUIET))
"""What a round of a loop may consist of beside looks and computations, if it is to be like the one before."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A lane that looks at words forever if the clusters before its own have ended, and no others have begun; the word
    that it looks at last, and all of them.
    """

    lane: int
    address: int
    size: int
    words: frozenset[int]
    statement: ptx.Statement


class Watch(Protocol):
    """What is asked of the watch on an execution of clusters that look at words."""

    compiler: Compiler
    found: Words
    value: Word
    unknown: Word

    def bits(self, unit: Unit, operand: ptx.Operand) -> Bits:
        """What is known of an operand, in all lanes."""
        ...


@dataclass(slots=True)
class EndlessLooks:
    """Finds the lanes that look at words forever."""

    watch: Watch
    stuck: list[Stuck]
    """Those lanes."""
    visits: dict[tuple[object, ...], int] = field(default_factory=dict)
    """How often warps have been taken over, by place, warp and addresses."""
    rounds: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """By place and warp, its state when it was taken over there."""

    def come(self, c: Cluster, unit: Unit, at: int, warp: int, mask: Mask, number: int) -> bool:
        """Note that a warp comes to a look; returns whether it always comes back. Raises ``NotReducible``."""
        there = slice(warp * WARP, (warp + 1) * WARP)
        visit = at, warp, tuple(self.watch.bits(unit, _look_place(unit, at)).value[there].tolist())
        self.visits[visit] = self.visits.get(visit, 0) + 1
        if self.visits[visit] < MAX_VISITS:
            return False
        before, self.rounds[at, warp] = self.rounds.get((at, warp)), self._state(c, there)
        if self.visits[visit] == MAX_VISITS:
            return False
        if before != self.rounds[at, warp] or not self._note_same_round(c, unit, at, there, mask, number):
            raise NotReducible(ENDLESS, c.span)
        return True

    def _state(self, c: Cluster, warp: slice) -> bytes:
        """Where the lanes of a warp are, and all that is known of their registers."""
        lanes = self.watch.compiler.lanes
        held = (lanes.values, lanes.quality, self.watch.value, self.watch.unknown)
        return b"".join((c.pc[warp].tobytes(), c.status[warp].tobytes(), *(rows[:, warp].tobytes() for rows in held)))

    def _note_same_round(self, c: Cluster, unit: Unit, at: int, warp: slice, mask: Mask, number: int) -> bool:
        """Note lanes of a warp that has come back to a look with the same registers, and so always will: it does
        nothing else in between but compute and vote, and its words hold one value. Returns whether that is so.
        """
        place, ways = at - unit.start, self.watch.found.explored.of(unit)
        loop = {k for k in ways.reachable(place) if place in ways.reachable(k)}
        body = [unit.function.body[k] for k in loop]
        looks = [s for s in body if is_look(s)]
        if not all(is_look(s) or s.only_computes or s.kind in ROUND for s in body) or len(looks) != 1:
            return False
        statement, lanes = looks[0], np.flatnonzero(mask[warp])
        if statement is not unit.function.body[place] or statement.guard is not None or statement.opcode.vector != 1:
            return False
        size = type_size(statement.opcode.type)
        words = [int(generic_address(a)) for a in self.watch.bits(unit, statement.place).value[warp][lanes].tolist()]
        if any(len(self.watch.found.look(number, word, size, c.span, final=False)) != 1 for word in words):
            return False
        self.stuck.append(Stuck(warp.start + int(lanes[0]), words[0], size, frozenset(words), statement))
        c.status[warp][np.isin(c.pc[warp] - unit.start, list(loop))] = EXITED
        return True

    def note_stuck(self, explored: Exploration, unit: Unit, at: int, mine: Mask, number: int) -> bool:
        """Note lanes that look forever, unless others of their cluster store what they look for; returns whether they
        do.
        """
        looked: list[tuple[int, int]] = []

        def look(address: int, size: int, *, final: bool) -> Sequence[Case]:
            looked.append((generic_address(address), size))
            return self.watch.found.look(number, generic_address(address), size, None, final=final)

        again = replace(explored, look=look, steps=0)
        lane = int(np.flatnonzero(mine)[0])
        first = lane // WARP * WARP
        try:
            if not again.is_stuck(at - unit.start, mine[first : first + WARP]) or not looked:
                return False
        except NotReducible:
            return False
        address, size = looked[-1]
        statement = next(s for s in unit.function.body[at - unit.start :] if is_look(s))
        self.stuck.append(Stuck(lane, address, size, frozenset(one for one, _ in looked), statement))
        return True


def _look_place(unit: Unit, at: int) -> ptx.Operand:
    """The address of a look, or any operand that is the same each time."""
    statement = unit.function.body[at - unit.start]
    return statement.place if statement.kind is Kind.LOAD else ptx.Immediate(0)


def generic_address(address: int) -> int:
    """The generic address of a word of global memory."""
    return int(to_generic(np.array([address], np.uint64))[0])
