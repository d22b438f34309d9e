"""What the registers and other operands of a warp hold while all of its ways are followed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import numpy as np

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.module import operand_registers
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.looks.known_bits import ONE, ZERO, Bits, anything
from mcheck.simt.grid.looks.warp_states import Lanes, State


@dataclass(slots=True)
class WarpOperands:
    """The operands of a warp in a function."""

    unit: Unit
    base: Callable[[ptx.Operand], Bits]
    """What an operand holds at the beginning, in the lanes of the warp."""
    held: dict[ptx.Operand, Bits] = field(default_factory=dict, kw_only=True)
    """What has been asked of that."""

    def _at_first(self, operand: ptx.Operand) -> Bits:
        """What an operand holds at the beginning."""
        found = self.held.get(operand)
        if found is None:
            found = self.held[operand] = self.base(operand)
        return found

    def _row(self, state: State, row: int) -> Bits:
        found = state.registers.get(row)
        return self.base_row(row) if found is None else found

    def base_row(self, row: int) -> Bits:
        """A register at the beginning."""
        return self._at_first(self.register(row))

    def register(self, row: int) -> ptx.Register:
        """The register of a row."""
        return ptx.Register("", "b64", row - self.unit.frame)

    def _uniform_row(self, state: State, row: int) -> Lanes:
        return state.uniform.get(row, np.zeros(WARP, np.bool_))

    def _reads_same(self, statement: ptx.Statement, state: State, mask: Lanes) -> bool:
        """Whether an instruction reads the same in all of these lanes."""
        sources = [x for o in statement.operands[1:] for x in (o.items if isinstance(o, ptx.Vector) else (o,))]
        for operand in sources:
            registers = list(operand_registers(operand))
            if not registers:
                found = self._operand(operand, state)
                value = np.broadcast_to(found.value, mask.shape)[mask]
                if found.unknown.any() or (value != value[0]).any():
                    return False
            for register in registers:
                row = self.unit.frame + register.index
                bits = state.settled(self._row(state, row))
                value, unknown = bits.value[mask], bits.unknown[mask]
                if (unknown == 0).all() and (value == value[0]).all():
                    continue
                if not self._uniform_row(state, row)[mask].all():
                    return False
        return True

    def _guard(self, guard: ptx.Guard, state: State) -> Bits:
        found = self._row(state, self.unit.frame + guard.register.index)
        if not guard.negated:
            return found
        return Bits(np.where(found.unknown != 0, ZERO, found.value ^ ONE), found.unknown)

    def _operand(self, operand: ptx.Operand, state: State) -> Bits:
        """What an operand holds, in each lane."""
        return state.settled(self._cases(operand, state))

    def _cases(self, operand: ptx.Operand, state: State) -> Bits:
        """What an operand holds, in each lane and by the case of the lane where that makes a difference."""
        match operand:
            case ptx.Register():
                return self._row(state, self.unit.frame + operand.index)
            case ptx.Negated(register):
                return self._guard(ptx.Guard(register, negated=True), state)
            case ptx.Part():
                return anything(64, (WARP,))
            case ptx.Address(ptx.Register() as base, offset, _):
                found = self._row(state, self.unit.frame + base.index)
                return replace(found, value=found.value + np.uint64(offset & (1 << 64) - 1))
            case _:
                return self._at_first(operand)
