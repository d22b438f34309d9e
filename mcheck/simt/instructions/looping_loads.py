"""Loads in loops that repeat several of them until they let the thread go on, as they are reached: the loop is recorded
at its first load, and failed iterations leave no trace (``mcheck.simt.execution.waits.load_loops``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import type_bits
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.isa.opcode import READONLY
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.waits.load_loops import LoadLoop, LoopShape, find_shape, with_labels, write_loop
from mcheck.simt.execution.waits.polling_loops import Known


@dataclass(slots=True)
class LoopFinder:
    """The loops, by what lanes hold in registers, that begin at a load."""

    k: Compiler
    unit: Unit
    shape: LoopShape
    loops: dict[tuple[tuple[int, int], ...], LoadLoop | None] = field(default_factory=dict)
    codes: dict[tuple[int, int], tuple[ops.Op, ...]] = field(default_factory=dict)

    def find(self, lane: int) -> LoadLoop | None:
        """The loop that a lane begins here."""
        known = self._sure_registers(lane)
        key = tuple(sorted(known.items()))
        if key not in self.loops:
            self.loops[key] = write_loop(self.shape, known, self._make)
        return self.loops[key]

    def code_of(self, loop: LoadLoop, number: int) -> tuple[ops.Op, ...]:
        """What is recorded of a loop, the same objects in all lanes."""
        key = id(loop), number
        if key not in self.codes:
            self.codes[key] = with_labels(loop.code, number)
        return self.codes[key]

    def _sure_registers(self, lane: int) -> Known:
        k, frame = self.k, self.unit.frame
        sure = [r for r in self.shape.used if not k.lanes.quality[frame + r][lane]]
        if k.differs is not None:
            sure = [r for r in sure if not k.differs(frame + r, np.array([lane]))[0]]
        return {r: int(k.lanes.values[frame + r][lane]) for r in sure}

    def _make(self, statement: ptx.Statement, known: Mapping[int, int]) -> ops.Load | None:
        """The load of a statement, if it is one of global memory at a known address."""
        place = statement.operands[1]
        if not isinstance(place, ptx.Address) or not isinstance(place.base, ptx.Register):
            return None
        base = known.get(place.base.index)
        if base is None or type_bits(place.base.type) != 64 or statement.opcode.has(READONLY):
            return None
        address = (base + place.offset) % (1 << 64)
        made = operation_template(self.unit.function, statement)
        if not GLOBAL_BASE <= address < SHARED_BASE or not isinstance(made, ops.Load) or len(made.dsts) != 1:
            return None
        return replace(made, address=Const(address))


def find_loop(k: Compiler, unit: Unit, at: int) -> LoopFinder | None:
    """How to find the loops that begin at the load at ``at``; ``None`` if there are none."""
    shape = find_shape(unit.function, at - unit.start)
    return None if shape is None else LoopFinder(k, unit, shape)


@dataclass(slots=True)
class LoopingLane:
    """A lane in a loop, and what it has loaded in this iteration, by register."""

    loop: LoadLoop
    loaded: dict[int, int] = field(default_factory=dict)

    def reaches(self, function: ptx.Function, place: int) -> bool:
        """Whether a load of a function is one of this loop."""
        return self.loop.shape.function is function and place in self.loop.shape.loads


def enter_loops(c: Cluster, mask: Mask, unit: Unit, place: int, finder: LoopFinder | None) -> tuple[Mask, list[int]]:
    """The lanes whose load at a place of a function is one of a loop, which is recorded where they begin it, and those
    that have come back to its beginning.
    """
    inside, again = np.zeros_like(mask), list[int]()
    for lane in np.flatnonzero(mask).tolist():
        found = c.looping.get(lane)
        if found is not None and found.reaches(unit.function, place):
            if place == found.loop.shape.at:
                found.loaded.clear()
                again.append(lane)
        else:
            c.looping.pop(lane, None)
            loop = None if finder is None else finder.find(lane)
            if finder is None or loop is None:
                continue
            for op in finder.code_of(loop, len(c.recorded.code[lane])):
                c.recorded.append(op, [lane])
            c.looping[lane] = LoopingLane(loop)
        inside[lane] = True
    return inside, again


def note_loaded(c: Cluster, lane: int, place: int, register: int, value: int) -> None:
    """Note what a lane has loaded in a loop, which it may leave then."""
    found = c.looping[lane]
    found.loaded[register] = value
    if not found.loop.repeats(found.loaded, place):
        del c.looping[lane]
