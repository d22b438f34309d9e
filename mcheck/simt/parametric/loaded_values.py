"""The values that weak loads return from shared memory, as far as control and addresses may depend on them: those that
a proof for any number rests on, and those of an execution with a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

import numpy as np

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.memory_layout import LOCAL_BASE
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.ir.memory import SHARED_BASE
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import BeforeStep, statements, with_action
from mcheck.simt.instructions.access_operands import Indices, to_generic

PART = 8
"""The bytes that are read at once."""
Loaded = tuple[int, ...] | None
"""What a load has returned; ``None`` if it is not known, or if nothing rests on it."""


def loaded_targets(compiler: Compiler, unit: Unit, statement: ptx.Statement) -> list[int]:
    """The rows that a load writes, if it is one whose value may be asked for."""
    if statement.kind is not Kind.LOAD or statement.opcode.is_strong:
        return []
    if not {"param", "const"}.isdisjoint(statement.opcode.spaces):
        return []
    rows = [unit.frame + r.index for r in operand_registers(statement.operands[0])]
    return [row for row in rows if row in compiler.code.needed_rows]


def loaded_size(statement: ptx.Statement) -> int:
    """The bytes that a lane loads."""
    count = len(list(operand_registers(statement.operands[0])))
    return type_size(statement.opcode.type) * max(count, 1)


def load_values(c: Cluster, address: Word, size: int, lanes: Indices) -> list[Loaded]:
    """What lanes load from there."""
    unknown = (address < SHARED_BASE) | (address >= LOCAL_BASE)
    parts: list[Word] = []
    for first in range(0, size, PART):
        value, quality = c.store.load(address + np.uint64(first), min(PART, size - first), lanes)
        unknown |= quality != 0
        parts.append(value)
    rows = np.stack(parts, axis=1).tolist()
    return [None if bad else tuple(row) for row, bad in zip(rows, unknown.tolist(), strict=True)]


@dataclass(slots=True)
class LoadedValues:
    """The watch on an execution with one number."""

    by_lane: dict[int, list[Loaded]] = field(default_factory=dict)

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the loads."""
        out = list(steps)
        for at, statement, unit in statements(compiler):
            if find_fault(statement) is None and loaded_targets(compiler, unit, statement):
                out[at] = with_action(compiler, unit, statement, self._load(compiler, unit, statement), steps[at])
        return out

    def _load(self, compiler: Compiler, unit: Unit, statement: ptx.Statement) -> BeforeStep:
        fetch, size = compiler.fetch(unit, statement.place), loaded_size(statement)

        def before(c: Cluster, mine: Mask) -> None:
            lanes = np.flatnonzero(mine)
            at = to_generic(np.broadcast_to(fetch()[0], mine.shape)[lanes])
            for lane, value in zip(lanes.tolist(), load_values(c, at, size, lanes), strict=True):
                self.by_lane.setdefault(lane, []).append(value)

        return before


Parts = Mapping[int, tuple[Sequence[Loaded], Sequence[Loaded], Sequence[Loaded]]]
"""By lane, what is loaded before its loop, in a period, and from the last period on."""


@dataclass(frozen=True, slots=True)
class PeriodicLoads:
    """The values on which a proof for any number rests: of each first number, and how to execute another one."""

    parts: tuple[Parts, ...]
    execute: Callable[[int], Mapping[int, Sequence[Loaded]]]

    def check(self, which: int, periods: int, number: int) -> None:
        """Check that an execution with a number that adds so many periods loads these values. Raises ``Aperiodic``."""
        found = self.execute(number)
        others = f"values in shared memory that are others with {number}"
        if not found.keys() <= self.parts[which].keys():
            raise Aperiodic(others)
        for lane, (head, body, tail) in self.parts[which].items():
            wanted, given = [*head, *(list(body) * periods), *tail], found.get(lane, ())
            if len(wanted) != len(given) or any(x is not None and x != y for x, y in zip(wanted, given, strict=True)):
                raise Aperiodic(others)
