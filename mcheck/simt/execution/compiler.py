"""What the step makers share: operands in all lanes, rows of destinations, guards, and the registry of step makers.

``mcheck.simt.instructions.dispatch`` calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import InputError, Unsupported
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Code, Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, truncate, type_bits
from mcheck.frontend.ptx.memory_layout import MemoryLayout
from mcheck.ir.memory import SHARED_WINDOW
from mcheck.isa.kinds import WARPGROUP, Kind
from mcheck.simt.execution.async_registers import in_flight_rows
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compared_numbers import find_compared
from mcheck.simt.execution.lanes import Lanes, Mask, Quality
from mcheck.simt.execution.path_condition import PathCondition
from mcheck.simt.execution.value_numbering import result_namer
from mcheck.simt.execution.waits.meetings import Meeting
from mcheck.simt.execution.waits.value_tests import AwaitedValue

Fetch = Callable[[], tuple[Word, Quality]]
FindWaits = Callable[[Mask], list[tuple[Mask, AwaitedValue | None]]]
"""The conditions that lanes wait for, lanes with equal conditions together."""
FindBarrierWait = Callable[[int], tuple[AwaitedValue, Meeting] | None]
"""What a lane waits for, and where it meets the others."""
StepMaker = Callable[["Compiler", Unit, ptx.Statement, int], Step]
STEP_MAKERS: dict[Kind, StepMaker] = {}
"""The maker of a step by the kind of the instruction."""

SURE = np.zeros(1, np.uint8)


def compiles(*kinds: Kind) -> Callable[[StepMaker], StepMaker]:
    """Register the function that compiles instructions of these kinds to steps."""

    def register(maker: StepMaker) -> StepMaker:
        for kind in kinds:
            STEP_MAKERS[kind] = maker
        return maker

    return register


@dataclass(slots=True)
class Compiler:
    """Translates statements into steps: all functions that an entry reaches, with registers and addresses of
    operands.
    """

    module: ptx.Module
    code: Code
    lanes: Lanes
    places: MemoryLayout
    block_starts: set[int] = field(default_factory=set)
    """Places where a run of steps begins: functions, labels, and what follows a branch."""
    mistakes: dict[int, InputError] = field(default_factory=dict)
    """Errors of statements that are not instructions, by place."""
    not_followed: set[int] = field(default_factory=set)
    """Places of statements whose steps report an error, or give up."""
    value_waits: dict[int, FindWaits | None] = field(default_factory=dict)
    """By the place of a load or an atomic, how to find what lanes wait for there."""
    barrier_waits: dict[int, FindBarrierWait | None] = field(default_factory=dict)
    """The same of loads that are repeated around a barrier."""
    barriers_decide: dict[int, bool] = field(default_factory=dict)
    """By the first place of a function, whether it has a barrier that such loops end with."""
    compared: dict[int, frozenset[ptx.Register]] = field(default_factory=dict)
    """By the first place of a function, the results of atomics that only comparisons read."""
    differs: Callable[[int, NDArray[np.int64]], NDArray[np.bool_]] | None = None
    """In which lanes a register may hold something else in other clusters, for which waits have to be found as well."""
    in_flight: frozenset[int] = field(init=False)
    """The rows of the registers that asynchronous instructions write."""
    path_condition: PathCondition = field(init=False)

    def __post_init__(self) -> None:
        self.in_flight = in_flight_rows(self.code.units)
        self.path_condition = PathCondition(self.lanes)
        self.path_condition.prepare(self.code)

    def fetch(self, unit: Unit, operand: ptx.Operand) -> Fetch:
        """A function that reads an operand in all lanes."""
        values, known = self.lanes.values, self.lanes.quality
        match operand:
            case ptx.Register(_, _, index):
                row = unit.frame + index
                return lambda: (values[row], known[row])
            case ptx.Negated(register):
                row = unit.frame + register.index
                return lambda: (np.uint64(1) - values[row], known[row])
            case ptx.Immediate(value):
                constant = np.array([value & (1 << 64) - 1], np.uint64)
                return lambda: (constant, SURE)
            case ptx.Special(name):
                found = self.lanes.special.get(name)
                if found is None:
                    unknown = np.zeros(1, np.uint64), np.array([taint.UNKNOWN_NAMELESS], np.uint8)
                    return lambda: unknown
                return lambda: (found, SURE)
            case ptx.Symbol(name, offset):
                address = self.symbol_address(unit, name) + np.uint64(offset & (1 << 64) - 1)
                return lambda: (address, SURE)
            case ptx.Address(base, offset, _):
                if base is None:
                    return self.fetch(unit, ptx.Immediate(offset))
                inner, more = self.fetch(unit, base), np.uint64(offset & (1 << 64) - 1)
                if not offset:
                    return inner
                narrow = isinstance(base, ptx.Register) and type_bits(base.type) == 32
                if narrow:
                    return lambda: (truncate(inner()[0] + more, 32), inner()[1])
                return lambda: (inner()[0] + more, inner()[1])
            case ptx.Part(register, selector) if len(selector) == 2:  # more are what SIMD video instructions mix
                row, bits = unit.frame + register.index, 8 if selector[0] == "b" else 16
                by = np.uint64(int(selector[1]) * bits)
                return lambda: (truncate(values[row] >> by, bits), known[row])
        raise Unsupported("an operand of this kind is not followed")

    def symbol_address(self, unit: Unit, name: str) -> Word:
        """The address of a name, in each lane."""
        for key in ((unit.function.name, name), ("", name)):
            at = self.places.symbols.get(key)
            if at is not None:
                if key in self.places.shared:
                    return (self.lanes.cta * SHARED_WINDOW + at).astype(np.uint64)
                return np.array([at], np.uint64)
        raise Unsupported(f"'{name}' has no address here")

    def register_rows(self, unit: Unit, registers: Iterable[ptx.Register]) -> list[int]:
        """The rows of registers."""
        return [unit.frame + r.index for r in registers]

    def destination_rows(self, unit: Unit, operand: ptx.Operand) -> list[int | None]:
        """The rows of the destination registers; ``None`` for ``_``."""
        match operand:
            case ptx.Register(_, _, index):
                return [unit.frame + index]
            case ptx.Pair(first, second):
                return self.destination_rows(unit, first) + self.destination_rows(unit, second)
            case ptx.Vector(items):
                return [row for item in items for row in self.destination_rows(unit, item)]
            case ptx.Sink():
                return [None]
        raise Unsupported("a destination of this kind is not followed")

    def compared_registers(self, unit: Unit) -> frozenset[ptx.Register]:
        """The results of atomics of a function that only comparisons read."""
        if unit.start not in self.compared:
            self.compared[unit.start] = find_compared(unit.function)
        return self.compared[unit.start]

    def is_needed(self, unit: Unit, statement: ptx.Statement) -> bool:
        """Whether anything depends on the result of a statement."""
        return any(row in self.code.needed_rows for row in self.register_rows(unit, statement.defs))

    def guarded(self, unit: Unit, guard: ptx.Guard | None, mask: Mask) -> Mask:
        """The lanes for which a guard holds by the values of the registers, known or not."""
        if guard is None:
            return mask
        return np.asarray(mask & ((self.lanes.values[unit.frame + guard.register.index] != 0) ^ guard.negated))

    def with_guard(self, unit: Unit, statement: ptx.Statement, made: Step) -> Step:
        """A step executed only by the lanes for which the guard holds."""
        guard, span = statement.guard, statement.span
        if guard is None:

            def plain(c: Cluster, mask: Mask) -> Mask | None:
                c.span = span
                return made(c, mask)

            return plain
        row = unit.frame + guard.register.index

        def run(c: Cluster, mask: Mask) -> Mask | None:
            c.span = span
            mine = c.evaluate_guard(guard, row, mask, statement)
            if not mine.any():
                return mask
            others = mask & ~mine
            at = c.current_pc
            rest = made(c, mine)
            if rest is None:
                if others.any():
                    c.pc[others] = at + 1
                return None
            return rest | others

        return run

    def forget_results(self, unit: Unit, statement: ptx.Statement) -> Step:
        """A step after which the results of a statement are unknown."""
        rows = self.register_rows(unit, statement.defs)
        known = self.lanes.quality
        if self.code.stores_named and (statement.only_computes or statement.kind in WARPGROUP):
            name = result_namer(self.lanes, partial(self.register_rows, unit), statement)

            def named(_: Cluster, mask: Mask) -> Mask:
                name(mask)
                return mask

            return named

        def run(_: Cluster, mask: Mask) -> Mask:
            for row in rows:
                known[row][mask] = taint.UNKNOWN_NAMELESS
            return mask

        return run


def no_effect(_: Cluster, mask: Mask) -> Mask:
    """A step without effect."""
    return mask


def unsupported_step(statement: ptx.Statement, reason: str) -> Step:
    """The step of an instruction that cannot be followed: what its lanes do afterwards is unknown."""

    def run(c: Cluster, mask: Mask) -> None:
        c.span = statement.span
        c.give_up(mask, reason)

    return run
