"""The registers of some lanes as affine functions of the number of rounds of a loop that are still to come.

The rules of instructions are those of values that grow with a parameter (``mcheck.simt.parametric.affine``), whose
periods are rounds. A register whose value is not known, or does not grow evenly, is bad.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import lane_function, low_mask, type_bits
from mcheck.frontend.ptx.module import operand_registers
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.parametric.affine import MAX_SLOPE, Numbers, Value, logical_rule, rule_of, select_rule

Indices = NDArray[np.int64]
SYMBOLS = 3
"""The rules take slopes by three symbols; the first one counts the rounds."""


@dataclass(slots=True)
class RoundForms:
    """The forms of registers during one round. ``steps`` are how much each register grows in a round if all goes on as
    in the round before, with a column for each of the ``lanes``, all of which execute the round together; ``widths``
    are the bits of each register.
    """

    compiler: Compiler
    numbers: Numbers
    lanes: Indices
    steps: NDArray[np.int64]
    widths: Indices
    slopes: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """By row, the slopes of registers that were written in this round."""
    bad: dict[int, Mask] = field(default_factory=dict)
    written: dict[int, Mask] = field(default_factory=dict)
    """By row, the lanes that have written the register in this round."""
    carried: set[int] = field(default_factory=set)
    """Rows that a lane has read before it has written them in this round."""

    def value(self, unit: Unit, operand: ptx.Operand, fetch: Fetch, mine: Mask) -> Value:
        """An operand of those lanes that are ``mine``, before the instruction is executed."""
        shape = (self.compiler.lanes.count,)
        base, known = fetch()
        base, known = np.broadcast_to(base, shape)[self.lanes][mine], np.broadcast_to(known, shape)[self.lanes][mine]
        slopes, bad = np.zeros((SYMBOLS, len(base)), np.int64), known != 0
        inner = operand.base if isinstance(operand, ptx.Address) else operand
        for register in operand_registers(inner) if inner is not None else ():
            row = unit.frame + register.index
            self.note_read(row, mine)
            mine_slopes, mine_bad = self.form(row)
            slopes[0], bad = mine_slopes[mine], bad | mine_bad[mine]
            if isinstance(operand, ptx.Part):
                bad = bad | slopes.any(axis=0)
        if isinstance(operand, ptx.Negated):
            bad = bad | slopes.any(axis=0)
        return Value(base, np.where(bad, 0, slopes), bad)

    def form(self, row: int) -> tuple[NDArray[np.int64], Mask]:
        """The slopes of a register in all lanes, and where it is bad, as a predicate that changes is."""
        if row in self.slopes:
            slopes, bad = self.slopes[row], self.bad[row]
        else:
            slopes = self.steps[row]
            bad = (slopes > MAX_SLOPE) | (slopes < -MAX_SLOPE)
        return slopes, bad | (slopes != 0) if self.widths[row] == 1 else bad

    def note_read(self, row: int, mine: Mask) -> None:
        """Note that these lanes read a register."""
        if row not in self.written or (mine & ~self.written[row]).any():
            self.carried.add(row)

    def set(self, rows: Iterable[int], mine: Mask, value: Value | None) -> None:
        """Set the form that registers have in these lanes; without a value it is bad."""
        for row in rows:
            before, lost = self.form(row)
            slopes, bad = before.copy(), lost.copy()
            slopes[mine] = 0 if value is None else value.slopes[0]
            bad[mine] = True if value is None else value.bad
            self.slopes[row], self.bad[row] = slopes, bad
            self.written[row] = self.written.get(row, np.zeros(len(self.lanes), np.bool_)) | mine

    def compute(self, unit: Unit, statement: ptx.Statement, mine: Mask) -> None:
        """Set the forms of what an instruction computes, before it is executed."""
        targets = [row for row in self.compiler.register_rows(unit, statement.defs) if self._is_needed(row)]
        if not targets:
            return
        operands = statement.operands[1:]
        items = [x for o in operands for x in (o.items if isinstance(o, ptx.Vector) else (o,))]
        given = [self.value(unit, o, self.compiler.fetch(unit, o), mine) for o in items]
        opcode, kind = statement.opcode, statement.kind
        moves = kind is Kind.MOVE and opcode.type != "b128"
        packs = any(isinstance(o, ptx.Vector) for o in statement.operands)
        several = len(statement.defs) > 1 and kind is not Kind.COMPARISON
        still = np.logical_and.reduce([np.ones(int(mine.sum()), np.bool_), *(v.invariant for v in given)])
        slopes = np.zeros((SYMBOLS, len(still)), np.int64)
        made: Value | None = None
        if not (moves or kind is Kind.ADDRESS_CONVERSION or lane_function(opcode) is not None):
            self.set(targets, mine, None)
            return
        if not (still.all() or packs or several or (kind is Kind.ADDRESS_CONVERSION and opcode.space == "shared")):
            if kind is Kind.SELECTION:
                made = select_rule(*given)
            elif opcode.type == "pred" and opcode.name in ("and", "or"):
                made = logical_rule(opcode.name, *given)
            elif (rule := rule_of(opcode)) is not None:
                some = ~still & ~np.logical_or.reduce([v.bad for v in given])
                bad = ~still & ~some
                if some.any():
                    part = rule(self.numbers, [v.of_lanes(some) for v in given])
                    slopes[:, some], bad[some] = part.slopes, part.bad
                made = Value(given[0].base, slopes, bad)
        if made is not None:
            lost = made.bad & ~still
            slopes = np.where(still | lost, 0, made.slopes)
        else:
            lost = ~still
        self.set(targets, mine, Value(given[0].base, slopes, lost))

    def _is_needed(self, row: int) -> bool:
        return row in self.compiler.code.needed_rows

    def goes_on(self, values: NDArray[np.uint64], quality: NDArray[np.uint8]) -> bool:
        """Whether the round has left the registers that the next one depends on as it found them, but for the steps:
        also those that only the round before has written. ``values`` and ``quality`` are those of the registers of
        these lanes before the round.
        """
        now = self.compiler.lanes
        for row in self.carried:
            after, known = now.values[row][self.lanes], now.quality[row][self.lanes]
            if not np.array_equal(quality[row], known):
                return False
            sure = known == 0
            slopes, bad = self.form(row)
            grown = (values[row] + self.steps[row].astype(np.uint64)) & low_mask(int(self.widths[row]))
            evenly = ~bad & (slopes == self.steps[row]) & (grown == after)
            if not evenly[sure].all():
                return False
        return True


def register_widths(compiler: Compiler) -> NDArray[np.int64]:
    """The bits of each register."""
    found = [r.type for u in compiler.code.units for r in u.function.registers]
    return np.array([min(max(1, type_bits(kind)), 64) for kind in found], np.int64)


def steps_between(
    before: NDArray[np.uint64], after: NDArray[np.uint64], widths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """By how much registers have grown, as signed numbers of their widths."""
    apart = (after - before).astype(np.int64)
    short = np.where(widths < 64, widths, 1)[:, None]
    half = np.int64(1) << (short - 1)
    return np.where((widths < 64)[:, None], (apart + half) % (half << 1) - half, apart)
